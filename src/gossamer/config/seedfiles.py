"""Seedfiles: files of other programs that hold addresses: sitemaps, bookmarks, CSV, WARC, CDX, Common Crawl indexes.

The format is found by the content. Addresses of schemes that are not visited are left out: bookmarks hold scripts, and
archives hold records of DNS.
"""

import csv
import html
import io
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from gossamer.config.lists import open_unpacked
from gossamer.model.errors import ConfigError
from gossamer.stages.process.scan import reference_free
from gossamer.world.inputs import open_input

Form = Literal["lines", "sitemap", "bookmarks", "csv", "warc", "cdx", "json"]
FORMATS: Mapping[Form, str] = {
    "sitemap": "a sitemap without addresses", "bookmarks": "HTML without links", "csv": "CSV without addresses",
    "warc": "a WARC file without whole responses", "cdx": "JSON or a CDX file without captures",
    "json": "JSON lines without addresses",
}  # fmt: skip
"""Kinds of files that name no seed."""
HEAD_BYTES = 4_096
LINE_BYTES_MAX = 1 << 20
COLUMNS = ("url", "uri", "address", "link", "href", "loc", "page", "website")
"""Names of the column of a CSV file that holds addresses, the first that is there."""
DELIMITERS = ",;\t"
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
# A comment ends where the next begins: of many without end each would be read to the end of the file.
_COMMENT = rb"<!--(?>(?:[^<-]|-(?!->)|<(?!!--))*)-->"
_HREF = re.compile(
    _COMMENT
    + rb"""|<a(?=\s)(?>(?:[^<>"'\s]|"[^"<]*+"|'[^'<]*+'|\s(?!href\s*+=))*)\shref\s*+="""
    + rb"""\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++)(?=[\s>]))""",
    re.IGNORECASE | re.DOTALL,
)
_SITEMAP = re.compile(rb"<(\w+:)?(?:urlset|sitemapindex)\b")
_LOC = _COMMENT + rb"|<%sloc>\s*(?:<!\[CDATA\[([^<]*)\]\]>|([^<]*))\s*</%sloc>"
"""Of a prefix. Comments hold no addresses."""
_CAPTURE = re.compile(rb"^[^\s{]\S*+ \d{14} ")
_WITH_URL = re.compile(rb'^[^{]*+\{.*"url"\s*+:')


class _CdxEntry(msgspec.Struct):
    url: str = ""


def form_of(path: Path) -> Form:
    """Return the format of a file by its first 4 KB, or `lines`. Raises ConfigError: it cannot be read."""
    try:
        with open_input(path) as file:
            head = file.read(HEAD_BYTES)
        if head.startswith(_ZSTD):
            return "warc"
        if head.startswith(_GZIP):
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except (OSError, zlib.error) as error:
        raise ConfigError(f"cannot read seeds from {path}: {error}") from error
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    first = head.partition(b"\n")[0].rstrip(b"\r")
    if head.startswith(b"WARC/"):
        return "warc"
    if head.lstrip().startswith(b"<") and _SITEMAP.search(head):
        return "sitemap"
    if b"netscape-bookmark-file" in head.lower() or head.lstrip().lower().startswith((b"<!doctype", b"<html")):
        return "bookmarks"
    if _CAPTURE.match(first) or first.startswith(b"{"):
        return "json" if _WITH_URL.search(first) else "cdx"
    if first.lstrip().startswith(b"CDX "):
        return "cdx"
    return "csv" if _column(first.decode("utf-8", "replace")) else "lines"


def addresses(path: Path, form: Form, note: Callable[[str], None] = lambda _: None) -> Iterator[str]:
    """Yield the addresses of a file, as written, equal ones in a row once; memory does not grow with the file. `note`
    is called with a line about what was left out. Raises ConfigError: the file cannot be read, or is cut short.
    """
    before = ""
    try:
        found = _warc(path, note) if form == "warc" else _READERS[form](path)
        for address in found:
            if address and address != before:
                before = address
                yield address
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error, msgspec.DecodeError) as error:
        raise ConfigError(f"cannot read seeds from {path}: {error}") from error


