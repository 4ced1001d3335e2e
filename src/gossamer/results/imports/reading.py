"""Reading: the captures of any source."""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from gossamer.results.imports.capture import CapturePlace, Item, Refused, Room, Source
from gossamer.results.imports.files import open_place, open_source
from gossamer.results.imports.har import ENTRY_BYTES_MAX, captures_of_har
from gossamer.results.imports.warc import captures_of_warc
from gossamer.stages.archive.unpack import BrokenMemberError, Unpacked
from gossamer.world.inputs import read_input


def captures_of(source: Source, room: Room, after: CapturePlace | None = None) -> Iterator[Item]:
    """Yield what the records of a source are, in their order: those behind a place, or all. A damaged record costs
    itself. In memory: one body up to `Room.held_bytes_max`. Raises OSError: the disk fails, or the file is gone;
    StoreError: an object store fails.
    """
    if source.fault:
        yield Refused(source.number, source.name, 0, source.fault)
        return
    try:
        with open_source(source, room) as file:
            size = file.seek(0, io.SEEK_END)
            # What another program appends while it is read belongs to the next import.
            unpacked = Unpacked(file, size if source.is_packaged else min(size, source.size), source.packing)
            if source.form == "har":
                with _beside(source, room) as beside:
                    yield from captures_of_har(source, unpacked, after, beside)
            else:
                yield from captures_of_warc(source, unpacked, room, after)
    except (zipfile.BadZipFile, zlib.error, EOFError, BrokenMemberError) as error:
        yield Refused(source.number, source.name, 0, f"cannot be unpacked: {error}")


@contextmanager
def _beside(source: Source, room: Room) -> Iterator[Callable[[str], bytes]]:
    """Yield what reads a file in the folder or package of a source. It raises OSError, KeyError: there is none."""
    if not source.is_packaged:
        yield lambda name: read_input(Path(source.place).parent / name, ENTRY_BYTES_MAX)
        return
    folder = PurePosixPath(source.name.rpartition("!")[2]).parent
    with open_place(source.place, room.store, source.size) as file, zipfile.ZipFile(file) as package:

        def read(name: str) -> bytes:
            with package.open(str(folder / name)) as member:
                return member.read(ENTRY_BYTES_MAX)

        yield read
