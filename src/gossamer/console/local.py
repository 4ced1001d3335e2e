"""Local: everything but hooks answers to this machine's own names alone.

A page that somebody reads in a browser here can send requests to loopback, and by a name that resolves to it also read
the answers; what gives it away is the name (DNS rebinding). A proxy before the console, meant for hooks, is told apart
the same way.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

NAMES = frozenset(("127.0.0.1", "localhost", "[::1]"))


class LocalOnly:
    """Refuses requests under other names than this machine's, but for those below `public`."""

    def __init__(self, app: ASGIApp, public: tuple[str, ...]) -> None:
        self._app = app
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        app: ASGIApp = self._app
        if scope["type"] == "http" and not scope["path"].startswith(self._public):
            host = Headers(scope=scope).get("host", "").lower()
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if name not in NAMES:
                app = PlainTextResponse("this name is not served here\n", 421)
        await app(scope, receive, send)
