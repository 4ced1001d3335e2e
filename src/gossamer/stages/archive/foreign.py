"""Foreign: the records of WARC and ARC files of any crawler, past those that are damaged."""

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from gossamer.stages.archive.members import HEAD_BYTES_MAX, is_length
from gossamer.stages.archive.unpack import MARK, PIECE_BYTES, BrokenMemberError, Unpacked, packing_of
from gossamer.url.join import decode_address

CAPTURES = frozenset(("response", "resource", "revisit"))
"""Types of the records of pages."""
RECORD_BYTES_MAX = 1 << 34
_BLANK_LINE = (b"\n\r\n", b"\n\n", b"\n\r\r\n")
_END = b"\r\n\r\n"
_WARC_MARKS = (b"\nWARC/1.", b"\nwarc/1.", b"\0WARC/1.", b"\0warc/1.")
"""A power cut leaves zeros in place of what precedes a record."""
_ARC_MARKS = (b"\nhttp", b"\nftp:")
_DATE_DIGITS = range(12, 19)
LIED_BYTES_MAX = 4 << 20
"""Content of which the end is searched for, where its length is false in a file that is not packed."""
LIES = "has another length than its head says"
ARC_LINE_BYTES_MAX = 20_000
BLANKS_AT_ONCE = 4_096


class UnreadableError(Exception):
    """A sound record holds nothing that can be read: the text is its fault, as the rest of a sentence."""


class BrokenRecordError(BrokenMemberError):
    """The frame of a record is damaged, the member that holds it is not known to be."""


class Block:
    """The content of a record, taken piece by piece."""

    def __init__(self, unpacked: Unpacked, length: int) -> None:
        self._unpacked = unpacked
        self.left = length

    def take(self, length: int = PIECE_BYTES) -> bytes:
        """Take some of the next bytes: at most `length`; none only at the end."""
        data = self._unpacked.take(min(length, self.left)) if self.left else b""
        if self.left and not data:
            raise BrokenRecordError(LIES)
        self.left -= len(data)
        return data

    def take_all(self, limit: int) -> bytes:
        """Take what is left, or its first `limit` bytes."""
        pieces = []
        while limit and (data := self.take(min(limit, PIECE_BYTES))):
            pieces.append(data)
            limit -= len(data)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def take_head(self) -> bytes:
        """Take lines to the first blank one, this included; without one, all."""
        length = self._unpacked.find(_BLANK_LINE, min(self.left, HEAD_BYTES_MAX))
        if not 0 < length <= self.left:
            length = self.left
        if length > HEAD_BYTES_MAX:
            raise UnreadableError("has an HTTP head without an end")
        return self.take_all(length)

    def begins_with(self, begin: bytes) -> bool:
        """Return whether the next bytes are these."""
        return self._unpacked.peek(min(len(begin), self.left)) == begin


class ForeignRecord(msgspec.Struct, frozen=True):
    """A record whose content is to be taken before the next one is read."""

    fields: dict[str, str]
    """Named fields by their names in lower case; of an ARC record those that a WARC record would have."""
    block: Block


class Fault(NamedTuple):
    """A record that cannot be read, and why, as the rest of a sentence."""

    offset: int
    reason: str


class ForeignPlace(NamedTuple):
    """Place of a record."""

    offset: int
    within: int
    length: int
    """Bytes of the file that hold this record and no other; 0 if there are none."""


