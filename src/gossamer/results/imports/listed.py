"""Listed: the pages that a WACZ names for readers, with their depth (`pages.jsonl`, and `extraPages.jsonl`)."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from gossamer.results.imports.capture import Room, Source
from gossamer.results.imports.files import open_place
from gossamer.stages.archive.packages import open_package

PAGES_MAX = 100_000
"""Pages whose depth is kept; further ones have that of their links."""
BYTES_MAX = 256 << 20
"""Of each list no more is unpacked."""
LINE_BYTES_MAX = 8 << 20
_LISTS = (("pages/pages.jsonl", 0), ("pages/extraPages.jsonl", None))
"""With the depth of pages of which a list says none: the first one has those that a person chose."""


class _Line(msgspec.Struct):
    url: str = ""
    depth: int | None = None
    seed: bool = False


def listed_depths(source: Source, room: Room) -> dict[str, int]:
    """Return the depths of pages by their URLs; none of an archive that is in no package, and of damaged lists."""
    found: dict[str, int] = {}
    if not (source.member or source.length >= 0):
        return found
    with (
        suppress(zipfile.BadZipFile),
        open_place(source.place, room.store, source.size) as file,
        open_package(file) as package,
    ):
        for name, default in _LISTS:
            # Where a list is missing, damaged or encrypted, the archives count.
            with suppress(KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error):
                for line in _lines(package, name):
                    depth = 0 if line.seed else default if line.depth is None else line.depth
                    if line.url and depth is not None and depth >= 0 and len(found) < PAGES_MAX:
                        found.setdefault(line.url.partition("#")[0], depth)
    return found


def _lines(package: zipfile.ZipFile, name: str) -> Iterator[_Line]:
    left = BYTES_MAX
    with package.open(name) as file:
        while left > 0 and (data := file.readline(LINE_BYTES_MAX)):
            left -= len(data)
            with suppress(msgspec.MsgspecError):
                yield msgspec.json.decode(data, type=_Line)
