"""Work: one export under way, in a folder beside its target, so that it can be killed at any moment and go on.

`TARGET.part/` holds what is made (`out`), what it is made of (`runs`, copies) and how far it is (`state.json`). Work
that the state names was synced before; later work is repeated. The target appears by one rename.
"""

import errno
import gzip
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec
import zstandard

from gossamer.model.decodable import decodable
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.world.files import sync_directory, sync_everything, sync_file, write_refusal, write_whole
from gossamer.world.process import DirectoryLock

CHECKPOINT_BYTES = 32_000_000
"""Bytes that are written, at most, between two notes of the progress."""
Progress = Callable[[str, int, int], None]
"""Called with the table or the step, what is done of it, and of how much."""
PACKED = (".gz", ".zst")
"""Endings of names that say how a file of text is compressed."""
TEXT = "text"
"""Such a file, before it is compressed."""
S = TypeVar("S", bound=msgspec.Struct)


class ExportPiece(msgspec.Struct, frozen=True):
    """A finished file that the export reads."""

    path: str
    length: int
    rows: int = 0
    crc: int | None = None
    """CRC-32 of its first `length` bytes, where it is recorded."""
    begin: int = 0
    """First byte in the file."""
    archive: str = ""
    """Name for an archive that is a part of a package."""

    @property
    def file(self) -> str:
        """The name of a file that may still grow, once it is finished."""
        return Path(self.path).name.removesuffix(".open")

    @property
    def name(self) -> str:
        """The name in an export."""
        return self.archive or self.file


_SHARD = re.compile(r"-(\d{3,10})-\d+-\d+\.")


class Share(msgspec.Struct, frozen=True):
    """Share `number` (from 0) of `of`: files and rows whose shard has this remainder, so former shards too."""

    number: int
    of: int

    @property
    def condition(self) -> str:
        """The condition on rows of `pages`, in SQL."""
        return f"coalesce(shard, 0) % {self.of} = {self.number}"

    def has(self, name: str) -> bool:
        """Return whether the share has a file of this name."""
        found = _SHARD.search(name)
        return (int(found[1]) if found is not None else 0) % self.of == self.number


class ExportOrder(msgspec.Struct, frozen=True):
    """Inputs and options of an export: it resumes only with the same ones."""

    crawl: str
    """The crawl's directory, absolute."""
    to: str
    table: str = ""
    where: str = ""
    permitted: str = ""
    dedupe: str = ""
    chunk_tokens: int = 0
    share: Share | None = None
    """Part of the crawl; None: all of it."""
    limit: int = 0
    """Rows at most; 0: all."""


@decodable
class KnownTexts(msgspec.Struct, frozen=True):
    """A crawl or an export whose texts count as known."""

    directory: str
    pages: list[ExportPiece] = []
    """Of a crawl: its table."""
    texts: list[ExportPiece] = []
    """Of an export: what its texts are recognized by."""


@decodable
class ExportInputs(msgspec.Struct):
    """The inputs of an export, fixed at its beginning."""

    tables: dict[str, list[ExportPiece]] = {}
    warcs: list[ExportPiece] = []
    running: bool = False
    """Whether the crawl was running."""
    unread: str = ""
    """Why its last commit could not be read: finished files count then."""
    begun_at: float = 0.0
    answers: dict[str, int] = {}
    """Of an export of permitted pages: how many pages have which answer."""
    earlier: list[KnownTexts] = []
    outcomes: dict[str, int] = {}
    """Of all attempts of the crawl, for a data card."""


@decodable
class _State(msgspec.Struct):
    order: ExportOrder
    inputs: ExportInputs | None = None
    step: msgspec.Raw = msgspec.Raw(b"null")
    renaming: bool = False


