"""FTP: the protocol module for ftp and ftps, over libcurl (RFC 959, 2428, 4217, 1738 section 3.2), and its logins."""

import netrc
import re
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

import pycurl
from msgspec.structs import replace

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure, Reply, Request
from gossamer.stages.fetch.bodies import FTP_LISTING, BodyMemory, media_type_of
from gossamer.stages.fetch.certificates import check_trusted
from gossamer.stages.fetch.connections import End
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.fetch.repeats import note
from gossamer.stages.fetch.settings import Setting
from gossamer.stages.fetch.transfer import Transfer
from gossamer.stages.fetch.transfers import Transfers, cut, one_line
from gossamer.world.clock import Clock, elapsed_s


class FtpLogin(NamedTuple):
    """A name and its password. Neither is archived or logged."""

    user: str
    password: str

    def __repr__(self) -> str:
        """Keep the password out of tracebacks."""
        return f"Login({self.user!r}, …)"


def read_logins(path: str) -> dict[str, FtpLogin]:
    """Return logins by host, from a file of netrc(5). They are not in the crawl's configuration, which is archived.

    The file's `default` is not used, because a password must be sent only to its host. Raises ConfigError: the file
    cannot be read.
    """
    try:
        hosts = netrc.netrc(path).hosts
    except netrc.NetrcParseError as error:
        raise ConfigError(f"fetch.logins_file: {path}, line {error.lineno}: {error.msg}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"fetch.logins_file: {path} cannot be read: {error}") from None
    return {
        host.lower(): FtpLogin(user or "", password or "")
        for host, (user, _, password) in hosts.items()
        if host != "default"
    }


TRANSFERRED: Final = 226
"""Status of a transfer that succeeded before, or without, the server's last reply."""
WAIT_S_MAX: Final = 0.9
_UNAVAILABLE: Final = 421
_NO_FILE: Final = 550
_IS_DIRECTORY: Final = "; it is requested again as a directory"
_ADDRESS = r"(?i:(ftps?)://(?:[^/@]*+@)*((\[[0-9a-f:.]+\]|[^/@:\[\]]+)(?::\d*)?)(/[!-~]*)?)"
_CONTROL = re.compile(r"%(?:[01][0-9a-f]|7f)", re.IGNORECASE)
_DIGITS = re.compile(rb"[0-9]{1,18}")
_TYPED = re.compile(r";type=(.*)", re.IGNORECASE | re.DOTALL)
_CONTACT = re.compile(r"\(\+(?:mailto:)?([^\s()]+)\)")
_REFUSED: Final = frozenset(
    {
        pycurl.E_FTP_WEIRD_SERVER_REPLY, pycurl.E_REMOTE_ACCESS_DENIED, pycurl.E_FTP_WEIRD_PASV_REPLY,
        pycurl.E_FTP_COULDNT_SET_TYPE, pycurl.E_FTP_COULDNT_RETR_FILE, pycurl.E_QUOTE_ERROR, pycurl.E_LOGIN_DENIED,
        pycurl.E_REMOTE_FILE_NOT_FOUND,
    }
)  # fmt: skip
"""Errors that may be caused by a negative reply of the server, whose code is more specific."""


class FtpPlace(NamedTuple):
    """The parts of an FTP URL."""

    host: str
    url: str
    """The URL for libcurl, without user, password and `;type=`."""
    name: str
    """The file; empty for a directory."""


class FtpModule:
    """`ports.ProtocolModule` for ftp and ftps (TLS from the first byte): files, and directories as listings.

    Passive mode only. Every connection, also for data, goes to `Request.ip`, never to an address that the server names.
    An address that ends with a slash is a directory; its reply is the listing as sent, of type `text/x-ftp-listing`,
    except that line ends become LF (FTP's text type). So is one that is no file, if its name has no known extension:
    its failure asks for the same request once more. `Reply.status` is the server's last code (226, 250). A refusal is
    a `Failure` with `http_error` and the server's text; 4yz codes are retried (RFC 959, section 4.2.1). Credentials in
    a URL are not sent.
    """

    def __init__(self, options: FetchOptions, agent: str, clock: Clock, bodies: BodyMemory | None = None) -> None:
        """The contact in `agent` is the anonymous password. Raises ConfigError for files that cannot be read."""
        check_trusted(options)
        self._options = options
        self._clock = clock
        contact = _CONTACT.search(agent)
        self._anonymous = FtpLogin("anonymous", contact[1] if contact else "gossamer@")
        self._logins = read_logins(options.logins_file) if options.logins_file else {}
        self._directories: dict[str, bool] = {}
        """URLs whose next request is for a directory."""
        shared = bodies or BodyMemory(options)
        self._transfers = Transfers(options, clock, lambda: _transfer(options, shared))

    async def fetch(self, request: Request) -> Reply | Failure:
        """Fetch one file or one listing. Cancelling it ends the transfer and its connections."""
        assert request.ip, "a request without a checked address"
        started_at = self._clock.now()
        at = place(request.url)
        if at is None:
            return self._transfers.ours(request, started_at, "unsupported", "no URL that FTP can request")
        if self._options.proxy:  # Data connections would go to an address that the proxy chooses.
            return self._transfers.ours(request, started_at, "unsupported", "FTP does not go through fetch.proxy")
        if self._directories.pop(request.url, False):
            at = FtpPlace(at.host, f"{at.url}/", "")
        transfer = self._transfers.take(started_at)
        transfer.aim(request, [], request.body_bytes_max or self._options.body_bytes_max, at.url)
        login = self._logins.get(at.host.lower(), self._anonymous)
        transfer.curl.setopt(pycurl.USERNAME, login.user)
        transfer.curl.setopt(pycurl.PASSWORD, login.password)
        if not at.name and self._options.ftp_listing != "LIST":
            transfer.curl.setopt(pycurl.CUSTOMREQUEST, self._options.ftp_listing)
        else:
            transfer.curl.unsetopt(pycurl.CUSTOMREQUEST)
        # libcurl gives up after a 550 to its own SIZE (RFC 3659, section 4), which many servers send for files that
        # they serve. With `*` a refusal counts for nothing.
        transfer.curl.setopt(pycurl.PREQUOTE, [b"*SIZE " + unquote_to_bytes(at.name)] if at.name else [])
        end = await self._transfers.run(transfer)
        if isinstance(end, Failure):
            return end
        size = _size(transfer) if not end.code and at.name else 0
        if transfer.body_bytes < size:
            end = End(pycurl.E_PARTIAL_FILE, f"{transfer.body_bytes} of {size} bytes came")
        result = _result(transfer, at, end)
        if isinstance(result, Failure) and result.again:
            note(self._directories, request.url, True)
        return self._transfers.finish(transfer, result)

    async def close(self) -> None:
        """Close all connections. Fetches in flight end with a `Failure`."""
        await self._transfers.close()


def place(url: str) -> FtpPlace | None:
    """Split an FTP URL; None if it cannot be requested: no host, control characters, another type."""
    match = re.fullmatch(_ADDRESS, url.partition("#")[0])
    if match is None or _CONTROL.search(url):
        return None
    scheme, authority, host, path = match.groups()
    path = path or "/"
    if (typed := _TYPED.search(path)) is not None:
        if typed[1].lower() not in ("i", "a"):
            return None
        path = path[: typed.start()]  # Always binary, so that files are archived unchanged.
    path = path.replace("?", "%3F")  # Part of a name (RFC 1738, section 5); libcurl would leave out what follows.
    return FtpPlace(host, f"{scheme.lower()}://{authority}{path}", path.rpartition("/")[2])


def _transfer(options: FetchOptions, bodies: BodyMemory) -> Transfer:
    settings: list[Setting] = [
        (pycurl.PROTOCOLS, pycurl.PROTO_FTP | pycurl.PROTO_FTPS),
        (pycurl.FTP_SKIP_PASV_IP, 1),
        (pycurl.FTP_USE_EPSV, 1),
        (pycurl.FTP_FILEMETHOD, pycurl.FTPMETHOD_MULTICWD),  # RFC 1738, section 3.2.2
        (pycurl.FTP_RESPONSE_TIMEOUT, max(1, round(options.request_s_max))),
        (pycurl.TRANSFERTEXT, 0),
        (pycurl.IGNORE_CONTENT_LENGTH, 1),
    ]
    transfer = Transfer(options, settings, bodies)
    transfer.open_only_pinned()
    transfer.curl.setopt(pycurl.NOPROGRESS, 0)
    transfer.curl.setopt(pycurl.XFERINFOFUNCTION, partial(_waits, transfer))
    return transfer


def _waits(transfer: Transfer, *_: int) -> bool:
    """Return whether libcurl, which blocks the loop after the data for up to a minute, has waited too long."""
    driver = transfer.driver
    now = elapsed_s()
    if now - driver.turn_at < WAIT_S_MAX:
        return False
    driver.turn_at = now  # Transfers that follow in the same turn have their time.
    transfer.stopped = transfer.stopped or "mute"
    return True


def _result(transfer: Transfer, at: FtpPlace, end: End) -> Reply | Failure:
    code: int = transfer.curl.getinfo(pycurl.RESPONSE_CODE)
    # libcurl reports a 421 at any time as a timeout.
    refused = end.code in _REFUSED or (end.code and code == _UNAVAILABLE)
    if refused and not transfer.stopped and 400 <= code < 600:
        again = code == _NO_FILE and at.name != "" and not media_type_of(at.name)  # It may be a directory.
        error = f"FTP {_last_line(transfer) or code}{_IS_DIRECTORY if again else ''}"
        failure = transfer.failure("http_error", error, retry=code < 500, host_level=code == _UNAVAILABLE)
        return replace(failure, again=again)
    truncated = cut(transfer, end)
    if isinstance(truncated, Failure):
        return truncated
    status = code if 200 <= code < 300 else TRANSFERRED
    media_type = media_type_of(at.name) if at.name else FTP_LISTING
    return replace(transfer.reply(status, truncated, media_type), reason=_last_line(transfer)[4:])


def _size(transfer: Transfer) -> int:
    """Return the size that the server named for a file; 0 if it named none."""
    sizes = [line[4:].strip() for line in transfer.head if line.startswith(b"213 ")]
    return int(sizes[-1]) if sizes and _DIGITS.fullmatch(sizes[-1]) else 0


def _last_line(transfer: Transfer) -> str:
    return one_line(transfer.head[-1].decode("utf-8", "replace")) if transfer.head else ""
