"""Importing: the command `import`."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer, echo

from gossamer.api.archives import run_import, seconds_of
from gossamer.cli.arguments import ConfigFile, Quiet, Sets
from gossamer.cli.crawl import with_flags
from gossamer.cli.directory import holds_crawl, make_writable, refuse_foreign
from gossamer.cli.output import Exit, Shown, complain, harmless
from gossamer.cli.start import FORWARDED
from gossamer.config import Config, configure
from gossamer.model.errors import ConfigError
from gossamer.model.words import counted, duration, shell_word
from gossamer.results.imports.capture import ImportRequest
from gossamer.results.imports.importing import ImportStatus
from gossamer.world.loop import calm_collector

commands = Typer()
FLAGS = ("output", "scope", "include", "exclude", "mode", "max_depth", "memory", "contact", "allow_private", "hosts")


@commands.command("import")
@with_flags(*FLAGS)
def import_(
    sources: Annotated[
        list[str],
        Argument(metavar="SOURCE", help="WARC, WACZ, ARC or HAR: files, folders, globs, lists, s3:// addresses."),
    ],
    copy: Annotated[bool, Option("--copy", help="Copy the bodies into the crawl's directory.")] = False,
    link: Annotated[bool, Option("--link", help="Leave the bodies where they are (default).")] = False,
    seed: Annotated[
        list[str] | None, Option("--seed", metavar="URL", help="Seed of the scope of links (repeatable).")
    ] = None,
    status: Annotated[
        list[int] | None, Option("--status", metavar="N", help="Import only this HTTP status (repeatable).")
    ] = None,
    since: Annotated[
        str | None, Option("--since", metavar="DATE", help="Import captures from this time on, such as 2026-01-31.")
    ] = None,
    until: Annotated[str | None, Option("--until", metavar="DATE", help="Import captures before this time.")] = None,
    config: ConfigFile = None,
    sets: Sets = None,
    quiet: Quiet = False,
    **options: object,
) -> int:
    """Import the archives of any crawler as a crawl.

    Everything works on the directory as after a crawl: search, report, export, verify. `gossamer resume` fetches what
    the archives do not hold. Repeat the command to finish an import that was interrupted, or to add archives: each
    record is imported once. Without --scope all captures are imported, and links are followed within the hosts of the
    seeds.
    """
    if copy and link:
        raise ConfigError("--copy and --link exclude each other; leave out one")
    directory = Path(str(options.get("output") or "crawl"))
    if directory.exists() and not holds_crawl(directory):
        make_writable(directory)
        refuse_foreign(directory, [path.name for path in directory.iterdir()])
    options["output"] = str(directory)
    made = configure(config, options=options, sets=sets or (), seeds=seed or ())
    request = ImportRequest(
        copies=copy, judges_scope=options.get("scope") is not None, statuses=frozenset(status or ()),
        since=seconds_of(since, "--since", 0.0), until=seconds_of(until, "--until", float("inf")),
    )  # fmt: skip
    progress = Progress(quiet=bool(quiet))
    calm_collector()
    is_done, pending = asyncio.run(_import(sources, directory, made, request, progress))
    captures = progress.end(directory, pending, is_done=is_done)
    return Exit.INTERRUPTED if not is_done else Exit.FINISHED if captures else Exit.NOTHING


async def _import(
    sources: Sequence[str], directory: Path, config: Config, request: ImportRequest, progress: Progress
) -> tuple[bool, int]:
    stop = asyncio.Event()
    for number in FORWARDED:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)  # Blocked by the supervisor, so that none is lost.
    return await run_import(sources, directory, config, request, progress.show, stop)


class Progress:
    """Shows how far an import is, with its rate and the time that is left."""

    def __init__(self, *, quiet: bool) -> None:
        self._shown = Shown(sys.stderr, quiet=quiet)
        self._quiet = quiet
        self._status = ImportStatus()
        self._began: tuple[float, int] | None = None

    def show(self, status: ImportStatus) -> None:
        """Show the counts if an interval has passed."""
        self._status = status
        if status.is_counting:
            self._shown.say(f"counting: {status.records:,} records, {harmless(Path(status.file).name)}")
            return
        now = time.monotonic()
        self._began = self._began or (now, status.done)
        since, done = self._began
        rate = (status.done - done) / max(now - since, 0.001)
        left_s = (status.records - status.done) / rate if rate else 0.0
        self._shown.say(f"{status.done:,} of {status.records:,} records, {rate:,.0f} a second, {duration(left_s)} left")

    def end(self, directory: Path, pending: int, *, is_done: bool) -> int:
        """Print what was imported, what was not, and what can be done next. Return the number of captures."""
        status = self._status
        self._shown.clear()
        if status.refused:
            more = f" and {status.refused - 1:,} more (logs/info.log)" if status.refused > 1 else ""
            complain(f"could not read {harmless(status.first_refused)}{more}")
        if self._quiet:
            return status.captures
        left_out = sorted(status.left_out.items(), key=lambda pair: (-pair[1], pair[0]))
        named = ", ".join(f"{harmless(reason)} {count:,}" for reason, count in left_out)
        echo(f"Imported {counted(status.captures, 'capture')}" + (f"; left out: {named}" if named else ""))
        if not status.captures and {"conversion records", "metadata records"} & status.left_out.keys():
            complain("there are no pages in texts (WET) and descriptions (WAT) of archives; import the WARC files")
        echo(f"Output: {harmless(directory)}")
        if not is_done:
            echo("Interrupted: repeat the command to go on.")
        elif pending:
            resume = f"`gossamer resume {shell_word(directory)}`"
            echo(f"Not in the archives: {pending:,} URLs; {resume} fetches them.")
        return status.captures
