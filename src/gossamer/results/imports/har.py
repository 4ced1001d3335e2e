"""HAR: the entries of an HTTP Archive 1.2, one in memory at a time, for files have 200 MB."""

import base64
import codecs
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import msgspec

from gossamer.model.decodable import decodable
from gossamer.model.visits import http_date
from gossamer.results.imports.capture import Capture, CapturePlace, Item, Refused, Skipped, Source
from gossamer.results.imports.content import address_of, date_of
from gossamer.results.imports.warc import SCHEMES, scheme_of
from gossamer.stages.archive.unpack import GZIP, BrokenMemberError, Unpacked

ENTRY_BYTES_MAX = 64 << 20
_ENTRIES = re.compile(rb'"entries"[ \t\r\n]{0,99}:[ \t\r\n]{0,99}\[')
_OVERLAP_BYTES = 256
_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*', re.DOTALL)
_TOKEN = re.compile(rb'[{}\[\]"]')
_ATTACHED = re.compile(r"[0-9a-f]{40}\.[a-z0-9]{1,20}")
"""Names that Playwright gives: no others, as an archive may come from anyone."""
_CODED = ("content-encoding", "transfer-encoding", "content-length")


class _HarContent(msgspec.Struct, rename="camel"):
    size: float | None = 0
    mime_type: str | None = ""
    text: str | None = None
    encoding: str | None = ""
    file: str | None = msgspec.field(default="", name="_file")
    """Of Playwright (`content: "attach"`): the name of a file beside the archive."""


class _HarRequest(msgspec.Struct):
    url: str
    method: str = "GET"


class _HarResponse(msgspec.Struct, rename="camel"):
    status: int = 0
    status_text: str | None = ""
    http_version: str | None = ""
    headers: list[dict[str, Any]] | None = None
    redirect_url: str | None = msgspec.field(default="", name="redirectURL")
    content: _HarContent | None = None


@decodable
class _HarEntry(msgspec.Struct, rename="camel"):
    request: _HarRequest
    response: _HarResponse | None = None
    started_date_time: Any = ""
    ip: str | None = msgspec.field(default="", name="serverIPAddress")


_entry = msgspec.json.Decoder(_HarEntry, strict=False).decode


def captures_of_har(
    source: Source, unpacked: Unpacked, after: CapturePlace | None, beside: Callable[[str], bytes]
) -> Iterator[Item]:
    """Yield what the entries of a HAR file are; `beside` reads a file in its folder or package."""
    number = -1
    try:
        for number, entry in enumerate(_entries(in_utf8(unpacked.pieces()))):
            if after is not None and number <= after.offset:
                continue
            place = CapturePlace(source.number, number)
            try:
                if entry is None:
                    raise ValueError(f"has more than {ENTRY_BYTES_MAX >> 20} MiB")
                yield _capture(_decode(entry), place, beside)
            except (ValueError, RecursionError) as error:  # Errors of msgspec and base64 are such.
                yield Refused(source.number, source.name, number, " ".join(str(error).split())[:200])
    except BrokenMemberError as error:
        yield Refused(source.number, source.name, number + 1, str(error))


