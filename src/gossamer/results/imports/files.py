"""Files: archives opened for reading, on disk, in a package, or in an object store."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from gossamer.results.imports.capture import Room, Source
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.uploads import store_at
from gossamer.world.inputs import open_input, open_ranges, part_of

BUFFER_BYTES = 1 << 18
AHEAD_BYTES = 4 << 20
MEMBER_BYTES_MAX = 16 << 30
"""Of a deflated member of a package, which is unpacked to disk before it is read."""


@contextmanager
def open_source(source: Source, room: Room) -> Iterator[BinaryIO]:
    """Open a source at its first byte. Raises OSError, StoreError: it cannot be read; BadZipFile: a deflated member is
    damaged, or too large.
    """
    with open_place(source.place, room.store, source.size) as file:
        if source.member:
            spill = room.spills.make()
            with zipfile.ZipFile(file) as package, package.open(source.member) as member:
                while piece := member.read(BUFFER_BYTES):
                    spill.write(piece)
                    if spill.size > MEMBER_BYTES_MAX:
                        raise zipfile.BadZipFile(f"{source.member} has more than {MEMBER_BYTES_MAX >> 30} GiB")
            with spill.open() as unpacked:
                yield part_of(unpacked, source.begin, source.length) if source.length >= 0 else unpacked
        else:
            yield part_of(file, source.begin, source.length) if source.length >= 0 else file


def open_place(place: str, store: ArchiveOptions, size: int) -> BinaryIO:
    """Open a file, or an object of a known size. Raises OSError, StoreError."""
    if "://" not in place:
        return open_input(Path(place))
    root, _, name = place.rpartition("/")
    return open_ranges(partial(store_at(root, store, root).read_range, name), size, AHEAD_BYTES)


def sizes_at(url: str, options: ArchiveOptions) -> dict[str, int]:
    """Return the sizes of the object at an address, or of those below it, by their addresses. Raises StoreError."""
    scheme, _, path = url.partition("://")
    bucket, _, name = path.partition("/")
    root = f"{scheme}://{bucket}"
    sizes = store_at(root, options, root).sizes(name.rstrip("/"))
    return {f"{root}/{one}": size for one, size in sorted(sizes.items())}
