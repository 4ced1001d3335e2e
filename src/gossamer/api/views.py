"""Views: exports of a crawl, made from its files, whether it runs or not."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from gossamer.api.given import directory_of
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError, CrawlFailedError
from gossamer.model.extras import require
from gossamer.results.export import corpus
from gossamer.results.export.bodies import Means
from gossamer.results.export.chunks import TOKENS_MAX
from gossamer.results.export.copies import How
from gossamer.results.export.export import (
    MEMORY_BYTES,
    Exported,
    ExportedCrawl,
    ExportRequest,
    convert_logs,
    export,
    no_progress,
    order_of,
    stream,
)
from gossamer.results.export.opening import crawl_in, export_means
from gossamer.results.export.permitted import permission
from gossamer.results.export.several import export_several
from gossamer.results.export.source import pieces_of, require_sound
from gossamer.results.export.work import Progress, Share
from gossamer.results.isolated.contents import ContentProcesses
from gossamer.stages.archive.segments import files_of

__all__ = ["Exported", "export_of", "stream_of", "write_unfinished"]


def export_of(
    directory: str | Path,
    to: str,
    target: str | Path,
    *,
    table: str = "",
    where: str = "",
    permitted: str = "",
    unknown: bool = False,
    dedupe: How = "",
    against: Sequence[str | Path] = (),
    chunk_tokens: int = TOKENS_MAX,
    limit: int | None = None,
    memory_bytes_max: int = MEMORY_BYTES,
    share: Share | None = None,
    progress: Progress = no_progress,
) -> Exported:
    """Make an export of a crawl, or finish one that was begun. See `results.export.export.export`.

    `to` names a format, or several with commas between: then `target` is a folder that gets a folder or file of each,
    and the content of a page is found once for all. `search` among them builds the crawl's own index last.

    With `permitted`, a purpose such as `ai-train`, it holds only pages whose owners allow that use, and with `unknown`
    also those about which nothing is stated. With `dedupe`, `exact` or `near`, of texts that are equal or nearly so it
    holds one, and none that a crawl or corpus export in `against` has. `chunk_tokens` bounds the chunks of `chunks`,
    `limit` the rows of `jsonl` and `csv`. A target that ends in .gz or .zst is compressed so: of jsonl, csv and cdxj.
    With `share`, the export holds that part of the crawl. Raises ConfigError: there is no crawl, or an option is wrong;
    OSError: the disk is full; another call goes on.
    """
    directory = directory_of(directory)
    file = directory / "crawl.toml"
    crawl = crawl_in(directory, is_shared=share is not None)
    earlier = earlier_in(against)
    target = directory_of(target, "target")
    formats = list(map(str.strip, to.split(",")))
    indexes = "search" in formats
    if formats == ["search"]:
        raise ConfigError("--to search: name other formats too; `gossamer search DIR --build` builds the index alone")
    if indexes:
        require("tantivy", "search")
    if indexes and (where or permitted or table):
        raise ConfigError(f"--to {to}: the index has every page; leave search out, or the choice of rows")
    base = ExportRequest(to, table, where, None, dedupe, earlier, chunk_tokens, memory_bytes_max, share, limit)
    permitting = {one: permission(permitted, unknown=unknown, to=one) for one in formats if one != "search"}
    requests = {one: replace(base, to=one, permitted=of_it) for one, of_it in permitting.items()}
    orders = [order_of(crawl, request, target) for request in requests.values()]

    def make(to: str, target: Path, means: Means, progress: Progress) -> Exported:
        return export(crawl, requests[to], target, means, progress)

    def index(means: Means) -> None:
        from gossamer.api.search import build_index_of  # noqa: PLC0415 - of an extra

        advance = lambda *done: progress("search: pages", *done)  # noqa: E731
        build_index_of(directory, memory_bytes_max=memory_bytes_max, advance=advance, texts_of=means.texts_of)

    markdown = not corpus.OF_MARKDOWN.isdisjoint(requests)
    with ContentProcesses(file, memory_bytes_max, markdown=markdown, visible=indexes) as processes:
        means = export_means(reopen(file), markdown=markdown)
        if crawl.is_here:  # The processes have no network.
            means = replace(
                means, contents_of=processes.contents_of, texts_of=processes.texts_of, write_files=processes.write_files
            )
        if len(orders) == 1 and not indexes:
            return make(orders[0].to, target, means, progress)
        return export_several(target, orders, means, make, progress, index if indexes else None)


def earlier_in(against: Sequence[str | Path]) -> list[ExportedCrawl | Path]:
    """Return the crawls and exports whose texts count as known. Raises ConfigError."""
    others = [directory_of(one, "against") for one in against]
    return [crawl_in(one) if (one / "crawl.toml").exists() else one for one in others]


def write_unfinished(directory: Path, folder: Path, tables: Sequence[str] = ("pages", "links", "epochs")) -> str:
    """Write the rows of tables that the last commit of a crawl, running or not, has in logs alone to `folder`, as
    Parquet. Return why rows are left out; an empty text where none are. Finished files are compared with their
    checksums, about 0.1 ms a MB; where none are recorded they are read. Raises DamagedError: a finished file is not
    what was written.
    """
    try:
        crawl = crawl_in(directory)
    except (ConfigError, CrawlFailedError, OSError) as error:
        crawl = ExportedCrawl(directory, running=False, unread=str(error))
    unread = crawl.unread
    try:
        for table in tables:
            convert_logs(crawl, table, folder)
    except (CrawlFailedError, OSError) as error:
        unread = str(error)
    recorded = {name: entry.crc for name, entry in (crawl.files or {}).items()}
    for table in tables:
        require_sound(pieces_of(files_of(directory, table), recorded))
    has_logs = any(next(directory.glob(pattern), None) for pattern in ("state/tables/*", "state/shard-*/tables/*"))
    return unread if has_logs else ""


def stream_of(
    directory: Path, to: str, out: BinaryIO, *, table: str, where: str, permitted: str, unknown: bool, limit: int | None
) -> Exported:
    """Write a table of a crawl as JSON lines or CSV to an open stream. Raises ConfigError as `export_of`."""
    with tempfile.TemporaryDirectory(prefix="gossamer-export-") as folder:
        wanted = permission(permitted, unknown=unknown, to=to)
        return stream(crawl_in(directory), ExportRequest(to, table, where, wanted, limit=limit), out, Path(folder))
