"""Transfers: those under way over one set of kept connections, and what their ends mean."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
import pycurl

from gossamer.fetch import errors
from gossamer.fetch.driver import Driver, End
from gossamer.fetch.options import FetchOptions
from gossamer.fetch.transfer import Transfer
from gossamer.model.visits import Failure, Reply, Request
from gossamer.world.clock import Clock

_IDLE_HANDLES_MAX: Final = 256
_GRACE_S: Final = 5.0
"""libcurl keeps the time itself; this much later we no longer believe that it does."""


class Transfers:
    """Runs transfers, each to its end or its deadline. `take` → aim → `run` → read the answer → `done`."""

    def __init__(self, options: FetchOptions, clock: Clock, make: Callable[[], Transfer]) -> None:
        self._clock = clock
        self._make = make
        self._deadline_s = options.request_s_max + _GRACE_S
        self._idle: list[Transfer] = []
        self._driver = Driver(options)

    def take(self) -> Transfer:
        """Return a transfer to aim."""
        assert not self._driver.closed, "fetch after close"
        return self._idle.pop() if self._idle else self._make()

    async def run(self, transfer: Transfer, request: Request, started_at: float) -> End | Failure:
        """Carry a transfer out. After a `Failure`, and when cancelled, it is no longer the caller's."""
        try:
            end = await self._driver.start(transfer, self._deadline_s)
        except TimeoutError:
            self._drop(transfer)
            failure = self.ours(request, started_at, "internal_error", "libcurl missed its own deadline")
            return msgspec.structs.replace(failure, wire_bytes=transfer.wire_bytes)
        except asyncio.CancelledError:
            closed = self._driver.closed
            self._drop(transfer)
            if closed and not _cancelling():
                return self.ours(request, started_at, "internal_error", "closed while it was fetched")
            raise
        transfer.flush()
        return end

    def done(self, transfer: Transfer, result: Reply | Failure) -> Reply | Failure:
        """Take a transfer back whose answer was read, and return the answer."""
        if isinstance(result, Failure):
            result = msgspec.structs.replace(result, wire_bytes=transfer.wire_bytes)
        transfer.forget()
        if len(self._idle) < _IDLE_HANDLES_MAX and not self._driver.closed:
            self._idle.append(transfer)
        else:
            transfer.close()
        return result

    def ours(self, request: Request, started_at: float, outcome: str, error: str) -> Failure:
        """Fail for a reason that is not libcurl's."""
        fetch_s = self._clock.now() - started_at
        return Failure(outcome, error, ip=request.ip, started_at=started_at, fetch_s=fetch_s)

    async def close(self) -> None:
        """Let go of all connections. Transfers still under way end with a `Failure`."""
        self._driver.close()
        while self._idle:
            self._idle.pop().close()

    def _drop(self, transfer: Transfer) -> None:
        self._driver.drop(transfer)
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
    if transfer.stopped == "slow" and transfer.body_bytes:
        return "time"
    fetch_s: float = transfer.curl.getinfo(pycurl.TOTAL_TIME)
    if transfer.stopped:
        return _stopped(transfer, request, started_at, fetch_s)
    if code == pycurl.E_OPERATION_TIMEDOUT and transfer.body_bytes:
        return "time"
    os_errno = transfer.curl.getinfo(pycurl.OS_ERRNO)
    return errors.failure(
        code,
        text,
        ip=request.ip,
        started_at=started_at,
        fetch_s=fetch_s,
        os_errno=os_errno,
        greeting=transfer.greeting,
    )


def broken_off(transfer: Transfer, end: End) -> str:
    """Say how the body was cut whose transfer has failed; empty where none had begun, or where none of it counts."""
    if not transfer.body_bytes:
        return ""
    if transfer.stopped:
        return "length" if transfer.stopped == "wire" else ""
    return errors.breach(*end)


def _stopped(transfer: Transfer, request: Request, started_at: float, fetch_s: float) -> Failure:
    """Say why we ended a transfer ourselves."""
    host_level = False
    match transfer.stopped:
        case "head":
            outcome, error, retry = "too_large", f"headers exceed {transfer.head_bytes_max} bytes", False
        case "wire":
            content = transfer.head_bytes + transfer.body_bytes
            error = f"{transfer.wire_bytes} bytes received for {content} bytes of headers and body"
            outcome, retry = "too_large", False
        case "slow":
            outcome, error, retry = "timeout", "the server sends less than fetch.low_speed_bytes_s", True
            host_level = True
        case "resend":
            outcome, error, retry = "connect_error", "the kept connection closed without an answer", True
        case _:
            outcome, error, retry = "internal_error", f"{transfer.stopped} instead of {request.ip}", False
    return Failure(
        outcome, error, retry=retry, host_level=host_level, ip=request.ip, started_at=started_at, fetch_s=fetch_s
    )


def _cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
