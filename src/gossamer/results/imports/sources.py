"""Sources: the archives in files, folders, globs, lists of paths, packages and object stores."""

import codecs
import fnmatch
import glob
import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec.structs import replace

from gossamer.model.errors import ConfigError, StoreError
from gossamer.results.imports.capture import Source
from gossamer.results.imports.files import open_place, sizes_at
from gossamer.results.imports.har import in_utf8
from gossamer.stages.archive.foreign import ARC_LINE_BYTES_MAX, arc_fields
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.packages import LINK_SUFFIX, SUFFIXES, open_package, packed_files
from gossamer.stages.archive.unpack import GZIP, MARK, READ_BYTES, BrokenMemberError, Packing, Unpacked, packing_of
from gossamer.world.inputs import part_of

LIST_BYTES_MAX = 64 << 20
UNKNOWN = "is no WARC, ARC, WACZ or HAR file"
PACKED = "is packed in another way than gzip or Zstandard; unpack it, and import what it holds"
HTTRACK = "is a cache of HTTrack; `httrack2warc` makes a WARC file of the folder above it"
FIDDLER = "is a session of Fiddler; export it as HTTPArchive (HAR), and import that"
ZIP = "holds no archive (archive/… or ….warc.gz); if it holds other archives, unpack it and import the folder"
TWICE = "is packed twice; unpack it once, and import that"
NO_STORE = "is no address of a store (s3://, gs://, az://); download it, and import the file"
UNUSUAL = "is encrypted, damaged, or packed in an unusual way; unpack the package, and import what it holds"
PAGE = "is a page, not an archive; download the archive again, or make one of saved pages with `warcit`"
POINTER = "is a pointer of Git LFS; bring the archive with `git lfs pull`"
_FAULTS = {
    re.compile(rb"\x04\x22\x4d\x18|BZh|\xfd7zXZ\0|7z\xbc\xaf|Rar!|(?s:.{257})ustar"): PACKED,
    re.compile(rb" ?CDX |!meta |[^ \n]{1,9000} [0-9]{14} "): "is an index (CDX); import the archives that it names",
    re.compile(rb"<!doctype html|<html|<!-- saved|<\?xml|mime-version:|from: <saved by ", re.IGNORECASE): PAGE,
    re.compile(rb"version https://git-lfs"): POINTER,
    re.compile(GZIP): TWICE,
    re.compile(rb'\{[^\n]{0,9000}"header_fields": ?\{'): "describes a megawarc; import its .megawarc.warc.gz",
    re.compile(rb'\xac\xed\0\x05|\[\{"status":|[0-9]{1,12}:[0-9]{1,3}:[a-z_]{1,40};'): (
        "is a session of a proxy (Charles, mitmproxy); export it as HAR, and import that"
    ),
}
"""Why files that begin so are no archives, and what to do. Packed files: LZ4, bzip2, xz, 7z, RAR, tar."""
_SUFFIXES = (*SUFFIXES, ".warc.open", ".warc.gz.open", ".wacz", ".har.zip")
_SESSION = re.compile(r"raw[/\\]0*1_s\.txt")
_NAME = re.compile(r"\.(w?arc)(\.gz|\.zst)?(?:\.open)?\Z")
_NO_OPTIONS = ArchiveOptions()
_STORES = ("s3://", "gs://", "az://")


class _Listing(msgspec.Struct):
    """Lists the files of a package (`datapackage.json`), or of a collection (`multi-wacz-package`)."""

    resources: list[dict[str, object]]


def find_sources(names: Sequence[str], store: ArchiveOptions = _NO_OPTIONS) -> list[Source]:
    """Return the archives that some names lead to, each once, in the order of the names, in a folder in that of paths.

    In folders, also those below, and below an address of a store, files count that are named like archives. A text file
    that is named is a list of paths or addresses, one a line (see `_base`). The kind of a file is recognized by its
    content; one that is no archive has a `fault`. Raises ConfigError: a name leads to nothing, or the only file that is
    named is no archive.
    """
    found: dict[str, list[Source]] = {}
    for name in names:
        places = _places(name, store)
        is_named = list(places) == [_absolute(name)]
        for place, size in places.items():
            if place in found:
                continue
            sources = _look(place, size, store)
            fault = sources[0].fault if is_named else ""
            lines = _lines(place, size, store) if fault == UNKNOWN else []
            if fault and not lines and len(names) == 1:
                raise ConfigError(f"{name} {fault}")
            if not lines:
                found[place] = sources
            for line in lines:
                one = _absolute(line) if "://" in line or line.startswith("/") else _base(place, line) + line
                if one not in found:
                    found[one] = _look_up(one, store)
    every = [source for sources in found.values() for source in sources]
    return [replace(source, number=number) for number, source in enumerate(every)]


