"""Exports: a table of items as a file, made by `gossamer export` in a separate process, and passed on as it comes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gossamer.console.events import wait_for_disconnect
from gossamer.console.operations import NEVER_KEPT, answer
from gossamer.model import verbs
from gossamer.world.loop import wait_at_most
from gossamer.world.process import child_environment
from gossamer.world.workers import end_process

if TYPE_CHECKING:
    from pathlib import Path

    from gossamer.console.service import Service

PATH = "api/items/export"
PIECE_BYTES = 64 * 1024
EXPORT_S_MAX = 600.0
TURN_S_MAX = 5.0
"""Longest wait for another export."""
NICENESS = 10
TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


class ItemsExport(verbs.VerbRequest, frozen=True):
    """Which items, and how."""

    kind: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^\w[\w.-]*$", description="Name of the items.")]
    format: Annotated[Literal["csv", "jsonl"], Meta(description="CSV or JSON lines.")] = "csv"


def route(path: str, directory_of: Callable[[Mapping[str, str]], Path], service: Service) -> Route:
    """Return the route that exports items. One export at a time: it reads whole tables."""
    turn = asyncio.Lock()

    async def export(request: Request) -> Response:
        asked = verbs.check_request("export", ItemsExport, dict(request.query_params), from_texts=True)
        assert isinstance(asked, ItemsExport)
        return _ItemsFile(directory_of(request.path_params), asked, service, turn)

    return Route(path, export, methods=["GET"])


class _ItemsFile(Response):
    """Passes on the process's output as fast as the reader takes it; ends the process when the reader has left."""

    def __init__(self, directory: Path, asked: ItemsExport, service: Service, turn: asyncio.Lock) -> None:
        super().__init__()
        self._directory = directory
        self._asked = asked
        self._share = service.share
        self._turn = turn

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not await wait_at_most(TURN_S_MAX, self._turn.acquire()):
            busy = {"ok": False, "error": "another export is under way; try again when it is done", "kind": "busy"}
            await answer(busy)(scope, receive, send)
            return
        try:
            await self._send_until_disconnect(scope, receive, send)
        finally:
            self._turn.release()

    async def _send_until_disconnect(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(scope, receive, send))
        leaving = asyncio.ensure_future(wait_for_disconnect(receive))
        try:
            await asyncio.wait((sending, leaving), timeout=EXPORT_S_MAX, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            sending.cancel()
            await asyncio.wait((sending, leaving))
        if not sending.cancelled():
            sending.result()

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        process = await self._start_process()
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            piece = await process.stdout.read(PIECE_BYTES)
            if not piece and await process.wait():
                says = (await process.stderr.read(PIECE_BYTES)).decode(errors="replace").strip()
                failed = {"ok": False, "error": says.removeprefix("gossamer: "), "kind": "conflict"}
                await answer(failed)(scope, receive, send)
                return
            await send({"type": "http.response.start", "status": 200, "headers": self._heads()})
            while piece:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                await self._share.turn()
                piece = await process.stdout.read(PIECE_BYTES)
            # A file that was cut short must not look whole: the connection ends without its last chunk.
            if await process.wait() == 0:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if process.returncode is None:
                await end_process(process)

    async def _start_process(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "gossamer", "export", str(self._directory), "--to", self._asked.format,
            "--table", f"items/{self._asked.kind}", "--output", "-", "--quiet",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=child_environment(),
        )  # fmt: skip
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        return process

    def _heads(self) -> list[tuple[bytes, bytes]]:
        named = f'attachment; filename="{self._asked.kind}.{self._asked.format}"'
        heads = {**NEVER_KEPT, "Content-Type": TYPES[self._asked.format], "Content-Disposition": named}
        return [(key.lower().encode(), value.encode()) for key, value in heads.items()]
