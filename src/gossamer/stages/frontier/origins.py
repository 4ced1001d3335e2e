"""Origins: which of a host's origins (scheme, host, port) may be requested.

Politeness applies to hosts and addresses; failures, waits for a robots.txt and closing apply to origins.

A failing origin is behind a circuit breaker: it gets no request until `Origin.wait_until`, then one URL at a time until
it answers. Its URLs are set aside in separate queues (`record.lane`), so that they do not block those of the host's
other origins. An origin that is given up is closed: its URLs end without a request.

A host record holds at most `ORIGINS_MAX` origins, of which at most `PORTS_MAX` have an explicit port. Origins without
an explicit port are few, so they are never refused. An origin with a port takes a place before its first request: one
of `UNANSWERED_MAX`, so that origins that have answered keep theirs. If no place is free, it replaces an origin that has
not failed, or failed long ago, and has no URLs set aside; if there is no such origin, its URLs end as `host_closed`. So
a page with links to thousands of dead ports of its host costs at most `UNANSWERED_MAX` of them.

`settle` updates host and origin, and their delays, when a request ends.
"""

from typing import Literal

from gossamer.model.standing import OriginFacts
from gossamer.model.visits import Contact, shorten_wait
from gossamer.model.words import counted, duration
from gossamer.stages.frontier.host import Host
from gossamer.stages.frontier.options import FrontierOptions
from gossamer.stages.frontier.politeness import SAMPLES, Politeness, grown_s
from gossamer.stages.frontier.record import LEVELS, HostRecord, Origin, lane, slot_of
from gossamer.url.url import Url
from gossamer.world.clock import Absences, absent_s

ORIGINS_MAX = 31
"""Origins in a host record: each has a slot; slot 0 is for URLs of all origins."""
PORTS_MAX = 25
"""Origins with an explicit port in a host record."""
UNANSWERED_MAX = 10
"""The part of `PORTS_MAX` for origins that have not answered yet."""
PROBE_SHARE = 0.1
"""Largest share of a host's time for requests to origins that do not answer, while its other origins have URLs."""
ANSWERED = {"https": 1, "http": 2}
"""Bits of `HostRecord.answered`."""
NEVER = float("inf")

Gate = Literal["open", "probe", "waiting", "refused"]
"""Treatment of a URL of an origin. `open`: request it. `probe`: request it, and no other until it has ended.
`waiting`: set it aside. `refused`: end it without a request."""


def key_of(url: Url) -> str:
    """Return the key of a URL's origin among those of its host: `https`, `http:8080`. About 0.3 µs."""
    text = url.text
    host = url.host
    start = 7 if text[:7] == "http://" else 0
    if text[:8] == "https://":
        start = 8
    end = start + len(host)
    if start and text[start:end] == host and text[end : end + 1] in ("/", ":"):  # An http address has a path.
        return text[: start - 3] + text[end : text.index("/", end)]
    scheme, _, authority = url.origin.partition("://")
    return scheme + authority.removeprefix(host)


def name_of(host: str, key: str) -> str:
    """Return an origin with its host, as in `http://example.org:8080`."""
    scheme, colon, port = key.partition(":")
    return f"{scheme}://{host}{colon}{port}"


def has_answered(record: HostRecord, key: str) -> bool:
    """Return whether an origin ever answered."""
    one = record.origin(key)
    return bool(record.answered & ANSWERED.get(key, 0)) or (one is not None and one.answered)


def note_answered(record: HostRecord, key: str) -> None:
    """Note that an origin answered, and reset its failures."""
    record.answered |= ANSWERED.get(key, 0)
    if (one := record.origin(key)) is not None:
        one.answered = True
        one.failures = 0
        one.sleeps = 0
        one.first_failed_at = 0.0
        one.wait_until = 0.0
        one.closed = ""
        one.error = ""
        one.reason = ""


def gate(host: Host, key: str, now: float, remembered_s: float) -> Gate:
    """Return how to treat a URL of an origin now. Failures count for `remembered_s`."""
    one = host.record.origin(key)
    if one is None:
        if ":" not in key:
            return "open"
        one = admit(host, key, now, remembered_s)
        if one is None:
            return "refused"
        one.wait_until = now  # One URL at a time until it has answered.
    if one.closed:
        if now < one.wait_until:
            return "refused"
        one.closed = ""
        one.failures = 0
        one.sleeps = 0
        one.first_failed_at = 0.0
    if not one.wait_until:
        return "open"
    if one.wait_until > now or (host.probing is not None and key in host.probing):
        return "waiting"
    return "probe"


