"""Consoles: the only place that imports the console; who serves nothing does not pay for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gossamer.cli.door import Running
from gossamer.model.extras import require

if TYPE_CHECKING:
    from gossamer.config import Config
    from gossamer.config.sections import ConsoleOptions
    from gossamer.console.desk import Desk


@asynccontextmanager
async def console_of(crawl: Running, config: Config) -> AsyncIterator[str]:
    """Serve the console of a crawl while the context is open; give its address, with what may change things.

    Raises:
        ConfigError: the port is taken, or what it needs is not installed.
    """
    _require_parts()
    from gossamer.console.app import console_app
    from gossamer.console.door import door_of
    from gossamer.console.server import served
    from gossamer.console.service import Service
    from gossamer.console.share import CRAWL_SHARE

    options = config.console
    assert options.port is not None
    desk = cast("Desk", crawl)
    door = door_of(desk.directory / "state", options, config.websub.body_bytes_max)
    async with (
        Service(options.connections_max, CRAWL_SHARE) as service,
        served(console_app(desk, door, service), options, options.port, service) as address,
    ):
        yield f"{address}/#token={door.token}"


def serve_crawl(
    directory: Path, options: ConsoleOptions, port: int, say: Callable[[str], None], complain: Callable[[str], None]
) -> Coroutine[Any, Any, None]:
    """Return the work of serving one crawl. Raises ConfigError: what it needs is not installed."""
    _require_parts()
    from gossamer.console.serving import serve_crawl as serve

    return serve(directory, options, port, say, complain)


def serve_folder(
    folder: Path, options: ConsoleOptions, port: int, say: Callable[[str], None], complain: Callable[[str], None]
) -> Coroutine[Any, Any, None]:
    """Return the work of serving a folder of crawls. Raises as `serve_crawl`."""
    _require_parts()
    from gossamer.console.serving import serve_folder as serve

    return serve(folder, options, port, say, complain)


def _require_parts() -> None:
    for package in ("starlette", "uvicorn"):
        require(package, "the console")
