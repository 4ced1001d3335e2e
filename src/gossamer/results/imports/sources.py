"""Sources: the archives in files, folders, globs, lists of paths, packages and object stores."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gossamer.model.errors import ConfigError
from gossamer.results.imports.capture import Source
from gossamer.results.imports.files import open_place
from gossamer.results.imports.stream import MARK, arc_fields
from gossamer.results.imports.unpack import TRIAL_BYTES, Unpacked, packing_of
from gossamer.stages.archive.members import BrokenMemberError

_SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", ".wacz", ".har", ".har.gz")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UNKNOWN = "is no WARC, ARC, WACZ or HAR file"


def find_sources(names: Sequence[str]) -> list[Source]:
    """Return the archives that some names lead to, each once, in the order of the names, in a folder in that of paths.

    In a folder, and in those below, files count that are named like archives. What a file holds is recognized by its
    content. One that was found and is no archive has a `fault`.

    Raises:
        ConfigError: a name leads to nothing, or a file that is named is no archive.
    """
    found: dict[str, Source] = {}
    for name in names:
        count = len(found)
        for path in _paths(name):
            place = str(path.absolute())
            if place not in found:
                found[place] = _look(place, len(found))
                if found[place].fault and str(path) == name:
                    raise ConfigError(f"{name} {found[place].fault}")
        if len(found) == count and not any(name == source.name for source in found.values()):
            raise ConfigError(f"{name} holds no WARC, ARC, WACZ or HAR file")
    return list(found.values())


def _paths(name: str) -> Iterator[Path]:
    if name.startswith("file://"):
        name = unquote(urlsplit(name).path)
    path = Path(name)
    if path.is_dir():
        for folder, folders, files in os.walk(path):
            folders.sort()
            yield from (Path(folder) / file for file in sorted(files) if file.endswith(_SUFFIXES))
    elif path.exists() or not glob.has_magic(name):
        if not path.exists():
            raise ConfigError(
                f"there is no {name}; name a file, a folder, a glob, a list of paths, or s3://BUCKET/PATH"
            )
        yield path
    else:
        yield from (Path(one) for one in sorted(glob.glob(name, recursive=True)) if Path(one).is_file())  # noqa: PTH207


def _look(place: str, number: int) -> Source:
    """Return a file as a source."""
    try:
        with open_place(place) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            packing = packing_of(file.read(4))
            file.seek(0)
            unpacked = Unpacked(file, size, packing)
            begin = unpacked.peek(TRIAL_BYTES) if unpacked.begin() else b""
    except OSError as error:
        return Source(number, place, place, 0, "", fault=f"cannot be read: {error.strerror}")
    except BrokenMemberError as error:
        return Source(number, place, place, size, "", fault=str(error))
    begin = begin.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if not begin:
        return Source(number, place, place, size, "", fault="is empty")
    if begin.startswith(MARK):
        return Source(number, place, place, size, "warc", packing)
    if arc_fields(begin.partition(b"\n")[0]) is not None:
        return Source(number, place, place, size, "arc", packing)
    return Source(number, place, place, size, "", fault=UNKNOWN)
