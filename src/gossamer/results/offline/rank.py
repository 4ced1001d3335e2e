"""Rank: PageRank of every URL that a crawl's table of links names, and the file that crawls and segments read.

Brin and Page 1998, with the links on disk and one number for each URL in memory (Haveliwala 1999): links are sorted
into files by their source, each file is read once an iteration. Sums have a fixed order, so equal tables give equal
bytes.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.assembly.schemes import namer_for
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.model.links import EMBED, FEED, SITEMAP
from gossamer.results.export.source import RowSource
from gossamer.results.export.work import Progress, writing_to
from gossamer.results.offline.gather import named_prints, prints_of
from gossamer.results.offline.inputs import find_inputs
from gossamer.results.offline.segment import decode, values_of
from gossamer.results.offline.steps import BASE_BYTES
from gossamer.stages.frontier.priority import RANKS_FILE, RANKS_MAGIC
from gossamer.url.name import Namer
from gossamer.world.files import publish
from gossamer.world.process import DirectoryLock

NOT_COUNTED = (EMBED, SITEMAP, FEED, "canonical", "self", "hub")
"""Types of links that do not recommend a page."""
NODE_BYTES = 64
"""Memory for one URL: fingerprint, scores of two iterations, links out, and a sum under way."""
CHUNK = 1 << 20
"""Links read at once."""
ITERATIONS_MAX = 200
CLOSE = 1e-10
"""Sum of all changes of an iteration, of a total of 1, below which it is the last."""
MIDDLE = 4
BEST = 1
WORST = 6

Array = npt.NDArray[Any]


class Ranked(msgspec.Struct, frozen=True):
    """One of the URLs with the highest scores."""

    url: str
    score: float
    """Its PageRank as a multiple of the mean."""
    level: int


class Ranking(msgspec.Struct, frozen=True):
    """Result of ranking."""

    path: str
    urls: int
    links: int
    """Between different URLs, each pair once."""
    iterations: int
    first: list[Ranked]


@dataclass(frozen=True, slots=True)
class RankOptions:
    """How to rank."""

    output: Path | None = None
    """`ranks.bin` in the crawl's directory where None."""
    damping: float = 0.85
    memory_bytes_max: int = 512 << 20
    first: int = 10
    """URLs with the highest scores to return."""


def rank(directory: Path, options: RankOptions, progress: Progress | None = None) -> Ranking:
    """Rank the URLs of a crawl and write their scores. About 2 µs a link and 15 ns a link and iteration. Raises
    ConfigError: there is no crawl or no table of links, the output cannot be written, or the memory does not hold one
    number for each URL.
    """
    output = options.output or directory / RANKS_FILE
    config = reopen(directory / "crawl.toml")
    if output.is_dir():
        raise ConfigError(f"{output} is a directory; name a file with -o")
    with ExitStack() as stack:
        with writing_to(output):  # Before the scores are computed.
            folder = stack.enter_context(_folder_in(output.parent))
        links = RowSource(find_inputs([directory], config, folder).links)
        if not links.rows:
            raise ConfigError(f"{directory} has no table of links; crawl with --set archive.links=true")
        work = _Work(links, namer_for(config), folder, options, progress or (lambda *_: None))
        work.gather()
        work.sort()
        scores, iterations = pagerank(work.edges, work.out_degrees, options.damping)
        levels = levels_of(scores)
        _write(folder / output.name, work.nodes, levels, scores)
        publish(folder / output.name, output)
        return Ranking(str(output), len(work.nodes), work.count, iterations, work.first(scores, levels))


@contextmanager
def _folder_in(parent: Path) -> Iterator[Path]:
    """Yield a new folder, which is removed at the end; those that killed processes left are removed first."""
    for stray in parent.glob(".rank-*"):
        if not DirectoryLock.is_held(stray):
            shutil.rmtree(stray, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".rank-", dir=parent) as name, DirectoryLock(Path(name)) as lock:
        lock.acquire(0.0)
        yield Path(name)


def pagerank(edges: Callable[[], Iterator[Array]], out: Array, damping: float) -> tuple[Array, int]:
    """Return the score of each node as a multiple of the mean, and the iterations that it took.

    `edges` yields arrays of `source << 32 | target`, the same each time; `out` is the number of links of each node.
    Nodes without links give to all nodes alike.
    """
    count = len(out)
    scores = np.full(count, 1.0 / count)
    dangling = out == 0
    divisor = np.where(dangling, 1, out)
    iterations = 0
    change = 1.0
    while change >= CLOSE and iterations < ITERATIONS_MAX:
        iterations += 1
        given = scores / divisor
        sums = np.zeros(count)
        for chunk in edges():
            sums += np.bincount((chunk & 0xFFFFFFFF).astype(np.int64), given[chunk >> 32], count)
        new = (1.0 - damping + damping * scores[dangling].sum()) / count + damping * sums
        change = float(np.abs(new - scores).sum())
        scores = new
    return scores * count, iterations


def levels_of(scores: Array) -> Array:
    """Return 4 for the mean score, one less for each doubling, from 1 to 6: 0 is for seeds, 7 for what is unknown."""
    levels: Array = np.clip(np.rint(MIDDLE - np.log2(np.maximum(scores, 1e-9))), BEST, WORST).astype(np.uint8)
    return levels


