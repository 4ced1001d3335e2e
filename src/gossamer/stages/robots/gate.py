"""Gate: whether robots.txt permits a URL, and when robots.txt is fetched again (RFC 9309, sections 2.3.1 and 2.4).

Only decides: the ring fetches, the frontier waits, the store keeps the records.
"""

from collections.abc import Callable
from math import inf
from typing import Literal

import msgspec

from gossamer.model.counters import Counters
from gossamer.model.outcomes import CUT_SHORT, UNCONNECTED, status_error
from gossamer.model.visits import NOT_MODIFIED, Failure, Reply, max_age_s, retry_after_s, shorten_wait
from gossamer.stages.robots.options import RobotsOptions
from gossamer.stages.robots.record import AnswerKind, RecentlyUsed, RobotsRecord
from gossamer.stages.robots.rules import RobotsRules, cut
from gossamer.url.join import join, location_of
from gossamer.url.url import Url
from gossamer.world.clock import Absences, absent_s

RETRY_AFTER_S_MAX = 366 * 86_400.0
"""Longest Retry-After that is used."""
TEMPORARY = frozenset((408, 421, 425, 429))
"""Statuses of the client's errors that say nothing about the file: another request may be answered."""
OTHERS_TRIED_MAX = 5
"""Addresses of a host that are tried with short waits, while no host at all has answered."""
OTHERS_S_MAX = 15.0
"""Longest of these waits."""
ELSEWHERE_S_MAX = 10.0
"""Longest wait for robots.txt where only outlinks lead: for two or three refused connections, or one time limit."""
LONG_BYTES = 32_768
"""Longer files are parsed at intervals, if they are not in memory."""
PARSE_INTERVAL_S = 0.8e-6
"""Interval per byte of a long file: a byte takes up to 0.25 µs, and the event loop has other work."""
LONG_HOSTS_MAX = 10_000
"""Origins whose turns to have a long file parsed are remembered."""
_STATING = (b"content-usage", b"content-signal", b"license", b"llm-policy")


class RobotsVerdict(msgspec.Struct, frozen=True, gc=False):
    """Decision about a URL."""

    kind: Literal["allowed", "denied", "unknown", "wait", "given_up"]
    """`unknown`: robots.txt must be fetched first. `wait`: it could not be fetched yet. `given_up`: it could not be
    fetched for too long, so the origin's URLs end as `robots_unreachable`."""
    until: float = 0.0
    """For `wait`: wall time before which the origin gets no request."""
    reason: str = ""
    """For people."""


ALLOWED = RobotsVerdict("allowed")
_DENIED = RobotsVerdict("denied", reason="robots.txt disallows it")
_UNKNOWN = RobotsVerdict("unknown", reason="robots.txt must be read first")


def robots_url(url: Url) -> str:
    """Return the address of the robots.txt of a URL: one for each scheme, host and port."""
    return url.origin + "/robots.txt"


