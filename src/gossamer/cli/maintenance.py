"""Maintenance: the commands `verify`, `restore`, `forget`, `scale` and `cookies`, on the files of a crawl."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from typer import Argument, BadParameter, Option, Typer, echo

from gossamer import api
from gossamer.api.asking import NotRunningError
from gossamer.cli.arguments import Directory, Json, Quiet, Sets
from gossamer.cli.control import SilentError, ask, is_held
from gossamer.cli.directory import write_file
from gossamer.cli.output import Exit, complain, harmless
from gossamer.cli.supervisor import run_supervised
from gossamer.config.gather import require_state
from gossamer.config.live import workers_of
from gossamer.model.errors import ConfigError, CrawlFailedError
from gossamer.model.product import LOCK
from gossamer.model.words import counted, shell_word, size
from gossamer.world.files import NO_ROOM, unwritable
from gossamer.world.process import MAINTENANCE, DirectoryLock

if TYPE_CHECKING:
    from gossamer.api.maintenance import Verified
    from gossamer.model.errors import Damage

commands = Typer()
START_S_MAX = 200.0
START_LOOK_S = 0.5
"""Longest wait for a crawl to start, and the interval of checks."""
STOP_S_MAX = 600.0
"""A crawl that is stopped for a removal may upload files first."""


@commands.command("verify")
def verify(
    directory: Directory,
    deep: Annotated[bool, Option("--deep", help="Read every file and compare all checksums.")] = False,
    accept_loss: Annotated[
        bool, Option("--accept-loss", help="Accept the loss of missing files, permanently.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Check a crawl's files for loss and damage."""
    if accept_loss and deep:
        raise ConfigError("--accept-loss: takes out what is missing, which is known without --deep; leave out one")
    accepted = api.accept_loss_of(directory) if accept_loss else []

    def show(damage: Damage) -> None:
        if not as_json:
            echo(harmless(damage.says()))

    found = api.verify_of(directory, deep=deep, each=show)
    if as_json:
        echo(json.dumps({**found.as_object(), "accepted": accepted}))
    else:
        for name in accepted:
            echo(f"{harmless(name)} is lost and no longer expected")
        for note in found.notes:
            echo(harmless(note))
        echo(_last_line(directory, found))
    return Exit.FAILED if found.damages else Exit.FINISHED


@commands.command("restore")
def restore(
    sources: Annotated[
        list[str],
        Argument(
            metavar="FROM",
            help="A checkpoint's directory, or those of all shards, or a URI as in state.checkpoint_uri.",
        ),
    ],
    directory: Annotated[Path, Option("--output", "-o", metavar="DIR", help="A new directory for the crawl.")],
    sets: Sets = None,
) -> int:
    """Restore a crawl from a checkpoint into a new directory."""
    from gossamer.api.restoring import restore_of

    echo(harmless(restore_of(sources, directory, sets or ())))
    status = verify(directory)  # A damaged copy is of use for reports, but not for resume.
    if status == Exit.FINISHED:
        echo(f"gossamer resume {harmless(shell_word(directory))} continues it")
    return status


@commands.command("forget")
def forget(
    directory: Directory,
    pattern: Annotated[str, Argument(metavar="PATTERN", help="Host, *.domain, address with * or regular expression.")],
    until: Annotated[str, Option("--until", metavar="DATE", help="Fetch them again from this date on.")] = "",
    reason: Annotated[str, Option("--reason", metavar="TEXT", help="Reason, for the log and `why`.")] = "",
    whom: Annotated[str, Option("--for", metavar="NAME", help="Who requested it, for the log.")] = "",
    *,
    everything: Annotated[bool, Option("--all", help="Accept a pattern that matches every page.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Count what would be removed, and change nothing.")] = False,
    quiet: Quiet = False,
) -> int:
    """Remove pages from all files of a crawl, and keep them out.

    A running crawl stops for it and then continues where it ran. Repeat the command to finish an interrupted removal.
    """
    if dry_run:
        found = api.forgettable_of(directory, pattern)
        echo(f"To forget {harmless(pattern)} would remove {_removal_text(found)}; nothing was changed")
        return Exit.FINISHED

    def work() -> None:
        result = api.forget_of(
            directory, pattern, until=until, reason=reason, whom=whom, everything=everything,
            note=lambda step: None if quiet else print(harmless(step), file=sys.stderr),
        )  # fmt: skip
        echo(harmless(f"{directory}: {result.entry.says()}; removed {_removal_text(result.entry.removed)}"))
        for name in result.exports:
            echo(harmless(f"{directory / name} is removed; the command that made it makes another"))
        for name in result.untouched:
            echo(harmless(f"{directory / name} was not touched: it is not the crawl's"))
        echo("Exports and copies outside the directory were not touched.")

    return _while_stopped(directory, work)


