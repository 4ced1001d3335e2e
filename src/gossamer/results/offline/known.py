"""Known: the index of URLs that need not be listed again, kept from build to build in a directory.

It holds URLs that were listed in segments or fetched: exactly, as sorted runs of fingerprints with their paths (12
bytes a URL), or as Bloom filters (2 to 4 bytes), which take a stated share of new URLs for seen ones. It also holds
data that a later build cannot find again: excess URLs of large hosts, the seeds, and the roots of the scope. The
manifest names the valid files: its replacement makes a build's segments valid.

The Bloom form has one file for each build that added URLs, and in it one filter for each of 64 ranges of fingerprints,
so that only a 64th of a file is in memory. A build knows how many URLs it adds, so each filter is made to measure. The
rates of all builds' filters sum to less than the wanted rate: the n-th has 6 / (pi * n)**2 of it (the series of the
inverse squares; Almeida and others, 2007, use a geometric one for filters that grow).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_64_intdigest

from gossamer.model.errors import ConfigError
from gossamer.model.extras import require
from gossamer.model.paths import is_file_name
from gossamer.results.offline.kinds import KNOWN, WAY_BITS, WAY_MASK, least
from gossamer.results.offline.records import Rows, Runs, RunWriter, heads, spans
from gossamer.results.offline.seeds import SeedFingerprints
from gossamer.results.offline.segment import Segment
from gossamer.stages.scope.roots import Roots
from gossamer.world.files import publish, sync_directory, write_whole
from gossamer.world.process import DirectoryLock

if TYPE_CHECKING:
    from rbloom import Bloom

GROUPS = 64
_CELLS_A_GROUP = 4096 // GROUPS
_HEAD = struct.Struct("<8s")
_MAGIC = b"GOSSBLM1"
_PLACES = struct.Struct("<" + "QQQ" * GROUPS)
"""Of each group: where its filter begins, its length, its checksum."""


class Filters:
    """The filters of all builds. Costs 0.15 µs a URL and build to ask, and 0.2 µs a URL to write."""

    def __init__(self, paths: Sequence[Path], rate: float) -> None:
        """Open files. Raises ConfigError where one is missing or cut short."""
        self._rate = rate
        self._files = [(path, _places(path)) for path in paths]

    def hold(self, fps: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return which sorted fingerprints are known, or count as known. Raises ConfigError where a file is damaged."""
        held = np.zeros(len(fps), bool)
        if not self._files:
            return held
        bounds = np.searchsorted(fps >> np.uint64(58), np.arange(GROUPS + 1, dtype=np.uint64))
        for group in range(GROUPS):
            start = int(bounds[group])
            end = int(bounds[group + 1])
            if start == end:
                continue
            values = fps[start:end].tolist()
            for path, places in self._files:
                if (bits := _load(path, places, group)) is not None:
                    held[start:end] |= np.fromiter((value in bits for value in values), bool, len(values))
        return held

    def write(self, path: Path, added: Runs, room: int) -> int:
        """Write the filters of one build's URLs; return how many there are. In memory: one filter and `room`."""
        layer = len(self._files) + 1
        rate = self._rate * 6 / (math.pi * layer) ** 2
        places: list[int] = []
        count = 0
        aside = path.with_name(path.name + ".new")
        with aside.open("wb") as file:
            file.write(bytes(_HEAD.size + _PLACES.size))
            for group in range(GROUPS):
                first = group * _CELLS_A_GROUP
                last = (group + 1) * _CELLS_A_GROUP
                size = int(added.sizes()[first:last].sum()) // added.kind.dtype.itemsize
                data = b""
                if size:
                    bits = _bloom()(size, rate, int)  # A fingerprint is a hash already; `int` hands it on as it is.
                    for start in range(first, last, step := _cells_for(added, first, last, room)):
                        part = np.unique(added.read(start, min(start + step, last))["fp"])
                        bits.update(part.tolist())
                        count += len(part)
                    data = bits.save_bytes()
                places += [file.tell(), len(data), xxh3_64_intdigest(data)]
                file.write(data)
            file.seek(0)
            file.write(_HEAD.pack(_MAGIC))
            file.write(_PLACES.pack(*places))
        publish(aside, path)
        return count


def _bloom() -> type[Bloom]:
    """Return the class of filters: an exact index is built without the extra that brings it."""
    found: type[Bloom] = import_module("rbloom").Bloom
    return found


