"""HTTP: the protocol module for http and https, over libcurl."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import pycurl

from gossamer.fetch import errors
from gossamer.fetch.headers import content_type, parse_head
from gossamer.fetch.options import FetchOptions
from gossamer.fetch.request import Address, Headers, address, compose, own_headers, replaced, request_head, sendable
from gossamer.fetch.transfer import Transfer, trusted
from gossamer.model.visits import Failure, Reply, Request
from gossamer.world.clock import Clock

_IDLE_HANDLES_MAX: Final = 256
_GRACE_S: Final = 5.0
"""libcurl keeps the time itself; this much later we no longer believe that it does."""


class HttpModule:
    """`ports.ProtocolModule` for http and https: h1, and h2 where TLS negotiates it.

    One call sends at most one request, to `Request.ip` and nowhere else, with the URL byte for byte as written.
    Connections are kept per host and address. Bodies stay as sent: chunks are joined, content codings are not
    removed. A reply whose body exceeds a bound or its time is cut and marked; all else that goes wrong is a `Failure`.
    Needs a running loop from the first fetch to `close`; one slow server holds up nobody else. A page over a kept
    connection costs at most 1.5 times what libcurl and its asyncio binding take (benchmarks/bench_fetch.py).
    """

    def __init__(self, options: FetchOptions, agent: str, clock: Clock) -> None:
        """`agent` is the whole User-Agent header. Raises ConfigError for what cannot be sent or read."""
        trusted(options)
        self._options = options
        self._clock = clock
        self._own = own_headers(options, agent)
        self._headers = compose(self._own)
        self._deadline_s = options.request_s_max + _GRACE_S
        self._idle: list[Transfer] = []
        self._multi = pycurl.AsyncCurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, options.connections_max)
        self._multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, options.connections_per_host)
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)

    async def fetch(self, request: Request) -> Reply | Failure:
        """Send one request and return what came. Cancelling it ends the transfer and its connection."""
        assert not self._multi.closed, "fetch after close"
        assert request.ip, "a request without a checked address"
        started_at = self._clock.now()
        at = address(request.url)
        if at is None:  # libcurl would guess what is meant
            return self._ours(request, started_at, "unsupported", "no URL that can be sent as written")
        headers = self._with(request.headers) if request.headers else self._headers
        transfer = self._idle.pop() if self._idle else Transfer(self._options)
        transfer.aim(request, headers.lines, request.body_bytes_max or self._options.body_bytes_max)
        code, text = 0, ""
        try:
            await self._transferred(transfer)
        except pycurl.error as error:
            code, text = error.args
        except TimeoutError:
            self._drop(transfer)
            return self._ours(request, started_at, "internal_error", "libcurl missed its own deadline")
        except asyncio.CancelledError:
            self._drop(transfer)
            if self._multi.closed and not _cancelling():
                return self._ours(request, started_at, "internal_error", "closed while it was fetched")
            raise
        result = _result(transfer, request, started_at, at, headers, code, text)
        self._keep(transfer)
        return result

    async def close(self) -> None:
        """Let go of all connections. Fetches still under way end with a `Failure`."""
        await self._multi.aclose()
        while self._idle:
            self._idle.pop().close()

    async def _transferred(self, transfer: Transfer) -> None:
        # A timer of our own costs a third of asyncio.timeout.
        done = self._multi.add_handle(transfer.curl)
        overdue = asyncio.get_running_loop().call_later(self._deadline_s, _give_up, done)
        try:
            await done
        finally:
            overdue.cancel()

    def _with(self, extra: tuple[tuple[str, str], ...]) -> Headers:
        """Add a request's own headers; those of a name that we send ourselves take its place."""
        assert all(sendable(name, value) for name, value in extra), f"headers that cannot be sent: {extra}"
        return compose(replaced(self._own, extra))

    def _keep(self, transfer: Transfer) -> None:
        transfer.forget()
        if len(self._idle) < _IDLE_HANDLES_MAX and not self._multi.closed:
            self._idle.append(transfer)
        else:
            transfer.close()

    def _drop(self, transfer: Transfer) -> None:
        # A cancelled future removes its handle one turn of the loop later; it can be closed only once removed.
        with suppress(RuntimeError):
            self._multi.remove_handle(transfer.curl)
        transfer.close()

    def _ours(self, request: Request, started_at: float, outcome: str, error: str) -> Failure:
        """Fail for a reason that is not libcurl's."""
        fetch_s = self._clock.now() - started_at
        return Failure(outcome, error, ip=request.ip, started_at=started_at, fetch_s=fetch_s)


def _result(
    transfer: Transfer, request: Request, started_at: float, at: Address, headers: Headers, code: int, text: str
) -> Reply | Failure:
    fetch_s: float = transfer.curl.getinfo(pycurl.TOTAL_TIME)
    truncated = ""
    if code:
        if transfer.stopped == "length":
            truncated = "length"
        elif transfer.stopped:
            return _stopped(transfer, request, started_at, fetch_s)
        elif code == pycurl.E_OPERATION_TIMEDOUT and transfer.body:
            truncated = "time"
        else:
            os_errno = transfer.curl.getinfo(pycurl.OS_ERRNO)
            return errors.failure(code, text, ip=request.ip, started_at=started_at, fetch_s=fetch_s, os_errno=os_errno)
    head = parse_head(transfer.head)
    if head is None:
        error = "the reply has no status line"
        return Failure("protocol_error", error, ip=request.ip, started_at=started_at, fetch_s=fetch_s)
    media_type, charset = content_type(head.headers)
    body = transfer.body[0] if len(transfer.body) == 1 else b"".join(transfer.body)
    return Reply(
        url=request.url,
        status=head.status,
        headers=head.headers,
        body=body[: transfer.body_bytes_max] if truncated == "length" else body,
        ip=request.ip,
        started_at=started_at,
        fetch_s=fetch_s,
        wire_bytes=transfer.head_bytes + transfer.body_bytes,
        http_version=head.http_version,
        reason=head.reason,
        request_head=request_head(at, head.http_version, headers),
        truncated=truncated,
        media_type=media_type,
        charset=charset,
    )


def _stopped(transfer: Transfer, request: Request, started_at: float, fetch_s: float) -> Failure:
    """Say why we ended a transfer ourselves."""
    outcome, error, retry = {
        "head": ("too_large", f"headers exceed {transfer.head_bytes_max} bytes", False),
        "resend": ("connect_error", "the kept connection closed without an answer", True),
    }.get(transfer.stopped, ("internal_error", f"{transfer.stopped} instead of {request.ip}", False))
    return Failure(outcome, error, retry=retry, ip=request.ip, started_at=started_at, fetch_s=fetch_s)


def _give_up(done: asyncio.Future[object]) -> None:
    if not done.done():
        done.set_exception(TimeoutError())


def _cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
