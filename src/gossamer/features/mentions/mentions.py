"""Mentions: notices of links by the W3C's Webmention (https://www.w3.org/TR/webmention/), the receiver's side.

A state machine without I/O, like `features.revisit.websub`: its inputs are notices and replies, its outputs requests
for sources and the sources that do link to their targets.
"""

import re
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Literal, NamedTuple

import msgspec

from gossamer.features.mentions.options import WebmentionOptions
from gossamer.model.links import Prerequisite, Verdict
from gossamer.model.pages import Findings
from gossamer.model.visits import Content, Failure, Reply, Request
from gossamer.ports import VisitMiddleware
from gossamer.stages.process.links import redirect_target
from gossamer.state.epoch import Epochs
from gossamer.state.schema import MENTIONED, PARTITIONED
from gossamer.url.join import absolute
from gossamer.url.url import NameUrl, Url, fingerprint

REDIRECTS_MAX = 5
REDIRECTS = frozenset((301, 302, 303, 307, 308))
GONE = frozenset((404, 410))
ROBOTS_S = 1.0
"""Pause while the robots.txt of a source's host is read."""
ATTEMPTS_MAX = 3
RETRY_S = 300.0
"""Pause before a source that could not be fetched is requested again; doubles."""
NOTICED_AT_ONCE = 50
"""Sources requested in one turn."""
ADDRESSES_MAX = 5_000
"""Addresses of a text that are compared with the target; those that do not name its host are not counted."""
_ADDRESS = re.compile(rb"https?://[^\x00-\x20\"'<>`{}|^\\]+")
_AROUND = b".,;:!?)]*_"
"""Characters of prose and Markdown after an address."""

State = Literal["waiting", "verified", "refused"]
Examine = Callable[[Url, Reply], tuple[Content, Findings]]


class Mention(msgspec.Struct):
    """One notice: `source` links to `target`."""

    source: str
    target: str
    state: State
    next_at: float = 0.0
    """When the source is requested, while the notice waits."""
    checked_at: float = 0.0
    attempts: int = 0
    error: str = ""
    """Why it is refused, or was not verified so far."""


class Answer(NamedTuple):
    """The answer to a notice."""

    status: int
    text: str
    retry_after_s: float = 0.0


decode_mention = msgspec.msgpack.Decoder(Mention).decode
"""Returns a mention from its stored form."""


