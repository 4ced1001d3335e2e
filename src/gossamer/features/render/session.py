"""Session: the cookies of a page's site, in its browser and in the crawl.

The crawl's jar decides, and sends the cookies. The browser has those that scripts may see; of the others it has names
alone, which keeps scripts from setting them. Whether a request carries the session is the browser's decision, for only
the browser knows frames and credentials modes: it does if a marker is among the cookies that the browser would send.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from gossamer.features.render.browser import BrowserError, Event
from gossamer.model.visits import Headers
from gossamer.stages.fetch.cookies import Cookie, Jar, within
from gossamer.url.url import NameUrl, Url

MARKER: Final = "gossamer-session"


class SiteSessions(NamedTuple):
    """The sessions of a crawl: return the cookies of a site, store changed ones, and return headers of a request."""

    jar: Callable[[str], Jar | None]
    keep: Callable[[str, Jar], None]
    headers: Callable[[Url, None, float], Headers]


class PageSession:
    """The session of one page, whose site alone it is for. `begin` first, for each browser."""

    def __init__(self, page: Url, sessions: SiteSessions, name: NameUrl, now: Callable[[], float]) -> None:
        self._page = page
        self._sessions = sessions
        self._name = name
        self._now = now
        self._given: dict[tuple[str, str, str], Event] = {}
        self._known: dict[tuple[str, str, str], Event] = {}
        """The cookies that the browser has; those of the jar among them are in `_given`."""
        self._lock = asyncio.Lock()

    async def begin(self, call: Callable[[str, Event], Awaitable[Event]], context: Event) -> None:
        """Give a browser the cookies. `call` and `context` are those of its page."""
        self._call = call
        self._context = context
        self._given = self._known = {}
        marker = {"name": MARKER, "value": "1", "path": "/", "httpOnly": True, "sameSite": "Strict"}
        await self._set([{**marker, "domain": domain} for domain in (self._page.host, "." + self._page.site)])
        await self.give()

    async def give(self) -> None:
        """Let the browser know what has changed in the jar."""
        async with self._lock:
            now = self._now()
            jar = self._sessions.jar(self._page.site) or Jar()
            shown = {one.identity: self._params(one) for one in jar if not one.is_over(now)}
            changed = [{**one, "expires": 1} for identity, one in self._given.items() if identity not in shown]
            changed += [dict(one) for identity, one in shown.items() if not _is_same(one, self._known.get(identity))]
            self._given = shown
            self._known = {**self._known, **shown}
            if changed:
                await self._set(changed)

    async def take(self) -> None:
        """Take what scripts have changed into the jar, by its rules."""
        async with self._lock:
            with suppress(BrowserError):
                held = (await self._call("Storage.getCookies", self._context))["cookies"]
                found = {(one["domain"].removeprefix("."), one["path"], one["name"]): one for one in held}
                changed = [one for identity, one in found.items() if not _is_same(one, self._known.get(identity))]
                changed += [{**one, "expires": 1} for identity, one in self._known.items() if identity not in found]
                self._known = found
                jar = self._sessions.jar(self._page.site) or Jar()
                for one in changed:
                    if not one["httpOnly"]:
                        self._take_cookie(one, jar, self._now())
                self._sessions.keep(self._page.site, jar)

    async def carries(self, text: str, headers: Mapping[str, str]) -> bool:
        """Return whether a request that the browser would send with these headers carries the session."""
        url = self._name(text)
        if url is None or url.site != self._page.site or f"{MARKER}=1" not in headers.get("Cookie", "").split("; "):
            return False
        await self.take()
        return True

    def _params(self, cookie: Cookie) -> Event:
        """Return a cookie as the protocol of browsers has it; without its value if no script of the page may see it."""
        host = self._page.host
        is_visible = host == cookie.domain or (not cookie.host_only and within(host, cookie.domain))
        return {
            "name": _to_browser(cookie.name),
            "value": _to_browser(cookie.value) if is_visible and not cookie.http_only else "",
            "domain": cookie.domain if cookie.host_only else "." + cookie.domain,
            "path": cookie.path,
            "secure": cookie.secure,
            "httpOnly": cookie.http_only,
            **({"expires": int(cookie.expires_at)} if cookie.expires_at else {}),
            **({"sameSite": cookie.same_site.capitalize()} if cookie.same_site else {}),
        }

    def _take_cookie(self, one: Event, jar: Jar, now: float) -> None:
        domain = one["domain"].removeprefix(".")
        url = self._name(f"{self._page.scheme}://{domain}/")
        if url is not None and url.site == self._page.site:  # Frames of other sites have cookies too.
            text = f"{one['name']}={one['value']}; Path={one['path']}; SameSite={one.get('sameSite', '')}"
            text += f"; Domain={domain}" if one["domain"].startswith(".") else ""
            text += "; Secure" if one["secure"] else ""
            text += f"; Max-Age={int(one['expires'] - now)}" if one.get("expires", -1) > 0 else ""
            jar.take(text.encode().decode("latin-1"), url, now, by_script=True)

    async def _set(self, cookies: list[dict[str, Any]]) -> None:
        """Set cookies, each alone: one that the browser does not accept would keep out all."""
        for one in cookies:
            with suppress(BrowserError):
                await self._call("Storage.setCookies", {"cookies": [one], **self._context})


def _is_same(one: Event, known: Event | None) -> bool:
    """Return whether a cookie is one that both sides have. Its end may be rounded."""
    off_s = abs(one.get("expires", -1) - known.get("expires", -1)) if known is not None else 0
    return known is not None and bool(one["value"] == known["value"] and off_s <= 1)


def _to_browser(text: str) -> str:
    """Return a text of a header, whose bytes are latin-1 in the crawl, as a browser reads it."""
    return text.encode("latin-1").decode(errors="replace")
