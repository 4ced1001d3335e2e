"""Access: checks who may request what, before a request is processed, and keeps the token that allows changes.

A page open in a browser here can send requests to loopback, and by a name that resolves to it also read
the answers; what gives it away is the name (DNS rebinding), or what the browser says of where it comes from (`Origin`,
RFC 6454; `Sec-Fetch-Site`, W3C Fetch Metadata). Nothing is allowed across origins: there are no CORS headers.

Requests that change something need the token; served elsewhere than on loopback, or through a proxy, everything does,
except for the page itself, which is always the same, for hooks, whose addresses are secrets of their own, and for what
a crawl publishes about itself.
"""

import errno
import hmac
import os
import re
import secrets
import stat
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gossamer.config.sections import ConsoleOptions
from gossamer.console.operations import Bounds, error
from gossamer.console.server import is_local
from gossamer.model.errors import ConfigError
from gossamer.world.files import owner_of_new

PAGE = re.compile(r"/(?:crawls/[^/]+/?)?(?:static/[\w.-]+)?")
"""The page and its files: the program's own, with nothing of a crawl in them."""
READS = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
"""The safe methods (RFC 9110, section 9.2.1)."""
OWN_SITES = frozenset(("", "same-origin", "none"))
CLOSE = {"Connection": "close"}
"""Header of a refusal: the server does not wait for the rest of the body."""
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer, except for public ones."""
FILE = "console.token"
CHANCE_BYTES = 24
MODE = 0o600
TOKEN = re.compile(rb"[A-Za-z0-9_-]{32,64}")
LENGTH_MAX = 128


class Access(NamedTuple):
    """How the application is reached."""

    token: str
    """Required for changes."""
    is_local: bool
    """Whether it is served on loopback, where reading needs no token."""
    bounds: Bounds
    hook_bytes_max: int = 0
    """Largest body of a request from a hub."""
    public_host: str = ""
    """`Host` of requests through a proxy, in lower case."""


def access_of(state: Path, options: ConsoleOptions, hook_bytes_max: int = 0) -> Access:
    """Return the access with the token in the directory `state`. Raises ConfigError: the token cannot be kept."""
    bounds = Bounds(options.body_bytes_max, options.request_s_max)
    return Access(token_of(state), is_local(options.address), bounds, hook_bytes_max, place_of(options.public_url))


class Guard:
    """Refuses requests that are not allowed."""

    def __init__(self, app: ASGIApp, access: Access, public: tuple[str, ...]) -> None:
        """Guard `app`. Paths that begin as `public` says need no token, nor does reading on loopback, except through a
        proxy.
        """
        self._app = app
        self._token = access.token.encode()
        self._access = access
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["path"].startswith(self._public):
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in ALWAYS.items():
                    headers.setdefault(name, value)
            await send(message)

        app: ASGIApp = self._refusal(scope) or self._app
        await app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if len(headers.getlist("host")) > 1:  # RFC 9112, section 3.2: proxies may go by the other one.
            return error(400, "a request has one Host header", CLOSE)
        is_page = scope["method"] in READS and PAGE.fullmatch(scope["path"]) is not None
        is_local = self._access.is_local and (not host or _is_loopback(host) or host != self._access.public_host)
        if is_local and not _is_loopback(host):
            says = "on loopback only names of this machine are served, and that of console.public_url: behind a proxy"
            return error(421, f"{says} set it to the address that browsers show", CLOSE)
        if not _is_own(headers, host, is_page=is_page):
            return error(403, "other sites may not ask", CLOSE)
        given = headers.get("authorization")
        scheme, _, token = (given or "").partition(" ")
        is_token = hmac.compare_digest(token.strip().encode("latin-1"), self._token) and scheme.lower() == "bearer"
        if given is not None and not is_token:
            says = "the token is not that of what is served here: open the address that the server printed"
            says = says if scheme.lower() == "bearer" else "the token is sent as `Authorization: Bearer TOKEN`"
            return error(401, says, {"WWW-Authenticate": "Bearer", **CLOSE})
        needed = not is_page and (not is_local or scope["method"] not in READS)
        if needed and given is None:
            says = "this needs the token, as `Authorization: Bearer TOKEN`; the file console.token holds it"
            return error(401, says, {"WWW-Authenticate": "Bearer", **CLOSE})
        return None


_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[0-9a-z.-]+)(?::[0-9]{0,5})?")
"""`Host` of RFC 9110, section 7.2, in lower case: nothing else may stand beside the name and the port."""


def _is_loopback(host: str) -> bool:
    """Return whether a `Host` is this machine's own: a name can resolve to anything, an address cannot."""
    place = _HOST.fullmatch(host)
    try:
        return place is not None and (place[1] == "localhost" or ip_address(place[1].strip("[]")).is_loopback)
    except ValueError:
        return False


def _is_own(headers: Headers, host: str, *, is_page: bool) -> bool:
    origin = headers.get("origin")
    if origin is not None and place_of(origin) != host:
        return False
    # A link that leads here from elsewhere may be followed: what it shows is shown to who followed it, and in no frame.
    is_link = is_page and headers.get("sec-fetch-mode") == "navigate"
    return is_link or headers.get("sec-fetch-site", "").lower() in OWN_SITES


def place_of(origin: str) -> str:
    """Return the host and port of a web address, in lower case; empty: it is none."""
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return ""
    return parts.netloc if parts.scheme in ("http", "https") else ""


def token_of(state: Path) -> str:
    """Return the token in the directory `state`, made where there is none.

    One that others could read, that is not ours, or that is cut short is replaced. In a directory of another user, root
    reads the token of that user, and leaves none. Raises ConfigError: it cannot be written, and not because the
    directory is read-only.
    """
    path = state / FILE
    owner = os.getuid() or (state.stat().st_uid if state.exists() else 0)
    try:
        if token := _read_token(path, owner):
            return token
        if owner == os.getuid() or owner_of_new(state) == owner:
            return _write_token(path, owner)
        return secrets.token_urlsafe(CHANCE_BYTES)
    except OSError as error:
        if error.errno in (errno.EROFS, errno.EACCES):  # Nothing can be changed there: a token for this server will do.
            return secrets.token_urlsafe(CHANCE_BYTES)
        raise ConfigError(f"cannot keep a token in {path}: {error.strerror}; see that it can be written") from error


def _read_token(path: Path, owner: int) -> str:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        about = os.fstat(file)
        is_ours = stat.S_ISREG(about.st_mode) and about.st_uid == owner and not about.st_mode & 0o077
        text = os.read(file, LENGTH_MAX).strip() if is_ours else b""
        return text.decode() if TOKEN.fullmatch(text) else ""
    finally:
        os.close(file)


def _write_token(path: Path, owner: int) -> str:
    """Write a new one aside, then link it to its name if that is free: servers that start at once share a token."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    token = secrets.token_urlsafe(CHANCE_BYTES)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE)
    try:
        os.write(file, token.encode() + b"\n")
        os.fsync(file)
    finally:
        os.close(file)
    with suppress(FileExistsError):
        os.link(aside, path)
    aside.unlink()
    return _read_token(path, owner) or token
