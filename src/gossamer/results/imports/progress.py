"""Progress: how far each archive is imported, and the table of archives that stay where they are."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gossamer.assembly.home import IMPORTS
from gossamer.model.decodable import decodable
from gossamer.model.errors import ConfigError
from gossamer.model.paths import is_file_name
from gossamer.model.words import shell_word
from gossamer.results.imports.capture import CapturePlace, Source
from gossamer.results.imports.files import open_place
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.packages import LINK_SUFFIX
from gossamer.stages.archive.unpack import READ_BYTES
from gossamer.state.epoch import Epochs
from gossamer.state.schema import IMPORTED, under
from gossamer.world.files import write_whole

WARCS = "warc"
LINK = "linked-{number:05d}-{name}{suffix}"
NAME_CHARACTERS_MAX = 100
SEEDS_MAX = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_SUFFIXES = {"gzip": ".warc.gz", "zstd": ".warc.zst"}


@decodable
class SourceProgress(msgspec.Struct):
    """How far an archive is imported. Committed with the rows of its captures."""

    number: int
    name: str
    records: int = 0
    first_at: float = 0.0
    seeds: list[str] = []
    is_done: bool = False
    has_texts: bool = False
    """It holds texts of pages that may be in other archives."""
    last: CapturePlace | None = None
    done: int = 0
    captures: int = 0
    left_out: dict[str, int] = {}
    """Captures and records that are no pages, by the reason why they are left out."""


class LinkedFile(msgspec.Struct, frozen=True):
    """An archive that was imported."""

    place: str
    size: int
    sha256: str
    link: str = ""
    """Name of the link to it in `warc`; empty if its bodies were copied."""


@decodable
class ImportTable(msgspec.Struct):
    """The archives of a crawl's directory, in `imports.json`."""

    is_done: bool = False
    files: list[LinkedFile] = []


def read_table(directory: Path) -> ImportTable:
    """Return the table of a crawl; empty if nothing was imported."""
    path = directory / IMPORTS
    try:
        table = msgspec.json.decode(path.read_bytes(), type=ImportTable)
    except FileNotFoundError:
        return ImportTable(is_done=True)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path} is damaged ({error}); put a sound copy in its place") from error
    if any(file.link and not is_file_name(file.link) for file in table.files):
        raise ConfigError(f"{path} names files outside {directory / WARCS}; put a sound copy in its place")
    return table


def write_table(directory: Path, table: ImportTable) -> None:
    """Replace the table of a crawl."""
    write_whole(directory / IMPORTS, msgspec.json.format(msgspec.json.encode(table)))


def refuse_half_imported(directory: Path) -> None:
    """Raise ConfigError if an import was interrupted: what is not imported yet would never be fetched."""
    table = read_table(directory)
    if not table.is_done:
        first = shell_word(table.files[0].place) if table.files else "SOURCE"
        raise ConfigError(
            f"the import into {directory} was interrupted; `gossamer import {first} … -o {shell_word(directory)}`, "
            "repeated with all its archives, finishes it"
        )


def refuse_linked(directory: Path) -> None:
    """Raise ConfigError if pages lie in archives of others, which are not changed."""
    if linked := [file for file in read_table(directory).files if file.link]:
        raise ConfigError(
            f"{directory} has pages in {linked[0].place}, which is left as it is; import it with --copy into another "
            "directory, and forget them there"
        )


def faults_of_links(directory: Path, *, deep: bool) -> Iterator[tuple[str, str]]:
    """Yield archives that are gone or changed, and how. `deep` reads them; those that have grown are read anyway."""
    for file in read_table(directory).files:
        path = directory / WARCS / file.link
        source = Source(0, file.link, str(path), file.size, "")
        if not file.link:
            continue
        if not path.exists():
            yield file.link, f"leads to {file.place}, which is missing"
        elif (size := path.stat().st_size) < file.size or (size > file.size and path.suffix == LINK_SUFFIX):
            yield file.link, f"leads to {file.place}, which had {file.size:,} bytes and has {size:,}"
        elif (deep or size > file.size) and sha256_of(source, ArchiveOptions()) != file.sha256:
            yield file.link, f"leads to {file.place}, which is not what was imported (its SHA-256 differs)"


def sha256_of(source: Source, store: ArchiveOptions) -> str:
    """Return the SHA-256 of the first `size` bytes of a file or object. About 0.7 s a GB."""
    digest = hashlib.sha256()
    left = source.size
    with open_place(source.place, store, source.size) as file:
        while data := file.read(min(left, READ_BYTES)):
            digest.update(data)
            left -= len(data)
    return digest.hexdigest()


def enter(directory: Path, table: ImportTable, source: Source, digest: str, *, copies: bool) -> None:
    """Add an archive to a table, once, with a link to it if records can be read in place. A broken one is replaced."""
    path = Path(source.place)
    for at, known in enumerate(table.files):
        if known.sha256 == digest:
            link = directory / WARCS / known.link
            if known.link and not (link.exists() and link.stat().st_size >= known.size) and path.is_file():
                _link(link, path)
                table.files[at] = replace(known, place=source.place)
            return
    name = ""
    if source.form == "warc" and not source.member and path.is_file() and not copies:
        stem = _UNSAFE.sub("_", path.name)[-NAME_CHARACTERS_MAX:]
        for suffix in (".zst", ".gz", ".warc", LINK_SUFFIX):
            stem = stem.removesuffix(suffix)
        suffix = LINK_SUFFIX if source.length >= 0 else _SUFFIXES.get(source.packing, ".warc")
        name = LINK.format(number=len(table.files), name=stem, suffix=suffix)
        _link(directory / WARCS / name, path)
    table.files.append(LinkedFile(source.place, source.size, digest, name))


def _link(link: Path, path: Path) -> None:
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)  # A kill left it.
    link.symlink_to(path.resolve())


class Progresses:
    """The progress of all archives, which each commit stores."""

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs
        self.changed: set[int] = set()
        """Numbers of the archives whose progress the next commit stores."""
        self.known = {
            key[len(IMPORTED) :].decode(): msgspec.msgpack.decode(value, type=SourceProgress)
            for key, value in epochs.scan("meta", *under(IMPORTED))
        }

    def of(self, identity: str, name: str) -> SourceProgress:
        """Return the progress of an archive."""
        if identity not in self.known:
            self.known[identity] = SourceProgress(len(self.known), name)
        return self.known[identity]

    def cut(self, now: float) -> None:
        """Put what has changed into the open epoch."""
        for identity, progress in self.known.items():
            if progress.number in self.changed:
                self._epochs.put("meta", IMPORTED + identity.encode(), msgspec.msgpack.encode(progress))
        self.changed.clear()
