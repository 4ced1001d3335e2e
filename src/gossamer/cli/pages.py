"""Pages: the commands `search`, `sample` and `rank`: pages of a crawl by their text, by chance and by their links."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import to_builtins
from typer import Argument, Option, Typer, echo

from gossamer import api
from gossamer.cli.arguments import Directory, Json, Place, Quiet, Sets, bytes_of
from gossamer.cli.directory import require_crawl
from gossamer.cli.output import Exit, Shown, complain, harmless, obeys_escapes
from gossamer.cli.stored import uri_of
from gossamer.model.errors import ConfigError
from gossamer.model.extras import require
from gossamer.model.verbs import RefusedError
from gossamer.model.words import count, counted
from gossamer.results.isolated.searches import Searches

if TYPE_CHECKING:
    from gossamer.model.verbs import SearchHit, SearchResults

commands = Typer()
BOLD = "\x1b[1m"
PLAIN = "\x1b[0m"


@commands.command("search")
def search(
    directory: Place,
    words: Annotated[
        list[str] | None, Argument(metavar="QUERY", help='Words, "phrases", -without, begin*, title:word.')
    ] = None,
    as_json: Json = False,
    limit: Annotated[int, Option("--limit", metavar="N", help="Maximum number of results.")] = 10,
    host: Annotated[str, Option("--host", metavar="HOST", help="Search this host only.")] = "",
    site: Annotated[str, Option("--site", metavar="DOMAIN", help="Search this registrable domain only.")] = "",
    language: Annotated[
        str, Option("--language", metavar="LANG", help="Search pages in this language only, such as en.")
    ] = "",
    build: Annotated[bool, Option("--build", help="Build the index from the archive first.")] = False,
    cluster: Annotated[
        str, Option("--cluster", metavar="ADDRESS", help="Build on this Ray cluster, in parallel: one task a shard.")
    ] = "",
    sets: Sets = None,
    quiet: Annotated[bool, Option("--quiet", help="Hide the progress of --build.")] = False,
) -> int:
    """Search the full text of a crawl.

    The index of a crawl in a store is built beside its checkpoints, where later searches find it; --set gives options
    of the store.
    """
    query = " ".join(words or ())
    if cluster and not build:
        raise ConfigError("--cluster: it divides the work of --build; add that, or leave it out")
    uri = uri_of(directory)
    if uri and query:
        raise ConfigError("--build: it takes no query for a crawl in a store; search without --build afterwards")
    if sets and not uri:
        raise ConfigError("--set: it gives options of object stores, for a crawl in a store")
    if not uri:
        require_crawl(directory)
    if build:
        _build_index(directory, uri, cluster, tuple(sets or ()), quiet=quiet)
        if not query:
            return Exit.FINISHED
    try:
        found = _search(directory, query, limit=limit, host=host, site=site, language=language)
    except RefusedError as refused:
        complain(str(refused))
        return Exit.FAILED if refused.kind in ("failed", "overdue") else Exit.REFUSED
    if as_json:
        echo(json.dumps(to_builtins(found)))
    else:
        for line in _lines(found, colours=obeys_escapes(sys.stdout) and not os.environ.get("NO_COLOR")):
            echo(line)
    return Exit.FINISHED


@commands.command("sample")
def sample(
    directory: Directory,
    size: Annotated[int, Option("--size", "-n", metavar="N", help="Number of pages.")] = 100,
    seed: Annotated[
        int | None, Option("--seed", metavar="N", help="Random seed: the same seed gives the same pages.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Sample pages of a random-walk crawl near-uniformly.

    The crawl needs `--set frontier.strategy=walk`.
    """
    if size < 1:
        raise ConfigError(f"--size {size}: expected 1 or more")
    drawn = api.sample_of(directory, size, seed)
    for page in drawn:
        echo(json.dumps(page) if as_json else harmless(page["url"]))
    if len(drawn) < size:
        echo(f"only {len(drawn)} pages were walked", err=True)
    return 0


