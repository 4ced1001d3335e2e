"""Build: the next segment, made of what was crawled. Reads top to bottom as one build."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
from msgspec.structs import replace
from xxhash import xxh3_128_hexdigest

from gossamer.assembly.modules import judge_of
from gossamer.config import Config
from gossamer.config.gather import configure, reopen
from gossamer.config.seeds import all_seeds
from gossamer.model.errors import ConfigError
from gossamer.model.links import SEED_ARGUMENT, SEED_FILE
from gossamer.model.product import PRODUCT, __version__
from gossamer.results.export.source import RowSource
from gossamer.results.export.work import Progress
from gossamer.results.offline.arrange import arrange
from gossamer.results.offline.choose import choose, gather_others
from gossamer.results.offline.gather import gather_links, gather_origins, gather_pages, join_ways
from gossamer.results.offline.inputs import find_inputs, read_warcs
from gossamer.results.offline.kinds import (
    ADDED,
    FOUND,
    FROM,
    KNOWN,
    LISTED,
    PAGE,
    RELAXED,
    SHORTER,
    choice_kind,
    way_kind,
)
from gossamer.results.offline.known import KnownUrls
from gossamer.results.offline.records import Runs
from gossamer.results.offline.seeds import Named, bring_in
from gossamer.results.offline.segment import Segment, SegmentInfo, rules_of
from gossamer.results.offline.steps import Build, BuildRequest, targets_of, types_to_follow
from gossamer.results.offline.texts import read_texts
from gossamer.results.offline.work import BuildFolder
from gossamer.stages.scope.roots import seed_url
from gossamer.url.name import Namer
from gossamer.world.files import publish

MEMORY_BYTES = 512 << 20
MEMORY_BYTES_MIN = 288 << 20
"""Less does not hold the program with its libraries and a useful number of rows."""
ALL = BuildRequest()


@dataclass(frozen=True, slots=True)
class SegmentOrder:
    """The specification of a build. The same order resumes an interrupted build, and finds a finished one."""

    places: tuple[Path, ...]
    """Directories of crawls, of tables or of WARC files, and WARC files."""
    target: Path
    known: Path | None = None
    false_positive_rate: float | None = None
    """The index begins as Bloom filters of this rate; 0 asks for an exact one, None takes it as it is."""
    config: Path | None = None
    """Without it the first crawl's configuration holds."""
    options: Mapping[str, object] = field(default_factory=dict)
    """By keyword name, as `configure` takes them."""
    sets: tuple[str, ...] = ()
    wish: BuildRequest = ALL

    def words(self) -> str:
        """Return the order as JSON, apart from the target."""
        values = asdict(self)
        del values["target"]
        values["places"] = [str(place.absolute()) for place in self.places]
        for name in ("known", "config"):
            values[name] = str(values[name].absolute()) if values[name] is not None else ""
        return json.dumps(values, default=str, sort_keys=True)


@dataclass(frozen=True, slots=True)
class SegmentBuilt:
    """Result of a build."""

    paths: tuple[Path, ...]
    urls: int
    sites: int
    complete: bool
    """It had been built before: nothing was done."""
    resumed: bool
    figures: Mapping[str, int]
    rejected: Mapping[str, int]
    """URLs by the filter that rejected them; of a build that was resumed, since then."""
    running: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


def build(
    order: SegmentOrder, *, memory_bytes_max: int = MEMORY_BYTES, progress: Progress = lambda *_: None
) -> SegmentBuilt:
    """Build the next segment, or resume the build. Blocks.

    After a kill, another call with the same order resumes and ends with the same files. Only one segment of an index
    lists a URL. Memory: `memory_bytes_max`, the program included. Disk, beside the result: about 30 bytes a link and 60
    a judged URL. Raises ConfigError: a mistake that the operator can fix; OSError: the disk is full; another call goes
    on.
    """
    if memory_bytes_max < MEMORY_BYTES_MIN:
        raise ConfigError(f"--memory: at least {MEMORY_BYTES_MIN >> 20}MiB are needed")
    config = _config_of(order)
    rules = rules_of(config.url)
    about = SegmentInfo(
        made_by=f"{PRODUCT} {__version__} segment build", rules=rules, order=xxh3_128_hexdigest(order.words().encode())
    )
    targets = targets_of(order.target, order.wish.parts)
    with ExitStack() as stack:
        known = stack.enter_context(KnownUrls(order.known, rules, order.false_positive_rate))
        done = _find_build(targets, about)
        # Where its folder is left over, it was killed at the very end.
        if done is not None and not order.target.with_name(order.target.name + ".part").exists():
            return done
        work = stack.enter_context(BuildFolder(order.target, order.words()))
        _publish(work)
        done = _find_build(targets, about)
        if done is None:
            return _make(order, config, about, targets, known, work, memory_bytes_max, progress)
        work.close()
        return done


