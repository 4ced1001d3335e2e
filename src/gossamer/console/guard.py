"""Guard: who may ask what, before anything else looks at a request.

A page that somebody reads in a browser here can send requests to loopback, and by a name that resolves to it also read
the answers; what gives it away is the name (DNS rebinding), or what the browser says of where it comes from (`Origin`,
RFC 6454; `Sec-Fetch-Site`, W3C Fetch Metadata). Nothing is allowed across origins: there are no CORS headers.

Whatever changes something needs the token; served elsewhere than on loopback, everything does, but for the page
itself, which is the same for everybody, and for hooks, whose addresses are secrets of their own.
"""

from __future__ import annotations

import hmac
import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gossamer.console.answers import error

PAGE = re.compile(r"/(?:crawls/[^/]+/?)?(?:static/[\w.-]+)?")
"""The page and its files: the program's own, with nothing of a crawl in them."""
READS = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
"""The safe methods (RFC 9110, section 9.2.1)."""
OWN_SITES = frozenset(("", "same-origin", "none"))
CLOSE = {"Connection": "close"}
"""The rest of a body that is refused is not waited for."""
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Refuses what may not pass."""

    def __init__(self, app: ASGIApp, token: str, *, is_local: bool, hooks: str) -> None:
        """Guard `app`. Below `hooks` anybody may call; on loopback (`is_local`) anybody here may read."""
        self._app = app
        self._token = token.encode()
        self._is_local = is_local
        self._hooks = hooks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["path"].startswith(self._hooks):
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in ALWAYS.items():
                    headers.setdefault(name, value)
            await send(message)

        app: ASGIApp = self._refused(scope) or self._app
        await app(scope, receive, guarded)

    def _refused(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        is_page = scope["method"] in READS and PAGE.fullmatch(scope["path"]) is not None
        if self._is_local and not _is_loopback(host):
            return error(421, "this name is not served here", CLOSE)
        if not _is_own(headers, host, is_page=is_page):
            return error(403, "other sites may not ask", CLOSE)
        given = headers.get("authorization")
        if given is not None and not self._is_token(given):
            return error(401, "the token is not that of what is served here", {"WWW-Authenticate": "Bearer", **CLOSE})
        needed = not is_page and (not self._is_local or scope["method"] not in READS)
        if needed and given is None:
            says = "this needs the token, as `Authorization: Bearer TOKEN`; it stands in the file console.token"
            return error(401, says, {"WWW-Authenticate": "Bearer", **CLOSE})
        return None

    def _is_token(self, given: str) -> bool:
        scheme, _, token = given.partition(" ")
        return hmac.compare_digest(token.strip().encode("latin-1"), self._token) and scheme.lower() == "bearer"


def _is_loopback(host: str) -> bool:
    """Say whether a `Host` is this machine's own: a name could be anybody's, an address is what it is."""
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    try:
        return name == "localhost" or ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def _is_own(headers: Headers, host: str, *, is_page: bool) -> bool:
    origin = headers.get("origin")
    if origin is not None and _place(origin) != host:
        return False
    # A link that leads here from elsewhere may be followed: what it shows is shown to who followed it, and in no frame.
    is_link = is_page and headers.get("sec-fetch-mode") == "navigate"
    return is_link or headers.get("sec-fetch-site", "").lower() in OWN_SITES


def _place(origin: str) -> str:
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return ""
    return parts.netloc if parts.scheme in ("http", "https") else ""
