"""Pages: the commands `search`, `sample`, `rank`, `changes`, `export`, `extract`: a crawl's pages, from its files."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from msgspec import to_builtins

from gossamer.cli.arguments import Directory, Json, Quiet, bytes_of
from gossamer.cli.directory import require_crawl
from gossamer.cli.output import Exit, Shown, complain, count, counted, harmless, obeys_escapes, size
from gossamer.isolated.searches import Searches
from gossamer.model.errors import ConfigError
from gossamer.model.extras import require
from gossamer.model.verbs import RefusedError

if TYPE_CHECKING:
    from gossamer.api.reading import FieldChange, PageChange
    from gossamer.api.views import Exported
    from gossamer.model.verbs import SearchHit, SearchResults

commands = typer.Typer()
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"
WIDTH = len("appeared")
Dedupe = Annotated[
    str,
    typer.Option(
        "--dedupe",
        metavar="HOW",
        help="Leave out texts that another page has: exact or near. For markdown, datasets and bulk.",
    ),
]
Against = Annotated[
    list[Path] | None,
    typer.Option(
        "--against",
        metavar="DIR",
        help="With --dedupe: also leave out texts of this earlier crawl or corpus export. Repeatable.",
    ),
]
FORMATS = "parquet, jsonl, csv, markdown, mirror, datasets, bulk, cdxj, wacz or pagefiles"
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

    The crawl needs `--set frontier.strategy=walk`.
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


@commands.command("rank")
def rank(
    directory: Directory,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write; DIR/ranks.bin by default.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Number of URLs to print, best first.")] = 10,
    damping: Annotated[
        float, typer.Option("--damping", metavar="SHARE", help="Share of score that links pass on.")
    ] = 0.85,
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory limit of the process.")] = "512MiB",
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Compute the PageRank of all URLs that a crawl found.

    A later crawl or segment uses it with `--set frontier.priority=rank --set frontier.ranks_file=DIR/ranks.bin`.
    """
    from gossamer.offline.rank import RankOptions
    from gossamer.offline.rank import rank as ranking_of

    require_crawl(directory)
    if not 0.0 < damping < 1.0:
        raise ConfigError(f"--damping {damping:g}: expected a share between 0 and 1, such as 0.85")
    if limit < 0:
        raise ConfigError(f"--limit {limit}: expected a number from 0 up")
    shown = Shown(sys.stderr, quiet=quiet)
    made = ranking_of(directory, RankOptions(output, damping, bytes_of(memory), limit), shown.advance)
    shown.clear()
    if as_json:
        typer.echo(msgspec.json.encode(made))
        return Exit.FINISHED
    shown.line("PageRank (mean 1), level, URL:")
    for one in made.first:
        typer.echo(f"{one.score:>12,.2f}  {one.level}  {harmless(one.url)}")
    shown.line(f"{made.path}: {counted(made.urls, 'URL')}, {counted(made.links, 'link')}, {made.iterations} iterations")
    return Exit.FINISHED


@commands.command("changes")
def changes(
    directory: Directory,
    since: Annotated[
        str, typer.Option("--since", metavar="T", help="Start time: 2026-01-31T12:00 (UTC), or 12h or 3d ago.")
    ] = "",
    url: Annotated[str, typer.Option("--url", metavar="URL", help="Show all versions of one page.")] = "",
    as_json: Json = False,
) -> int:
    """List changed pages, and changed fields of items, by time."""
    from gossamer.api.reading import FieldChange
    from gossamer.api.reading import changes as changes_of
    from gossamer.config.gather import reopen
    from gossamer.config.seeds import seed

    require_crawl(directory)
    for change in changes_of(directory, since, seed(url, "URL") if url else ""):
        if as_json:
            typer.echo(json.dumps(change.as_object()))
        elif isinstance(change, FieldChange):
            typer.echo(_line_of_field(change))
        else:
            typer.echo(_line(change, of_one=bool(url)))
    ignored = IGNORED.get(reopen(directory / "crawl.toml").revisit.change)
    if ignored and not as_json:
        typer.echo(ignored, err=True)
    return 0