def _lines(path: Path) -> Iterator[bytes]:
    with open_unpacked(path) as file:
        while line := file.readline(LINE_BYTES_MAX):
            yield line.strip()


def _sitemap(path: Path) -> Iterator[str]:
    """Yield the addresses of a sitemap, or of the sitemaps that an index names. It may be a single line of 50 MB."""
    # Not by process.feeds: its bounds (50,000 addresses, tags of 1 MiB, nothing after an error that cannot be repaired)
    # are for documents of the web, and it hands over all addresses at the end. An operator's file may be larger.
    with open_unpacked(path) as file:
        root = _SITEMAP.search(file.read(HEAD_BYTES))
    prefix = (root and root[1]) or b""
    for verbatim, escaped in _matches(path, re.compile(_LOC % (prefix, prefix), re.DOTALL)):
        yield (verbatim or html.unescape(escaped)).strip()


def _bookmarks(path: Path) -> Iterator[str]:
    for quoted in _matches(path, _HREF):
        yield reference_free("".join(quoted)).strip()


def _matches(path: Path, pattern: re.Pattern[bytes]) -> Iterator[Sequence[str]]:
    """Yield the groups of each match in a file, empty ones for those that did not take part."""
    with open_unpacked(path) as file:
        rest = b""
        while piece := file.read(LINE_BYTES_MAX):
            data = rest + piece
            end = 0
            for found in pattern.finditer(data):
                end = found.end()
                yield [(one or b"").decode("utf-8", "replace") for one in found.groups()]
            rest = data[end:][-HEAD_BYTES:]  # A match may go on in the next piece.


def _column(header: str) -> tuple[str, int] | None:
    """Return the delimiter of a CSV file and the number of its column of addresses; None where none has their name."""
    for delimiter in DELIMITERS:
        try:
            names = [name.strip().lower() for name in next(csv.reader([header], delimiter=delimiter), [])]
        except csv.Error:  # A line break of old Macs within it.
            return None
        for wanted in COLUMNS:
            if wanted in names:
                return delimiter, names.index(wanted)
    return None


def _csv(path: Path) -> Iterator[str]:
    with open_unpacked(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        found = _column(text.readline(HEAD_BYTES).strip())
        assert found is not None
        delimiter, number = found
        # What comes in pieces of a line without end exceeds the limit of a field.
        for row in csv.reader(iter(partial(text.readline, LINE_BYTES_MAX), ""), delimiter=delimiter):
            if len(row) > number:
                yield row[number].strip()


def _cdx(path: Path) -> Iterator[str]:
    number = 2
    for line in _lines(path):
        words = line.decode("utf-8", "replace").split(" ")
        if words[0] == "CDX":  # It names its fields by letters: a is the address.
            number = words.index("a") - 1 if "a" in words else number
        elif len(words) > number:
            yield words[number]


def _json(path: Path) -> Iterator[str]:
    decode = msgspec.json.Decoder(_CdxEntry).decode
    for line in _lines(path):
        start = 0 if line.startswith(b"{") else line.find(b" {") + 1  # A key may hold braces, and no space.
        if line[start : start + 1] == b"{":
            yield decode(line[start:]).url


def _warc(path: Path, note: Callable[[str], None]) -> Iterator[str]:
    # Other crawls have no use for it.
    from gossamer.stages.archive.foreign import CAPTURES, FaultCount, sound_records  # noqa: PLC0415

    faults = FaultCount(path)
    for record in sound_records(path, faults):
        address = record.fields.get("warc-target-uri", "")
        if record.fields.get("warc-type") in CAPTURES and address and not address.endswith("/robots.txt"):
            yield address.strip("<>")
    if says := faults.says():
        note(says)


_READERS: Mapping[Form, Callable[[Path], Iterator[str]]] = {
    "sitemap": _sitemap, "bookmarks": _bookmarks, "csv": _csv, "cdx": _cdx, "json": _json,
}  # fmt: skip
