"""Packages: the files in a WACZ, and where those lie that are stored as they are (WACZ 1.1.1)."""

import zipfile
from collections.abc import Callable
from contextlib import suppress
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO, NamedTuple

from gossamer.world.inputs import part_of

ARCHIVES = "archive/"
_HAR = (".har", ".har.gz")
SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", *_HAR)
"""Of archives in other folders, as in a ZIP of a package's folder, or of archives alone."""
DIRECTORY_BYTES_MAX = 64 << 20
"""Bytes of the directory of a package: 10⁵ names and more."""
LINK_SUFFIX = ".wacz"
"""Of a link to a package in a crawl's folder of WARC files. Places of records are those in the package."""
_END_OF_DIRECTORY = b"PK\5\6"
_LOCAL_HEADER_BYTES = 30
_TAIL_BYTES = 65_557
"""The record of the end, and the longest comment behind it."""


class PackedFile(NamedTuple):
    """A file in a package."""

    name: str
    begin: int
    """First byte in the package; -1 of one that is not stored as it is."""
    length: int
    is_deflated: bool


def open_package(file: BinaryIO) -> zipfile.ZipFile:
    """Open a package, and read its directory. Raises BadZipFile: it is damaged, or its directory is too large."""
    file.seek(max(0, file.seek(0, SEEK_END) - _TAIL_BYTES))
    tail = file.read()
    at = tail.rfind(_END_OF_DIRECTORY)
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    if at < 0 or DIRECTORY_BYTES_MAX < length < 0xFFFFFFFF:
        raise zipfile.BadZipFile("its directory is missing or too large")
    return zipfile.ZipFile(file)


def packed_files(package: zipfile.ZipFile, file: BinaryIO) -> list[PackedFile]:
    """Return the archives of the package in `file`, unpacking nothing: the files in `archive/`, those named like one,
    and those of packages that it stores, as Browsertrix packs a collection (profile `multi-wacz-package`); of one that
    it deflates, the package. Raises BadZipFile: they overlap.
    """
    found = _locate(package, file, _is_archive)
    for nested in nested_packages(package, file):
        if nested.is_deflated:
            found.append(nested)
            continue
        try:
            with open_package(part := part_of(file, nested.begin, nested.length)) as inner:
                within = _locate(inner, part, _is_archive)
        except (zipfile.BadZipFile, ValueError, OSError):
            found.append(nested._replace(begin=-1, is_deflated=False))
            continue
        for one in within:
            begin = nested.begin + one.begin if one.begin >= 0 else -1
            found.append(PackedFile(f"{nested.name}/{one.name}", begin, one.length, is_deflated=False))
    return found


def _is_archive(name: str) -> bool:
    """Return whether a file is an archive; macOS adds others of the same names."""
    return name.startswith(ARCHIVES) or (name.lower().endswith(SUFFIXES) and not name.startswith("__MACOSX/"))


def nested_packages(package: zipfile.ZipFile, file: BinaryIO) -> list[PackedFile]:
    """Return the packages that the package in `file` holds beside its archives. Raises BadZipFile: they overlap."""
    return _locate(package, file, lambda name: name.lower().endswith(LINK_SUFFIX) and not name.startswith(ARCHIVES))


def _locate(package: zipfile.ZipFile, file: BinaryIO, is_wanted: Callable[[str], bool]) -> list[PackedFile]:
    infos = [info for info in package.infolist() if is_wanted(info.filename) and not info.is_dir()]
    if sum(info.compress_size for info in infos) > file.seek(0, SEEK_END):
        raise zipfile.BadZipFile("its files overlap")
    found = []
    for info in infos:
        is_plain = not info.flag_bits & 1
        begin = -1
        if is_plain and info.compress_type == zipfile.ZIP_STORED:
            file.seek(info.header_offset + _LOCAL_HEADER_BYTES - 4)
            sizes = file.read(4)
            skip = int.from_bytes(sizes[:2], "little") + int.from_bytes(sizes[2:], "little")
            begin = info.header_offset + _LOCAL_HEADER_BYTES + skip
        is_deflated = is_plain and info.compress_type == zipfile.ZIP_DEFLATED
        found.append(PackedFile(info.filename, begin, info.compress_size, is_deflated))
    return found


def stored_archives(path: Path) -> list[PackedFile]:
    """Return the archives of records in a package that are stored as they are; none of one that is gone or damaged."""
    with suppress(OSError, zipfile.BadZipFile), path.open("rb") as file, open_package(file) as package:
        return [one for one in packed_files(package, file) if one.begin >= 0 and not one.name.lower().endswith(_HAR)]
    return []