@commands.command("robots")
def robots(
    directory: Directory,
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host, without scheme and port.")],
    as_json: Json = False,
) -> int:
    """Show what changed in a robots.txt."""
    from gossamer.api.reading import robots_history

    require_crawl(directory)
    found = 0
    for version in robots_history(directory, host):
        found += 1
        if as_json:
            typer.echo(json.dumps(version.as_object()))
            continue
        typer.echo(f"{version.at}  {version.status}  {version.change:<7}  {harmless(version.url)}")
        for line in version.diff:
            typer.echo(f"    {harmless(line)}")
    if not found:
        raise ConfigError(f"{directory} has no robots.txt of {host}; `gossamer status {directory}` names its hosts")
    return 0


@commands.command("export")
def export(
    directory: Directory,
    to: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT", help=f"Format: {FORMATS}."),
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="PATH", help="Output path; - is standard output.")],
    table: Annotated[
        str, typer.Option("--table", metavar="NAME", help="Table: pages, links, or one of a module.")
    ] = "",
    where: Annotated[
        str, typer.Option("--where", metavar="SQL", help="Export only rows that match this SQL condition.")
    ] = "",
    permitted: Annotated[
        str,
        typer.Option(
            "--permitted",
            metavar="PURPOSE",
            help="Export only pages that may be used so: search, ai-train, ai-input or archive.",
        ),
    ] = "",
    unknown: Annotated[
        bool, typer.Option("--unknown", help="With --permitted: also pages about which nothing is stated.")
    ] = False,
    dedupe: Dedupe = "",
    against: Against = None,
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
        if dedupe or against:
            raise ConfigError("-o -: an export without copies needs a directory; name one with -o DIR")
        done = views.stream_of(
            directory, to, sys.stdout.buffer, table=table, where=where, permitted=permitted, unknown=unknown
        )
        if done.running:
            shown.line(_of_running(directory, done.unread))
        return 0
    target = Path(output)
    started = time.monotonic()
    done = views.export_of(
        directory,
        to,
        target,
        table=table,
        where=where,
        permitted=permitted,
        unknown=unknown,
        dedupe=dedupe,  # type: ignore[arg-type]  # What it can be is checked there.
        against=against or (),
        memory_bytes_max=memory_mb * 1_000_000,
        progress=shown.advance,
    )
    shown.clear()
    for line in _notes(directory, done, permitted, unknown=unknown, dedupe=dedupe):
        shown.line(line)
    read = ", ".join(f"{counted(rows, 'row')} of {name}" for name, rows in done.rows.items())
    how = "finished" if done.resumed else "written"
    shown.line(
        f"{target} is {how}: {read or 'it was complete'}, {size(_bytes(target))}, {time.monotonic() - started:.1f} s"
    )
    return 0


def _notes(directory: Path, done: Exported, permitted: str, *, unknown: bool, dedupe: str) -> Iterator[str]:
    """Yield what a user should know of an export beside its size."""
    if done.running:
        yield _of_running(directory, done.unread)
    if done.newer:
        yield f"the crawl has {counted(done.newer, 'file')} more since this export began; they are not in it"
    if dedupe:
        removed = " and ".join(counted(number, f"{how} duplicate") for how, number in done.removed.items())
        yield f"left out {removed or 'nothing'}: duplicates.jsonl lists them"
    if done.answers:
        answers = ", ".join(f"{count(number)} {answer}" for answer, number in sorted(done.answers.items()))
        more = (
            "" if unknown or not done.answers.get("unknown") else " (--unknown exports pages without a statement too)"
        )
        yield f"pages by their answer for {permitted}: {answers}{more}"