def _base(place: str, line: str) -> str:
    """Return the folder above a list that has a path's first folder in it, as on `s3://commoncrawl`, else its own."""
    above, found, _ = place.partition("/" + line.partition("/")[0] + "/")
    return (above if found else place.rpartition("/")[0]) + "/"


def _absolute(name: str) -> str:
    """Return the place of a file, or the address of an object."""
    if name.startswith("file://"):
        name = unquote(urlsplit(name).path)
    return name if "://" in name else str(Path(name).absolute())


def _places(name: str, store: ArchiveOptions) -> dict[str, int]:
    """Return the files or objects that a name leads to, with the sizes of objects. Raises ConfigError: none."""
    place = _absolute(name)
    if "://" in place:
        if not place.startswith(_STORES):
            raise ConfigError(f"{name} {NO_STORE}")
        parent = place[: place.index("*")].rpartition("/")[0] if "*" in place else place
        try:
            places = sizes_at(parent, store)
        except StoreError as error:
            raise ConfigError(f"{name} cannot be read: {error}") from error
        if parent != place:
            places = {one: size for one, size in places.items() if fnmatch.fnmatchcase(one, place)}
        elif place not in places:
            places = {one: size for one, size in places.items() if one.endswith(_SUFFIXES)}
    else:
        places = dict.fromkeys(_paths(place), 0)
    if not places:
        raise ConfigError(f"{name}: there is no archive; name a file, folder, glob, list of paths or s3://BUCKET/PATH")
    return places


def _paths(name: str) -> Iterator[str]:
    if os.path.isdir(name):  # noqa: PTH112 - a glob may be no path
        seen: set[str] = set()
        locked: list[OSError] = []
        for folder, folders, files in os.walk(name, onerror=locked.append, followlinks=True):
            if (real := os.path.realpath(folder)) in seen:  # By a link, perhaps one that leads into itself.
                folders.clear()
                continue
            seen.add(real)
            folders.sort()
            yield from (
                f"{folder}/{file}" for file in sorted(files) if file[0] != "." and file.lower().endswith(_SUFFIXES)
            )
        yield from (str(error.filename) for error in locked)
    elif os.path.exists(name) or (Path(name).parent.is_dir() and not os.access(Path(name).parent, os.X_OK)):  # noqa: PTH110
        yield name
    else:
        yield from (one for one in sorted(glob.glob(name, recursive=True)) if os.path.isfile(one))  # noqa: PTH113, PTH207


def _look_up(place: str, store: ArchiveOptions) -> list[Source]:
    gone = [Source(0, place, place, 0, "", fault="is not there")]
    try:
        if "://" not in place:
            return _look(place, 0, store) if Path(place).exists() else gone
        if not place.startswith(_STORES):
            return [replace(gone[0], fault=NO_STORE)]
        sizes = sizes_at(place, store)
        return _look(place, sizes[place], store) if place in sizes else gone
    except (ConfigError, StoreError) as error:
        return [replace(gone[0], fault=f"cannot be read: {error}")]


def _look(place: str, size: int, store: ArchiveOptions) -> list[Source]:
    """Return the archives in a file: one, except for packages."""
    source = Source(0, place, place, size, "")
    try:
        with open_place(place, store, size) as file:
            source = replace(source, size=file.seek(0, os.SEEK_END))
            return _members(file, source) if _begin(file, 4).startswith(b"PK\3\4") else [_recognize(file, source)]
    except OSError as error:
        return [replace(source, fault=f"cannot be read: {error.strerror or error}")]
    except (StoreError, zipfile.BadZipFile, BrokenMemberError) as error:
        return [replace(source, fault=f"cannot be read: {error}")]


def _begin(file: BinaryIO, length: int) -> bytes:
    file.seek(0)
    data = file.read(length)
    file.seek(0)
    return data


