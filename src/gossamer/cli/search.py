"""Search: `search`: the best pages for a query, for people or as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from msgspec import to_builtins

from gossamer.cli import door
from gossamer.cli.directory import require_crawl
from gossamer.cli.exits import Exit, complain
from gossamer.cli.views import Shown
from gossamer.cli.words import count, counted, harmless, obeys_escapes
from gossamer.model.verbs import Found, Hit, RefusedError

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def search(directory: Path, query: str, *, limit: int, host: str, site: str, language: str, as_json: bool) -> int:
    """Print the pages that answer a query best; status 0 also when there are none."""
    require_crawl(directory)
    try:
        found = door.search_of(directory, query, limit=limit, host=host, site=site, language=language)
    except RefusedError as refused:
        complain(str(refused))
        return Exit.FAILED if refused.kind in ("failed", "overdue") else Exit.REFUSED
    if as_json:
        typer.echo(json.dumps(to_builtins(found)))
    else:
        for line in _lines(found, colours=obeys_escapes(sys.stdout) and not os.environ.get("NO_COLOR")):
            typer.echo(line)
    return 0


def build(directory: Path, *, quiet: bool) -> int:
    """Make the index of what was crawled."""
    require_crawl(directory)
    shown = Shown(sys.stderr, quiet=quiet)
    built = door.build_index_of(directory, lambda done, rows: shown.advance("pages", done, rows))
    shown.clear()
    if built.running:
        shown.line(f"{directory} still crawls: the index holds what it has finished so far")
    shown.line(f"{directory / 'search'} holds {counted(built.pages, 'page')}")
    return 0


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
    """Return the snippet on one line, what was asked for in bold: strangers' marks are escaped, ours are not."""
    parts = []
    at = 0
    for start, end in hit.highlights if colours else ():
        parts.append(harmless(hit.snippet[at:start]) + BOLD + harmless(hit.snippet[start:end]) + PLAIN)
        at = end
    return "".join(parts) + harmless(hit.snippet[at:])