def in_utf8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield JSON in UTF-8, as shells of Windows write it in UTF-16 with a byte order mark."""
    first = next(pieces, b"")
    decode = codecs.getincrementaldecoder("utf-16")("replace").decode
    is_wide = first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    for piece in chain((first,), pieces):
        yield decode(piece).encode("utf-8", "replace") if is_wide else piece


def _decode(data: bytes) -> _HarEntry:
    try:
        return _entry(data)
    except msgspec.DecodeError:
        # Browsers escape half characters of a text that is cut, which no UTF-8 has, and programs write NaN.
        loose = json.loads(data, parse_constant=lambda _: None)
        return _entry(json.dumps(loose, ensure_ascii=False).encode("utf-8", "replace"))


def _capture(entry: _HarEntry, place: CapturePlace, beside: Callable[[str], bytes]) -> Item:
    response = entry.response or _HarResponse()
    url = entry.request.url
    content = response.content or _HarContent()
    text = content.text or ""
    status = response.status or (200 if text and response.headers else 0)  # Firefox has 0 for what it had cached.
    if scheme_of(url) not in SCHEMES or not 100 <= status <= 999:
        is_other = scheme_of(url) not in SCHEMES and response.status
        return Skipped(place, f"entry {scheme_of(url)[:20]}" if is_other else "entry without a reply", url)
    is_text = content.encoding != "base64"
    is_there = content.text is not None or (content.size or 0) <= 0
    try:
        body = text.encode("utf-8", "replace") if is_text else base64.b64decode("".join(text.split()), validate=True)
    except ValueError:  # A remark in place of the content, as people and sanitizers write it.
        body = b""
        is_there = False
    if content.file and _ATTACHED.fullmatch(content.file):
        with suppress(OSError, KeyError, zipfile.BadZipFile, zlib.error, RuntimeError):  # It is lost, or encrypted.
            body = beside(content.file)
            is_there = True
    headers = _headers(response, is_text=is_text and bool(text), is_gzip=body.startswith(GZIP))
    said = str(entry.started_date_time)
    date = date_of(said) or next((http_date(value) for name, value in headers if name.lower() == "date"), None)
    if date is None:
        raise ValueError(f"has no valid date ({said[:40]!r})")
    return Capture(
        place=place,
        kind="response",
        url=address_of(url),
        fetched_at=date,
        status=status,
        headers=headers,
        body=body,
        reason=response.status_text or "",
        http_version=(response.http_version or "1.1").lower().removeprefix("http/").removeprefix("h"),
        truncated="" if is_there else "unspecified",
        ip=(entry.ip or "").strip("[]"),
        method=entry.request.method.upper(),
    )


def _headers(response: _HarResponse, *, is_text: bool, is_gzip: bool) -> tuple[tuple[str, str], ...]:
    """Return the headers, without those of HTTP/2 itself. The content is decoded, text even of its charset."""
    headers: list[tuple[str, str]] = []
    names = set()
    for header in response.headers or []:
        written = header.get("name")
        values = header.get("value")
        if not isinstance(written, str) or isinstance(values, list | dict):
            continue
        name = written.lower()
        names.add(name)
        # Programs write numbers, too. Browsers join Set-Cookie by line breaks.
        for value in ("" if values is None else str(values)).split("\n"):
            if name in _CODED and not (name == _CODED[0] and is_gzip):
                headers.append((f"X-Archive-Orig-{written}", value))
            elif name == "content-type":
                headers.append((written, value.partition(";")[0] + "; charset=utf-8" if is_text else value))
            elif name and name[0] != ":":
                headers.append((written, value.strip()))
    if "content-type" not in names and response.content is not None and response.content.mime_type:
        headers.append(("Content-Type", response.content.mime_type))
    if "location" not in names and response.redirect_url:
        headers.append(("Location", response.redirect_url))
    return tuple(headers)


def _entries(pieces: Iterator[bytes]) -> Iterator[bytes | None]:
    """Yield the elements of the array `entries` as they stand; None for one that is too large. One pass."""
    held = bytearray()
    for piece in pieces:
        held += piece
        if match := _ENTRIES.search(held):
            del held[: match.end()]
            break
        del held[:-_OVERLAP_BYTES]
    else:
        raise BrokenMemberError("holds no entries")
    at = depth = 0
    is_string = is_large = False
    while True:
        match = _STRING.match(held, at) if is_string else _TOKEN.search(held, at)
        at = match.end() if match is not None else len(held)
        if is_string:
            token = bytes(held[at : at + 1])  # A quote, or a backslash that ends the piece.
            is_string = token != b'"'
            at += not is_string
        else:
            token = match[0] if match is not None else b""
            is_string = token == b'"'
            depth += (token in (b"{", b"[")) - (token in (b"}", b"]"))
            if depth < 0:
                return
            if token in (b"}", b"]") and not depth:
                yield None if is_large else bytes(held[:at]).lstrip(b", \t\r\n")
                is_large = False
                del held[:at]
                at = 0
        if token not in (b"", b"\\"):
            continue
        if len(held) > ENTRY_BYTES_MAX:
            is_large = True
            del held[:at]
            at = 0
        piece = next(pieces, b"")
        if not piece:
            raise BrokenMemberError("ends early")
        held += piece
