"""Salvage: the records of WARC files of any crawler, past those that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from gossamer.stages.archive.members import next_member

CAPTURES = WarcRecordType.response | WarcRecordType.resource | WarcRecordType.revisit
"""Types of the records of pages."""
FAULTS_MAX = 1_000
"""Damaged records of a file, behind which it is not read on: each costs a search for the next one."""
PIECE_BYTES = 1 << 20
SAID_CHARACTERS_MAX = 200
_BEGINS = b"\nWARC/1.", b"\0WARC/1."
"""A power cut leaves zeros in place of what precedes a record."""
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_FAULTS = (OSError, ValueError, RuntimeError)


class SalvagedRecords:
    """Reads the records of some types, one at a time. A damaged one costs itself: reading goes on at the next gzip
    member or Zstandard frame, in a file that is not compressed at the next line that begins with `WARC/1.`
    """

    def __init__(self, path: Path, kinds: WarcRecordType, **options: Any) -> None:
        """`options` are those of `ArchiveIterator`."""
        self._path = path
        self._kinds = kinds
        self._options = options
        self.faults = 0
        """Damaged records."""
        self.first = ""
        """The first of them: its offset, and what is wrong."""
        self.found = 0
        """Records of any type that were read."""
        self._at = -1

    def says(self) -> str:
        """Return a line about damaged records; empty if there are none."""
        if not self.faults:
            return ""
        many = f"{self.faults:,} damaged records were" if self.faults > 1 else "1 damaged record was"
        return f"{self._path}: {many} left out, the first {self.first}"

    def __iter__(self) -> Iterator[WarcRecord]:
        """Yield the records. Raises OSError: more than `FAULTS_MAX` are damaged, or the disk fails."""
        with self._path.open("rb") as file:
            size = self._path.stat().st_size
            begin = file.read(len(_ZSTD))
            is_plain = not begin.startswith((_GZIP, _ZSTD))
            at = 0
            while at >= 0:
                file.seek(at)
                last = at
                try:
                    for record in ArchiveIterator(file, **self._options):
                        last = record.stream_pos
                        if what := _fault(record, size - last if is_plain else None):
                            raise ValueError(what)
                        self.found += 1
                        if record.record_type & self._kinds:
                            yield record
                except _FAULTS as error:
                    self.note(last, error)
                else:
                    return
                at = _next_line(file, last + 1) if is_plain else next_member(file, size, last, zstd=begin == _ZSTD)

    def take(self, record: WarcRecord, use: Callable[[WarcRecord], None]) -> None:
        """Call `use` with a record; what cannot be read of it is a fault."""
        try:
            use(record)
        except _FAULTS as error:
            self.note(record.stream_pos, error)

    def note(self, at: int, error: Exception) -> None:
        """Count a damaged record, once. Raises OSError: there are too many."""
        if at == self._at:
            return
        self._at = at
        self.faults += 1
        self.first = self.first or f"at or after offset {at:,} ({' '.join(str(error).split())[:SAID_CHARACTERS_MAX]})"
        if self.faults > FAULTS_MAX:
            raise OSError(f"more than {FAULTS_MAX:,} records are damaged, the first {self.first}")


def _fault(record: WarcRecord, left: int | None) -> str:
    """Return what the reader does not see: a length beyond the `left` bytes of the file, and a head that was cut, and
    ends with the file or in the head of the next record.
    """
    if left is not None and record.content_length > left:
        return "it is longer than the file"
    names = [name.lower() for name, _ in record.headers.items()]
    return "its head is cut" if names.count("warc-type") > 1 or "content-length" not in names else ""


def _next_line(file: BinaryIO, at: int) -> int:
    """Return where a record may begin, from a place on; -1 where none does."""
    file.seek(at)
    held = b""
    while piece := file.read(PIECE_BYTES):
        data = held + piece
        found = min((at for mark in _BEGINS if (at := data.find(mark)) >= 0), default=-1)
        if found >= 0:
            return file.tell() - len(data) + found + 1
        held = data[-len(_BEGINS[0]) + 1 :]
    return -1