def is_open(host: Host, key: str) -> bool:
    """Return whether `gate` would be `open` for a URL of an origin. Gives no origin a place, unlike `gate`."""
    one = host.record.origin(key)
    return ":" not in key if one is None else not one.wait_until


def refusal(record: HostRecord, key: str) -> str:
    """Return why a URL of an origin ends without a request, for people."""
    name = name_of(record.name, key)
    if (one := record.origin(key)) is not None and one.closed:
        return f"{name} is closed: {one.closed}"
    return f"{name} is not requested: {UNANSWERED_MAX} other ports of {record.name} have not answered"


def free_at(host: Host, key: str) -> float:
    """Return when `gate` will no longer be `waiting` for a URL of an origin; infinite while a probe is in flight."""
    one = host.record.origin(key)
    if one is None or one.closed:
        return 0.0
    return NEVER if host.probing is not None and key in host.probing else one.wait_until


def all_free(host: Host) -> bool:
    """Return whether every origin of a host may be requested now: `free_at` is 0.0 for all its URLs."""
    origins = host.record.origins
    return not host.probing and (origins is None or not any(one.wait_until for one in origins.values()))


def lane_at(host: Host, level: int) -> float:
    """Return when the URLs in one of a host's queues may be handled; 0.0 if that is not known."""
    record = host.record
    plain = record.plain
    slot = slot_of(level)
    if record.origins is None:
        return 0.0
    if slot:
        return min((free_at(host, key) for key, one in record.origins.items() if one.slot == slot), default=0.0)
    if record.other:
        return 0.0
    pending = sum(queue.pending for level, queue in record.levels.items() if level < LEVELS)
    return min(free_at(host, "http") if plain else NEVER, free_at(host, "https") if pending > plain else NEVER)


def on_trial(record: HostRecord, level: int) -> bool:
    """Return whether one of a host's queues holds only URLs of origins that have not answered since they failed."""
    origins = record.origins
    slot = slot_of(level)
    if origins is None:
        return False
    if slot:
        return any(one.slot == slot and bool(one.wait_until) for one in origins.values())
    if record.other:
        return False
    pending = sum(queue.pending for number, queue in record.levels.items() if number < LEVELS)
    held = [key for key, urls in (("http", record.plain), ("https", pending - record.plain)) if urls]
    return all(key in origins and bool(origins[key].wait_until) for key in held)


def queue_of(record: HostRecord, level: int, url: Url) -> int:
    """Return the queue for a new URL of a level: that of its origin if the origin waits, else that of the level."""
    one = record.origin(key_of(url))
    return lane(one.slot, level) if one is not None and one.wait_until and not one.closed else level


def why_waiting(record: HostRecord) -> str:
    """Return which waiting origin of a host is requested next, and why it waits, for people; empty if none waits."""
    found = [(one.wait_until, key) for key, one in (record.origins or {}).items() if one.wait_until and not one.closed]
    if not found or record.origins is None:
        return ""
    _, key = min(found)
    one = record.origins[key]
    return f"{name_of(record.name, key)} waits: {one.reason or one.error or 'it has not answered yet'}"


def facts_of_origins(record: HostRecord) -> list[OriginFacts]:
    """Return the origins of a host that do not answer, for people."""
    return [
        OriginFacts(
            name_of(record.name, key),
            "closed" if one.closed else "waiting",
            one.failures,
            one.first_failed_at,
            one.wait_until,
            one.closed or one.reason or one.error,
            sum(queue.pending for number, queue in record.levels.items() if slot_of(number) == one.slot),
        )
        for key, one in (record.origins or {}).items()
        if one.wait_until and (one.failures or one.reason or one.closed)
    ]


def admit(host: Host, key: str, now: float, remembered_s: float) -> Origin | None:
    """Return an origin's entry in its host's record, and add it if missing; None if there is no place."""
    record = host.record
    if record.origins is None:
        record.origins = {}
    one = record.origins.get(key)
    if one is not None:
        return one
    if ":" in key and not _has_room(host, now, remembered_s):
        return None
    taken = {other.slot for other in record.origins.values()}
    slot = next((slot for slot in range(1, ORIGINS_MAX + 1) if slot not in taken), 0)
    if not slot:
        return None
    one = record.origins[key] = Origin(slot, bool(record.answered & ANSWERED.get(key, 0)))
    return one