class Mentions(VisitMiddleware):
    """Receives notices, and verifies each with one request for its source, through all gates of the source's host."""

    name = "webmention"

    def __init__(
        self,
        epochs: Epochs,
        options: WebmentionOptions,
        name_url: NameUrl,
        judge: Callable[[Url, float], Verdict],
        examine: Examine,
    ) -> None:
        """`judge` says whether a source may be requested; `examine` returns content and findings of a document."""
        self._epochs = epochs
        self._options = options
        self._name = name_url
        self._judge = judge
        self._examine = examine
        self._kept: dict[bytes, Mention] = {}
        self._waiting: dict[bytes, Mention] = {}
        self._of_host: Counter[str] = Counter()
        """Notices that wait, by host of their source."""
        self._led_to: dict[bytes, tuple[str, int]] = {}
        """By key: where a source redirected, whose robots.txt must be read first, and after how many redirects."""
        self._checked_at: dict[str, float] = {}
        """By key of a source: when it was last requested, for any target, also one whose notice was dropped."""
        self._verified: list[bytes] = []
        for key, value in list(epochs.scan(MENTIONED.family, *PARTITIONED)):
            if key[2:3] == MENTIONED.marks:
                one = decode_mention(value)
                self._keep(key, one)
                if one.checked_at:
                    self._note_check(one, max(one.checked_at, self._checked_at.get(one.source, 0.0)))

    def receive(self, source: str, target: str, is_wanted: Callable[[Url], bool], now: float) -> Answer:
        """Take a notice. `is_wanted` says whether the crawl has, or would have, a page. 202: it will be verified; it is
        durable after the next commit.
        """
        if not (source and target):
            return Answer(400, "send source and target, form-encoded")
        page = self._address(source)
        goal = self._address(target)
        if page is None or goal is None:
            return Answer(400, f"{'source' if page is None else 'target'} is not an http or https URL")
        if page.key == goal.key:
            return Answer(400, "source and target are the same page")
        if not is_wanted(goal):
            return Answer(400, "target is not a page of this crawl")
        key = _key(page, goal)
        known = self._kept.get(key)
        if known is not None:
            if known.state != "waiting":
                self._set_waiting(key, known, self._earliest(page, now))
            return Answer(202, "the link will be verified")
        if self._of_host[page.host] >= self._options.host_waiting_max:
            return Answer(429, "too many notices of this host wait", self._options.source_s_min)
        if len(self._kept) >= self._options.notices_max and not self._drop_refused():
            return Answer(503, "no room for more notices", self._options.source_s_min)
        self._set_waiting(key, Mention(page.text, goal.text, "waiting"), self._earliest(page, now))
        return Answer(202, "the link will be verified")

    def due(self, now: float) -> list[Prerequisite]:
        """Return the requests for sources that are due, and note them as sent."""
        due = [key for key, one in self._waiting.items() if one.next_at <= now][:NOTICED_AT_ONCE]
        asked = [self._ask(key, now) for key in due]
        # A robots.txt is fetched once for all sources of its host.
        return list({(one.url, one.subject): one for one in asked if one is not None}.values())

    def take_verified(self, now: float) -> list[tuple[Url, Url]]:
        """Return source and target of each link that was verified since the last call, and note it as such: with what
        the caller does about it in one epoch.
        """
        taken: list[tuple[Url, Url]] = []
        for key in self._verified:
            one = self._waiting.get(key)
            if one is not None:
                taken.append((self._named(one.source), self._named(one.target)))
                self._conclude(key, one, "verified", "", now)
        self._verified.clear()
        return taken

    def counts(self) -> dict[str, int]:
        """Return the number of notices by state."""
        return {"waiting": 0, "verified": 0, "refused": 0, **Counter(one.state for one in self._kept.values())}

    # ---- requests for sources

    def fetch(self, prerequisite: Prerequisite, request: Request, now: float) -> Request:
        return msgspec.structs.replace(request, body_bytes_max=self._options.source_bytes_max)

    def answered(
        self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes, now: float
    ) -> Prerequisite | None:
        key = bytes.fromhex(prerequisite.subject)
        one = self._kept.get(key)
        if one is None or one.state != "waiting":
            return None
        if isinstance(result, Failure):
            self._try_again(key, one, result.error, now)
        elif result.status in REDIRECTS:
            return self._follow(key, one, prerequisite, result, now)
        elif result.status in GONE:
            self._drop(key)
        elif not 200 <= result.status < 300:
            self._try_again(key, one, f"HTTP {result.status}", now)
        else:
            self._verify(key, one, prerequisite.url, result, now)
        return None

    def _ask(self, key: bytes, now: float) -> Prerequisite | None:
        one = self._waiting[key]
        text, hops = self._led_to.get(key, (one.source, 0))
        url = self._named(text)
        verdict = self._judge(url, now)
        if verdict.prerequisite is not None or verdict.wait_until > now:
            one.next_at = max(now + ROBOTS_S, verdict.wait_until)
            return verdict.prerequisite
        self._led_to.pop(key, None)
        if not verdict.allowed:
            self._conclude(key, one, "refused", f"its source may not be requested: {verdict.reason}", now)
            return None
        one.next_at = now + RETRY_S  # If the answer is lost.
        self._note_check(one, now)
        return Prerequisite(url, url, hops, owner=self.name, subject=key.hex(), is_about_origin=False)

    def _follow(self, key: bytes, one: Mention, asked: Prerequisite, reply: Reply, now: float) -> Prerequisite | None:
        target = self._name(redirect_target(asked.url.text, reply.headers) or "")
        hops = asked.hops + 1
        if target is None or hops > REDIRECTS_MAX:
            error = "it redirects to no address" if target is None else f"more than {REDIRECTS_MAX} redirects"
            self._conclude(key, one, "refused", error, now)
            return None
        self._led_to[key] = target.text, hops
        one.next_at = now
        return self._ask(key, now)

    def _verify(self, key: bytes, one: Mention, page: Url, reply: Reply, now: float) -> None:
        """Look for the target in a source (section 3.2.2): among its links, or in what is no HTML in its text."""
        content, findings = self._examine(page, reply)
        target = self._named(one.target)
        named = (self._name(link.url) for link in findings.links)
        links = any(url is not None and url.key == target.key for url in named)
        if links or ("html" not in reply.media_type and self._is_named(target, content.body)):
            self._verified.append(key)
        else:
            self._conclude(key, one, "refused", "its source has no link to the target", now)

    def _is_named(self, target: Url, text: bytes) -> bool:
        """Return whether a text has the address `target`, and not only a longer one that begins with it.

        JSON may escape each slash. An address may be written otherwise than its key: the host in capitals, no path.
        """
        host = target.host.encode()
        found = (address[0] for address in _ADDRESS.finditer(text.replace(b"\\/", b"/")))
        for word in islice((word for word in found if host in word.lower()), ADDRESSES_MAX):
            for written in (word, word.rstrip(_AROUND)):
                url = self._address(written.decode("utf-8", "replace"))
                if url is not None and url.key == target.key:
                    return True
        return False

    # ---- inside

    def _address(self, text: str) -> Url | None:
        """Return the URL that a person or a program wrote: with capitals in its host, without a path."""
        address = absolute(text.strip())
        is_web = address is not None and address.startswith(("http://", "https://"))
        return self._name(address) if address is not None and is_web else None

    def _earliest(self, source: Url, now: float) -> float:
        """Return when a source may be requested: a source is not requested once more for each of its targets."""
        checked_at = self._checked_at.get(source.text)
        return now if checked_at is None else max(now, checked_at + self._options.source_s_min)

    def _note_check(self, one: Mention, at: float) -> None:
        self._checked_at.pop(one.source, None)  # The oldest one is first.
        self._checked_at[one.source] = at
        if len(self._checked_at) > self._options.notices_max:
            del self._checked_at[next(iter(self._checked_at))]

    def _try_again(self, key: bytes, one: Mention, error: str, now: float) -> None:
        one.attempts += 1
        one.error = error
        one.next_at = now + RETRY_S * 2.0 ** (one.attempts - 1)
        if one.attempts >= ATTEMPTS_MAX:
            self._conclude(key, one, "refused", error, now)
        else:
            self._save(key, one)

    def _set_waiting(self, key: bytes, one: Mention, at: float) -> None:
        one.state = "waiting"
        one.next_at = at
        one.attempts = 0
        self._keep(key, one)
        self._save(key, one)

    def _conclude(self, key: bytes, one: Mention, state: State, error: str, now: float) -> None:
        self._leave(key)
        one.state = state
        one.error = error
        one.checked_at = now
        self._save(key, one)

    def _keep(self, key: bytes, one: Mention) -> None:
        self._kept[key] = one
        if one.state == "waiting":
            self._waiting[key] = one
            self._of_host[self._named(one.source).host] += 1

    def _leave(self, key: bytes) -> None:
        self._led_to.pop(key, None)
        one = self._waiting.pop(key, None)
        if one is not None:
            self._of_host[self._named(one.source).host] -= 1
            self._of_host += Counter()  # Without the hosts that have none.

    def _drop(self, key: bytes) -> None:
        self._leave(key)
        del self._kept[key]
        self._epochs.delete(MENTIONED.family, key)

    def _drop_refused(self) -> bool:
        """Make room in place of the notice that was refused first; return False if there is none."""
        refused = next((key for key, one in self._kept.items() if one.state == "refused"), None)
        if refused is not None:
            self._drop(refused)
        return refused is not None

    def _save(self, key: bytes, one: Mention) -> None:
        self._epochs.put(MENTIONED.family, key, msgspec.msgpack.encode(one))

    def _named(self, text: str) -> Url:
        url = self._name(text)
        assert url is not None, f"{text} was named before"
        return url


def _key(source: Url, target: Url) -> bytes:
    return target.partition.to_bytes(2) + MENTIONED.marks + fingerprint(f"{source.key} {target.key}").to_bytes(8)
