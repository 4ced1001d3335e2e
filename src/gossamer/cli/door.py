"""Door: the shape of what commands use of the api, and the only place that imports it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, Self, cast, get_args

from gossamer.model.errors import ConfigError
from gossamer.model.extras import require

if TYPE_CHECKING:
    from gossamer.config import Config
    from gossamer.model.verbs import Found
    from gossamer.report.figures import Report

Status = Mapping[str, object]


class Running(Protocol):
    """A crawl in this process."""

    config: Config
    """The effective configuration, as it is now."""

    async def run(self) -> str:
        """Crawl; return `finished`, `limit`, `low_water` or `stopped` once everything is committed."""
        ...

    def status(self) -> Status:
        """Return counts, rates and state, cheaply: it is asked several times a second."""
        ...

    def stop(self, *, now: bool = False) -> None:
        """Ask it to end: finish what is in flight and commit, or commit at once."""
        ...

    def on_note(self, callback: Callable[[str], None]) -> None:
        """Have `callback` called with sentences for people."""
        ...


class Scaled(Protocol):
    """What came of dividing a crawl among other shards; of pairs, the most that a shard has and the mean."""

    @property
    def before(self) -> int: ...

    @property
    def after(self) -> int: ...

    @property
    def partitions_moved(self) -> int: ...

    @property
    def keys_moved(self) -> int: ...

    @property
    def partitions(self) -> tuple[float, float]: ...

    @property
    def hosts(self) -> tuple[float, float]: ...


class CrawlerType(Protocol):
    """`gossamer.api.Crawler` itself."""

    def __call__(self, seeds: Sequence[str], *, output: str, config: Config) -> Running:
        """Begin a crawl in a new directory."""
        ...

    def resume(self, directory: str, *, config: Config, settle: bool) -> Running:
        """Continue the crawl in a directory; with `settle` only finish the files of one that has ended."""
        ...


def crawler(workers: int = 1) -> CrawlerType:
    """Return what runs a crawl of so many shards. Imports everything that crawls: 0.15 s."""
    if workers > 1:
        from gossamer.api.cluster import ClusterCrawler

        return cast("CrawlerType", ClusterCrawler)
    from gossamer.api import Crawler

    return cast("CrawlerType", Crawler)


def status_of(directory: Path) -> Status:
    """Return the status of a crawl that does not run, from its store."""
    from gossamer import api

    return cast("Status", api.status_of(directory))


def why_of(directory: Path, url: str) -> Status:
    """Return what a crawl that does not run knows about a URL."""
    from gossamer import api

    return cast("Status", api.why_of(directory, url))


def verify_of(directory: Path, *, deep: bool, each: Callable[[str], None]) -> Mapping[str, Any]:
    """Look for damage in a crawl's files; `each` is called with a line for each. Return what `--json` prints."""
    from gossamer import api

    return api.verify_of(directory, deep=deep, each=lambda damage: each(damage.says())).as_object()


def restore_of(source: str, directory: Path, sets: Sequence[str]) -> str:
    """Make a crawl in a new directory of a checkpoint; return what was restored."""
    from gossamer.api import restoring

    return restoring.restore_of(source, directory, sets)


def accept_loss_of(directory: Path) -> Sequence[str]:
    """Have a crawl go on without the files that are missing; return their names."""
    from gossamer import api

    return api.accept_loss_of(directory)


def sample_of(directory: Path, size: int, seed: int | None) -> Sequence[Mapping[str, object]]:
    """Return near-uniform pages of a crawl that walked."""
    from gossamer import api

    return api.sample_of(directory, size, seed)


def release_of(directory: Path, name: str) -> Status:
    """Let go of traps of a crawl that does not run."""
    from gossamer import api

    return cast("Status", api.release_of(directory, name))


def scale_crawl(directory: Path, workers: int, note: Callable[[str], None]) -> Scaled:
    """Divide a crawl that does not run among another number of shards."""
    from gossamer import api

    return api.scale_crawl(directory, workers, note)


def showcase(directory: Path) -> Web:
    """Return a synthetic web that shows every behaviour."""
    from gossamer.lab.simweb.conformance import showcase as options
    from gossamer.lab.simweb.process import SimwebProcess

    return SimwebProcess(options(), directory)


