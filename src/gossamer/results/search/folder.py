"""Folder: the places of a crawl's indexes, the checksums of their files, and faults of these files.

The checksums are recorded when an index's writer closes. Nothing here imports the library that reads an index.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gossamer.model.decodable import decodable
from gossamer.model.errors import DamagedError
from gossamer.model.words import shell_word
from gossamer.stages.archive.segments import files_of
from gossamer.state.journals import DIFFERS
from gossamer.state.sums import Sums, crc_of
from gossamer.world.files import write_whole
from gossamer.world.inputs import read_input

if TYPE_CHECKING:
    from gossamer.stages.archive.objectstore import ObjectStore

FOLDER = "search"
LOG_FOLDER = "state/search/"
"""Folder of the logs in which texts wait to be indexed."""
SHARD = "shard-"
"""Prefix of the folder of each shard's index; the shard's number follows."""


def index_folders(directory: Path) -> list[Path]:
    """Return the folders with files of a crawl's indexes: of one that was made from the whole archive, and of those
    that several shards keep. An index that lost its `meta.json` cannot be opened, but its files hold texts.
    """
    whole = directory / FOLDER
    folders = [path for path in (whole, *sorted(whole.glob(f"{SHARD}*"))) if path.is_dir()]
    return [folder for folder in folders if any(map(Path.is_file, folder.iterdir()))]


def indexes_of(directory: Path) -> list[Path]:
    """Return a crawl's indexes that can be opened, by their folders."""
    return [folder for folder in index_folders(directory) if (folder / _META).exists()]


def crawl_of(folder: Path) -> Path:
    """Return the directory of the crawl that has an index."""
    return folder.parent if folder.name == FOLDER else folder.parent.parent  # Else a shard's own.


async def remove_index(store: ObjectStore) -> None:
    """Remove the index that is in a store beside the checkpoints. Raises StoreError."""
    if names := await asyncio.to_thread(store.sizes, FOLDER):
        await store.remove(list(names))


def no_index(directory: Path) -> str:
    """Return the message about a crawl without an index."""
    how = f"`gossamer search {shell_word(directory)} --build` makes one of what was crawled"
    return f"{directory} has no search index; {how}, `--set search.enabled=true` keeps one while a crawl runs"


_PAGES = re.compile(r"pages-(\d+)-(\d+)-(\d+)")
_LOG = re.compile(r"search-(\d+)-(\d+)-\d+")
_OF = " of "
LACKING = " lacking earlier pages"
"""End of the position of an index that follows its crawl again after a run that did not keep it."""


def position_of(rows: int, files: Iterable[str]) -> str:
    """Return the position of an index that was made of all rows of `pages`; `files` are the names of its files."""
    newest = " ".join(f"pages-{shard}-{run}-{number}" for shard, (run, number) in _newest(files).items())
    return f"{rows}{_OF}{newest}"


def rows_at(position: str) -> int:
    """Return how many rows an index has that is being made of an archive."""
    return int(position.partition(_OF)[0] or 0)


def is_behind(directory: Path, position: str) -> bool:
    """Return whether a crawl has files of `pages` that are newer than its index. Costs a look into two folders."""
    if position.endswith(LACKING):
        return True
    _, made, files = position.partition(_OF)
    followed = _LOG.search(position)
    if made:
        known = _newest(files.split())
    elif followed is None or _is_kept(directory):
        return False
    else:
        shard = int(followed[1])
        known = {shard: (int(followed[2]), sys.maxsize)}
    logs = (path for folder in ("tables", "shard-*/tables") for path in (directory / "state").glob(f"{folder}/pages-*"))
    present = [*files_of(directory, "pages"), *(path for path in logs if path.stat().st_size)]
    newest = _newest(path.name for path in present)
    own = newest if made else newest.keys() & known.keys()  # Each of several shards has its own.
    return any(newest[shard] > known.get(shard, (0, 0)) for shard in own)


def _is_kept(directory: Path) -> bool:
    """Return whether a crawl keeps its index now."""
    try:
        search = tomllib.loads(read_input(directory / "crawl.toml").decode("utf-8")).get("search", {})
    except (OSError, ValueError):
        return True  # Nothing is known of it.
    return search.get("enabled", False) is True