@commands.command("extract")
def extract(
    directory: Directory,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="TOML file with [extract.NAME]; default: the crawl's own."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write items/NAME here, not into the crawl.")
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Extract items from the archived pages of a crawl.

    No page is fetched. Tables that an earlier run of this command wrote are replaced.
    """
    from gossamer.api.extracting import extract_of
    from gossamer.config.gather import configure, reopen

    require_crawl(directory)
    shown = Shown(sys.stderr, quiet=quiet)
    rules = configure(config) if config is not None else reopen(directory / "crawl.toml")
    done = extract_of(directory, rules, output, advance=lambda at, rows: shown.advance("pages", at, rows))
    shown.clear()
    for name, counts in done.problems.items():
        shown.line(harmless(counts.says(name)))
    found = ", ".join(f"{counted(rows, 'row')} of {name}" for name, rows in done.rows.items())
    shown.line(f"{output or directory} has {found}, from {counted(done.pages, 'page')}")
    return 0


def _found(directory: Path, query: str, *, limit: int, host: str, site: str, language: str) -> SearchResults:
    """Return the pages that answer a query best. Raises RefusedError."""

    async def search() -> SearchResults:
        searches = Searches()
        try:
            return await searches.search(directory, query, limit=limit, host=host, site=site, language=language)
        finally:
            await searches.close()

    return asyncio.run(search())


def _build_index(directory: Path, *, quiet: bool) -> None:
    """Build the full-text index of a crawl."""
    require("tantivy", "search")
    from gossamer.api.search import build_index_of

    shown = Shown(sys.stderr, quiet=quiet)
    built = build_index_of(directory, advance=lambda done, rows: shown.advance("pages", done, rows))
    shown.clear()
    if built.running:
        shown.line(f"{directory} is still crawling: the index holds the pages of its last commit")
    shown.line(f"{directory / 'search'} holds {counted(built.pages, 'page')}")


def _lines(found: SearchResults, *, colours: bool) -> Iterator[str]:
    for problem in found.problems:
        yield f"left out: {harmless(problem)}"
    if not found.hits:
        yield f"no page for {harmless(found.query)}; words match as written, with * at the end all that begin so"
        return
    shown = f"{count(len(found.hits))} of " if len(found.hits) < found.total else ""
    yield f"{shown}{counted(found.total, 'page')} for {harmless(found.query)}"
    for number, hit in enumerate(found.hits, 1):
        yield ""
        yield f"{number:>3}. {harmless(hit.title) or '(no title)'}"
        yield f"     {harmless(hit.url)}  {hit.fetched_at[:10]}"
        if hit.snippet:
            yield f"     {_marked(hit, colours=colours)}"


def _marked(hit: SearchHit, *, colours: bool) -> str:
    """Return the snippet on one line, the words of the query in bold. Marks in page text are escaped."""
    parts = []
    at = 0
    for start, end in hit.highlights if colours else ():
        parts.append(harmless(hit.snippet[at:start]) + BOLD + harmless(hit.snippet[start:end]) + PLAIN)
        at = end
    return "".join(parts) + harmless(hit.snippet[at:])


def _line(change: PageChange, *, of_one: bool) -> str:
    at = change.at[:19] + "Z"
    if not of_one:
        return f"{at}  {change.change:<{WIDTH}}  {harmless(change.url)}"
    what = change.change or change.outcome
    place = f"{change.warc_file} {change.warc_offset}" if change.warc_offset is not None else "not archived"
    status = change.status if change.status is not None else "-"
    return f"{at}  {what:<{WIDTH}}  {status}  {size(change.body_bytes):>9}  {change.digest or '-'}  {place}"


def _line_of_field(change: FieldChange) -> str:
    before, after = ("nothing" if value is None else harmless(value) for value in (change.before, change.after))
    what = f"{change.items} {harmless(change.item)}: {change.field} changed from {before} to {after}"
    return f"{change.at[:19]}Z  {'field':<{WIDTH}}  {harmless(change.url)}  {what}"


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