def conformance_of(served: Web, directory: Path) -> tuple[str, bool]:
    """Return the table of a crawl of a synthetic web, and whether all of it is right."""
    from gossamer.lab.simweb.conformance import conformance, table
    from gossamer.lab.simweb.process import SimwebProcess
    from gossamer.lab.simweb.truth import Truth
    from gossamer.report.outcomes import outcomes

    simweb = cast("SimwebProcess", served)
    walked = Truth(simweb.web).walk(simweb.seeds, embeds=True)
    rows = conformance(simweb.web, walked, simweb.requests(), outcomes(directory))
    return table(rows), all(row.right for row in rows)


def report_of(
    directory: Path,
    rejected: Mapping[str, int],
    modules: Mapping[str, Status],
    unfetched: Sequence[Mapping[str, object]],
    damage: Sequence[str],
    counted: int | None,
) -> Report:
    """Return the statistics of a crawl, from its tables, finished or not; all but the directory is of its status:
    `counted` are the attempts.
    """
    from gossamer.report.figures import failed_modules
    from gossamer.report.report import summary

    with TemporaryDirectory(prefix="gossamer-report-") as folder:
        return summary(
            directory,
            rejected=rejected,
            modules=failed_modules(modules),
            seeds_not_fetched=unfetched,
            damage=damage,
            unfinished=Path(folder),
            counted=counted,
            unread=_unfinished(directory, Path(folder)),
        )


def _unfinished(directory: Path, folder: Path) -> str:
    """Write what a crawl's logs hold and its tables lack to `folder`; return why that could not be."""
    state = directory / "state"
    if not any(next(shard.glob("tables/*"), None) for shard in (state, *state.glob("shard-*"))):
        return ""
    from gossamer.api import views

    return views.unfinished_of(directory, folder)


def written(report: Report, form: Literal["text", "json", "html"], title: str = "", width: int = 80) -> str:
    """Return a report as people or programs read it."""
    from gossamer.report import figures, html, text

    if form == "json":
        return figures.as_json(report)
    return html.as_html(report, title) if form == "html" else text.as_text(report, width)


class Exported(Protocol):
    """What came of an export."""

    @property
    def rows(self) -> Mapping[str, int]:
        """Rows by table."""
        ...

    @property
    def resumed(self) -> bool:
        """It had been begun before."""
        ...

    @property
    def running(self) -> bool:
        """The crawl was running."""
        ...

    @property
    def newer(self) -> int:
        """Files of the crawl that came too late for it."""
        ...


def export_of(
    directory: Path,
    to: str,
    target: Path,
    table: str,
    where: str,
    memory_bytes_max: int,
    progress: Callable[[str, int, int], None],
) -> Exported:
    """Make an export, or go on with one."""
    from gossamer.api import views

    return views.export_of(
        directory, to, target, table=table, where=where, memory_bytes_max=memory_bytes_max, progress=progress
    )


def stream_of(directory: Path, to: str, out: BinaryIO, *, table: str, where: str) -> Exported:
    """Write a table to an open stream."""
    from gossamer.api import views

    return views.stream_of(directory, to, out, table=table, where=where)


class BuiltSegments(Protocol):
    """What came of building segments."""

    @property
    def paths(self) -> Sequence[Path]: ...

    @property
    def urls(self) -> int: ...

    @property
    def sites(self) -> int: ...

    @property
    def complete(self) -> bool:
        """They had been built before."""
        ...

    @property
    def resumed(self) -> bool:
        """They had been begun before."""
        ...

    @property
    def figures(self) -> Mapping[str, int]:
        """What was counted: `links`, `judged`, `left`."""
        ...

    @property
    def rejected(self) -> Mapping[str, int]:
        """URLs by filter."""
        ...

    @property
    def running(self) -> Sequence[str]:
        """Crawls that were running."""
        ...