def _cells_for(added: Runs, first: int, last: int, room: int) -> int:
    """Return how many cells may be read at once: numbers as objects take ten times their bytes."""
    size = int(added.sizes()[first:last].sum()) * 10
    return max(1, (last - first) * room // max(size, room))


def _places(path: Path) -> tuple[int, ...]:
    try:
        with path.open("rb") as file:
            magic = file.read(_HEAD.size)
            head = file.read(_PLACES.size)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; rebuild the index that it belongs to") from error
    if magic != _MAGIC or len(head) != _PLACES.size:
        raise ConfigError(f"{path} is cut short or damaged; rebuild the index that it belongs to")
    return _PLACES.unpack(head)


def _load(path: Path, places: tuple[int, ...], group: int) -> Bloom | None:
    start, length, check = places[3 * group : 3 * group + 3]
    if not length:
        return None
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(length)
    if xxh3_64_intdigest(data) != check:
        raise ConfigError(f"{path} is damaged; rebuild the index that it belongs to")
    return _bloom().load_bytes(data, int)


RATIO = 4
"""Each run is at least so much larger than the next newer one: few runs, and few times that a URL is rewritten."""
VERSION = 1

Prints = npt.NDArray[np.uint64]
Ways = npt.NDArray[np.uint32]


class Manifest(msgspec.Struct):
    """Which files of an index count."""

    version: int = VERSION
    rules: str = ""
    """How keys were made."""
    false_positive_rate: float = 0.0
    """0 if the index is exact."""
    serial: int = 0
    runs: list[str] = []
    """Oldest first; of Bloom filters one file for each build that added something."""
    left: str = ""
    scope: str = ""
    urls: int = 0
    publishing: list[tuple[str, str]] = []
    """Segments that count, and may not have their names yet."""


class BuildScope(msgspec.Struct):
    """Seeds and roots, as they are kept."""

    roots: bytes
    arguments: list[int]
    others: bytes


class KnownUrls(AbstractContextManager["KnownUrls"]):
    """An index, or none: then only what was fetched is known. Use as a context: one process at a time uses it."""

    def __init__(self, directory: Path | None, rules: str, false_positive_rate: float | None = None) -> None:
        """Open an index, or begin one. Segments that an interrupted build had finished get their names. Raises
        ConfigError: it is in use, damaged, or was made by other rules or in another form.
        """
        self.directory = directory
        self._lock: DirectoryLock | None = None
        self.manifest = Manifest(rules=rules, false_positive_rate=false_positive_rate or 0.0)
        self._runs = Runs(KNOWN, [])
        self._filters = Filters([], self.manifest.false_positive_rate)
        if directory is None:
            return
        if false_positive_rate:
            require("rbloom", "--bloom")
        try:
            directory.mkdir(exist_ok=True)
        except OSError as error:
            raise ConfigError(f"--known {directory}: {error.strerror}; name a directory that can be made") from error
        self._lock = DirectoryLock(directory / "lock")
        if not self._lock.acquire(0.0):
            self._lock.release()
            raise ConfigError(f"--known {directory}: another build uses it; wait for that one")
        try:
            self._open(directory, rules, false_positive_rate)
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.release()

    @property
    def is_exact(self) -> bool:
        """It holds every URL with its way."""
        return not self.manifest.false_positive_rate

    @property
    def leftovers(self) -> Path | None:
        """The segment of what was left over, if there is any."""
        return self.directory / self.manifest.left if self.directory and self.manifest.left else None

    @property
    def leftover_rows(self) -> int:
        """How many URLs were left over."""
        if self.leftovers is None:
            return 0
        with closing(Segment(self.leftovers)) as segment:
            return segment.rows

    def read_leftovers(self, start: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the URLs that were left over from row `start` on, as `Segment.batches`."""
        assert self.leftovers is not None
        with closing(Segment(self.leftovers)) as segment:
            yield from segment.batches(start)

    def sets(self) -> list[Runs]:
        """Return the runs, to plan how much to read at once."""
        return [self._runs]

    def read(self, first: int, last: int) -> tuple[Prints, Ways]:
        """Return fingerprints, sorted, and paths of the URLs in some cells; the Bloom form has none."""
        rows = merge_records(self._runs.read(first, last))
        return rows["fp"], rows["way"]

    def holds(self, fps: Prints) -> npt.NDArray[np.bool_]:
        """Return which sorted fingerprints the filters may hold; nothing if the index is exact."""
        return self._filters.hold(fps)

    def earlier(self, roots: Roots) -> SeedFingerprints:
        """Return the seeds of earlier builds, and bring their roots back."""
        if not self.manifest.scope or self.directory is None:
            return SeedFingerprints((), np.empty(0, np.uint64))
        kept = msgspec.msgpack.decode((self.directory / self.manifest.scope).read_bytes(), type=BuildScope)
        roots.load(kept.roots)
        return SeedFingerprints(kept.arguments, np.frombuffer(kept.others, "<u8"))

    def new_file(self, kind: str) -> Path:
        """Return the path of another file, which counts when `commit` says so."""
        assert self.directory is not None
        self.manifest.serial += 1
        return self.directory / f"{kind}-{self.manifest.serial:06d}"

    def commit(
        self,
        added: Runs,
        left: Path | None,
        scope: tuple[SeedFingerprints, Roots],
        publishing: Sequence[tuple[Path, Path]],
        room: int,
    ) -> None:
        """Take in what a build listed and saw, and give its segments their names. Blocks.

        Killed before the manifest is replaced nothing has happened; after it, the next to open the index finishes.
        """
        assert self.directory is not None
        if added.count:
            self._take_in(added, room)
        seeds, roots = scope
        kept = BuildScope(roots.dump(), sorted(seeds.arguments), seeds.others.astype("<u8").tobytes())
        file = self.new_file("scope")
        write_whole(file, msgspec.msgpack.encode(kept))
        self.manifest.scope = file.name
        self.manifest.left = left.name if left is not None else ""
        self.manifest.publishing = [(str(made.absolute()), str(target.absolute())) for made, target in publishing]
        self._write(self.directory)
        self._publish(self.directory)

    def _take_in(self, added: Runs, room: int) -> None:
        path = self.new_file("run")
        if not self.is_exact:
            self.manifest.urls += self._filters.write(path, added, room)
            self.manifest.runs.append(path.name)
            return
        # The newest runs are merged while they are not much smaller than what comes.
        kept = list(self._runs.runs)
        count = added.count
        taken = []
        while kept and kept[-1].count < RATIO * count:
            taken.append(kept.pop())
            count += taken[-1].count
        before = Runs(KNOWN, [run.path for run in reversed(taken)])
        writer = RunWriter(path, KNOWN)
        for first, last in spans([before, added], room):
            writer.append(merge_records(np.concatenate([before.read(first, last), added.read(first, last)])))
        writer.finish()
        self.manifest.runs = [*(run.path.name for run in kept), path.name]
        self.manifest.urls = writer.count + sum(run.count for run in kept)

    def _open(self, directory: Path, rules: str, rate: float | None) -> None:
        try:
            self.manifest = msgspec.json.decode((directory / "manifest.json").read_bytes(), type=Manifest)
        except FileNotFoundError:
            # A build that was killed while it began an index leaves these.
            if {path.name for path in directory.iterdir()} - {"lock", "manifest.json.new"}:
                raise ConfigError(
                    f"--known {directory}: there are files in it, and no index; name an empty directory or an index"
                ) from None
            self._write(directory)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"--known {directory}: its manifest.json cannot be read ({error})") from error
        manifest = self.manifest
        if not _is_of_build(manifest):
            raise ConfigError(f"--known {directory}: its manifest.json names files of others; no build wrote this")
        if manifest.rules != rules:
            raise ConfigError(
                f"--known {directory}: its keys were made by other rules of the section [url]; set them back"
            )
        begun = manifest.false_positive_rate
        if rate is not None and rate != begun:
            was = f"a Bloom filter of rate {begun:g}" if begun else "exact"
            raise ConfigError(f"--known {directory}: it was begun as {was}, and stays so; leave --bloom as it was")
        self._publish(directory)
        self._sweep(directory)
        paths = [directory / name for name in manifest.runs]
        if self.is_exact:
            self._runs = Runs(KNOWN, paths)
        else:
            require("rbloom", f"--known {directory}, an index of Bloom filters,")
        self._filters = Filters([] if self.is_exact else paths, manifest.false_positive_rate)

    def _publish(self, directory: Path) -> None:
        """Give finished segments their names, if they have not got them."""
        if not self.manifest.publishing:
            return
        for made, target in self.manifest.publishing:
            if Path(made).exists():
                Path(made).replace(target)
                sync_directory(Path(target).parent)
        self.manifest.publishing = []
        self._write(directory)

    def _write(self, directory: Path) -> None:
        write_whole(directory / "manifest.json", msgspec.json.encode(self.manifest))

    def _sweep(self, directory: Path) -> None:
        """Remove what does not count: what a build left that was killed, and what newer files replace."""
        manifest = self.manifest
        counting = {"manifest.json", "lock", manifest.left, manifest.scope, *manifest.runs}
        for path in directory.iterdir():
            if path.name not in counting and path.name.lstrip(".").startswith(("run-", "left-", "scope-", "manifest.")):
                path.unlink()


def _is_of_build(manifest: Manifest) -> bool:
    """Return whether a manifest names files of its own, and publishes what was made in a build's folder beside it."""
    own = filter(None, (*manifest.runs, manifest.left, manifest.scope))
    pairs = [(Path(made), Path(target)) for made, target in manifest.publishing]
    return all(map(is_file_name, own)) and all(
        is_file_name(made.name) and made.parent.suffix == ".part" and made.parent.parent == target.parent
        for made, target in pairs
    )


def merge_records(rows: Rows) -> Any:
    """Return one record per URL, by fingerprint: the shortest path, and the largest number of listings."""
    rows = rows[np.argsort(rows["fp"], kind="stable")]
    starts = heads(rows["fp"])
    found: Any = np.zeros(len(starts), KNOWN.dtype)
    found["fp"] = rows["fp"][starts]
    if len(starts):
        listed = np.maximum.reduceat(rows["way"] >> np.uint32(WAY_BITS), starts)
        found["way"] = least(rows["way"] & np.uint32(WAY_MASK), starts) | listed << np.uint32(WAY_BITS)
    return found