class RecordStream:
    """Reads the records of a file in order; `finish` gives a record's place, `refuse` its fault, else it is skipped."""

    def __init__(
        self, unpacked: Unpacked, *, is_arc: bool = False, after: tuple[int, int] | None = None, search_bytes: int = 0
    ) -> None:
        """Read behind the record at `after`, or from the first member that begins in `search_bytes` behind it."""
        self._unpacked = unpacked
        self._is_arc = is_arc
        self._block: Block | None = None
        self._start = (0, 0)
        self._is_damaged = False
        """The next member is to be found."""
        self._is_lost = False
        """The next record of this member is."""
        self._is_direct = not unpacked.packing
        self.is_standard = True
        """The last record begins as the standard has it, so that other readers know it."""
        self._after = after or (-1, -1)
        self._is_over = False
        if after is not None and search_bytes:
            self._is_over = not unpacked.search(self._begins, after[0], after[0] + search_bytes)
        elif after is not None:
            unpacked.seek(after[0])

    def __iter__(self) -> Iterator[ForeignRecord | Fault]:
        while self._next_member():
            while True:
                try:
                    record = self._next_record()
                except BrokenMemberError as error:
                    yield self.refuse(error)
                    continue
                if record is None:
                    break
                yield record
                if self._block is not None:
                    try:
                        self.finish()
                    except BrokenMemberError as error:
                        yield self.refuse(error)

    def refuse(self, error: Exception) -> Fault:
        """Return that the last record is refused. A sound one whose content is of no use is finished before."""
        if isinstance(error, BrokenMemberError):
            self._block = None
            self._is_lost = isinstance(error, BrokenRecordError)
            self._is_damaged = not self._is_lost
        return Fault(sum(self._start), str(error))

    def finish(self) -> ForeignPlace:
        """Return the place of the last record; what is left of its content is skipped. Raises BrokenMemberError: it has
        another length than it says, or the member is damaged.
        """
        unpacked = self._unpacked
        assert self._block is not None, "there is a record"
        if unpacked.skip(self._block.left):
            raise BrokenRecordError(LIES)
        self._block = None
        if not self._is_direct and not self._is_end(unpacked.peek(ARC_LINE_BYTES_MAX if self._is_arc else 32)):
            # Some writers count characters for bytes: what a sound member with one record has behind it is its rest.
            if self._start[1] or unpacked.drop_until(_ARC_MARKS if self._is_arc else _WARC_MARKS):
                raise BrokenRecordError(LIES)
            unpacked.skip(PIECE_BYTES)
        has_more = self._skip_blanks()
        offset, within = self._start
        if self._is_direct:
            return ForeignPlace(offset, 0, unpacked.within - offset)
        is_alone = not (has_more or within)
        return ForeignPlace(offset, within, unpacked.end - offset if is_alone else 0)

    def _next_member(self) -> bool:
        unpacked = self._unpacked
        is_lost = self._is_damaged and not (unpacked.packing and unpacked.search(self._begins, unpacked.offset))
        if is_lost or self._is_over:
            return False
        self._is_damaged = False
        self._is_lost = False
        unpacked.skip_zeros()
        return unpacked.begin()

    def _next_record(self) -> ForeignRecord | None:
        """Return the next record behind the place to begin at; None at the end of the member."""
        while not self._is_damaged:
            self._start = self._unpacked.place  # Errors of `_find` are of here.
            if not self._find():
                return None
            self._start = self._unpacked.place
            fields = self._arc_fields() if self._is_arc else self._warc_fields()
            self._block = Block(self._unpacked, self._length(fields))
            if self._start > self._after:
                return ForeignRecord(fields, self._block)
            self.finish()
        return None

    def _find(self) -> bool:
        """Go to the next record of the member; False at its end."""
        unpacked = self._unpacked
        while self._is_lost and not self._begins(unpacked.peek(ARC_LINE_BYTES_MAX if self._is_arc else len(MARK))):
            if not unpacked.drop_until(_ARC_MARKS if self._is_arc else _WARC_MARKS):
                return False
            unpacked.take(1)
        self._is_lost = False
        return self._skip_blanks()

    def _skip_blanks(self) -> bool:
        """Skip line breaks, a byte order mark before them, a zero behind; return whether the member goes on there."""
        while (begin := self._unpacked.peek(1)) in (b"\r", b"\n", b"\0", BOM_UTF8[:1]):
            data = self._unpacked.peek(BLANKS_AT_ONCE)
            rest = data.removeprefix(BOM_UTF8).lstrip(b"\r\n")
            rest = rest[1:] if rest[:1] == b"\0" != rest[1:2] else rest  # More of them replace what is lost.
            if len(rest) == len(data):
                break
            self._unpacked.take(len(data) - len(rest))
        return begin != b""

    def _is_end(self, behind: bytes) -> bool:
        """Return whether there is the end of a record behind its content, or another record."""
        rest = behind.lstrip(b"\r\n\0")
        if not rest or self._begins(rest):
            return True
        # An ARC file may be cut within the first line of a record.
        return behind.startswith(_ARC_MARKS) and b"\n" not in rest if self._is_arc else behind.startswith(_END)

    def _begins(self, data: bytes) -> bool:
        if self._is_arc:
            return arc_fields(data.partition(b"\n")[0]) is not None
        return data[: len(MARK)].upper() == MARK  # JWAT takes `warc/1.0` for valid, too.

    def _warc_fields(self) -> dict[str, str]:
        unpacked = self._unpacked
        length = unpacked.find(_BLANK_LINE, HEAD_BYTES_MAX) if self._begins(unpacked.peek(len(MARK))) else 0
        if not 0 < length <= HEAD_BYTES_MAX:
            # Heads that begin in between have no end either: the next one begins before it.
            cut = _last_mark(unpacked.peek(HEAD_BYTES_MAX)) if length else -1
            unpacked.take(max(cut, 0) + 1)
            raise BrokenRecordError("has a head without an end" if length else "holds no WARC record")
        if (cut := _last_mark(unpacked.peek(length))) >= 0:
            unpacked.take(cut + 1)
            raise BrokenRecordError("has a head that is cut")
        fields: dict[str, str] = {}
        last = ""
        version, *lines = decode_address(unpacked.take(length)).split("\n")
        self.is_standard = version.startswith("WARC/1.")
        for line in lines:
            name, colon, value = line.partition(":")
            if line[:1] in (" ", "\t") and last:
                fields[last] = f"{fields[last]} {line.strip()}".strip()
            elif colon:
                last = name.strip().lower()
                fields.setdefault(last, value.strip())
        return fields

    def _arc_fields(self) -> dict[str, str]:
        length = self._unpacked.find((b"\n",), ARC_LINE_BYTES_MAX)
        fields = arc_fields(self._unpacked.take(length if 0 < length <= ARC_LINE_BYTES_MAX else 1))
        if fields is None:
            raise BrokenRecordError("holds no ARC record")
        return fields

    def _length(self, fields: dict[str, str]) -> int:
        """Return the length of the content, which is bounded, and as far as it can be seen, true."""
        text = fields.get("content-length", "")
        if not is_length(text):
            raise BrokenRecordError(f"has no valid length ({text[:40]!r})")
        length = int(text)
        if length > RECORD_BYTES_MAX:
            raise BrokenRecordError(f"has a length of {length:,} bytes, more than {RECORD_BYTES_MAX >> 30} GiB")
        if self._is_direct:
            # Before it is read: a hundred records that claim the rest of the file would cost a hundred passes.
            if length > self._unpacked.left:
                raise BrokenRecordError("ends early")
            if not self._is_end(self._unpacked.behind(length, ARC_LINE_BYTES_MAX if self._is_arc else 32)):
                return self._longer(length)
        return length

    def _longer(self, length: int) -> int:
        """Return the length up to the next record, of which none begins before: some writers count characters for
        bytes. A length that is too large is no better known than what is lost. Raises BrokenRecordError.
        """
        unpacked = self._unpacked
        limit = min(4 * length, LIED_BYTES_MAX)
        end = unpacked.find(_WARC_MARKS[:2], limit)
        end = end - len(_WARC_MARKS[0]) if end >= 0 else unpacked.left
        if self._is_arc or not length < end <= limit:
            raise BrokenRecordError(LIES)
        self.is_standard = False
        content = unpacked.peek(end)
        return end - next((len(tail) for tail in (_END, _END[:3], b"\n") if content.endswith(tail)), 0)


