"""Whole: whether WARC files hold all that was written into them, as far as the tables and their own form can tell."""

from __future__ import annotations

from collections.abc import Sequence
from io import RawIOBase
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from isal import igzip

from gossamer.archive.members import members_of
from gossamer.archive.views.source import Source
from gossamer.archive.views.work import Piece
from gossamer.model.errors import DamagedError

READ_BYTES = 1 << 20
_COLUMNS = ["warc_file", "warc_offset", "warc_length"]


def require_whole(warcs: Sequence[Piece], source: Source) -> None:
    """Look for files that were cut short: within a record that a row of `pages` names, or behind the last of these.

    About 0.2 µs a row, and what is behind the last row's record is unpacked: a few KB of a file.

    Raises:
        DamagedError: one was.
    """
    ends = _ends(source)
    for piece in warcs:
        path = Path(piece.path)
        path = path if path.exists() else path.with_name(path.name.removesuffix(".open"))
        known = ends.get(path.name.removesuffix(".open"), 0)
        with path.open("rb") as file:
            is_there = max(known, piece.length) <= path.stat().st_size
            if not is_there or known > piece.length or not _closes(file, known, piece.length):
                raise ended_early(path)


def ended_early(path: Path) -> DamagedError:
    """Return what is said of a file that was cut short."""
    return DamagedError(
        f"{path} ends early: it was damaged, or not copied whole; nothing was made of it: put a sound copy in its place"
    )


def require_members(path: Path, length: int, source: Source) -> None:
    """Look at every record in the first `length` bytes of a WARC file; `source` has the rows of `pages`. About 3 ms a
    MB of text.

    Raises:
        DamagedError: one is not what was written; the line names its offset and URL.
    """
    with path.open("rb") as file:
        for member in members_of(file, length, zstd=is_zstd(path)):
            if member.fault:
                url = member.url or _url_at(source, path.name.removesuffix(".open"), member.offset)
                raise broken(path, member.offset, url, member.fault)


def _url_at(source: Source, name: str, offset: int) -> str:
    """Return the URL of the row whose record is at a place; empty when there is none."""
    for _, batch in source.batches(0, ["url", *_COLUMNS[:2]]):
        rows = batch.filter(
            pc.and_(pc.equal(pc.cast(batch["warc_file"], pa.string()), name), pc.equal(batch["warc_offset"], offset))
        )
        if rows.num_rows:
            return str(rows["url"][0].as_py())
    return ""


def broken(path: Path, offset: int, url: str, fault: str) -> DamagedError:
    """Return what is said of a record that is not what was written."""
    of = f" ({url})" if url else ""
    return DamagedError(
        f"{path} is damaged: the record at offset {offset}{of} {fault}; put a sound copy of the file in its place"
    )


def is_zstd(path: Path) -> bool:
    """Say whether a WARC file holds Zstandard frames, by its name."""
    return path.name.removesuffix(".open").endswith(".zst")


def _ends(source: Source) -> dict[str, int]:
    """Return for each file the end of the last record that a row names."""
    found: dict[str, int] = {}
    for _, batch in source.batches(0, _COLUMNS):
        ends = pc.add(batch["warc_offset"], batch["warc_length"])
        table = pa.table({"file": pc.cast(batch["warc_file"], pa.string()), "end": ends})
        last = table.group_by("file").aggregate([("end", "max")])
        for name, end in zip(last["file"].to_pylist(), last["end_max"].to_pylist(), strict=True):
            found[name] = max(found.get(name, 0), end or 0)
    return found


def _closes(file: BinaryIO, start: int, end: int) -> bool:
    """Say whether there are whole gzip members between two places."""
    file.seek(start)
    try:
        with igzip.GzipFile(fileobj=_Part(file, end - start)) as members:  # type: ignore[no-untyped-call]
            while members.read(READ_BYTES):
                pass
    except (EOFError, OSError):
        return False
    return True


class _Part(RawIOBase):
    """The next bytes of a file, so many and no more."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file = file
        self._left = length

    def readable(self) -> bool:
        return True

    def readinto(self, into: bytearray | memoryview) -> int:  # type: ignore[override]
        view = memoryview(into)
        data = self._file.read(min(len(view), self._left))
        view[: len(data)] = data
        self._left -= len(data)
        return len(data)
