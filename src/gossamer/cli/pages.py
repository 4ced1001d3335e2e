"""Pages: the commands `search`, `sample`, `changes` and `export`: the pages of a crawl, from its files."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gossamer.cli.arguments import Directory, Json, Quiet
from gossamer.cli.directory import require_crawl
from gossamer.cli.output import Exit, Shown, complain, count, counted, harmless, obeys_escapes, size
from gossamer.model.errors import ConfigError

if TYPE_CHECKING:
    from gossamer.api.changes import Change
    from gossamer.model.verbs import Found, Hit

commands = typer.Typer()
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"
WIDTH = len("appeared")
IGNORED = {
    "words": "Edits of digits, case or markup alone are not listed (revisit.change=words). To find them from now on: "
    "gossamer resume DIR --set revisit.change=text, or payload for every byte",
    "text": "Edits of markup alone are not listed (revisit.change=text); revisit.change=payload finds every byte",
}
"""What is no change, by `revisit.change`."""


@commands.command("search")
def search(
    directory: Directory,
    query: Annotated[str, typer.Argument(metavar="QUERY", help='Words, "phrases", -without, title:word.')] = "",
    as_json: Json = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Maximum number of results.")] = 10,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Search this host only.")] = "",
    site: Annotated[str, typer.Option("--site", metavar="DOMAIN", help="Search this registrable domain only.")] = "",
    language: Annotated[
        str, typer.Option("--language", metavar="LANG", help="Search pages in this language only, such as en.")
    ] = "",
    build: Annotated[bool, typer.Option("--build", help="Build the index from the archive first.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Hide the progress of --build.")] = False,
) -> int:
    """Search the full text of a crawl."""
    from msgspec import to_builtins

    from gossamer.model.verbs import RefusedError

    require_crawl(directory)
    if build:
        _build_index(directory, quiet=quiet)
        if not query:
            return Exit.FINISHED
    try:
        found = _found(directory, query, limit=limit, host=host, site=site, language=language)
    except RefusedError as refused:
        complain(str(refused))
        return Exit.FAILED if refused.kind in ("failed", "overdue") else Exit.REFUSED
    if as_json:
        typer.echo(json.dumps(to_builtins(found)))
    else:
        for line in _lines(found, colours=obeys_escapes(sys.stdout) and not os.environ.get("NO_COLOR")):
            typer.echo(line)
    return Exit.FINISHED


@commands.command("sample")
def sample(
    directory: Directory,
    size: Annotated[int, typer.Option("--size", "-n", metavar="N", help="Number of pages.")] = 100,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Random seed: the same seed gives the same pages.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Sample pages of a random-walk crawl near-uniformly.

    The crawl needs `--set frontier.form=walk`.
    """
    from gossamer import api

    require_crawl(directory)
    if size < 1:
        raise ConfigError(f"--size {size}: expected 1 or more")
    drawn = api.sample_of(directory, size, seed)
    for page in drawn:
        typer.echo(json.dumps(page) if as_json else harmless(page["url"]))
    if len(drawn) < size:
        typer.echo(f"only {len(drawn)} pages were walked", err=True)
    return 0


@commands.command("changes")
def changes(
    directory: Directory,
    since: Annotated[
        str, typer.Option("--since", metavar="T", help="Start time: 2026-01-31T12:00 (UTC), or 12h or 3d ago.")
    ] = "",
    url: Annotated[str, typer.Option("--url", metavar="URL", help="Show all versions of one page.")] = "",
    as_json: Json = False,
) -> int:
    """List new, changed and removed pages by time."""
    from gossamer.api.changes import changes as changes_of
    from gossamer.config.gather import reopen
    from gossamer.config.seeds import seed

    require_crawl(directory)
    for change in changes_of(directory, since, seed(url) if url else ""):
        typer.echo(json.dumps(change.as_object()) if as_json else _line(change, of_one=bool(url)))
    ignored = IGNORED.get(reopen(directory / "crawl.toml").revisit.change)
    if ignored and not as_json:
        typer.echo(ignored, err=True)
    return 0


