"""Segmenting: the commands `segment build`, `show`, `split` and `merge`, as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

segment_app = typer.Typer(help="Make and look at segments: what an offline crawl fetches next.")

SegmentFile = Annotated[Path, typer.Argument(metavar="FILE", help="A segment.")]


@segment_app.command("build")
def segment_build(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The segment to make.")],
    places: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR", help="Crawls, or WARC files of any crawler.")
    ] = None,
    known: Annotated[
        Path | None, typer.Option("--known", metavar="DIR", help="An index of what was listed before, kept up to date.")
    ] = None,
    bloom: Annotated[
        float | None,
        typer.Option("--bloom", metavar="RATE", help="Begin the index as Bloom filters of this false-positive rate."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="In place of the first crawl's configuration.")
    ] = None,
    seeds: Annotated[Path | None, typer.Option("--seeds", metavar="FILE", help="Seeds to list too.")] = None,
    scope: Annotated[str | None, typer.Option("--scope", metavar="SCOPE", help="prefix|host|domain|any.")] = None,
    include: Annotated[
        list[str] | None, typer.Option("--include", metavar="RE", help="Only URLs that match; repeatable.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", metavar="RE", help="No URLs that match; repeatable.")
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option("--max-depth", metavar="N", help="No URLs further than this from a seed.")
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set any key; repeatable.")
    ] = None,
    per_host: Annotated[
        int, typer.Option("--per-host", metavar="N", help="At most so many URLs of a host; the others later.")
    ] = 0,
    split: Annotated[int, typer.Option("--split", metavar="N", help="So many files, no site in two of them.")] = 1,
    retry: Annotated[
        int, typer.Option("--retry", metavar="N", help="List again what failed for the moment, so often at most.")
    ] = 0,
    rank: Annotated[
        str,
        typer.Option("--rank", metavar="ORDER", help="priority: as the crawl has it; in-links: sites that link there."),
    ] = "priority",
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="Of the whole process.")] = "512MiB",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, errors only.")] = False,
) -> None:
    """Make of what was crawled a file of what to fetch next; repeat the command to finish one that was interrupted."""
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
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="So many sites and rows.")] = 10,
) -> None:
    """Print what a segment holds: counts, the largest sites, the first rows."""
    from gossamer.cli import segment

    raise typer.Exit(segment.show(file, limit, as_json=as_json))


@segment_app.command("split")
def segment_split(
    file: SegmentFile,
    parts: Annotated[int, typer.Option("--parts", "-n", metavar="N", help="How many.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="FILE-1-of-N and so on.")],
) -> None:
    """Make several segments of one, for several crawlers; no site is in two of them."""
    from gossamer.cli import segment

    raise typer.Exit(segment.split(file, output, parts))


@segment_app.command("merge")
def segment_merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Segments.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The segment to make.")],
) -> None:
    """Make one segment of several; a URL that stands in several is kept once, by its least way."""
    from gossamer.cli import segment

    raise typer.Exit(segment.merge(files, output))
