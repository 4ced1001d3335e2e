"""Listed: the pages that a WACZ names for readers, with depth and title (`pages.jsonl`, and `extraPages.jsonl`)."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import msgspec

from gossamer.results.imports.capture import Room, Source
from gossamer.results.imports.content import address_of
from gossamer.results.imports.files import open_place
from gossamer.results.imports.texts import PageTexts
from gossamer.stages.archive.packages import nested_packages, open_package
from gossamer.world.inputs import part_of

PAGES_MAX = 100_000
"""Pages that are kept; further ones have the depth of their links, and their own title."""
TITLE_CHARACTERS_MAX = 400
BYTES_MAX = 256 << 20
LINE_BYTES_MAX = 8 << 20
_LISTS = (("/pages/pages.jsonl", 0), ("/pages/extraPages.jsonl", None))
"""In the package or a folder of it, with the depth of pages of which a list says none: the first one has those that a
person chose.
"""


class _Line(msgspec.Struct):
    url: str = ""
    depth: int | None = None
    seed: bool = False
    title: str | None = None
    text: str | None = None


class ListedPage(NamedTuple):
    """A page as a list names it."""

    depth: int | None = None
    title: str = ""
    text: str = ""


def listed_pages(source: Source, room: Room, texts: PageTexts) -> dict[str, ListedPage]:
    """Return pages by their URLs, and keep their texts; none of an archive in no package, and of damaged lists."""
    found: dict[str, ListedPage] = {}
    if not source.is_packaged:
        return found
    with suppress(zipfile.BadZipFile), open_place(source.place, room.store, source.size) as file:
        with open_package(file) as package:
            nested = [part_of(file, one.begin, one.length) for one in nested_packages(package, file) if one.begin >= 0]
        for one in (file, *nested):
            with suppress(zipfile.BadZipFile), open_package(one) as package:
                for line, depth in _listed_lines(package):
                    title = "" if line.title in (None, line.url) else " ".join(line.title.split())
                    page = ListedPage(depth, title[:TITLE_CHARACTERS_MAX])
                    if line.url and line.text:
                        texts.add(source, line.url, line.text)
                    if line.url and page != ListedPage() and len(found) < PAGES_MAX:
                        found.setdefault(address_of(line.url), page)
    return found


def _listed_lines(package: zipfile.ZipFile) -> Iterator[tuple[_Line, int | None]]:
    for name, default in _LISTS:
        # Where a list is missing, damaged or encrypted, the archives count.
        with suppress(StopIteration, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error):
            for line in _lines(package, next(one for one in package.namelist() if f"/{one}".endswith(name))):
                depth = 0 if line.seed else default if line.depth is None else line.depth
                yield line, None if depth is not None and depth < 0 else depth


def _lines(package: zipfile.ZipFile, name: str) -> Iterator[_Line]:
    left = BYTES_MAX
    with package.open(name) as file:
        while left > 0 and (data := file.readline(LINE_BYTES_MAX)):
            left -= len(data)
            with suppress(msgspec.MsgspecError):
                yield msgspec.json.decode(data, type=_Line)
