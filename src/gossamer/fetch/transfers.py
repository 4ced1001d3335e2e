"""Transfers: those under way over one set of kept connections, and what their ends mean."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

import pycurl

from gossamer.fetch import errors
from gossamer.fetch.options import FetchOptions
from gossamer.fetch.transfer import Transfer
from gossamer.model.visits import Failure, Request
from gossamer.world.clock import Clock

_IDLE_HANDLES_MAX: Final = 256
_GRACE_S: Final = 5.0
"""libcurl keeps the time itself; this much later we no longer believe that it does."""


class End(NamedTuple):
    """How libcurl says that a transfer ended: a code, 0 for well, and a line about it."""

    code: int
    text: str


_WELL: Final = End(0, "")


class Transfers:
    """Runs transfers, each to its end or its deadline. `take` → aim → `run` → read the answer → `keep`."""

    def __init__(self, options: FetchOptions, clock: Clock, make: Callable[[], Transfer]) -> None:
        self._clock = clock
        self._make = make
        self._deadline_s = options.request_s_max + _GRACE_S
        self._idle: list[Transfer] = []
        self._multi = pycurl.AsyncCurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, options.connections_max)
        self._multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, options.connections_per_host)
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)

    def take(self) -> Transfer:
        """Return a transfer to aim."""
        assert not self._multi.closed, "fetch after close"
        return self._idle.pop() if self._idle else self._make()

    async def run(self, transfer: Transfer, request: Request, started_at: float) -> End | Failure:
        """Carry a transfer out. After a `Failure`, and when cancelled, it is no longer the caller's."""
        try:
            await self._transferred(transfer)
        except pycurl.error as error:
            code, text = error.args
            return End(code, text)
        except TimeoutError:
            self._drop(transfer)
            return self.ours(request, started_at, "internal_error", "libcurl missed its own deadline")
        except asyncio.CancelledError:
            self._drop(transfer)
            if self._multi.closed and not _cancelling():
                return self.ours(request, started_at, "internal_error", "closed while it was fetched")
            raise
        return _WELL

    def keep(self, transfer: Transfer) -> None:
        """Take a transfer back whose answer was read."""
        transfer.forget()
        if len(self._idle) < _IDLE_HANDLES_MAX and not self._multi.closed:
            self._idle.append(transfer)
        else:
            transfer.close()

    def ours(self, request: Request, started_at: float, outcome: str, error: str) -> Failure:
        """Fail for a reason that is not libcurl's."""
        fetch_s = self._clock.now() - started_at
        return Failure(outcome, error, ip=request.ip, started_at=started_at, fetch_s=fetch_s)

    async def close(self) -> None:
        """Let go of all connections. Transfers still under way end with a `Failure`."""
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

    def _drop(self, transfer: Transfer) -> None:
        # A cancelled future removes its handle one turn of the loop later; it can be closed only once removed.
        with suppress(RuntimeError):
            self._multi.remove_handle(transfer.curl)
        transfer.close()


def cut(transfer: Transfer, request: Request, started_at: float, end: End) -> str | Failure:
    """Say why the body was cut (`Reply.truncated`), or why there is no reply."""
    code, text = end
    if transfer.disk_error is not None:
        raise transfer.disk_error  # No doing of the web's.
    if not code:
        return ""
    if transfer.stopped == "length":
        return "length"
    if transfer.stopped == "media_type":
        return "unspecified"
    fetch_s: float = transfer.curl.getinfo(pycurl.TOTAL_TIME)
    if transfer.stopped:
        return _stopped(transfer, request, started_at, fetch_s)
    if code == pycurl.E_OPERATION_TIMEDOUT and transfer.body_bytes:
        return "time"
    os_errno = transfer.curl.getinfo(pycurl.OS_ERRNO)
    return errors.failure(code, text, ip=request.ip, started_at=started_at, fetch_s=fetch_s, os_errno=os_errno)


def broken_off(transfer: Transfer, end: End) -> str:
    """Say how the server cut the body whose transfer has failed; empty where none had begun, or where we ended it."""
    return "" if transfer.stopped or not transfer.body_bytes else errors.breach(*end)


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
