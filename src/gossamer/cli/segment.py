"""Segment: `segment build|show|split|merge`: what an offline crawl fetches next, with progress on standard error."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer

from gossamer.cli.arguments import Json, Quiet, Sets, bytes_of
from gossamer.cli.output import Exit, Shown, harmless, write_line
from gossamer.model.errors import ConfigError
from gossamer.model.words import count, counted, duration, size
from gossamer.results.offline.build import SegmentOrder, build
from gossamer.results.offline.merge import merge, split, summary
from gossamer.results.offline.steps import BuildRequest, targets_of

if TYPE_CHECKING:
    from gossamer.results.offline.build import SegmentBuilt

commands = Typer(help="Build and inspect segments for offline crawls.")

SegmentFile = Annotated[Path, Argument(metavar="FILE", help="The segment file.")]


@commands.command("build")
def segment_build(
    output: Annotated[Path, Option("--output", "-o", metavar="FILE", help="The segment file to write.")],
    places: Annotated[
        list[Path] | None, Argument(metavar="DIR", help="Directories of crawls, or of WARC files of any crawler.")
    ] = None,
    known: Annotated[
        Path | None, Option("--known", metavar="DIR", help="Index of URLs listed before; updated by this command.")
    ] = None,
    bloom: Annotated[
        float | None,
        Option("--bloom", metavar="RATE", help="Create the index with Bloom filters of this false-positive rate."),
    ] = None,
    config: Annotated[
        Path | None,
        Option("--config", "-c", metavar="FILE", help="Use this configuration instead of the first crawl's."),
    ] = None,
    seeds: Annotated[Path | None, Option("--seeds", metavar="FILE", help="Add seeds from a file.")] = None,
    scope: Annotated[str | None, Option("--scope", metavar="SCOPE", help="Scope: prefix, host, domain or any.")] = None,
    include: Annotated[
        list[str] | None, Option("--include", metavar="RE", help="List only URLs that match (repeatable).")
    ] = None,
    exclude: Annotated[
        list[str] | None, Option("--exclude", metavar="RE", help="Skip URLs that match (repeatable).")
    ] = None,
    max_depth: Annotated[
        int | None,
        Option("--max-depth", metavar="N", help="Skip URLs that are more than this many clicks from a seed."),
    ] = None,
    sets: Sets = None,
    per_host: Annotated[
        int,
        Option("--per-host", metavar="N", help="Maximum number of URLs per host; the rest goes to a later segment."),
    ] = 0,
    split: Annotated[
        int, Option("--split", metavar="N", help="Number of files to write; each site is in one of them.")
    ] = 1,
    retry: Annotated[
        int, Option("--retry", metavar="N", help="List URLs again that failed temporarily, at most N times.")
    ] = 0,
    rank: Annotated[
        str, Option("--rank", metavar="ORDER", help="Order: priority (as in the crawl) or in-links (linking sites).")
    ] = "priority",
    memory: Annotated[str, Option("--memory", metavar="SIZE", help="Memory limit of the process.")] = "512MiB",
    quiet: Quiet = False,
) -> int:
    """Build the next segment from what was crawled."""
    options = {
        "seeds": str(seeds) if seeds is not None else None, "scope": scope, "include": include, "exclude": exclude,
        "max_depth": max_depth,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    _check_build(rank, bloom, known, per_host, retry)
    shown = Shown(sys.stderr, quiet=quiet)
    started = time.monotonic()
    wish = BuildRequest(per_host, split, retry, rank == "in-links")
    order = SegmentOrder(tuple(places or ()), output, known, bloom, config, given, tuple(sets or ()), wish)
    built = build(order, memory_bytes_max=bytes_of(memory), progress=shown.advance)
    shown.clear()
    return _show_built(built, bloom, shown, time.monotonic() - started)


@commands.command("show")
def segment_show(
    file: SegmentFile,
    as_json: Json = False,
    limit: Annotated[int, Option("--limit", metavar="N", help="Maximum number of sites and rows.")] = 10,
) -> int:
    """Show counts, largest sites and first rows of a segment."""
    found = summary(file, limit)
    if as_json:
        write_line(sys.stdout, json.dumps(found, indent=2))
        return Exit.FINISHED
    part = f", part {found['part']} of {found['parts']}" if found["parts"] != 1 else ""
    held = ", ".join(counted(found[key], key[:-1].replace("url", "URL")) for key in ("urls", "sites", "hosts"))
    lines = [f"{file}: {held}{part}; made by {harmless(found['made_by'])}"]
    for title, name in (("level", "by_level"), ("depth", "by_depth"), ("type of link", "by_link_type")):
        counts = [f"{harmless(key)}: {count(value)}" for key, value in found[name].items()]
        lines.append(f"by {title}: {', '.join(counts)}")
    lines.append("largest sites:" if found["largest_sites"] else "it lists nothing")
    lines += [f"  {count(value):>12}  {harmless(site)}" for site, value in found["largest_sites"].items()]
    if rows := found["first"]:
        lines.append("first rows (level, depth, URL):")
        lines += [f"  {row['level']}  {row['depth']:>3}  {harmless(row['url'])}" for row in rows]
    for line in lines:
        write_line(sys.stdout, line)
    return Exit.FINISHED


@commands.command("split")
def segment_split(
    file: SegmentFile,
    parts: Annotated[int, Option("--parts", "-n", metavar="N", help="Number of parts.")],
    output: Annotated[Path, Option("--output", "-o", metavar="FILE", help="Base name; writes FILE-1-of-N and so on.")],
) -> int:
    """Split a segment for several crawlers, by site."""
    for path, one in zip(targets_of(output, parts), split(file, output, parts), strict=True):
        write_line(sys.stderr, f"{path}: {counted(one.urls, 'URL')} of {counted(one.sites, 'site')}")
    return Exit.FINISHED


@commands.command("merge")
def segment_merge(
    files: Annotated[list[Path], Argument(metavar="FILE", help="Segments to merge.")],
    output: Annotated[Path, Option("--output", "-o", metavar="FILE", help="The segment file to write.")],
) -> int:
    """Merge segments; keep each URL once, by its shortest path."""
    [about] = merge(files, output)
    write_line(sys.stderr, f"{output}: {counted(about.urls, 'URL')} of {counted(about.sites, 'site')}")
    return Exit.FINISHED


def _check_build(rank: str, bloom: float | None, known: Path | None, per_host: int, retry: int) -> None:
    if rank not in ("priority", "in-links"):
        raise ConfigError(f"--rank {rank}: expected priority or in-links")
    if bloom is not None and not 0 <= bloom < 1:
        raise ConfigError(f"--bloom {bloom:g}: expected a share of new URLs, such as 0.0001, or 0 for an exact index")
    if bloom is not None and known is None:
        raise ConfigError("--bloom: name the directory of the index with --known")
    for name, value in (("--per-host", per_host), ("--retry", retry)):
        if value < 0:
            raise ConfigError(f"{name} {value}: expected a number from 0 up")


def _show_built(built: SegmentBuilt, bloom: float | None, shown: Shown, took_s: float) -> int:
    for line in built.damaged:
        shown.line(line)
    for directory in built.running:
        shown.line(f"{directory} is still crawling: the segment is made of its last commit")
    how = "was built before" if built.complete else "is finished" if built.resumed else "is built"
    for path in built.paths:
        shown.line(f"{path} {how}: {size(path.stat().st_size)}")
    if built.complete:
        shown.line(f"{counted(built.urls, 'URL')} of {counted(built.sites, 'site')}")
    else:
        shown.line(_summary(built, took_s))
    if bloom:
        shown.line(f"of URLs that are new, at most {bloom:g} of all are taken for known ones and not listed")
    return Exit.FINISHED if built.urls else Exit.NOTHING


def _summary(built: SegmentBuilt, took_s: float) -> str:
    figures = built.figures
    left = figures.get("left", 0)
    parts = [
        f"{counted(figures.get('links', 0), 'link')} read",
        f"{counted(figures.get('judged', 0), 'new URL')} judged",
        f"{counted(built.urls, 'URL')} of {counted(built.sites, 'site')} listed",
    ]
    if left:
        parts.append(f"{count(left)} left for later by --per-host")
    if built.rejected:
        parts.append("rejected by " + ", ".join(f"{name} {count(n)}" for name, n in sorted(built.rejected.items())))
    return f"{', '.join(parts)}; {duration(took_s)}"
