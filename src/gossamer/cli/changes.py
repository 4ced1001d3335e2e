"""Changes: `changes`: what appeared, changed and vanished, for people or as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from gossamer.cli import door
from gossamer.cli.directory import require_crawl
from gossamer.cli.words import harmless, size

WIDTH = len("appeared")
IGNORED = {
    "words": "Edits of digits, case or markup alone are not listed (revisit.change=words). To find them from now on: "
    "gossamer resume DIR --set revisit.change=text, or payload for every byte",
    "text": "Edits of markup alone are not listed (revisit.change=text); revisit.change=payload finds every byte",
}
"""What is no change, by `revisit.change`."""


def changes(directory: Path, *, since: str, url: str, as_json: bool) -> int:
    """Print changes, or the versions of one page, one a line in the order of time."""
    from gossamer.config.gather import reopen
    from gossamer.config.seeds import seed

    require_crawl(directory)
    for change in door.changes_of(directory, since, seed(url) if url else ""):
        typer.echo(json.dumps(change.as_object()) if as_json else _line(change, of_one=bool(url)))
    ignored = IGNORED.get(reopen(directory / "crawl.toml").revisit.change)
    if ignored and not as_json:
        typer.echo(ignored, err=True)
    return 0


def _line(change: door.Change, *, of_one: bool) -> str:
    at = change.at[:19] + "Z"
    if not of_one:
        return f"{at}  {change.change:<{WIDTH}}  {harmless(change.url)}"
    what = change.change or change.outcome
    place = f"{change.warc_file} {change.warc_offset}" if change.warc_offset is not None else "not archived"
    status = change.status if change.status is not None else "-"
    return f"{at}  {what:<{WIDTH}}  {status}  {size(change.body_bytes):>9}  {change.digest or '-'}  {place}"