class RobotsGate:
    """Turns answers into records and records into verdicts. Caches the parsed rules of recently used origins."""

    def __init__(
        self,
        options: RobotsOptions,
        uniform: Callable[[float, float], float],
        is_elsewhere: Callable[[Url], bool] = lambda _: False,
    ) -> None:
        """`uniform` returns a random number between two, for jitter (`Dice.uniform`). An origin that `is_elsewhere`,
        where only outlinks lead, is waited for `ELSEWHERE_S_MAX` at most.
        """
        self.absences: Absences = ()
        """Periods in which no process ran, which do not count towards giving up a file."""
        self._options = options
        self._uniform = uniform
        self._is_elsewhere = is_elsewhere
        self._rules: RecentlyUsed[tuple[str, float], RobotsRules] = RecentlyUsed(
            options.cache_hosts_max, options.cache_bytes_max
        )
        self._parse_at = 0.0
        """When the next long file may be parsed."""
        self._turns: dict[str, float] = {}
        """The same by origin, for those that wait."""

    def count(self, into: Counters) -> None:
        """Set the counts of rules that were found in memory, and that were not."""
        into.robots_hits = self._rules.hits
        into.robots_misses = self._rules.misses

    def verdict(self, record: RobotsRecord | None, url: Url, now: float) -> RobotsVerdict:
        """Return what to do with `url`, given its origin's record. About 1 µs if the rules are in memory."""
        options = self._options
        if not options.obey:
            return ALLOWED
        if record is None or now < record.last_request_at:
            return _UNKNOWN
        if record.kind != AnswerKind.UNREACHABLE:
            if now < record.expires_at:
                return self._judge(record, url)
            if record.failures == 0 or now >= record.retry_at:
                return _UNKNOWN
            if now < record.fetched_at + options.stale_s_max:
                return self._judge(record, url)
        if now >= record.retry_at:
            return _UNKNOWN
        wait_s_max = ELSEWHERE_S_MAX if self._is_elsewhere(url) else inf
        given_up_at = self._deadline(record.first_failed_at, now, wait_s_max)
        attempts = f"{record.failures} attempt{'s' * (record.failures != 1)}"
        tries = f"could not fetch {robots_url(url)} ({attempts})"
        error = record.error and f": {record.error}"
        if now >= given_up_at or record.lasting >= options.certificate_tries_max:
            return RobotsVerdict("given_up", reason=tries + error)
        return RobotsVerdict("wait", min(record.retry_at, given_up_at), f"{tries}{error}")

    def sitemaps(self, record: RobotsRecord | None, origin: str) -> tuple[str, ...]:
        """Return the sitemaps in the file, as written."""
        return self._rules_of(record, origin).sitemaps if record is not None and record.kind == AnswerKind.RULES else ()

    def rules(self, record: RobotsRecord | None, origin: str) -> RobotsRules | None:
        """Return the rules of a record; None if it has none, or if robots.txt is not obeyed."""
        if record is None or record.kind != AnswerKind.RULES or not self._options.obey:
            return None
        return self._rules_of(record, origin)

    def turn_at(self, record: RobotsRecord | None, origin: str, now: float) -> float:
        """Return when the rules of an origin may be parsed: now, unless they are long and other long ones are before
        them. Many long files do not fit in memory, and each visit would parse one, which stalls the event loop.
        """
        if record is None or len(record.text) <= LONG_BYTES or record.kind != AnswerKind.RULES:
            return now
        if (origin, record.fetched_at) in self._rules:
            return now
        turn_at = self._turns.pop(origin, None)
        if turn_at is None:
            turn_at = max(now, self._parse_at)
            self._parse_at = turn_at + PARSE_INTERVAL_S * len(record.text)
        if turn_at > now:
            if len(self._turns) >= LONG_HOSTS_MAX:
                self._turns.clear()
            self._turns[origin] = turn_at
        return max(turn_at, now)

    def stating(self, record: RobotsRecord | None, origin: str) -> RobotsRules | None:
        """Return the rules of a record that may state something about the use of pages; None without such a line.
        About 2 ms for the longest file that is not in memory.
        """
        is_long = record is not None and len(record.text) > LONG_BYTES
        if is_long and record is not None and (origin, record.fetched_at) not in self._rules:
            text = record.text.lower()
            if b"\0" not in text and not any(key in text for key in _STATING):
                return None
        return self.rules(record, origin)

    def after_reply(
        self, previous: RobotsRecord | None, result: Reply | Failure, decoded_body: bytes, now: float, hops: int = 0
    ) -> RobotsRecord | str:
        """Return the record to keep after a request for robots.txt; or the target of a redirect, which is fetched
        through the gates of its host, with one hop more. `previous` is the origin's record so far, and `decoded_body`
        the reply's body without its content coding.
        """
        options = self._options
        text = _cut_text(result, decoded_body, options.body_bytes_max)
        if text and previous is not None and previous.text == text:
            # Twice cut at the same byte: the server counts wrongly, and this is all of its file.
            return RobotsRecord(AnswerKind.RULES, text, now, now + options.ttl_s_min)
        if isinstance(result, Failure):
            if result.outcome == "http_error" and not result.retry:
                # A server without HTTP status codes that has no such file (FTP's 550).
                return RobotsRecord(AnswerKind.ALLOW_ALL, b"", now, now + options.ttl_s)
            lasting = result.outcome == "tls_error" and not result.retry
            # A refused handshake costs the server as little as a refused connection, and waiting rarely helps.
            first_s = options.unanswered_first_s if lasting or result.outcome in UNCONNECTED else None
            spent_s = result.fetch_s if result.has_others and result.outcome in UNCONNECTED else None
            return self._fail(
                previous, now, result.error, text=text, first_s=first_s, lasting=lasting, spent_s=spent_s,
                is_alone=result.is_alone,
            )  # fmt: skip
        status = result.status
        if 200 <= status < 300:
            if result.truncated not in ("", "length"):
                # The missing part may have the rules that disallow.
                return self._fail(previous, now, CUT_SHORT, text=text)
            text = cut(decoded_body, options.body_bytes_max)
            return RobotsRecord(AnswerKind.RULES, text, now, now + self._ttl_s(result))
        if 300 <= status < 400:
            return self._follow_redirect(previous, result, now, hops)
        if 400 <= status < 500 and status not in TEMPORARY:
            return RobotsRecord(AnswerKind.ALLOW_ALL, b"", now, now + self._ttl_s(result))
        return self._fail(previous, now, status_error(status), asked_s=delay_asked_s(result, now))

    def _follow_redirect(self, before: RobotsRecord | None, reply: Reply, now: float, hops: int) -> RobotsRecord | str:
        if reply.status == NOT_MODIFIED and before is not None and before.kind != AnswerKind.UNREACHABLE:
            return RobotsRecord(before.kind, before.text, now, now + self._ttl_s(reply))
        location = location_of(value for name, value in reply.headers if name.lower() == "location")
        target = join(reply.url, location) if location and reply.status != 304 else None
        if target is None or not target.startswith(("http://", "https://")) or hops >= self._options.redirects_max:
            # Section 2.3.1.2: such a file may be treated as unavailable, like a missing one.
            return RobotsRecord(AnswerKind.ALLOW_ALL, b"", now, now + self._ttl_s(reply))
        return target

    def _fail(
        self,
        previous: RobotsRecord | None,
        now: float,
        error: str,
        *,
        text: bytes = b"",
        asked_s: float = 0.0,
        first_s: float | None = None,
        lasting: bool = False,
        spent_s: float | None = None,
        is_alone: bool = False,
    ) -> RobotsRecord:
        """Return the record after a failure: an older copy stays, and the wait before each next try doubles. `spent_s`
        is how long the request took, if another address is tried next: then the first waits are short, and count from
        the start of the request. Without a copy, the `text` of a file that was cut is kept for comparison alone.
        """
        options = self._options
        failures = previous.failures + 1 if previous is not None else 1
        first_s = options.retry_first_s if first_s is None else first_s
        pause_s = min(options.retry_s_max, first_s * 2.0 ** min(failures - 1, 40))
        pause_s = shorten_wait(pause_s, failures, is_alone=is_alone)
        is_short = spent_s is not None and failures < OTHERS_TRIED_MAX
        pause_s = (min(pause_s, OTHERS_S_MAX) if is_short else pause_s) * self._uniform(0.75, 1.0)
        pause_s -= spent_s if spent_s is not None and is_short else 0.0
        retry_at = now + max(asked_s, pause_s)
        first_failed_at = min(previous.first_failed_at, now) if previous is not None and previous.failures else now
        of_the_kind = (previous.lasting if previous is not None else 0) + 1 if lasting else 0
        copy = previous if previous is not None and previous.kind != AnswerKind.UNREACHABLE else None
        usable = copy is not None and now < copy.fetched_at + options.stale_s_max
        too_long = now >= self._deadline(first_failed_at, now)
        if not usable and (too_long or of_the_kind >= options.certificate_tries_max):
            # Given up, for as long as an answer would be valid. If it were requested again at each URL's turn, a host
            # with turns rarer than its pauses would never be given up.
            retry_at = max(retry_at, now + options.ttl_s)
        copy = copy or RobotsRecord(AnswerKind.UNREACHABLE, text)
        return msgspec.structs.replace(
            copy,
            fetched_at=min(copy.fetched_at, now),
            failures=failures,
            first_failed_at=first_failed_at,
            retry_at=retry_at,
            error=error,
            lasting=of_the_kind,
            failed_at=now,
        )

    def _deadline(self, first_failed_at: float, now: float, wait_s_max: float = inf) -> float:
        wait_s = min(self._options.robots_wait_max_s, wait_s_max)
        return first_failed_at + wait_s + absent_s(self.absences, first_failed_at, now)

    def _ttl_s(self, reply: Reply) -> float:
        """Return how long an answer is valid: its max-age within our bounds (section 2.4)."""
        options = self._options
        said_s = max_age_s(reply.headers)
        ttl_s = options.ttl_s if said_s is None else said_s
        return max(options.ttl_s_min, min(options.ttl_s_max, ttl_s))

    def _judge(self, record: RobotsRecord, url: Url) -> RobotsVerdict:
        if record.kind == AnswerKind.ALLOW_ALL:
            return ALLOWED
        return ALLOWED if self._rules_of(record, url.origin).allows(url.text) else _DENIED

    def _rules_of(self, record: RobotsRecord, origin: str) -> RobotsRules:
        key = origin, record.fetched_at
        rules = self._rules.get(key)
        if rules is None:
            robots = self._options
            rules = RobotsRules.parse(record.text, robots.product_token, robots.body_bytes_max, origin, robots.agents)
            self._rules.put(key, rules, rules.held_bytes)
        return rules


def _cut_text(result: Reply | Failure, decoded_body: bytes, bytes_max: int) -> bytes:
    """Return the part that came of a file that was cut short; empty if none did, or if its coding was cut with it. A
    rule without its end may allow more than the whole one, and is left out.
    """
    came = result.came if isinstance(result, Failure) else result
    if came is None or not 200 <= came.status < 300 or came.truncated in ("", "length"):
        return b""
    if came is not result:
        decoded_body = b"" if came.header("content-encoding") else came.body
    text = cut(decoded_body, bytes_max)
    last = text[max(text.rfind(b"\n"), text.rfind(b"\r")) + 1 :]
    return text.removesuffix(last) if last.lstrip().lower().startswith(b"allow") else text


def delay_asked_s(reply: Reply, now: float) -> float:
    """Return the seconds of a Retry-After header, bounded; 0 without one."""
    return min(retry_after_s(reply, now) or 0.0, RETRY_AFTER_S_MAX)
