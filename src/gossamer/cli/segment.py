"""Segment: `segment build|show|split|merge`: what an offline crawl fetches next, with progress on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gossamer.cli import door
from gossamer.cli.exits import Exit
from gossamer.cli.views import Shown
from gossamer.cli.words import count, counted, harmless, size, write_line
from gossamer.model.errors import ConfigError
from gossamer.model.words import duration


def build(
    places: Sequence[Path],
    output: Path,
    *,
    known: Path | None,
    bloom: float | None,
    config: Path | None,
    options: Mapping[str, object],
    sets: Sequence[str],
    per_host: int,
    split: int,
    retry: int,
    rank: str,
    memory: str,
    quiet: bool,
) -> int:
    """Build the next segment, or go on with it; say what came of it."""
    if rank not in ("priority", "in-links"):
        raise ConfigError(f"--rank {rank}: expected priority or in-links")
    if bloom is not None and not 0 <= bloom < 1:
        raise ConfigError(f"--bloom {bloom:g}: expected a share of new URLs, such as 0.0001, or 0 for an exact index")
    if bloom is not None and known is None:
        raise ConfigError("--bloom: name the directory of the index with --known")
    for name, value in (("--per-host", per_host), ("--retry", retry)):
        if value < 0:
            raise ConfigError(f"{name} {value}: expected a number from 0 up")
    shown = Shown(sys.stderr, quiet=quiet)
    started = time.monotonic()
    built = door.segment_built(
        places, output, known=known, false_positive_rate=bloom, config=config, options=options, sets=sets,
        per_host=per_host, parts=split, retries=retry, in_links=rank == "in-links", memory=memory,
        progress=shown.advance,
    )  # fmt: skip
    shown.clear()
    for directory in built.running:
        shown.line(f"{directory} still crawls: this is made of the files that it has finished so far")
    for path in built.paths:
        shown.line(f"{path} {_how(built)}: {size(path.stat().st_size)}")
    if built.complete:
        shown.line(f"{counted(built.urls, 'URL')} of {counted(built.sites, 'site')}")
    else:
        shown.line(_told(built, time.monotonic() - started))
    if bloom:
        shown.line(f"of URLs that are new, at most {bloom:g} of all are taken for known ones and not listed")
    return Exit.FINISHED if built.urls else Exit.NOTHING


def show(file: Path, limit: int, *, as_json: bool) -> int:
    """Print what a segment holds."""
    found = door.segment_summary(file, limit)
    if as_json:
        write_line(sys.stdout, json.dumps(found, indent=2))
        return Exit.FINISHED
    part = f", part {found['part']} of {found['parts']}" if found["parts"] != 1 else ""
    holds = ", ".join(
        counted(_number(found[name]), name[:-1].replace("url", "URL")) for name in ("urls", "sites", "hosts")
    )
    lines = [f"{file}: {holds}{part}; made by {harmless(found['made_by'])}"]
    for title, name in (("level", "by_level"), ("depth", "by_depth"), ("type of link", "by_link_type")):
        counts = [f"{harmless(key)}: {count(value)}" for key, value in _counts(found[name]).items()]
        lines.append(f"by {title}: {', '.join(counts)}")
    lines.append("largest sites:" if _counts(found["largest_sites"]) else "it lists nothing")
    lines += [f"  {count(value):>12}  {harmless(site)}" for site, value in _counts(found["largest_sites"]).items()]
    rows = found["first"]
    if isinstance(rows, list) and rows:
        lines.append("first rows (level, depth, URL):")
        lines += [f"  {row['level']}  {row['depth']:>3}  {harmless(row['url'])}" for row in rows]
    for line in lines:
        write_line(sys.stdout, line)
    return Exit.FINISHED


def split(file: Path, output: Path, parts: int) -> int:
    """Write several segments of one; say which."""
    for path, urls, sites in door.segment_split(file, output, parts):
        write_line(sys.stderr, f"{path}: {counted(urls, 'URL')} of {counted(sites, 'site')}")
    return Exit.FINISHED


def merge(files: Sequence[Path], output: Path) -> int:
    """Write one segment of several; say what it holds."""
    urls, sites = door.segment_merged(files, output)
    write_line(sys.stderr, f"{output}: {counted(urls, 'URL')} of {counted(sites, 'site')}")
    return Exit.FINISHED


def _how(built: door.BuiltSegments) -> str:
    if built.complete:
        return "was built before"
    return "is finished" if built.resumed else "is built"


def _told(built: door.BuiltSegments, took_s: float) -> str:
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


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _counts(value: object) -> Mapping[object, int]:
    return value if isinstance(value, dict) else {}
