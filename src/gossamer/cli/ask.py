"""Ask: `status`, `why`, `report`, and the verbs that act on a running crawl."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from gossamer.cli import door
from gossamer.cli.control import NotRunningError, SilentError, ask
from gossamer.cli.directory import require_crawl
from gossamer.cli.picture import picture_rows
from gossamer.cli.silence import why_silent
from gossamer.cli.standing import (
    errors_of,
    line_of,
    modules_of,
    number,
    revisits_of,
    seeds_not_fetched,
    seeds_not_fetched_lines,
    state_of,
    to_upload_of,
    uploaded_of,
    warnings_of,
)
from gossamer.cli.words import count, harmless, size
from gossamer.model.errors import ConfigError, CrawlFailedError
from gossamer.model.words import duration
from gossamer.world.files import write_whole

STATUS_S_MAX = 10.0
"""A crawl that does not answer by then stands still."""


def status(directory: Path, *, as_json: bool, again: bool = False) -> int:
    """Print how a crawl stands: from the crawl itself while it runs, else from its store; `again` until it is over."""
    require_crawl(directory)

    def shown() -> tuple[str, bool]:
        found, runs = _status(directory)
        return (json.dumps(found, default=str) if as_json else status_text(found)), not runs

    if again:
        from gossamer.cli.watch import watch

        return watch(shown)
    typer.echo(shown()[0])
    return 0


def metrics(directory: Path) -> int:
    """Print a running crawl's metrics as Prometheus reads them."""
    require_crawl(directory)
    try:
        found = mapping(ask(directory, "metrics"))
    except NotRunningError as error:
        raise ConfigError(f"{error}; gossamer status {directory} --json tells how it stands") from error
    typer.echo(str(found.get("metrics", "")), nl=False)
    return 0


def _status(directory: Path) -> tuple[Mapping[str, object], bool]:
    """Return a crawl's status, and whether it runs."""
    try:
        return mapping(ask(directory, "status", {"detail": True}, deadline_s=STATUS_S_MAX)), True
    except NotRunningError:
        return door.status_of(directory), False
    except SilentError as silence:
        raise ConfigError(f"{silence}; {why_silent(directory)}") from silence


def why(directory: Path, url: str, *, as_json: bool) -> int:
    """Print all that is known about one URL."""
    from gossamer.config.seeds import seed

    require_crawl(directory)
    address = seed(url)
    try:
        found = mapping(ask(directory, "why", {"url": address}))
    except NotRunningError:
        found = door.why_of(directory, address)
    typer.echo(json.dumps(found, default=str) if as_json else pairs_text(found))
    return 0


def report(directory: Path, *, as_json: bool, page: Path | None = None) -> int:
    """Print the statistics of a crawl, or write them to `page` as HTML."""
    require_crawl(directory)
    status = _standing(directory)
    unfetched = seeds_not_fetched(status) if _has_ended(status) else ()
    found = door.report_of(
        directory, _rejected(status), _modules(status), unfetched, _damage(status), _attempts(status)
    )
    if page is not None:
        _write(page, door.written(found, "html", directory.resolve().name))
    if as_json:
        typer.echo(door.written(found, "json"))
    elif page is not None:
        typer.echo(f"The report is in {harmless(page)}")
    else:
        typer.echo(door.written(found, "text", width=shutil.get_terminal_size().columns))
        if budgets := _budgets(status):
            typer.echo(f"\nBudgets: {budgets}")
        for warning in warnings_of(status):
            typer.echo(f"\nWarning: {warning}")
    return 0


def _write(page: Path, text: str) -> None:
    try:
        write_whole(page, text.encode())
    except OSError as error:
        raise ConfigError(f"cannot write {page}: {error.strerror}; name another with --html FILE") from error


def _standing(directory: Path) -> Mapping[str, object]:
    """Return a crawl's status; of one whose state is gone or damaged only what is wrong with it."""
    try:
        return mapping(ask(directory, "status"))
    except NotRunningError:
        try:
            return door.status_of(directory)
        except (ConfigError, CrawlFailedError) as error:
            return {"damage": [{"says": str(error)}]}


