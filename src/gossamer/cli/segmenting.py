"""Segmenting: the commands `segment build`, `show`, `split` and `merge`, as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

segment_app = typer.Typer(help="Build and inspect segments for offline crawls.")

SegmentFile = Annotated[Path, typer.Argument(metavar="FILE", help="The segment file.")]


@segment_app.command("build")
def segment_build(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The segment file to write.")],
    places: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR", help="Directories of crawls, or of WARC files of any crawler.")
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option("--known", metavar="DIR", help="Index of URLs listed before; updated by this command."),
    ] = None,
    bloom: Annotated[
        float | None,
        typer.Option(
            "--bloom", metavar="RATE", help="Create the index with Bloom filters of this false-positive rate."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Use this configuration instead of the first crawl's."),
    ] = None,
    seeds: Annotated[Path | None, typer.Option("--seeds", metavar="FILE", help="Add seeds from a file.")] = None,
    scope: Annotated[
        str | None, typer.Option("--scope", metavar="SCOPE", help="Scope: prefix, host, domain or any.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option("--include", metavar="RE", help="List only URLs that match (repeatable).")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", metavar="RE", help="Skip URLs that match (repeatable).")
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option("--max-depth", metavar="N", help="Skip URLs more links away from a seed than this.")
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set any configuration key (repeatable).")
    ] = None,
    per_host: Annotated[
        int,
        typer.Option(
            "--per-host", metavar="N", help="Maximum number of URLs per host; the rest goes to a later segment."
        ),
    ] = 0,
    split: Annotated[
        int, typer.Option("--split", metavar="N", help="Number of files to write; each site is in one of them.")
    ] = 1,
    retry: Annotated[
        int, typer.Option("--retry", metavar="N", help="List URLs again that failed temporarily, at most N times.")
    ] = 0,
    rank: Annotated[
        str,
        typer.Option("--rank", metavar="ORDER", help="Order: priority (as in the crawl) or in-links (linking sites)."),
    ] = "priority",
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory limit of the process.")] = "512MiB",
    quiet: Annotated[bool, typer.Option("--quiet", help="Show errors only.")] = False,
) -> None:
    """Build the next segment from what was crawled."""
    from gossamer.cli import segment

    options = {
        "seeds": str(seeds) if seeds is not None else None, "scope": scope, "include": include, "exclude": exclude,
        "max_depth": max_depth,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    raise typer.Exit(
        segment.build(
            places or (), output, known=known, bloom=bloom, config=config, options=given, sets=sets or (),
            per_host=per_host, split=split, retry=retry, rank=rank, memory=memory, quiet=quiet,
        )
    )  # fmt: skip


@segment_app.command("show")
def segment_show(
    file: SegmentFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Maximum number of sites and rows.")] = 10,
) -> None:
    """Show counts, largest sites and first rows of a segment."""
    from gossamer.cli import segment

    raise typer.Exit(segment.show(file, limit, as_json=as_json))


@segment_app.command("split")
def segment_split(
    file: SegmentFile,
    parts: Annotated[int, typer.Option("--parts", "-n", metavar="N", help="Number of parts.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Base name; writes FILE-1-of-N and so on.")
    ],
) -> None:
    """Split a segment for several crawlers, by site."""
    from gossamer.cli import segment

    raise typer.Exit(segment.split(file, output, parts))


@segment_app.command("merge")
def segment_merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Segments to merge.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The segment file to write.")],
) -> None:
    """Merge segments; keep each URL once, by its shortest path."""
    from gossamer.cli import segment

    raise typer.Exit(segment.merge(files, output))
