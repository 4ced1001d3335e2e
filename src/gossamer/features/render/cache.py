"""Cache: resources that may be used again, as HTTP allows it to a private cache (RFC 9111).

A reply is for requests whose headers named by its `Vary` are the same; without `Access-Control-Allow-Origin: *`, for
those of the same `Origin`. Replies to requests with a session are for their session, or, if the server says for how
long and does not vary them, for all of the site. 5 µs a lookup.
"""

from collections import OrderedDict
from typing import Final

import msgspec

from gossamer.model.visits import Headers, Reply, conditions, http_date, update_headers

CACHEABLE: Final = frozenset((200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501))
"""Statuses that may be stored without a statement of freshness (RFC 9110, section 15.1)."""
HEURISTIC_SHARE: Final = 0.1
"""Of the time since Last-Modified (RFC 9111, section 4.2.2)."""
HEURISTIC_S_MAX: Final = 86_400.0
OVERHEAD_BYTES: Final = 1_000
"""Of an entry, beside its body."""


class Entry(msgspec.Struct):
    """A stored reply, its content decoded."""

    reply: Reply
    fresh_until: float
    """Wall time; 0: it is validated before each use."""
    sent: Headers
    """Headers of its request that requests can differ in."""

    def is_for(self, sent: Headers) -> bool:
        """Return whether a server that gets these headers would reply the same."""
        named = _values(self.reply, "vary")
        if "*" not in _values(self.reply, "access-control-allow-origin"):
            named.add("origin")
        return named.isdisjoint({name.lower() for name, _ in {*self.sent} ^ {*sent}})

    @property
    def conditions(self) -> Headers:
        """The headers of a request that validates it; none where it cannot be."""
        return conditions(self.reply.header("etag"), self.reply.header("last-modified"))


class ResourceCache:
    """Entries by URL, those that were not used for longest dropped first."""

    def __init__(self, bytes_max: int, fresh_s: float) -> None:
        """`fresh_s` is the lifetime of replies that state none and have no Last-Modified."""
        self._bytes_max = bytes_max
        self._fresh_s = fresh_s
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._held_bytes = 0

    def find(self, url: str, session: str = "", sent: Headers = ()) -> Entry | None:
        """Return the stored reply for a URL, a session (empty: none) and headers, fresh or stale."""
        for key in (f"{url}\n{session}", f"{url}\n") if session else (url,):
            if (entry := self._entries.get(key)) is not None and entry.is_for(sent):
                self._entries.move_to_end(key)
                return entry
        return None

    def store(self, url: str, reply: Reply, now: float, session: str = "", sent: Headers = ()) -> None:
        """Store what came for a URL, where that is allowed; it replaces what was there."""
        if session:
            url += f"\n{'' if _is_for_all_sessions(reply) else session}"
        self._drop(url)
        fresh_s = self._lifetime_s(reply)
        size = len(reply.body) + OVERHEAD_BYTES
        if fresh_s is None or reply.truncated or size > self._bytes_max:
            return
        age = (reply.header("age") or "").strip()
        age_s = float(age) if age.isdecimal() else 0.0
        entry = Entry(reply, now + fresh_s - age_s if fresh_s else 0.0, sent)
        if entry.fresh_until <= now and not entry.conditions:
            return
        self._entries[url] = entry
        self._held_bytes += size
        while self._held_bytes > self._bytes_max:
            self._drop(next(iter(self._entries)))

    def confirm(self, url: str, answer: Reply, now: float, session: str = "", sent: Headers = ()) -> Reply | None:
        """Return the stored reply that a 304 confirms, fresh again; None where there is none (any more)."""
        entry = self.find(url, session, sent)
        if entry is None:
            return None
        reply = msgspec.structs.replace(entry.reply, headers=update_headers(entry.reply.headers, answer.headers))
        self.store(url, reply, now, session, sent)
        return reply

    def _drop(self, url: str) -> None:
        entry = self._entries.pop(url, None)
        if entry is not None:
            self._held_bytes -= len(entry.reply.body) + OVERHEAD_BYTES

    def _lifetime_s(self, reply: Reply) -> float | None:
        """Return how long a reply is fresh, in seconds; 0: it must be validated; None: it must not be stored."""
        stated = _directives(reply)
        if "no-store" in stated or "*" in _values(reply, "vary") or reply.status == 206:
            return None
        if "no-cache" in stated:
            return 0.0
        if (seconds := stated.get("max-age")) is not None:
            return float(seconds) if seconds.isdecimal() else 0.0
        if (expires := reply.header("expires")) is not None:
            at = http_date(expires)
            date = http_date(reply.header("date") or "")
            # What is no date has expired (RFC 9111, section 5.3).
            return max(0.0, at - (date or reply.started_at)) if at is not None else 0.0
        if reply.status not in CACHEABLE:
            return None
        modified = http_date(reply.header("last-modified") or "")
        if modified is None:
            return self._fresh_s
        return min(HEURISTIC_S_MAX, max(0.0, HEURISTIC_SHARE * (reply.started_at - modified)))


def _is_for_all_sessions(reply: Reply) -> bool:
    """Return whether a reply of a session may be used in another one of the same site."""
    stated = _directives(reply)
    says_when = "max-age" in stated or reply.header("expires") is not None
    return says_when and "private" not in stated and _values(reply, "vary").isdisjoint(("cookie", "authorization"))


def _values(reply: Reply, field: str) -> set[str]:
    """Return the elements of a header that is a list, in lower case."""
    values = ",".join(value for name, value in reply.headers if name.lower() == field)
    return {one.strip() for one in values.lower().split(",")}


def _directives(reply: Reply) -> dict[str, str]:
    values = [value for name, value in reply.headers if name.lower() == "cache-control"]
    found = [one.strip().partition("=") for one in ",".join(values).split(",")]
    return {directive.lower(): argument.strip('" ') for directive, _, argument in found}