def _damage(status: Mapping[str, object]) -> list[str]:
    """Return a line for each file that a crawl lacks."""
    found = status.get("damage")
    return [str(one["says"]) for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _attempts(status: Mapping[str, object]) -> int | None:
    """Return how many attempts a crawl has counted."""
    attempts = status.get("attempts")
    return attempts if isinstance(attempts, int) else None


def _rejected(status: Mapping[str, object]) -> dict[str, int]:
    """Return what each filter refused."""
    counts = status.get("rejected")
    return {str(name): int(n) for name, n in counts.items()} if isinstance(counts, Mapping) else {}


def _modules(status: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """Return what each processing module did."""
    told = status.get("modules")
    return {str(name): one for name, one in told.items()} if isinstance(told, Mapping) else {}


def sample(directory: Path, size: int, seed: int | None, *, as_json: bool) -> int:
    """Print pages of a walk: their addresses one a line, or all that is known of them."""
    require_crawl(directory)
    if size < 1:
        raise ConfigError(f"--size {size}: expected 1 or more")
    drawn = door.sample_of(directory, size, seed)
    for page in drawn:
        typer.echo(json.dumps(page) if as_json else harmless(page["url"]))
    if len(drawn) < size:
        typer.echo(f"only {len(drawn)} pages were walked", err=True)
    return 0


def act(directory: Path, verb: str, **arguments: object) -> int:
    """Have a running crawl do something, and print what it says."""
    require_crawl(directory)
    try:
        answer = ask(directory, verb, arguments)
    except NotRunningError as error:
        raise ConfigError(f"{error}; gossamer resume {directory} continues it") from error
    if isinstance(answer, Mapping):
        # Verbs that change how the crawl stands answer with its status.
        typer.echo(f"{state_of(answer)}; {line_of(answer)}" if "state" in answer else pairs_text(answer))
    elif answer is not None:
        typer.echo(harmless(answer))
    return 0


def release(directory: Path, name: str) -> int:
    """Let go of traps: by the crawl itself while it runs, else in its store."""
    require_crawl(directory)
    try:
        found = mapping(ask(directory, "release", {"name": name}))
    except NotRunningError:
        found = door.release_of(directory, name)
    typer.echo(pairs_text(found))
    return 0


def seeds_for(urls: Sequence[str]) -> list[str]:
    """Return seeds for a running crawl, checked."""
    from gossamer.config.seeds import seed

    return [seed(url) for url in urls]


def mapping(answer: object) -> Mapping[str, object]:
    """Return an answer that must be an object. Raises ConfigError when the crawl speaks another version."""
    if not isinstance(answer, Mapping):
        raise ConfigError("the crawl that runs there is of another version; use the one that started it")
    return answer


def status_text(status: Mapping[str, object]) -> str:
    """Return a status for people."""
    rows = [
        ("state", state_of(status)),
        ("pages", _with_limit(status, "pages", "max_pages")),
        ("attempts", count(number(status, "attempts"))),
        ("discovered", count(number(status, "discovered"))),
        ("queued", count(number(status, "queued"))),
        ("in flight", count(number(status, "in_flight"))),
        ("done with", count(number(status, "terminal"))),
        ("rate", f"{number(status, 'pages_s'):.1f} pages/s, {size(number(status, 'bytes_s'))}/s"),
        ("received", size(number(status, "wire_bytes"))),
        ("content", size(number(status, "body_bytes"))),
        ("hosts", ", ".join(f"{count(number(status, f'hosts_{k}'))} {k}" for k in ("known", "active", "left"))),
        ("budgets", _budgets(status)),
        *picture_rows(status),
        ("time", duration(number(status, "elapsed_s"))),
        ("epoch", count(number(status, "epoch"))),
        ("seeds", "\n             ".join(seeds_not_fetched_lines(status)) if _has_ended(status) else ""),
        ("not fetched", ", ".join(f"{name} {count(n)}" for name, n in errors_of(status).items())),
        ("rejected", _tally(status.get("rejected"))),
        *(("failing", says) for says in modules_of(status)),
        ("uploaded", uploaded_of(status)),
        ("to upload", to_upload_of(status)),
    ]
    rows[4:4] = revisits_of(status)
    shards = status.get("shards")
    if isinstance(shards, list) and len(shards) > 1:  # One alone is the crawl, and all that stands above is told of it.
        rows += [("shard", _shard(one)) for one in shards if isinstance(one, Mapping)]
    rows += [("warning", warning) for warning in warnings_of(status)]
    traps = status.get("traps")
    rows += [("trap", harmless(trap)) for trap in traps] if isinstance(traps, list) else []
    return "\n".join(f"{name:<12} {value}" for name, value in rows if value)


def _has_ended(status: Mapping[str, object]) -> bool:
    """Say whether the crawl ended by itself: not one that runs, was stopped or has died."""
    return status.get("ended") not in ("", "stopped", None)


def _shard(one: Mapping[str, object]) -> str:
    told = [
        f"{count(number(one, 'shard'))}: {harmless(one.get('state', ''))}",
        f"{count(number(one, 'pages'))} pages",
        f"{count(number(one, 'queued'))} queued",
        f"{number(one, 'pages_s'):.1f}/s",
    ]
    if deaths := number(one, "deaths"):
        told.append(f"started again {'once' if deaths == 1 else f'{count(deaths)} times'}")
    return ", ".join(told)


def _budgets(status: Mapping[str, object]) -> str:
    if "budget_round" not in status:
        return ""
    waiting = number(status, "hosts_deferred")
    who = "1 host waits" if waiting == 1 else f"{count(waiting)} hosts wait"
    return f"round {count(number(status, 'budget_round'))}, {who} for the next"


def pairs_text(found: Mapping[str, object]) -> str:
    """Return names and values, one a line; lists and objects below their name, indented."""
    width = max((len(str(name)) for name in found), default=0)
    lines = []
    for name, value in found.items():
        if value is None or value in ("", [], {}):
            continue
        if isinstance(value, list):
            lines.append(f"{name}:")
            lines += [f"  {_inline(item)}" for item in value]
        elif isinstance(value, Mapping) and value.keys() == {"spent", "of"}:
            lines.append(f"{harmless(name):<{width}}  {value['spent']} of {value['of']} spent")
        elif isinstance(value, Mapping):
            lines.append(f"{name}:")
            lines += [f"  {line}" for line in pairs_text(value).splitlines()]
        else:
            lines.append(f"{harmless(name):<{width}}  {_inline(value)}")
    return "\n".join(lines)


def _inline(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{harmless(name)} {harmless(item)}" for name, item in value.items() if item not in (None, ""))
    return harmless(value)


def _with_limit(status: Mapping[str, object], key: str, limit: str) -> str:
    bound = number(status, limit)
    return count(number(status, key)) + (f" of {count(bound)}" if bound else "")


def _tally(counts: object) -> str:
    if not isinstance(counts, Mapping):
        return ""
    return ", ".join(f"{harmless(name)} {n:,}" for name, n in counts.items() if n)