def _while_stopped(directory: Path, work: Callable[[], None]) -> int:
    """Do `work` on a crawl that does not run, and return the exit status. A crawl that runs stops for it, with
    everything saved, and continues even if the work fails: where it ran, or here if a program of its own ran it.
    """
    require_state(directory)
    maintenance = DirectoryLock(directory / MAINTENANCE)
    if not maintenance.acquire(0.0):
        maintenance.release()
        raise ConfigError(f"another command works on {directory}; repeat this one when it is done")
    status = Exit.FINISHED
    here = False
    try:
        how = _stop(directory)
        here = how == "here"
        try:
            work()
        except ConfigError as error:
            if not how:
                raise
            complain(str(error))
            status = Exit.REFUSED
    finally:
        (directory / MAINTENANCE).unlink(missing_ok=True)
        maintenance.release()
    ended = run_supervised(["resume", str(directory)]) if here else Exit.FINISHED
    return status or ended


def _stop(directory: Path) -> Literal["", "there", "here"]:
    """Stop a running crawl; return how to continue it, or nothing if none ran."""
    goes_on: Literal["there", "here"] = "there"
    try:
        try:
            ask(directory, "stop", {"again": True})
        except SilentError:
            raise
        except ConfigError:  # A program's, or one of an older version.
            goes_on = "here"
            ask(directory, "stop")
    except NotRunningError:
        return ""
    with DirectoryLock(directory / LOCK) as lock:
        if not lock.acquire(STOP_S_MAX):
            raise ConfigError(f"{directory} did not stop within {STOP_S_MAX:.0f} s; repeat the command when it has")
    return goes_on


def _removal_text(counts: Mapping[str, int]) -> str:
    pages = counts.get("pages", 0)
    rows = sum(number for name, number in counts.items() if name != "pages")
    return f"{counted(pages, 'page')} with {counted(rows, 'row')}"


@commands.command("cookies")
def cookies(
    directory: Directory,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="FILE", help="Write to a file that only its owner can read.")
    ] = None,
) -> int:
    """Print the cookies of a stopped crawl in Netscape format.

    They are credentials. `gossamer crawl --cookies FILE` begins with them.
    """
    write_file(output or Path("-"), api.cookies_of(directory), "-o", private=True)
    return Exit.FINISHED


def _read_workers(given: str) -> int:
    if given.startswith("+"):
        raise BadParameter(f"expected the number of all shards, such as 3, not {given!r}")
    try:
        return workers_of(given)
    except ValueError as error:
        raise BadParameter(f"expected a whole number, or auto, not {given!r}") from error


@commands.command("scale")
def scale(
    directory: Directory,
    workers: Annotated[
        int, Option(parser=_read_workers, metavar="N", help="New number of shards; auto: one for each processor.")
    ],
    *,
    quiet: Quiet = False,
) -> int:
    """Change the number of shards of a crawl.

    Partitions of a running crawl of several shards move while it crawls. Any other running crawl stops for it and then
    continues where it ran. Repeat the command to finish an interrupted change.
    """
    if _scale_while_running(directory, workers):
        echo(f"{directory}: its partitions move to {counted(workers, 'shard')} while it runs")
        return Exit.FINISHED
    api.check_scalable(directory, workers)  # Before anything stops.

    def work() -> None:
        try:
            scaled = api.scale_crawl(directory, workers, lambda note: None if quiet else print(note, file=sys.stderr))
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            again = f"then gossamer scale {shell_word(directory)} --workers {workers} goes on"
            raise CrawlFailedError(f"{unwritable(error, directory)}, {again}") from error
        echo(harmless(f"{directory}: {counted(scaled.before, 'shard')} became {scaled.after}"))
        moved = counted(scaled.partitions_moved, "partition")
        echo(f"moved        {moved} of 4,096 with {counted(scaled.keys_moved, 'key')}")
        for name, (most, mean) in (("partitions", scaled.partitions), ("hosts", scaled.hosts)):
            if mean:
                echo(f"{name:<12} {most:,.0f} at most, {mean:,.1f} on average: {most / mean:.2f} times")

    return _while_stopped(directory, work)


def _scale_while_running(directory: Path, workers: int) -> bool:
    """Change the number of shards of a running crawl; False if none runs, or it must stop for that."""
    began_at = time.monotonic()
    while True:
        try:
            answer = cast("dict[str, object]", ask(directory, "scale", {"workers": workers}))
        except NotRunningError:
            # A crawl that starts, also after a kill, will answer. Stopped now, it would leave nothing to scale.
            if time.monotonic() - began_at > START_S_MAX or not is_held(directory):
                return False
            time.sleep(START_LOOK_S)
        else:
            return not answer["stops"]


def _last_line(directory: Path, found: Verified) -> str:
    looked = "presence and sizes"
    if found.deep:
        looked = f"{counted(found.files, 'file')}, {size(found.bytes)} read"
    if found.running:
        looked += "; it runs: the files of its last commit"
    if not found.damages:
        return f"{harmless(directory)} is sound ({looked})"
    return f"{harmless(directory)} is damaged: {counted(found.damages, 'damage')} ({looked})"
