"""Serving: `gossamer serve`: the console of a crawl that runs elsewhere or not at all, or of a folder of crawls."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gossamer.config.sections import ConsoleOptions
from gossamer.console.app import console_app
from gossamer.console.crawls import fleet_app
from gossamer.console.directory import Directory
from gossamer.console.door import door_of
from gossamer.console.fleet import Fleet
from gossamer.console.folder import OWN, Folder
from gossamer.console.server import served
from gossamer.console.service import Service
from gossamer.console.share import OWN_SHARE

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PORT_OPTION = "--port"
Say = Callable[[str], None]


async def serve_crawl(directory: Path, options: ConsoleOptions, port: int, say: Say, complain: Say) -> None:
    """Serve the crawl in a directory until a signal comes. Raises ConfigError: the port is taken."""
    door = door_of(directory / "state", options)
    with _signals() as (asked, _):
        async with (
            Service(options.connections_max, OWN_SHARE) as service,
            served(
                console_app(Directory(directory, complain), door, service), options, port, service,
                option=PORT_OPTION,
            ) as address,
        ):  # fmt: skip
            say(f"{address}/#token={door.token}")
            await asked.wait()


async def serve_folder(path: Path, options: ConsoleOptions, port: int, say: Say, complain: Say) -> None:
    """Serve a folder of crawls until a signal comes; then have them end, at once when another one comes.

    Raises:
        ConfigError: the port is taken, or the folder is another server's.
    """
    folder = Folder(path)
    try:
        door = door_of(path / OWN, options)
        with _signals() as (asked, again):
            async with asyncio.TaskGroup() as group, Service(options.connections_max, OWN_SHARE) as service:
                fleet = Fleet(folder, options, complain, group, service)
                async with served(
                    fleet_app(fleet, door, service), options, port, service, option=PORT_OPTION
                ) as address:
                    fleet.find_again()
                    say(f"{address}/#token={door.token}")
                    await asked.wait()
                    await fleet.end(again)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None  # The group is ours; what it holds is the operator's.
    finally:
        folder.close()


@contextmanager
def _signals() -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Have the first signal set one event, and each later one the other."""
    loop, first, later = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def asked() -> None:
        (later if first.is_set() else first).set()

    for number in SIGNALS:
        loop.add_signal_handler(number, asked)
    try:
        yield first, later
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
