"""Steps: what the steps of a build share: what it was asked for, where its records wait, how far it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from gossamer.assembly.modules import Judge
from gossamer.config import Config
from gossamer.model.errors import ConfigError
from gossamer.model.links import EMBED
from gossamer.results.export.source import RowSource
from gossamer.results.export.work import Progress
from gossamer.results.offline.known import KnownUrls
from gossamer.results.offline.records import CELLS, Buffer, RecordKind, Runs, spans, write_run
from gossamer.results.offline.seeds import SeedFingerprints
from gossamer.results.offline.work import BuildFolder, BuildInputs
from gossamer.stages.scope.options import FOLLOWED
from gossamer.url.site import PARTITIONS

BASE_BYTES = 264_000_000
"""Memory of the program without any rows: interpreter, libraries, lists of the public suffixes."""
BUFFER_BYTES_MIN = 8_000_000


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """Options of a build, beside its inputs."""

    per_host: int = 0
    """URLs of one host in a segment; 0 for all."""
    parts: int = 1
    retries: int = 0
    """How often a URL that ended with a passing error may be listed again."""
    in_links: bool = False
    """Rank by how many other sites link to a URL."""


@dataclass(slots=True)
class Build:
    """A build under way: what every step needs."""

    work: BuildFolder
    config: Config
    judge: Judge
    seeds: SeedFingerprints
    known: KnownUrls
    wish: BuildRequest
    memory_bytes_max: int
    progress: Progress
    pages: RowSource
    links: RowSource
    followed: frozenset[str] = field(default_factory=frozenset)

    @property
    def inputs(self) -> BuildInputs:
        """The inputs."""
        assert self.work.state.inputs is not None
        return self.work.state.inputs

    @property
    def room_bytes(self) -> int:
        """Memory for rows, with all the copies that sorting them makes."""
        return max(8 * BUFFER_BYTES_MIN, self.memory_bytes_max - BASE_BYTES)

    @property
    def buffer_bytes(self) -> int:
        """Bytes buffered before a write and read at once: sorting takes several times as much."""
        return max(BUFFER_BYTES_MIN, self.room_bytes // 8)

    @property
    def rows(self) -> int:
        """Rows of links, then of pages: beyond them are the left-overs, then the seeds."""
        return self.links.rows + self.pages.rows

    @property
    def rows_all(self) -> int:
        """All rows that may be chosen."""
        return self.rows + self.known.leftover_rows + self.work.state.figures.get("seeds", 0)

    @property
    def sites_needed(self) -> bool:
        """It matters which site's page a link is on."""
        return self.config.scope.own_site or self.wish.in_links

    def runs(self, kind: RecordKind) -> Runs:
        """Return the records of a kind that were written."""
        return Runs(kind, self.work.paths(kind.name))

    def count(self, name: str, more: int) -> None:
        """Count something, for people."""
        figures = self.work.state.figures
        figures[name] = figures.get(name, 0) + int(more)


class StepRecords:
    """Records of several kinds that one step makes. They are written together, with how far the step is."""

    def __init__(self, build: Build, kinds: Sequence[RecordKind]) -> None:
        self._build = build
        self._buffers = {kind.name: Buffer(kind) for kind in kinds}

    def __getitem__(self, name: str) -> Buffer:
        return self._buffers[name]

    def over_rows(self, name: str, source: RowSource, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of a source from where the step is, each batch with its first row; settle behind each."""
        for end, batch in source.batches(self._build.work.state.position, columns):
            yield end - batch.num_rows, batch
            self.settle(end)
            self._build.progress(name, end, source.rows)
        self.settle(source.rows, last=True)

    def over_cells(self, name: str, sets: Sequence[Runs]) -> Iterator[tuple[int, int]]:
        """Yield ranges of cells from where the step is, as many as fit into memory at once; settle behind each."""
        for first, last in spans(sets, self._build.buffer_bytes, self._build.work.state.position):
            yield first, last
            self.settle(last)
            self._build.progress(name, last, CELLS)
        self.settle(CELLS, last=True)

    def settle(self, position: int, *, last: bool = False) -> None:
        """Write what waits when it has grown, or at the end, and note that the step is at `position`."""
        if not last and sum(one.bytes for one in self._buffers.values()) < self._build.buffer_bytes:
            return
        work = self._build.work
        for name, buffer in self._buffers.items():
            rows = buffer.take()
            if len(rows):
                file = work.new_name(name)
                write_run(work.folder / file, buffer.kind, rows)
                work.state.runs.setdefault(name, []).append(file)
        work.state.position = position
        work.save()


def types_to_follow(config: Config) -> frozenset[str]:
    """Return the types of link that lead on."""
    return frozenset((*FOLLOWED, *config.scope.follow, *((EMBED,) if config.scope.embeds else ())))


def targets_of(target: Path, parts: int) -> list[Path]:
    """Return the names of segments, such as `next-1-of-4.parquet`. Raises ConfigError: the number is not possible."""
    if not 1 <= parts <= PARTITIONS:
        raise ConfigError(f"{parts} parts: expected 1 to {PARTITIONS}")
    if parts == 1:
        return [target]
    return [target.with_name(f"{target.stem}-{part}-of-{parts}{target.suffix}") for part in range(1, parts + 1)]