@commands.command("export")
def export(
    directory: Directory,
    to: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT", help="Format: parquet, jsonl, csv, markdown, cdxj, wacz or pagefiles."),
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="PATH", help="Output path; - is standard output.")],
    table: Annotated[
        str, typer.Option("--table", metavar="NAME", help="Table: pages, links, or one of a module.")
    ] = "",
    where: Annotated[
        str, typer.Option("--where", metavar="SQL", help="Export only rows that match this SQL condition.")
    ] = "",
    memory_mb: Annotated[int, typer.Option("--memory", metavar="MB", help="Memory limit in megabytes.")] = 512,
    quiet: Quiet = False,
) -> int:
    """Export a crawl to other formats.

    Repeat the command to finish an export that was interrupted.
    """
    from gossamer.api import views

    require_crawl(directory)
    shown = Shown(sys.stderr, quiet=quiet)
    if output == "-":
        done = views.stream_of(directory, to, sys.stdout.buffer, table=table, where=where)
        if done.running:
            shown.line(_of_running(directory, done.unread))
        return 0
    target = Path(output)
    started = time.monotonic()
    done = views.export_of(
        directory, to, target, table=table, where=where, memory_bytes_max=memory_mb * 1_000_000, progress=shown.advance
    )
    shown.clear()
    if done.running:
        shown.line(_of_running(directory, done.unread))
    if done.newer:
        shown.line(f"the crawl has {counted(done.newer, 'file')} more since this export began; they are not in it")
    read = ", ".join(f"{counted(rows, 'row')} of {name}" for name, rows in done.rows.items())
    how = "finished" if done.resumed else "written"
    shown.line(
        f"{target} is {how}: {read or 'it was complete'}, {size(_bytes(target))}, {time.monotonic() - started:.1f} s"
    )
    return 0


def _found(directory: Path, query: str, *, limit: int, host: str, site: str, language: str) -> Found:
    """Return the pages that answer a query best. Raises RefusedError."""
    import asyncio

    from gossamer.isolated.searches import Searches

    async def search() -> Found:
        searches = Searches()
        try:
            return await searches.search(directory, query, limit=limit, host=host, site=site, language=language)
        finally:
            await searches.close()

    return asyncio.run(search())


def _build_index(directory: Path, *, quiet: bool) -> None:
    """Build the full-text index of a crawl."""
    from gossamer.model.extras import require

    require("tantivy", "search")
    from gossamer.api.search import build_index_of

    shown = Shown(sys.stderr, quiet=quiet)
    built = build_index_of(directory, advance=lambda done, rows: shown.advance("pages", done, rows))
    shown.clear()
    if built.running:
        shown.line(f"{directory} is still crawling: the index holds the pages of its last commit")
    shown.line(f"{directory / 'search'} holds {counted(built.pages, 'page')}")


def _lines(found: Found, *, colours: bool) -> Iterator[str]:
    for problem in found.problems:
        yield f"left out: {harmless(problem)}"
    if not found.hits:
        yield f"no page for {harmless(found.query)}"
        return
    shown = f"{count(len(found.hits))} of " if len(found.hits) < found.total else ""
    yield f"{shown}{counted(found.total, 'page')} for {harmless(found.query)}"
    for number, hit in enumerate(found.hits, 1):
        yield ""
        yield f"{number:>3}. {harmless(hit.title) or '(no title)'}"
        yield f"     {harmless(hit.url)}  {hit.fetched_at[:10]}"
        if hit.snippet:
            yield f"     {_marked(hit, colours=colours)}"


def _marked(hit: Hit, *, colours: bool) -> str:
    """Return the snippet on one line, the words of the query in bold. Marks in page text are escaped."""
    parts = []
    at = 0
    for start, end in hit.highlights if colours else ():
        parts.append(harmless(hit.snippet[at:start]) + BOLD + harmless(hit.snippet[start:end]) + PLAIN)
        at = end
    return "".join(parts) + harmless(hit.snippet[at:])


def _line(change: Change, *, of_one: bool) -> str:
    at = change.at[:19] + "Z"
    if not of_one:
        return f"{at}  {change.change:<{WIDTH}}  {harmless(change.url)}"
    what = change.change or change.outcome
    place = f"{change.warc_file} {change.warc_offset}" if change.warc_offset is not None else "not archived"
    status = change.status if change.status is not None else "-"
    return f"{at}  {what:<{WIDTH}}  {status}  {size(change.body_bytes):>9}  {change.digest or '-'}  {place}"


def _of_running(directory: Path, unread: str) -> str:
    if unread:
        return (
            f"{directory} is still crawling, and its last commit could not be read ({unread}): the export holds its "
            f"finished files only; export again later for all rows"
        )
    return f"{directory} is still crawling: the export holds its last commit"


def _bytes(target: Path) -> int:
    if target.is_dir():
        return sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return target.stat().st_size