def _has_room(host: Host, now: float, remembered_s: float) -> bool:
    """Return whether another origin with a port has a place; drop an entry that is no longer needed if necessary."""
    origins = host.record.origins
    assert origins is not None
    ports = {key: one for key, one in origins.items() if ":" in key}
    unanswered = [key for key, one in ports.items() if not one.answered]
    for crowd, most in ((unanswered, UNANSWERED_MAX), (list(ports), PORTS_MAX)):
        if len(crowd) >= most:
            leaving = next((key for key in crowd if _may_go(host, key, now, remembered_s)), None)
            if leaving is None:
                return False
            _forget(host, leaving)
            return True
    return True


def tidy(host: Host) -> None:
    """Drop entries that are no longer needed: of healthy origins without a port that have no URLs set aside."""
    record = host.record
    assert record.origins is not None
    for key, one in list(record.origins.items()):
        is_needed = bool(one.wait_until or one.failures or one.closed or one.crawl_delay_s)
        if ":" not in key and not is_needed and _is_empty(host, one.slot):
            _forget(host, key)
    record.origins = record.origins or None


def _may_go(host: Host, key: str, now: float, remembered_s: float) -> bool:
    assert host.record.origins is not None
    one = host.record.origins[key]
    is_well = not (one.failures or one.closed) or one.wait_until + remembered_s < now
    return is_well and (host.probing is None or key not in host.probing) and _is_empty(host, one.slot)


def _is_empty(host: Host, slot: int) -> bool:
    """Return whether a slot has no URLs that are set aside, in memory or on disk."""
    lanes = [lane(slot, level) for level in range(LEVELS)]
    queues = [host.record.levels[level] for level in lanes if level in host.record.levels]
    return all(queue.block == queue.tail for queue in queues) and not any(level in host.readings for level in lanes)


def _forget(host: Host, key: str) -> None:
    assert host.record.origins is not None
    one = host.record.origins.pop(key)
    for level in range(LEVELS):
        host.record.levels.pop(lane(one.slot, level), None)


def set_crawl_delay(
    host: Host, key: str, delay_s: float | None, longest_s: float, now: float, remembered_s: float
) -> float | None:
    """Set the Crawl-delay of an origin; return that of its host, which is the longest of its origins. If that of an
    origin with a port is longer than `longest_s`, only this origin is closed, for `remembered_s`.
    """
    record = host.record
    if ":" not in key:
        if record.origins is None:
            return delay_s
        return max((delay_s or 0.0, *(one.crawl_delay_s or 0.0 for one in record.origins.values()))) or delay_s
    one = admit(host, key, now, remembered_s)
    is_too_long = delay_s is not None and delay_s > longest_s
    if one is not None:
        one.crawl_delay_s = None if is_too_long else delay_s
    if one is not None and is_too_long:
        # The origin gets no further request, so its delay does not apply to the host's other origins.
        one.closed = f"its Crawl-delay of {delay_s:.0f} s is more than we wait"
        one.wait_until = now + remembered_s
        delay_s = None
    elif is_too_long:
        delay_s = longest_s
    return max(delay_s or 0.0, record.crawl_delay_s or 0.0) or None