class WorkFolder:
    """A folder beside a target in which one process at a time makes it. Use as a context."""

    def __init__(self, target: Path) -> None:
        if not target.name:  # The directory that is worked in, or the root.
            raise ConfigError(f"{target} is a directory; name a new file or directory in it with -o")
        if not target.parent.is_dir():
            raise ConfigError(f"there is no directory {target.parent}; make it, or name another with -o")
        self.target = target
        self.folder = target.with_name(target.name + ".part")
        self._state_file = self.folder / "state.json"
        self._lock: DirectoryLock | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._release()

    def _take_lock(self) -> None:
        self._lock = DirectoryLock(self.folder / "lock")
        if not self._lock.acquire(0.0):
            self._release()
            raise ConfigError(f"another process works on {self.target}; wait for it, or name another with -o")

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _read_state(self, kind: type[S]) -> S | None:
        try:
            return msgspec.json.decode(self._state_file.read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise ConfigError(f"{self._state_file} is damaged; delete {self.folder} to start again") from error

    def _remove_all_but(self, kept: Collection[str]) -> None:
        for path in self.folder.iterdir():
            if path.name not in kept:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()


class ExportFolder(WorkFolder):
    """The folder of an export."""

    def __init__(self, target: Path, order: ExportOrder, *, replaces: bool = False) -> None:
        """Start an export, or resume one of the same order. With `replaces`, the result replaces the directory `target`
        at the end. Raises ConfigError: `target` exists and differs, or another process works on it.
        """
        super().__init__(target)
        self._replaces = replaces
        self.out = self.folder / "out"
        self._state = _State(order)
        self.is_complete = False
        """Whether an earlier run finished all but its last sweep."""
        stored = self._read_state(_State)
        self.resumed = stored is not None
        if stored is None and self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()  # A folder begins with its state and loses it last.
            if target.exists() and not replaces:
                self.is_complete = True
                return
        if stored is None:
            if not replaces and (target.exists() or target.is_symlink()):
                raise _existing_target_error(target, order)
            self._make_folder(_State(order))
        elif stored.order != order:
            raise ConfigError(
                f"{self.folder} holds an unfinished export with other options "
                f"({_difference(stored.order, order)}); "
                "give the same options to finish it, or delete that folder to start again"
            )
        self._take_lock()
        self._state = self._read_state(_State) or _State(order)
        if self._state.renaming and not self.out.exists():
            self.is_complete = True
        elif not replaces and (target.exists() or target.is_symlink()):
            self._release()
            raise ConfigError(f"{target} appeared while its export was under way; move it away and repeat the command")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        if isinstance(error, ConfigError | DamagedError) and not self.resumed and bytes(self._state.step) == b"null":
            shutil.rmtree(self.folder, ignore_errors=True)  # A wrong option: there is nothing to go on with.

    @property
    def inputs(self) -> ExportInputs | None:
        """The inputs of the export; None before `begin`."""
        return self._state.inputs

    @property
    def order(self) -> ExportOrder:
        """What is exported, and how."""
        return self._state.order

    @property
    def text(self) -> Path:
        """The file of an export that is one file of text; `out` is made of it where the target is compressed."""
        return self.folder / TEXT if self.target.suffix in PACKED else self.out

    def _pack(self) -> None:
        """Compress a finished text as the name of the target says. About 20 ms a MB."""
        with self.text.open("rb") as plain, self.out.open("wb") as out:
            if self.target.suffix == ".zst":
                zstandard.ZstdCompressor().copy_stream(plain, out)
                return
            with gzip.GzipFile("", "wb", 6, out, 0.0) as packed:
                shutil.copyfileobj(plain, packed, 1 << 20)

    def begin(self, inputs: ExportInputs) -> None:
        """Fix the inputs of the export. From now on it reads nothing else, also while the crawl goes on."""
        self._state.inputs = inputs
        self._write_state()

    def step(self, kind: type[S]) -> S:
        """Return the noted progress; `kind()` at the beginning."""
        raw = bytes(self._state.step)
        return kind() if raw == b"null" else msgspec.json.decode(raw, type=kind)

    def save(self, step: msgspec.Struct) -> None:
        """Note the progress. All that it covers must be on disk by then."""
        self._state.step = msgspec.Raw(msgspec.json.encode(step))
        self._write_state()

    def finish(self) -> None:
        """Rename the finished export to its target. Everything in it becomes durable first."""
        if not self.is_complete:
            if self.text != self.out and self.text.exists():
                self._pack()
            if self.out.is_dir():
                sync_everything()
            else:
                sync_file(self.out)
            self._state.renaming = True
            self._write_state()
            if self._replaces and self.target.exists():
                self.target.rename(self.folder / "replaced")
            self.out.rename(self.target)
        sync_directory(self.target.parent)
        if not self.folder.exists():
            return
        self.sweep()
        for last in (self.folder / "lock", self._state_file):
            last.unlink(missing_ok=True)
        self.folder.rmdir()

    def sweep(self, *kept: str) -> None:
        """Remove files of the folder that the state does not know: what a kill left half-made."""
        self._remove_all_but({"lock", "state.json", "out", *kept})

    def _make_folder(self, state: _State) -> None:
        beginning = self.folder.with_name(f".{self.folder.name}.new")
        shutil.rmtree(beginning, ignore_errors=True)
        with writing_to(self.target):
            beginning.mkdir()
        write_whole(beginning / "state.json", msgspec.json.encode(state))
        try:
            beginning.rename(self.folder)
        except OSError as error:
            raise ConfigError(f"{self.folder} is in the way; remove it, or name another target with -o") from error

    def _write_state(self) -> None:
        write_whole(self._state_file, msgspec.json.encode(self._state))


@contextmanager
def writing_to(target: Path) -> Iterator[None]:
    """Convert the system's refusal to make a command's target to a ConfigError. A full disk stays what it is."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        raise ConfigError(write_refusal(error, target, "name another with -o")) from error


def _existing_target_error(target: Path, order: ExportOrder) -> ConfigError:
    """Return the error for a target that already exists. It never suggests deleting a crawl."""
    if Path(order.crawl).is_relative_to(target.resolve()):
        return ConfigError(f"{target} is the crawl itself, or holds it; name another place with -o")
    return ConfigError(
        f"{target} already exists, {_standing(target)}; an export overwrites nothing: name another with -o, or delete "
        "it first"
    )


def _standing(target: Path) -> str:
    if not target.exists():
        return "a link that leads nowhere"
    status = target.stat()
    count = sum(1 for _ in target.iterdir()) if target.is_dir() else 0
    what = f"a directory with {count:,} entries" if target.is_dir() else f"a file of {status.st_size:,} bytes"
    return f"{what}, written {datetime.fromtimestamp(status.st_mtime, UTC):%Y-%m-%d %H:%M} UTC"


def _difference(one: ExportOrder, other: ExportOrder) -> str:
    return ", ".join(
        f"{name} {was!r}, not {now!r}"
        for name in ExportOrder.__struct_fields__
        if (was := getattr(one, name)) != (now := getattr(other, name))
    )