def _last_mark(data: bytes) -> int:
    """Return the place before which the last record within some bytes begins; -1 for none."""
    return max(map(data.rfind, _WARC_MARKS[:2]))


def arc_fields(line: bytes) -> dict[str, str] | None:
    """Return the values in the first line of an ARC record, by the names of WARC's fields; None for another line.

    Address, IP, date, type and length (version 1), with result, checksum and others before the length (version 2).
    Addresses and types may hold spaces.
    """
    words = decode_address(line).strip("\r\n").split(" ")
    at = next((at for at in range(2, len(words)) if len(words[at]) in _DATE_DIGITS and words[at].isdigit()), 0)
    if not at or at + 1 >= len(words) or ":" not in words[0]:
        return None
    return {
        "warc-type": "filedesc" if words[0].startswith("filedesc:") else "response",
        "warc-target-uri": " ".join(words[: at - 1]),
        "warc-ip-address": words[at - 1],
        "warc-date": words[at],
        "content-type": words[at + 1],
        "content-length": words[-1],
    }


class FaultCount:
    """Damaged records of a file, for people."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0
        self._first = ""

    def add(self, offset: int, reason: str) -> None:
        """Count one."""
        self._count += 1
        self._first = self._first or f"at or after offset {offset:,}, which {reason}"

    def says(self) -> str:
        """Return a line about them; empty if there are none."""
        if not self._count:
            return ""
        many = f"{self._count:,} damaged records were" if self._count > 1 else "1 damaged record was"
        return f"{self._path}: {many} left out, the first {self._first}"


def sound_records(path: Path, faults: FaultCount) -> Iterator[ForeignRecord]:
    """Yield the sound records of a WARC file, and count the others. Raises OSError: the disk fails."""
    with path.open("rb") as file:
        packing = packing_of(file.read(4))
        try:
            for record in RecordStream(Unpacked(file, path.stat().st_size, packing)):
                if isinstance(record, Fault):
                    faults.add(*record)
                else:
                    yield record
        except BrokenMemberError as error:
            faults.add(0, str(error))