def _newest(files: Iterable[str]) -> dict[int, tuple[int, int]]:
    found = sorted(tuple(map(int, match.groups())) for name in files if (match := _PAGES.match(name)))
    return {shard: (incarnation, number) for shard, incarnation, number in found}


SUMS = "sums.json"
"""File of checksums in the index's folder. Missing while a writer has the index, and after the writer's death."""
COMPARED_BYTES_MAX = 64 << 20
"""An index of at most this many bytes is compared with its checksums at every search: some 20 ms."""
_META = "meta.json"
_SEGMENT = ("term", "idx", "pos", "store", "fast", "fieldnorm")
"""Suffixes of the files that each segment has."""
_FOOTER_MAGIC = (1337).to_bytes(4, "little")
"""Last bytes of those files of tantivy that contain their own CRC-32."""


class _Segment(msgspec.Struct):
    segment_id: str


@decodable
class _Meta(msgspec.Struct):
    segments: list[_Segment]


def record(folder: Path) -> None:
    """Record the files of an index that is not written. Blocks: reads all of it, about 0.1 ms a MB."""
    found = {
        path.name: Sums(path.stat().st_size, crc_of(path))
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != SUMS and not path.name.endswith(".lock")
    }
    write_whole(folder / SUMS, msgspec.json.encode(found))


def faults(folder: Path, *, deep: bool) -> Iterator[tuple[Path, str]]:
    """Yield files of an index that are missing or changed, and how, by recorded sums or its own; `deep` reads them."""
    path = folder / SUMS
    try:
        recorded = msgspec.json.decode(path.read_bytes(), type=dict[str, Sums])
    except (FileNotFoundError, msgspec.MsgspecError) as error:
        if isinstance(error, msgspec.MsgspecError):
            yield path, f"cannot be read ({error})"
        yield from _segment_faults(folder, deep=deep)
        return
    for name, sums in recorded.items():
        file = folder / name
        if (fault := _fault(file, sums, deep=deep)) and path.exists():  # Else a writer has just taken the index.
            yield file, fault


def require_sound(folder: Path) -> None:
    """Check an index before a search: presence and sizes, and the content of a small one. Nothing where no checksums
    are recorded: it is written just now, or its writer died. Raises DamagedError: a file is missing, or is not what was
    written.
    """
    try:
        recorded = msgspec.json.decode((folder / SUMS).read_bytes(), type=dict[str, Sums])
    except (OSError, msgspec.MsgspecError):
        return
    for file, what in faults(folder, deep=sum(sums.length for sums in recorded.values()) <= COMPARED_BYTES_MAX):
        crawl = shell_word(crawl_of(folder))
        raise DamagedError(f"{file} {what}; `gossamer search {crawl} --build` rebuilds the index")


def _fault(file: Path, sums: Sums, *, deep: bool) -> str:
    if not file.exists():
        return "is missing"
    if (size := file.stat().st_size) != sums.length:
        return f"has {size:,} bytes, {sums.length:,} were written"
    return DIFFERS if deep and crc_of(file) != sums.crc else ""


def _segment_faults(folder: Path, *, deep: bool) -> Iterator[tuple[Path, str]]:
    meta = folder / _META
    try:
        segments = msgspec.json.decode(meta.read_bytes(), type=_Meta).segments
    except (OSError, msgspec.MsgspecError) as error:
        yield meta, f"cannot be read ({error})"
        return
    for segment in segments:
        for suffix in _SEGMENT:
            file = folder / f"{segment.segment_id.replace('-', '')}.{suffix}"
            if not file.exists():
                yield file, "is missing"
            elif deep and not _agrees(file):
                yield file, DIFFERS


def _agrees(file: Path) -> bool:
    """Return whether a file of tantivy agrees with the checksum in its footer: JSON, its length, and four bytes."""
    size = file.stat().st_size
    with file.open("rb") as reader:
        reader.seek(max(0, size - 8))
        tail = reader.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _FOOTER_MAGIC or length > size - 8:
            return False
        reader.seek(size - 8 - length)
        try:
            footer = msgspec.json.decode(reader.read(length), type=dict[str, object])
        except msgspec.MsgspecError:
            return False
    return footer.get("crc") == crc_of(file, size - 8 - length)
