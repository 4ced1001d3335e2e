"""Legacy: TLS for servers without secure renegotiation (RFC 5746), which OpenSSL 3 refuses and libcurl cannot permit.

libcurl connects, through the proxy if there is one, and Python's TLS runs over that connection with the same checks:
names, trusted certificates, oldest version, client certificate.
"""

from __future__ import annotations

import ssl
from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import lru_cache
from ssl import TLSVersion
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

import pycurl

from gossamer.stages.fetch.certificates import ca_file
from gossamer.stages.fetch.connections import End
from gossamer.stages.fetch.settings import OLD_CIPHERS, OLD_TLS
from gossamer.stages.fetch.tolerant import TolerantTransfer

if TYPE_CHECKING:
    from gossamer.model.visits import Request
    from gossamer.stages.fetch.bodies import BodyMemory
    from gossamer.stages.fetch.options import FetchOptions
    from gossamer.stages.fetch.settings import Setting

_OP_LEGACY_SERVER_CONNECT: Final = 0x4
"""Python 3.12 names it."""
_VERSIONS: Final = {
    "1.0": TLSVersion.TLSv1,
    "1.1": TLSVersion.TLSv1_1,
    "1.2": TLSVersion.TLSv1_2,
    "1.3": TLSVersion.TLSv1_3,
}
_READ_BYTES: Final = 64 * 1024
_Result = TypeVar("_Result")


class LegacyTransfer(TolerantTransfer):
    """A tolerant transfer with TLS of its own."""

    __slots__ = ("_context", "_incoming", "_outgoing", "_tls", "_unsent", "host")

    def __init__(self, options: FetchOptions, own: list[Setting], bodies: BodyMemory | None = None) -> None:
        super().__init__(options, own, bodies)
        settings = dict(own)
        certificate = settings.get(pycurl.SSLCERT, "")
        key = settings.get(pycurl.SSLKEY, "")
        verifies = options.verify_tls
        self._context = _context(ca_file(options), options.tls_min, str(certificate), str(key), verifies=verifies)
        self._tls: ssl.SSLObject | None = None
        self._unsent = b""
        self.host = ""

    def aim(self, request: Request, headers: list[bytes], body_bytes_max: int, url: str = "") -> None:
        """Prepare one request; libcurl gets an address without TLS, with the same host and port."""
        self.host = urlsplit(url or request.url).hostname or ""
        at = f"[{self.host}]" if ":" in self.host else self.host
        super().aim(request, headers, body_bytes_max, f"http://{at}:{request.port}/")

    def take_over(self, finish: Callable[[pycurl.Curl, End], None]) -> bool:
        """Go on with TLS once libcurl has connected."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._unsent = b""
        self._tls = self._context.wrap_bio(self._incoming, self._outgoing, server_hostname=self.host)
        return super().take_over(finish)

    def write(self, data: bytes) -> int:
        """Send all bytes, after the handshake."""
        assert self._tls is not None
        self._run(self._tls.do_handshake)
        written = int(self._run(lambda: self._tls.write(data)))  # type: ignore[union-attr]
        self._flush()
        return written

    def receive(self, most: int) -> bytes:
        """Return decrypted bytes; empty at TLS's proper end."""
        try:
            return bytes(self._run(lambda: self._tls.read(most)))  # type: ignore[union-attr]
        except ssl.SSLZeroReturnError:
            return b""

    def wait(self, loop: AbstractEventLoop, fd: int, go_on: Callable[[], None]) -> None:
        """Go on with the handshake once its answer has arrived, or once more can be sent."""
        if self._unsent:
            loop.add_writer(fd, go_on)
            return
        loop.remove_writer(fd)
        loop.add_reader(fd, go_on)

    def cause(self, error: Exception, code: int) -> End:
        """Return the result for an error of the connection or of TLS, by libcurl's codes."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return End(pycurl.E_PEER_FAILED_VERIFICATION, f"SSL: {error.verify_message}")
        if isinstance(error, ssl.SSLEOFError) and code == pycurl.E_RECV_ERROR:
            return End(code, "unexpected eof while reading")
        if isinstance(error, ssl.SSLError):
            return End(pycurl.E_SSL_CONNECT_ERROR, f"TLS connect error: {error.reason or error}")
        return super().cause(error, code)

    def _run(self, step: Callable[[], _Result]) -> _Result:
        while True:
            self._flush()
            try:
                return step()
            except ssl.SSLWantReadError:
                self._flush()
                data = self.curl.recv(_READ_BYTES)
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()

    def _flush(self) -> None:
        self._unsent += self._outgoing.read()
        while self._unsent:
            self._unsent = self._unsent[self.curl.send(self._unsent) :]


@lru_cache(maxsize=8)
def _context(bundle: str, oldest: str, certificate: str, key: str, *, verifies: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = verifies
    context.verify_mode = ssl.CERT_REQUIRED if verifies else ssl.CERT_NONE
    context.load_verify_locations(bundle)
    if oldest in OLD_TLS:
        context.set_ciphers(OLD_CIPHERS)
    context.minimum_version = _VERSIONS[oldest]
    context.options |= _OP_LEGACY_SERVER_CONNECT
    if certificate:
        context.load_cert_chain(certificate, key or None)
    return context
