"""Serving: the commands `serve` and `mcp`, and the console of a crawl in this process.

The only place that imports the console: a crawl that serves nothing does not pay for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer, echo

from gossamer import api
from gossamer.cli.arguments import Sets
from gossamer.cli.directory import holds_crawl, require_crawl
from gossamer.cli.output import Exit, complain
from gossamer.config.gather import configure, reopen
from gossamer.model.errors import ConfigError
from gossamer.model.extras import require
from gossamer.model.words import shell_word
from gossamer.world.loop import loop_factory

if TYPE_CHECKING:
    from gossamer.api import ClusterCrawler, Crawler
    from gossamer.config import Config

commands = Typer()
PORT = 8817
PORT_MAX = 65_535


@commands.command("serve")
def serve(
    directory: Annotated[
        Path | None, Argument(metavar="DIR", help="The crawl to show; without it, all crawls of a folder.")
    ] = None,
    folder: Annotated[
        Path | None, Option("--folder", metavar="FOLDER", help="Folder of crawls; new crawls are created there.")
    ] = None,
    port: Annotated[str, Option("--port", metavar="N", help="Port; 8817 by default, 0 chooses a free one.")] = "",
    address: Annotated[
        str,
        Option(
            "--address",
            metavar="IP",
            help="Address to listen on; 127.0.0.1 by default. On others every request needs the token.",
        ),
    ] = "",
    config: Annotated[
        Path | None, Option("--config", "-c", metavar="FILE", help="Read the section [console] of a TOML file.")
    ] = None,
    sets: Sets = None,
) -> int:
    """Serve the dashboard and the JSON API.

    Serves one crawl, running or not, or a folder of crawls, and runs the crawls of a folder on request.
    """
    _require_parts()
    from gossamer.console import serving as console

    number = port_of(port)
    given = [*(sets or ()), *_set_to(address)]
    if directory is not None:
        if folder is not None or config is not None:
            raise ConfigError(f"serve {directory}: --folder and --config are for servers of many crawls; leave out DIR")
        if str(directory).isdecimal() and not directory.exists():
            raise ConfigError(f"no directory {directory}; for a port write gossamer serve --port {directory}")
        require_crawl(directory)
        options = reopen(directory / "crawl.toml", sets=given).console
        work = console.serve_crawl(directory, options, number, echo, complain)
    else:
        path = folder if folder is not None else Path()
        if holds_crawl(path):
            raise ConfigError(
                f"{path} is a crawl itself: gossamer serve {shell_word(path)} serves it; --folder names one of many"
            )
        work = console.serve_folder(path.resolve(), configure(config, sets=given).console, number, echo, complain)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(work)
    return Exit.FINISHED


@commands.command("mcp")
def mcp(
    directory: Annotated[
        Path | None, Argument(metavar="DIR", help="The crawl to read; without it, all crawls of a folder.")
    ] = None,
    folder: Annotated[Path | None, Option("--folder", metavar="FOLDER", help="Folder of crawls.")] = None,
    allow: Annotated[
        list[str] | None,
        Option("--allow", metavar="HOST", help="Let clients start crawls of this host in the folder (repeatable)."),
    ] = None,
    port: Annotated[
        str, Option("--port", metavar="N", help="Serve HTTP on this port; without it, standard input and output.")
    ] = "",
    address: Annotated[str, Option("--address", metavar="IP", help="Address to listen on; 127.0.0.1 by default.")] = "",
    config: Annotated[
        Path | None, Option("--config", "-c", metavar="FILE", help="Start crawls with this TOML configuration file.")
    ] = None,
    sets: Sets = None,
) -> int:
    """Serve crawls to language models.

    Uses the Model Context Protocol: search, read pages as Markdown, list changes, explain URLs, and with --allow start
    crawls.
    """
    for package in ("mcp", "starlette", "uvicorn"):
        require(package, "gossamer mcp")
    from gossamer.console.serving import McpOptions, serve_mcp

    path = directory or folder or Path()
    if directory is not None:
        if folder is not None or allow:
            raise ConfigError(f"mcp {directory}: --folder and --allow are for a folder of crawls; leave out DIR")
        require_crawl(directory)
    elif holds_crawl(path):
        raise ConfigError(
            f"{path} is a crawl itself: gossamer mcp {shell_word(path)} serves it; --folder names one of many"
        )
    elif not path.is_dir():
        raise ConfigError(f"no directory {path}; make it, or name another with --folder")
    given = [*(sets or ()), *_set_to(address)]
    given += [f"scope.only_hosts={[host.lower() for host in allow]}"] if allow else []
    settings = configure(config, sets=given)
    options = McpOptions(path.resolve(), directory is None, settings, bool(allow), port_of(port) if port else None)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve_mcp(options, echo, complain))
    return Exit.FINISHED


def _set_to(address: str) -> list[str]:
    """Return the assignment for `--address`. Raises ConfigError: it names no address."""
    try:
        return [f'console.address="{ip_address(address)}"'] if address else []
    except ValueError:
        raise ConfigError(f"--address {address}: expected an IP address, such as 127.0.0.1 or 0.0.0.0") from None


def port_of(text: str) -> int:
    """Return the port that a text names. Raises ConfigError: it names none."""
    if not text:
        return PORT
    if not text.isdecimal() or int(text) > PORT_MAX:
        raise ConfigError(f"--port {text}: expected a number up to {PORT_MAX}; 0 takes any")
    return int(text)


@asynccontextmanager
async def console_of(crawl: Crawler | ClusterCrawler, config: Config) -> AsyncIterator[str]:
    """Serve the console of a crawl while the context is open; give its address, with what may change things. Raises
    ConfigError: the port is taken, or what it needs is not installed; or the crawl runs, perhaps at that port.
    """
    _require_parts()
    if holds_crawl(crawl.directory):
        with api.hold_stopped(crawl.directory):
            pass
    from gossamer.console.access import access_of
    from gossamer.console.replay import serve_replay
    from gossamer.console.server import serve_app
    from gossamer.console.service import CRAWL_SHARE, Service
    from gossamer.console.serving import console_app

    options = config.console
    assert options.port is not None
    access = access_of(crawl.directory / "state", options, config.websub.body_bytes_max)
    async with (
        Service(options.connections_max, CRAWL_SHARE) as service,
        serve_app(console_app(crawl, access, service), options, options.port, service) as address,
        serve_replay(lambda _: crawl.directory, service, options, address),
    ):
        yield f"{address}/#token={access.token}"


def _require_parts() -> None:
    for package in ("starlette", "uvicorn"):
        require(package, "the console")