def segment_built(
    places: Sequence[Path],
    target: Path,
    *,
    known: Path | None,
    false_positive_rate: float | None,
    config: Path | None,
    options: Mapping[str, object],
    sets: Sequence[str],
    per_host: int,
    parts: int,
    retries: int,
    in_links: bool,
    memory: str,
    progress: Callable[[str, int, int], None],
) -> BuiltSegments:
    """Build the next segment, or go on with it."""
    from gossamer.config.sections import bytes_of
    from gossamer.offline.build import Order, build
    from gossamer.offline.steps import Wish

    wish = Wish(per_host, parts, retries, in_links)
    order = Order(tuple(places), target, known, false_positive_rate, config, options, tuple(sets), wish)
    try:
        memory_bytes = bytes_of(memory)
    except ValueError as error:
        raise ConfigError(f"--memory {memory}: {error}") from error
    assert isinstance(memory_bytes, int)
    return build(order, memory_bytes_max=memory_bytes, progress=progress)


def segment_summary(file: Path, limit: int) -> Mapping[str, object]:
    """Return what a segment holds."""
    from gossamer.offline.merge import summary

    return summary(file, limit)


def segment_split(file: Path, target: Path, parts: int) -> Sequence[tuple[Path, int, int]]:
    """Write several segments of one; return names, URLs and sites."""
    from gossamer.offline.merge import split
    from gossamer.offline.steps import targets_of

    found = split(file, target, parts)
    return [(path, one.urls, one.sites) for path, one in zip(targets_of(target, parts), found, strict=True)]


def segment_merged(files: Sequence[Path], target: Path) -> tuple[int, int]:
    """Write one segment of several; return URLs and sites."""
    from gossamer.offline.merge import merge

    [about] = merge(files, target)
    return about.urls, about.sites


class Change(Protocol):
    """A page that appeared, changed or vanished, or a version of it; its fields are those of JSON lines."""

    @property
    def at(self) -> str: ...

    @property
    def change(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def outcome(self) -> str: ...

    @property
    def status(self) -> int | None: ...

    @property
    def digest(self) -> str: ...

    @property
    def body_bytes(self) -> int: ...

    @property
    def warc_file(self) -> str: ...

    @property
    def warc_offset(self) -> int | None: ...

    def as_object(self) -> dict[str, object]:
        """Return all that is known, by name."""
        ...


def changes_of(directory: Path, since: str, url: str) -> Iterator[Change]:
    """Yield what appeared, changed and vanished; with `url`, the versions of that page."""
    from gossamer.api import changes

    return changes.changes(directory, since, url)


class Built(Protocol):
    """An index that was made."""

    @property
    def pages(self) -> int: ...

    @property
    def running(self) -> bool: ...


def search_of(directory: Path, query: str, *, limit: int, host: str, site: str, language: str) -> Found:
    """Return the pages that answer a query best. Raises RefusedError."""
    import asyncio

    from gossamer.isolated.searches import Searches

    async def search() -> Found:
        searches = Searches()
        try:
            return await searches.search(directory, query, limit=limit, host=host, site=site, language=language)
        finally:
            await searches.close()

    return asyncio.run(search())


def build_index_of(directory: Path, advance: Callable[[int, int], None]) -> Built:
    """Make the full-text index of a crawl."""
    require("tantivy", "search")
    from gossamer.api import search

    return search.build_index_of(directory, advance=advance)


class Web(Protocol):
    """A synthetic web that serves in a process of its own."""

    hosts_file: Path

    @property
    def options(self) -> str:
        """What it is made from, as JSON; its port as well while it serves."""
        ...

    @property
    def seeds(self) -> Sequence[str]:
        """Addresses from which the whole web can be reached."""
        ...

    def __enter__(self) -> Self:
        """Start to serve."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        ...


def simweb(directory: Path, size: str, **changes: object) -> Web:
    """Return a synthetic web of a named size whose files lie in `directory`.

    Raises:
        ConfigError: there is no such size, or an option is none.
    """
    from pydantic import ValidationError

    from gossamer.lab.simweb.options import Preset, SimwebOptions
    from gossamer.lab.simweb.process import SimwebProcess

    sizes = get_args(Preset)
    if size not in sizes:
        raise ConfigError(f"--size {size}: expected {', '.join(sizes[:-1])} or {sizes[-1]}")
    try:
        options = SimwebOptions.preset(cast("Preset", size), **changes)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"--{first['loc'][0]} {first['input']}: {first['msg'].replace('Input', 'it', 1)}") from error
    return SimwebProcess(options, directory)