class _Work:
    """The links on their way from the tables to the sorted files."""

    def __init__(self, links: RowSource, namer: Namer, folder: Path, options: RankOptions, progress: Progress) -> None:
        self._links = links
        self._namer = namer
        self._folder = folder
        self._options = options
        self._progress = progress
        self._buckets: list[Path] = []
        self.nodes: Array = np.zeros(0, np.uint64)
        """Fingerprints, ascending."""
        self.out_degrees: Array = np.zeros(0, np.int64)
        self.count = 0

    def gather(self) -> None:
        """Write pairs of fingerprints, and find out which URLs there are."""
        columns = ["from_url", "to_key", "link_type", "nofollow"]
        waiting: list[Array] = []
        with (self._folder / "pairs").open("wb") as file:
            for end, batch in self._links.batches(0, columns):
                pairs = self._pairs(batch)
                pairs.tofile(file)
                waiting.append(np.unique(pairs))
                if sum(map(len, waiting)) > CHUNK:
                    self._take_nodes(waiting)
                self._progress("links", end, self._links.rows)
        self._take_nodes(waiting)

    def sort(self) -> None:
        """Write each pair once, as numbers of nodes, into files by its source."""
        rows = (self._folder / "pairs").stat().st_size // 16
        number = max(1, -(-rows // (4 * CHUNK)))
        width = -(-max(1, len(self.nodes)) // number)
        self._buckets = [self._folder / f"{bucket:06}" for bucket in range(number)]
        for pairs in _chunks(self._folder / "pairs", 2 * CHUNK):
            source, target = np.searchsorted(self.nodes, pairs.reshape(-1, 2).T)
            edges = source.astype(np.uint64) << np.uint64(32) | target.astype(np.uint64)
            bucket = source // width
            for one in np.unique(bucket):
                with self._buckets[one].open("ab") as file:
                    edges[bucket == one].tofile(file)
        self.out_degrees = np.zeros(len(self.nodes), np.int64)
        for done, path in enumerate(self._buckets):
            edges = np.unique(np.fromfile(path, np.uint64)) if path.exists() else np.zeros(0, np.uint64)
            edges.tofile(path)
            self.count += len(edges)
            self.out_degrees += np.bincount((edges >> np.uint64(32)).astype(np.int64), minlength=len(self.nodes))
            self._progress("sorting", done + 1, number)

    def edges(self) -> Iterator[Array]:
        """Yield the links, some at a time."""
        for path in self._buckets:
            for chunk in _chunks(path, CHUNK):
                yield chunk.astype(np.int64)

    def first(self, scores: Array, levels: Array) -> list[Ranked]:
        """Return the URLs with the highest scores; of equal ones the lower fingerprint comes first."""
        best = np.argsort(-scores, kind="stable")[: self._options.first]
        names: dict[int, str] = {}
        wanted = np.sort(self.nodes[best])
        for _, batch in self._links.batches(0, ["from_url", "to_key"]):
            for column, of_keys in (("to_key", True), ("from_url", False)):
                texts = decode(batch[column]).dictionary_encode().dictionary
                prints = prints_of(texts) if of_keys else named_prints(self._namer.names(values_of(texts)))
                for at in np.flatnonzero(np.isin(prints, wanted)):
                    names.setdefault(int(prints[at]), str(texts[int(at)]))
            if len(names) == len(wanted):
                break
        return [Ranked(names[int(self.nodes[at])], float(scores[at]), int(levels[at])) for at in best]

    def _pairs(self, batch: pa.RecordBatch) -> Array:
        kinds = pc.is_in(decode(batch["link_type"]), pa.array(NOT_COUNTED)).to_numpy(zero_copy_only=False)
        kept = ~kinds & ~batch["nofollow"].fill_null(False).to_numpy(zero_copy_only=False)
        runs = pc.run_end_encode(decode(batch["from_url"]))
        ends = runs.run_ends.to_numpy()
        sources = np.repeat(named_prints(self._namer.names(values_of(runs.values))), np.diff(ends, prepend=0))
        keys = decode(batch["to_key"]).dictionary_encode()
        targets = prints_of(keys.dictionary)[keys.indices.to_numpy()]
        kept &= (sources != targets) & (sources != 0)
        return np.column_stack([sources[kept], targets[kept]])

    def _take_nodes(self, waiting: list[Array]) -> None:
        self.nodes = np.unique(np.concatenate([self.nodes, *waiting]))
        waiting.clear()
        needed = BASE_BYTES + NODE_BYTES * len(self.nodes)
        if needed > self._options.memory_bytes_max:
            size = -(-needed // (1 << 20))
            raise ConfigError(f"--memory: {len(self.nodes):,} URLs or more take {size:,} MiB; allow that")


def _chunks(path: Path, most: int) -> Iterator[Array]:
    with path.open("rb") as file:
        while len(chunk := np.fromfile(file, np.uint64, most)):
            yield chunk


def _write(path: Path, nodes: Array, levels: Array, scores: Array) -> None:
    parts: Sequence[Array] = (nodes.astype("<u8"), levels, scores.astype("<f4"))
    with path.open("wb") as file:
        file.write(RANKS_MAGIC + len(nodes).to_bytes(8, "little"))
        for part in parts:
            part.tofile(file)
