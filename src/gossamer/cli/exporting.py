"""Exporting: the commands `changes`, `robots`, `export` and `extract`: what a crawl's files hold, in other forms."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, Typer, echo

from gossamer.api import views
from gossamer.api.extracting import extract_of
from gossamer.api.reading import FieldChange, PageChange, robots_history
from gossamer.api.reading import changes as changes_of
from gossamer.api.shares import ShareOrder, export_on_cluster
from gossamer.api.views import Exported
from gossamer.cli.arguments import Directory, Json, Place, Quiet, Sets, bytes_of
from gossamer.cli.directory import require_crawl
from gossamer.cli.output import Shown, harmless
from gossamer.cli.stored import uri_of
from gossamer.config.gather import configure, reopen
from gossamer.config.seeds import seed
from gossamer.model.errors import ConfigError
from gossamer.model.words import count, counted, shell_word, size
from gossamer.results.export.chunks import TOKENS_MAX
from gossamer.results.export.export import FORMATS
from gossamer.results.export.several import FILES
from gossamer.results.export.work import PACKED

commands = Typer()
WIDTH = len("appeared")
_STDOUT = ("-", "/dev/stdout")
Dedupe = Annotated[
    str,
    Option(
        "--dedupe",
        metavar="HOW",
        help="Leave out texts that another page has: exact or near. For markdown, datasets, chunks and bulk.",
    ),
]
Against = Annotated[
    list[Path] | None,
    Option(
        "--against",
        metavar="DIR",
        help="With --dedupe: also leave out texts of this earlier crawl or corpus export. Repeatable.",
    ),
]
Permitted = Annotated[
    str,
    Option(
        "--permitted",
        metavar="PURPOSE",
        help="Export only pages whose owners allow a use: search, ai-train, ai-input or archive.",
    ),
]
IGNORED = {
    "words": "Edits of digits, case or markup alone are not listed, except in fields of items (revisit.change=words). "
    "To find them from now on: "
    "gossamer resume DIR --set revisit.change=text, or payload for every byte",
    "text": "Edits of markup alone are not listed, except in fields of items (revisit.change=text); "
    "revisit.change=payload finds every byte",
}
"""Notes about edits that are not listed, by `revisit.change`."""


@commands.command("changes")
def changes(
    directory: Directory,
    since: Annotated[
        str, Option("--since", metavar="T", help="Start time: 2026-01-31T12:00 (UTC), or 12h or 3d ago.")
    ] = "",
    url: Annotated[str, Option("--url", metavar="URL", help="Show all versions of one page.")] = "",
    as_json: Json = False,
) -> int:
    """List changed pages, and changed fields of items, by time."""
    for change in changes_of(directory, since, seed(url, "URL") if url else ""):
        if as_json:
            echo(json.dumps(change.as_object()))
        elif isinstance(change, FieldChange):
            before, after = ("nothing" if value is None else harmless(value) for value in (change.before, change.after))
            what = f"{change.items} {harmless(change.item)}: {change.field} changed from {before} to {after}"
            echo(f"{change.at[:19]}Z  {'field':<{WIDTH}}  {harmless(change.url)}  {what}")
        else:
            echo(_line(change, of_one=bool(url)))
    ignored = IGNORED.get(reopen(directory / "crawl.toml").revisit.change)
    if ignored and not as_json:
        echo(ignored.replace("resume DIR", f"resume {shell_word(directory)}"), err=True)
    return 0


@commands.command("robots")
def robots(
    directory: Directory,
    host: Annotated[str, Argument(metavar="HOST", help="The host, without scheme and port.")],
    as_json: Json = False,
) -> int:
    """Show what changed in a robots.txt."""
    found = 0
    for version in robots_history(directory, host):
        found += 1
        if as_json:
            echo(json.dumps(version.as_object()))
            continue
        echo(f"{version.at}  {version.status}  {version.change:<7}  {harmless(version.url)}")
        for line in version.diff:
            echo(f"    {harmless(line)}")
    if not found:
        raise ConfigError(
            f"{directory} has no robots.txt of {host}; `gossamer status {shell_word(directory)}` names its hosts"
        )
    return 0


@commands.command("export")
def export(
    directory: Place,
    to: Annotated[
        str,
        Option(
            "--to",
            metavar="FORMAT",
            help=f"Format: {', '.join(FORMATS[:-1])} or {FORMATS[-1]}; or several, with commas between.",
            autocompletion=lambda: FORMATS,
        ),
    ],
    output: Annotated[str, Option("--output", "-o", metavar="PATH", help="Output path; - is standard output.")],
    table: Annotated[str, Option("--table", metavar="NAME", help="Table: pages, links, or one of a module.")] = "",
    where: Annotated[str, Option("--where", metavar="SQL", help="Only rows that match this SQL condition.")] = "",
    limit: Annotated[int | None, Option("--limit", metavar="N", help="Rows at most, of jsonl and csv.")] = None,
    permitted: Permitted = "",
    unknown: Annotated[
        bool, Option("--unknown", help="With --permitted: also pages about which nothing is stated.")
    ] = False,
    dedupe: Dedupe = "",
    against: Against = None,
    chunk_tokens: Annotated[
        int, Option("--chunk-tokens", metavar="N", help="Largest chunk of the format chunks, in tokens.")
    ] = TOKENS_MAX,
    memory: Annotated[str, Option("--memory", metavar="SIZE", help="Memory limit, such as 2GiB.")] = "512MB",
    cluster: Annotated[
        str, Option("--cluster", metavar="ADDRESS", help="Export on this Ray cluster, in parallel: one task a shard.")
    ] = "",
    sets: Sets = None,
    quiet: Quiet = False,
) -> int:
    """Export a crawl to other formats.

    Of several formats, PATH is a folder with a folder or file of each; the content of pages is found once for all. With
    search among them, the index of the crawl is built too. Repeat the command to finish an export that was interrupted.
    With --cluster, PATH is a folder that all machines see or the URI of an object store, for which --set gives options.
    """
    if output.endswith("/") and to in FILES:
        raise ConfigError(f"-o {output}: {to} makes one file; name it, such as -o {output}{table or 'pages'}.{to}")
    shown = Shown(sys.stderr, quiet=quiet)
    part: dict[str, Any] = {"table": table, "where": where, "limit": limit, "permitted": permitted, "unknown": unknown}
    bytes_max = bytes_of(f"{memory}MB" if memory.isdigit() else memory)
    how: dict[str, Any] = {"dedupe": dedupe, "chunk_tokens": chunk_tokens, "memory_bytes_max": bytes_max}
    started = time.monotonic()
    is_stream = output in _STDOUT or Path(output).is_fifo() or Path(output).is_char_device()
    if cluster:
        if is_stream or output.endswith(PACKED):
            raise ConfigError(f"-o {output}: with --cluster, name a folder that all machines see, or a URI of a store")
        source = uri_of(directory) or str(directory.resolve())
        earlier = tuple(str(one.resolve()) for one in against or ())
        order = ShareOrder(source, output, to, {**part, **how}, tuple(sets or ()), against=earlier)
        done = export_on_cluster(order, cluster, shown.advance)
    elif sets:
        raise ConfigError("--set: it gives options of object stores, for --cluster or a crawl in a store")
    elif is_stream:
        if dedupe or against:
            raise ConfigError(f"-o {output}: an export without copies needs a directory; name one with -o DIR")
        done = _stream(directory, to, output, part)
        if done.running:
            shown.line(_of_running(directory, done.unread))
        return 0
    else:
        require_crawl(directory)
        place = Path(output)
        done = views.export_of(directory, to, place, **part, **how, against=against or (), progress=shown.advance)
    shown.clear()
    for line in _notes(directory, done, permitted, unknown=unknown, dedupe=dedupe):
        shown.line(line)
    shown.line(f"{_summary(output, done)}{time.monotonic() - started:.1f} s")
    return 0


def _stream(directory: Path, to: str, output: str, chosen: dict[str, Any]) -> Exported:
    require_crawl(directory)
    with nullcontext(sys.stdout.buffer) if output in _STDOUT else Path(output).open("wb") as out:
        return views.stream_of(directory, to, out, **chosen)


def _summary(output: str, done: Exported) -> str:
    """Describe an export to a path or a URI, as the beginning of a line."""
    read = ", ".join(f"{counted(rows, 'row')} of {name}" for name, rows in done.rows.items())
    state = "finished" if done.resumed else "written"
    target = Path(output)
    written = sum(path.stat().st_size for path in (target, *target.rglob("*")) if path.is_file())
    volume = f"{size(written)}, " if target.exists() else ""  # Not of an object store.
    return f"{output} is {state}: {read or 'it was complete'}, {volume}"


def _notes(directory: Path, done: Exported, permitted: str, *, unknown: bool, dedupe: str) -> Iterator[str]:
    """Yield the notes to a user about an export, other than its size."""
    if done.running:
        yield _of_running(directory, done.unread)
    if done.newer:
        yield f"the crawl has {counted(done.newer, 'file')} more since this export began; they are not in it"
    if not (permitted or done.rows.get("texts", 1) or any(done.removed.values())):
        yield "no page has a text: texts come from WARC files, which check leaves out; or --where selects no page"
    if dedupe:
        removed = " and ".join(counted(number, f"{how} duplicate") for how, number in done.removed.items())
        yield f"left out {removed or 'nothing'}: duplicates.jsonl lists them"
    if done.answers:
        answers = ", ".join(f"{count(number)} {answer}" for answer, number in sorted(done.answers.items()))
        tip = "" if unknown or not done.answers.get("unknown") else " (--unknown exports pages without a statement too)"
        yield f"pages by their answer for {permitted}: {answers}{tip}"


@commands.command("extract")
def extract(
    directory: Directory,
    config: Annotated[
        Path | None,
        Option("--config", "-c", metavar="FILE", help="TOML file with [extract.NAME]; default: the crawl's own."),
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="DIR", help="Write items/NAME here, not into the crawl.")
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Extract items from the archived pages of a crawl.

    No page is fetched. Tables that an earlier run of this command wrote are replaced.
    """
    shown = Shown(sys.stderr, quiet=quiet)
    rules = configure(config) if config is not None else reopen(directory / "crawl.toml")
    done = extract_of(directory, rules, output, advance=lambda at, rows: shown.advance("pages", at, rows))
    shown.clear()
    for name, counts in done.problems.items():
        shown.line(harmless(counts.says(name)))
    found = ", ".join(f"{counted(rows, 'row')} of {name}" for name, rows in done.rows.items())
    shown.line(f"{output or directory} has {found}, from {counted(done.pages, 'page')}")
    return 0


def _line(change: PageChange, *, of_one: bool) -> str:
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
