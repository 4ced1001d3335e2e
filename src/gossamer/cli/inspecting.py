"""Inspecting: the commands `status`, `metrics`, `why` and `report`: by a crawl's socket, else by its files."""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import msgspec
from typer import Argument, Option, Typer, echo

from gossamer import api
from gossamer.api.asking import NotRunningError
from gossamer.cli.arguments import Directory, Json
from gossamer.cli.control import SilentError, ask, is_held, mapping, pairs_text, why_silent
from gossamer.cli.directory import write_file
from gossamer.cli.job import is_maintained
from gossamer.cli.output import Exit, complain, harmless
from gossamer.cli.status_text import StatusFields, warnings_of
from gossamer.cli.status_view import budgets_of, has_ended, status_text
from gossamer.config.gather import require_state
from gossamer.model.errors import ConfigError, CrawlFailedError, OtherFormatError
from gossamer.model.health import OVER
from gossamer.model.product import FORGOTTEN
from gossamer.model.status import Status, read_status
from gossamer.model.words import shell_word
from gossamer.results.report import figures, html, text
from gossamer.results.report.figures import Report, modules_with_failures

commands = Typer()
STATUS_S_MAX = 10.0
"""Time after which a crawl without an answer is taken as hanging."""


@commands.command("status")
def status(
    directory: Directory,
    as_json: Json = False,
    again: Annotated[bool, Option("--watch", help="Refresh until the crawl ends; q quits.")] = False,
) -> int:
    """Show the status of a crawl."""
    found: StatusFields = {}

    def show() -> tuple[str, bool]:
        nonlocal found
        found, runs = _status(directory)
        return (json.dumps(found, default=str) if as_json else status_text(read_status(found))), not runs

    if again:
        from gossamer.cli.live import screen_of, watch  # Costs the import of rich, which plain output does not need.

        return watch(show, None if as_json else lambda *size: screen_of(read_status(found), str(directory), *size))
    echo(show()[0])
    return 0


@commands.command("metrics")
def metrics(directory: Directory) -> int:
    """Print the metrics of a running crawl (Prometheus)."""
    try:
        found = mapping(ask(directory, "metrics"))
    except NotRunningError as error:
        raise ConfigError(f"{error}; gossamer status {shell_word(directory)} --json shows its last status") from error
    echo(str(found.get("metrics", "")), nl=False)
    return 0


@commands.command("why")
def why(
    directory: Directory,
    url: Annotated[str, Argument(metavar="URL", help="The URL to explain.")],
    as_json: Json = False,
) -> int:
    """Explain the state of one URL.

    Shows its state, the rule that decided it, its history and its next visit.
    """
    from gossamer.config.seeds import seed

    address = seed(url, "URL")
    try:
        found = mapping(ask(directory, "why", {"url": address}))
    except NotRunningError:
        found = api.why_of(directory, address)
    echo(json.dumps(found, default=str) if as_json else pairs_text(found))
    return 0


@commands.command("report")
def report(
    directory: Directory,
    page: Annotated[
        Path | None, Option("--html", metavar="FILE", help="Write the report to an HTML file with charts.")
    ] = None,
    price: Annotated[
        list[str] | None,
        Option("--price", metavar="KEY=VALUE", help="A price, as for simulate: machine.price_per_hour=0.8."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Print the statistics of a crawl."""
    from gossamer.lab.simulate.taken import cost_of
    from gossamer.world.machine import disk_bytes

    require_state(directory)
    status = _status_or_damage(directory)
    found = _report(directory, status)
    found = msgspec.structs.replace(found, cost=cost_of(found, status.cost, disk_bytes(directory), price or ()))
    if page is not None:
        write_file(page, html.as_html(found, directory.resolve().name), "--html")
    if as_json:
        echo(figures.as_json(found))
    elif page is not None:
        for damage in found.damage:
            complain(damage)
        if page.is_file():
            echo(f"The report is in {harmless(page)}")
    else:
        echo(text.as_text(found, shutil.get_terminal_size().columns))
        if budgets := budgets_of(status):
            echo(f"\nBudgets: {budgets}")
        for warning in warnings_of(status):
            echo(f"\nWarning: {warning}")
    is_over = status.state in OVER
    if found.attempts_counted and not found.attempts and is_over and not (directory / FORGOTTEN).exists():
        complain(
            f"{directory}/pages holds none of the crawl's {found.attempts_counted:,} attempts: its tables are gone; "
            f"gossamer verify {shell_word(directory)} lists what is missing"
        )
        return Exit.FAILED
    return 0


def _report(directory: Path, status: Status) -> Report:
    """Return the statistics of a crawl, from its tables, finished or not, and its status."""
    from gossamer.assembly.home import IMPORTS
    from gossamer.results.report.report import summary

    seeds = status.seeds
    lost = seeds.not_fetched if seeds is not None and not seeds.any_fetched and has_ended(status) else []
    with TemporaryDirectory(prefix="gossamer-report-") as folder:
        known = Report(
            failed_modules=tuple(modules_with_failures(status.modules)),
            seeds_not_fetched=tuple(lost),
            awaited=tuple(status.awaited),
            lasting=tuple(status.lasting),
            idle_shards=tuple(one.shard for one in status.shards if one.idle),
            warnings=tuple(warnings_of(status)),
            damage=tuple(one["says"] for one in status.damage),
            crawling_s=0.0 if (directory / IMPORTS).exists() else status.elapsed_s,
            rendering=status.rendering,
            proxies=tuple((one, n, status.proxy_failures.get(one, 0)) for one, n in status.proxy_answers.items()),
            ended=status.ended,
            ended_says=status.ended_says,
        )
        return summary(
            directory,
            known,
            rejected=status.rejected,
            unfinished=Path(folder),
            received=status.wire_bytes or None,
            counted=status.attempts or None,  # A crawl that starts, or has lost its state, does not say.
            unread=_write_unfinished(directory, Path(folder)),
        )


def _write_unfinished(directory: Path, folder: Path) -> str:
    """Write what logs hold and tables lack to `folder`; return why not. Raises DamagedError: a table is damaged."""
    tables = ("*/*.parquet", "state/tables/*", "state/shard-*/tables/*")
    if not any(next(directory.glob(pattern), None) for pattern in tables):
        return ""
    from gossamer.api import views

    return views.write_unfinished(directory, folder)


def _status(directory: Path) -> tuple[StatusFields, bool]:
    if (running := _running_status(directory)) is not None:
        return running, True
    try:
        if is_held(directory):
            return api.starting_status(directory), True
        found = api.status_of(directory)
        return {**found, "waiting_for": "another command works on it"} if is_maintained(directory) else found, False
    except ConfigError:
        if not is_held(directory):
            raise
    return _running_status(directory) or api.starting_status(directory), True


def _running_status(directory: Path) -> StatusFields | None:
    """Return a crawl's answer; None if no crawl runs."""
    try:
        return mapping(ask(directory, "status", {"detail": True}, deadline_s=STATUS_S_MAX))
    except NotRunningError:
        return None
    except SilentError as silence:
        raise SilentError(f"{silence}; {why_silent(directory)}") from silence


def _status_or_damage(directory: Path) -> Status:
    """Return a crawl's status; if its state is missing, damaged or not for this user, only that fault."""
    try:
        return read_status(_status(directory)[0])
    except (OtherFormatError, SilentError):  # The tables of another format may mean something else too.
        raise
    except (ConfigError, CrawlFailedError) as error:
        if isinstance(error.__cause__, PermissionError):
            return Status(state="", warnings=[f"figures that only the crawl's state has are left out: {error}"])
        return Status(state="", damage=[{"says": str(error)}])
