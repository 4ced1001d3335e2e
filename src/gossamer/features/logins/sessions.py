"""Sessions: cookies by site, durable with the epoch, and what requests of a session carry.

A jar changes in the same epoch as the visit that changed it. So a crash neither loses a session nor restores an ended
one: pages that were fetched after the last commit are fetched again, with the cookies of that commit.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.features.logins.logins import FormLogins
from gossamer.features.logins.lost import LostSessions
from gossamer.model.links import EMBED, LEADING_ON, Visit
from gossamer.model.pages import Visited
from gossamer.model.visits import Headers, Reply, Request
from gossamer.ports import VisitMiddleware
from gossamer.stages.fetch.cookies import Cookie, Jar, site_of_cookie
from gossamer.stages.fetch.credentials import REDACTED
from gossamer.stages.fetch.http import sendable
from gossamer.state.epoch import Epochs
from gossamer.state.schema import COOKIES_TAKEN
from gossamer.url.name import host_of
from gossamer.url.site import partition_of, site_of
from gossamer.url.url import Url

JARS_MAX: Final = 1_000
"""Jars in memory: at most 64 MB."""
BOUNCES_MAX: Final = 3
"""Further requests for an address that led elsewhere before cookies were set, as consent and language walls do."""
BOUNCES_S: Final = 3_600.0
"""Requests count together until this long after the last one; a revisit may find that the cookies have expired."""
SENT_MAX: Final = 100_000
"""Requests under way whose cookies are remembered."""
_decode = msgspec.msgpack.Decoder(list[Cookie]).decode


class Bounce(msgspec.Struct, array_like=True, frozen=True):
    """A request whose reply led to another address."""

    cookies: int
    """Digest of the cookies that it carried; for a page that refreshes, of their names."""
    names_only: bool
    again: int = 0
    """How often its address was requested again because of cookies."""
    at: float = 0.0


_decode_bounce = msgspec.msgpack.Decoder(Bounce).decode


class Jars:
    """The cookie jars of sites."""

    def __init__(self, epochs: Epochs, sites: frozenset[str] | None) -> None:
        """`sites` are the sites whose cookies are kept; None: all."""
        self.epochs = epochs
        self._sites = sites
        self._jars: OrderedDict[str, Jar] = OrderedDict()

    def has(self, site: str) -> bool:
        return self._sites is None or site in self._sites

    def find(self, site: str) -> Jar | None:
        """Return a site's jar; None if its cookies are not kept."""
        return self.of(site) if self.has(site) else None

    def of(self, site: str) -> Jar:
        jar = self._jars.get(site)
        if jar is None:
            kept = self.epochs.get("cookie", jar_key(site))
            jar = self._jars[site] = Jar(_decode(kept) if kept is not None else ())
            if len(self._jars) > JARS_MAX:
                self._jars.popitem(last=False)
        self._jars.move_to_end(site)
        return jar

    def keep(self, site: str, jar: Jar) -> None:
        """Put a changed jar into the open epoch."""
        if jar.changed:
            self.epochs.put("cookie", jar_key(site), msgspec.msgpack.encode(list(jar)))
            jar.changed = False

    def forget(self) -> None:
        """Drop all jars from memory, because partitions have arrived or left."""
        self._jars.clear()

    def take_in(self, cookies: Iterable[Cookie], digest: bytes, *, is_ours: Callable[[str], bool]) -> None:
        """Import a file's cookies, once, since later changes are newer. `is_ours` is true for hosts of this shard."""
        if self.epochs.get("meta", COOKIES_TAKEN) == digest:
            return
        self.epochs.put("meta", COOKIES_TAKEN, digest)
        for cookie in cookies:
            site = site_of_cookie(cookie)
            if is_ours(cookie.domain):
                jar = self.of(site)
                jar.put(cookie)
                self.keep(site, jar)