def _recognize(file: BinaryIO, source: Source) -> Source:
    """Return a source with its form, by its content; of a damaged one by its name."""
    packing = packing_of(_begin(file, 4))
    by_name = _NAME.search(source.name.lower())
    try:
        unpacked = Unpacked(file, source.length if source.length >= 0 else source.size, packing)
        begin = unpacked.peek(ARC_LINE_BYTES_MAX) if unpacked.begin() else b""
    except BrokenMemberError as error:
        if by_name is None:
            return replace(source, fault=str(error))
        begin = b"?"
    begin = b"".join(in_utf8(iter((begin,)))).removeprefix(codecs.BOM_UTF8).lstrip()
    if begin[: len(MARK)].upper() == MARK:
        return replace(source, form="warc", packing=packing)
    if arc_fields(begin.partition(b"\n")[0]) is not None:
        return replace(source, form="arc", packing=packing)
    # An extension of Firefox omits the object `log`.
    if begin.startswith(b"{") and (b'"log"' in begin or (b'"creator"' in begin and b'"pages"' in begin)):
        return replace(source, form="har", packing=packing)
    fault = next((fault for begins, fault in _FAULTS.items() if begins.match(begin)), UNKNOWN)
    if begin and by_name is not None and fault not in (PAGE, POINTER, TWICE):
        packed: dict[str, Packing] = {"": "", ".gz": "gzip", ".zst": "zstd"}
        return replace(source, form="arc" if by_name[1] == "arc" else "warc", packing=packed[by_name[2] or ""])
    return replace(source, fault=fault if begin else "is empty")


def _members(file: BinaryIO, source: Source) -> list[Source]:
    """Return the archives in a package. Raises BadZipFile: it is damaged."""
    found = []
    with open_package(file) as package:
        for packed in packed_files(package, file):
            one = replace(source, name=f"{source.name}!{packed.name}")
            if packed.begin >= 0:
                one = replace(one, begin=packed.begin, length=packed.length)
                found.append(_recognize(part_of(file, one.begin, one.length), one))
            elif packed.is_deflated and not source.member:
                one = replace(one, member=packed.name)
                with package.open(packed.name) as member:
                    if packed.name.lower().endswith(LINK_SUFFIX):
                        found += _nested(cast("BinaryIO", member), one)
                        continue
                    begin = io.BytesIO(member.read(ARC_LINE_BYTES_MAX))
                found.append(replace(_recognize(begin, replace(one, length=len(begin.getbuffer()))), length=-1))
            else:
                found.append(replace(one, fault=UNUSUAL))
        names = package.namelist()
    is_cache = any(name.startswith(("http://", "https://")) for name in names)
    return found or [
        replace(source, fault=HTTRACK if is_cache else FIDDLER if any(map(_SESSION.fullmatch, names)) else ZIP)
    ]


def _nested(file: BinaryIO, source: Source) -> list[Source]:
    """Return the archives that a deflated package in a package stores."""
    try:
        return _members(file, source)
    except (zipfile.BadZipFile, zlib.error, EOFError):
        return [replace(source, fault=UNUSUAL)]


def _lines(place: str, size: int, store: ArchiveOptions) -> list[str]:
    """Return the lines of a list of archives, which may be packed; none of another file."""
    with open_place(place, store, size) as file:
        size = file.seek(0, os.SEEK_END)
        unpacked = Unpacked(file, size, packing_of(_begin(file, 4)))
        pieces: list[bytes] = []
        with suppress(BrokenMemberError):
            pieces.extend(islice(unpacked.pieces(), LIST_BYTES_MAX // READ_BYTES))  # Those before a damage, too.
    content = b"".join(pieces)
    if content.startswith(b"{"):  # Of Browsertrix, or of a package that is unpacked: it lists other files, too.
        with suppress(msgspec.MsgspecError):
            paths = [str(one.get("path")) for one in msgspec.json.decode(content, type=_Listing).resources]
            return [path for path in paths if path.partition("?")[0].endswith(_SUFFIXES)]
    lines = [line.strip() for line in content.decode("utf-8-sig", "replace").splitlines()]
    lines = [line for line in lines if line and line[0] != "#"]
    if lines and all(line.endswith((".wet.gz", ".wat.gz")) for line in lines):
        raise ConfigError(f"{place} lists WET or WAT files, which hold no pages; name the list of WARC files instead")
    return lines if sum(line.lower().endswith(_SUFFIXES) for line in lines) * 2 > len(lines) else []