def _make(
    order: SegmentOrder,
    config: Config,
    about: SegmentInfo,
    targets: Sequence[Path],
    known: KnownUrls,
    work: BuildFolder,
    memory: int,
    progress: Progress,
) -> SegmentBuilt:
    judge = judge_of(config, order.places)

    def name_seeds() -> Iterator[Named]:
        return _seeds_of(order, config, judge.namer)

    if work.state.inputs is None:
        for _ in name_seeds():  # Reports mistakes in them before anything starts.
            pass
        work.state.inputs = find_inputs(order.places, config, work.folder / "logs")
        work.begin("warcs")
    inputs = work.state.inputs
    if work.state.step == "warcs":
        read_warcs(work, config, judge.namer, progress)
    pages = RowSource(inputs.pages)
    links = RowSource(inputs.links)
    seeds = bring_in(judge, name_seeds, known.earlier(judge.roots), pages)
    made = Build(work, config, judge, seeds, known, order.wish, memory, progress, pages, links, types_to_follow(config))
    steps: dict[str, Callable[[], object]] = {
        "pages": lambda: gather_pages(made),
        "origins": lambda: gather_origins(made),
        "join": lambda: join_ways(made),
        "links": lambda: gather_links(made),
        "others": lambda: gather_others(made, name_seeds),
        "choose": lambda: choose(made),
        "texts": lambda: read_texts(made, name_seeds),
        "arrange": lambda: None,
    }
    while True:
        pa.default_memory_pool().release_unused()
        if work.state.step in steps:
            steps[work.state.step]()
        following = _after(work)
        if not following:
            return _finish(made, about, targets)
        work.begin(following, *OBSOLETE.get(following, ()))


STEPS = ("warcs", "pages", "origins", "join", "links", "others", "choose", "texts", "arrange")
OBSOLETE = {
    "join": (way_kind(1).name, FOUND.name, choice_kind(1).name, ADDED.name),
    "texts": (FROM.name, way_kind(1).name, FOUND.name, PAGE.name, SHORTER.name, RELAXED.name),
    "arrange": (choice_kind(1).name,),
}
"""Files that are obsolete when a step begins."""


def _after(work: BuildFolder) -> str:
    """Return the next step, empty after the last. If shorter paths to pages were found, links are gathered again."""
    runs = work.state.runs
    if work.state.step == "choose" and (relaxed := runs.pop(RELAXED.name, None)):
        runs.setdefault(SHORTER.name, []).extend(relaxed)
        for name in ("links", "known"):
            work.state.figures.pop(name, None)
        return "join"
    at = STEPS.index(work.state.step) + 1
    return STEPS[at] if at < len(STEPS) else ""


def _finish(made: Build, about: SegmentInfo, targets: Sequence[Path]) -> SegmentBuilt:
    """Write the segments and make them count, all at once."""
    work = made.work
    known = made.known
    chain = made.judge.chain
    paths, left = arrange(made, about)
    names = list(zip(paths, targets, strict=True))
    figures = dict(work.state.figures)
    resumed = work.resumed
    if known.directory is not None:
        added = Runs(KNOWN, [*work.paths(ADDED.name), *work.paths(LISTED.name)])
        known.commit(added, left, (made.seeds, made.judge.roots), names, made.buffer_bytes // 4)
    else:
        work.state.publishing = [(str(path), str(target)) for path, target in names]
        work.save()
        _publish(work)
    running = tuple(made.inputs.running)
    work.close()
    found = _find_build(targets, about)
    assert found is not None, "what was published is there"
    rejected = {name: count for name, count in chain.counts.items() if count}
    return SegmentBuilt(
        found.paths, found.urls, found.sites, False, resumed, figures, rejected, running, tuple(made.inputs.damaged)
    )


def _publish(work: BuildFolder) -> None:
    """Give segments their names, where everything was made before a kill."""
    for path, target in work.state.publishing:
        if Path(path).exists():
            publish(Path(path), Path(target))


def _find_build(targets: Sequence[Path], about: SegmentInfo) -> SegmentBuilt | None:
    """Return the finished build at the targets, if any. Raises ConfigError: a target is something else."""
    urls = sites = found = 0
    for target in targets:
        if not target.exists():
            continue
        if target.is_dir():
            raise ConfigError(f"{target} is a directory; name a file with -o")
        try:
            with closing(Segment(target)) as segment:
                order = segment.about.order
                held = segment.rows
                its_sites = segment.about.sites
        except ConfigError as error:
            raise ConfigError(f"{target} exists and is no segment; name another with -o") from error
        if order != about.order:
            raise ConfigError(f"{target} exists and was built by another order; name another with -o")
        urls = urls + held
        sites = sites + its_sites
        found = found + 1
    return SegmentBuilt(tuple(targets), urls, sites, True, False, {}, {}) if found == len(targets) else None


def _config_of(order: SegmentOrder) -> Config:
    """Return the configuration: the one that is named, or that of the first crawl, with the options on top."""
    for place in order.places if order.config is None else ():
        if (place / "crawl.toml").exists():
            return reopen(place / "crawl.toml", options=order.options, sets=order.sets)
    return configure(order.config, options=order.options, sets=order.sets)


def _seeds_of(order: SegmentOrder, config: Config, namer: Namer) -> Iterator[Named]:
    """Yield the seeds of the configuration, then those of all crawls as far as their files are still there."""
    yield from _seeds_in(config, namer)
    for place in order.places:
        if (place / "crawl.toml").exists():
            crawl = reopen(place / "crawl.toml")
            if crawl.seeds != config.seeds:
                yield from _seeds_in(crawl, namer, lenient=True)


def _seeds_in(config: Config, namer: Namer, *, lenient: bool = False) -> Iterator[Named]:
    files = replace(config, seeds=replace(config.seeds, urls=()))
    if config.seeds.file == "-" or (lenient and config.seeds.file and not Path(config.seeds.file).exists()):
        # What came by a pipe, or has gone since, is known by the pages that were fetched as seeds.
        files = replace(files, seeds=replace(files.seeds, file=""))
    for text in config.seeds.urls:
        url = namer.name(seed_url(text, config.scope.schemes))
        if url is not None:
            yield Named(url, SEED_ARGUMENT)
    for text in all_seeds(files):
        url = namer.name(text)
        if url is not None:
            yield Named(url, SEED_FILE)