class Sessions(VisitMiddleware):
    """Headers of sessions: cookies, and tokens of logins. 2 µs for a request without cookies."""

    name = "sessions"

    def __init__(self, jars: Jars, logins: FormLogins | None = None) -> None:
        self.jars = jars
        self.epochs = jars.epochs
        self.logins = logins
        self.lost: LostSessions | None = None
        self._sent: dict[int, str] = {}
        """By fingerprint of a URL that is being requested: its cookies."""
        self.is_without_session: Callable[[Url], bool] = lambda _: False
        """Returns whether a request was sent without its site's session."""

    def request(self, url: Url, visit: Visit | None, request: Request, now: float) -> Request:
        found = self.headers(url, visit, now)
        return msgspec.structs.replace(request, headers=request.headers + found) if found else request

    def headers(self, url: Url, visit: Visit | None, now: float) -> Headers:
        """Return the session's headers for a request."""
        found: Headers = ()
        cookies = self._cookies(url, visit, now)
        if cookies:
            found = (("Cookie", cookies),)
        if visit is not None and len(self._sent) < SENT_MAX:
            self._sent[url.fingerprint] = cookies
        if self.logins is not None and (token := self.logins.token(url)):
            found += (("Authorization", f"Bearer {token}"),)
        return found

    def _cookies(self, url: Url, visit: Visit | None, now: float) -> str:
        if not (self.jars.has(url.site) and url.text.startswith("http")):
            return ""
        cookies = self.jars.of(url.site).header(url, now, embedded_elsewhere=_is_foreign_embed(url, visit))
        return cookies if sendable("Cookie", cookies) else ""

    def concluded(self, visited: Visited, now: float) -> None:
        """If a reply leads on, by a redirect or a refresh, store the cookies of its request: one put."""
        url = visited.url
        sent = self._sent.pop(url.fingerprint, None)
        if sent is not None and any(found.link_type in LEADING_ON for found in visited.links):
            known = self.epochs.get("cookie", url.store_key(BOUNCE))
            last = _decode_bounce(known) if known is not None else None
            again = last.again if last is not None and now - last.at < BOUNCES_S else 0
            names_only = visited.row.outcome != "redirected"
            bounce = Bounce(_digest(sent, names_only=names_only), names_only, again, now)
            self.epochs.put("cookie", url.store_key(BOUNCE), msgspec.msgpack.encode(bounce))

    def bounces(self, url: Url, outcome: str, now: float) -> bool:
        """It is if the URL's last visit led elsewhere, and its cookies have changed since. Of a page that refreshes
        only new names of cookies count, since pages that show news refresh themselves for good.
        """
        known = self.epochs.get("cookie", url.store_key(BOUNCE))
        if known is None:
            return False
        bounce = _decode_bounce(known)
        if bounce.again >= BOUNCES_MAX or not (bounce.names_only or outcome == "redirected"):
            return False
        if _digest(self._cookies(url, None, now), names_only=bounce.names_only) == bounce.cookies:
            return False
        again = msgspec.structs.replace(bounce, again=bounce.again + 1)
        self.epochs.put("cookie", url.store_key(BOUNCE), msgspec.msgpack.encode(again))
        return True

    def received(self, url: Url, reply: Reply, now: float) -> Reply:
        """Store the cookies of a reply; return the reply with their values redacted."""
        if not self.jars.has(url.site) or not any(_is_set_cookie(name) for name, _ in reply.headers):
            return reply
        if not self.is_without_session(url):
            jar = self.jars.of(url.site)
            for name, value in reply.headers:
                if _is_set_cookie(name):
                    jar.take(value, url, now)
            self.jars.keep(url.site, jar)
        shown = tuple((name, _redact(value) if _is_set_cookie(name) else value) for name, value in reply.headers)
        return msgspec.structs.replace(reply, headers=shown)

    def moved(self, first: int, end: int) -> None:
        self.jars.forget()

    def names(self, site: str, now: float) -> set[str]:
        return self.jars.of(site).names(now)


def jar_key(site: str) -> bytes:
    """Return the key of a site's cookies: its partition and its name."""
    return partition_of(site).to_bytes(2) + site.encode()


BOUNCE: Final = b"\0bounce:"
"""Prefix of the keys of redirects in the family `cookie`, after the partition."""


def _digest(cookies: str, *, names_only: bool) -> int:
    if names_only:
        cookies = "; ".join(sorted(pair.partition("=")[0] for pair in cookies.split("; ")))
    return xxh3_64_intdigest(cookies.encode())


def cookies_without(value: bytes, has_host: Callable[[str], bool]) -> bytes:
    """Return a stored jar without the cookies of some hosts; empty if none is left."""
    cookies = _decode(value)
    left = [cookie for cookie in cookies if not has_host(cookie.domain)]
    if len(left) == len(cookies):
        return value
    return msgspec.msgpack.encode(left) if left else b""


def cookies_in(pairs: Iterable[tuple[bytes, bytes]]) -> list[Cookie]:
    """Return the cookies in pairs of the family `cookie`, which also has entries of logins and requests."""
    return [cookie for key, value in pairs if key[2:3] != b"\0" for cookie in _decode(value)]


def _is_set_cookie(name: str) -> bool:
    return len(name) == 10 and name.lower() == "set-cookie"


def _redact(value: str) -> str:
    """Return a Set-Cookie header without the cookie's value; name and attributes are not secret."""
    pair, semicolon, attributes = value.partition(";")
    name, equals, _ = pair.partition("=")
    return f"{name if equals else ''}={REDACTED}{semicolon}{attributes}"  # Without "=" all of it is the value.


def _is_foreign_embed(url: Url, visit: Visit | None) -> bool:
    if visit is None or visit.link_type != EMBED or not visit.referrer:
        return False
    host = host_of(visit.referrer)
    return host is not None and site_of(host) != url.site