@commands.command("rank")
def rank(
    directory: Directory,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="FILE", help="The file to write; DIR/ranks.bin by default.")
    ] = None,
    limit: Annotated[int, Option("--limit", metavar="N", help="Number of URLs to print, best first.")] = 10,
    damping: Annotated[float, Option("--damping", metavar="SHARE", help="Share of score that links pass on.")] = 0.85,
    memory: Annotated[str, Option("--memory", metavar="SIZE", help="Memory limit of the process.")] = "512MiB",
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Compute the PageRank of all URLs that a crawl found.

    A later crawl or segment uses it with `--set frontier.priority=rank --set frontier.ranks_file=DIR/ranks.bin`.
    """
    from gossamer.assembly.home import refuse_root
    from gossamer.results.offline import rank as ranking

    if output is None:
        refuse_root(directory)
    if not 0.0 < damping < 1.0:
        raise ConfigError(f"--damping {damping:g}: expected a share between 0 and 1, such as 0.85")
    if limit < 0:
        raise ConfigError(f"--limit {limit}: expected a number from 0 up")
    shown = Shown(sys.stderr, quiet=quiet)
    made = ranking.rank(directory, ranking.RankOptions(output, damping, bytes_of(memory), limit), shown.advance)
    shown.clear()
    if as_json:
        echo(msgspec.json.encode(made))
        return Exit.FINISHED
    shown.line("PageRank (mean 1), level, URL:")
    for one in made.first:
        echo(f"{one.score:>12,.2f}  {one.level}  {harmless(one.url)}")
    shown.line(f"{made.path}: {counted(made.urls, 'URL')}, {counted(made.links, 'link')}, {made.iterations} iterations")
    return Exit.FINISHED


def _search(directory: Path, query: str, *, limit: int, host: str, site: str, language: str) -> SearchResults:
    """Return the pages that answer a query best. Raises RefusedError."""

    async def search() -> SearchResults:
        searches = Searches()
        try:
            return await searches.search(directory, query, limit=limit, host=host, site=site, language=language)
        finally:
            await searches.close()

    return asyncio.run(search())


def _build_index(directory: Path, uri: str, cluster: str, sets: tuple[str, ...], *, quiet: bool) -> None:
    require("tantivy", "search")
    from gossamer.api.search import build_index_of
    from gossamer.api.shares import build_index_in_store, build_index_on_cluster

    shown = Shown(sys.stderr, quiet=quiet)
    running = False
    if uri:
        pages = build_index_in_store(uri, sets, cluster, shown.advance).rows.get("pages", 0)
    elif cluster:
        done = build_index_on_cluster(directory, cluster, shown.advance)
        pages = done.rows.get("pages", 0)
        running = done.running
    else:
        built = build_index_of(directory, advance=lambda done, rows: shown.advance("pages", done, rows))
        pages = built.pages
        running = built.running
    shown.clear()
    if running:
        shown.line(f"{directory} is still crawling: the index holds the pages of its last commit")
    shown.line(f"{uri or directory}/search holds {counted(pages, 'page')}")


def _lines(found: SearchResults, *, colours: bool) -> Iterator[str]:
    for problem in found.problems:
        yield f"note: {harmless(problem)}"
    if found.notice:
        yield harmless(found.notice)
    if not found.hits:
        yield f"no page for {harmless(found.query)}"
        if found.suggestion:
            yield f"did you mean: {harmless(found.suggestion)}"
        return
    shown = f"{count(len(found.hits))} of " if len(found.hits) < found.total else ""
    yield f"{shown}{counted(found.total, 'page')} for {harmless(found.query)}"
    for number, hit in enumerate(found.hits, 1):
        yield ""
        yield f"{number:>3}. {harmless(hit.title) or '(no title)'}"
        yield f"     {harmless(hit.url)}  {hit.fetched_at:%Y-%m-%d}"
        if hit.snippet:
            yield f"     {_highlight(hit, colours=colours)}"
    for name, counts in (("host", found.hosts), ("language", found.languages)):
        if len(counts) > 1:
            yield ""
            yield ", ".join(f"{name}:{harmless(value)} {count(pages)}" for value, pages in counts.items())


def _highlight(hit: SearchHit, *, colours: bool) -> str:
    """Return the snippet on one line, the words of the query in bold. Marks in page text are escaped."""
    parts = []
    at = 0
    for start, end in hit.highlights if colours else ():
        parts.append(harmless(hit.snippet[at:start]) + BOLD + harmless(hit.snippet[start:end]) + PLAIN)
        at = end
    return "".join(parts) + harmless(hit.snippet[at:])