def settle(
    host: Host,
    origin: str,
    contact: Contact,
    ended: float,
    options: FrontierOptions,
    dice: float,
    *,
    no_answers: bool = False,
    is_robots: bool = False,
    absences: Absences = (),
) -> None:
    """Update the host's record at the end of a request: the host's delay and the state of the origin.

    An answer delays the host, and so does a failed request; other effects of failures affect only the origin:

    - One that answered before waits after `host_failures_max` failures in a row, each time twice as long, and is closed
      after `host_sleeps_max` such waits.
    - One that never answered waits after each failure, like a URL that is tried again, and is closed after
      `unanswered_failures_max` failures in a row or when it failed for `unanswered_s_max`, `absences` not counted.
    - Requests that were under way when the origin began to wait count as one failure with the first of them, and so do
      those that a busy server refuses: the host is delayed by the longest of what these bring, and this is its reason.
    - `is_robots`: the request was for its own robots.txt. The package robots says when it is tried again and when it is
      given up, except while no host at all has answered (`no_answers`): then the seeds are wrong, and waiting
      changes nothing.

    `dice` in [0, 1) is the jitter.
    """
    record = host.record
    politeness = host.rules
    record.requests += 1
    has_failed = contact.kind == "failed"
    # A failed lookup is no request, and an origin that never answered shows nothing about the host's speed.
    if contact.fetch_s and not (has_failed and not has_answered(record, origin)):
        del record.fetches_s[: 1 - SAMPLES]
        record.fetches_s.append(contact.fetch_s)
    delay_s = politeness.delay_s(record.fetches_s, record.crawl_delay_s)
    longest = record.reason
    record.reason = ""
    if contact.kind in ("answered", "busy"):
        note_answered(record, origin)
    if contact.kind == "answered":
        record.backoffs = 0
    elif contact.kind == "busy":
        delay_s = max(delay_s, _busy_s(record, contact, ended, politeness, dice))
    elif has_failed:
        if (one := admit(host, origin, ended, options.errors_remembered_s)) is not None:
            answered = has_answered(record, origin)
            one.first_failed_at = one.first_failed_at or ended
            failed_s = ended - one.first_failed_at - absent_s(absences, one.first_failed_at, ended)
            _note_failure(
                one, contact, ended, failed_s, options, answered=answered, no_answers=no_answers, is_robots=is_robots
            )
        host.probe_from = max(host.probe_from, ended + contact.fetch_s * (1.0 / PROBE_SHARE - 1.0))
    if record.delay_until > ended + delay_s:
        record.reason = longest
    record.delay_until = max(record.delay_until, ended + delay_s)


def _busy_s(record: HostRecord, contact: Contact, ended: float, politeness: Politeness, dice: float) -> float:
    if not record.backoffs or record.delay_until <= ended:  # Of several at once, the first one counts.
        record.backoffs += 1
    if contact.retry_after_s is None:
        record.reason = "the server said that it is busy"
        return politeness.backoff_s(record.backoffs, dice)
    if contact.retry_after_s > politeness.retry_after_s_max:
        record.closed = (
            f"it asked to wait for {duration(contact.retry_after_s)} (Retry-After), "
            f"more than politeness.retry_after_s_max ({duration(politeness.retry_after_s_max)})"
        )
    record.reason = f"the server asked for {contact.retry_after_s:.0f} s (Retry-After)"
    return min(contact.retry_after_s, politeness.retry_after_s_max)


def _note_failure(
    one: Origin,
    contact: Contact,
    ended: float,
    failed_s: float,
    options: FrontierOptions,
    *,
    answered: bool,
    no_answers: bool,
    is_robots: bool,
) -> None:
    one.error = contact.error
    if one.wait_until > ended:
        return  # This request was under way when the failure of another one made the origin wait: they count as one.
    one.failures += 1
    wait_s = 0.0
    if answered:
        if one.failures % options.host_failures_max:
            return
        one.sleeps += 1
        one.reason = f"it failed {one.failures} times in a row: {contact.error}"
        if one.sleeps > options.host_sleeps_max:
            one.closed = f"it failed again after {options.host_sleeps_max} waits: {contact.error}"
        wait_s = grown_s(options.host_sleep_s_first, one.sleeps, options.host_sleep_s_max)
    elif (no_answers or not is_robots) and 0 < options.unanswered_failures_max <= one.failures:
        one.closed = f"it never answered: {contact.error} ({one.failures} attempts)"
    elif not is_robots:
        one.reason = f"it never answered: {contact.error} ({counted(one.failures, 'attempt')})"
        if failed_s >= options.unanswered_s_max:
            one.closed = f"it never answered: {contact.error} ({one.failures} attempts within {failed_s:.0f} s)"
        grown = grown_s(options.retry_s_first, one.failures, options.retry_s_max)
        grown = shorten_wait(grown, one.failures, is_alone=contact.is_alone)
        wait_s = min(grown, max(options.unanswered_s_max - failed_s, 0.0))
    if one.closed:
        wait_s = options.errors_remembered_s
    one.wait_until = max(one.wait_until, ended + wait_s)
