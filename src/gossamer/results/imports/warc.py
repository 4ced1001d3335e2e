"""WARC and ARC: the captures of a file, each with what the records beside it say."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from gossamer.model.links import EMBED, LINK_TYPES, OUTLINK
from gossamer.model.pages import Original, Rendered
from gossamer.model.visits import http_date
from gossamer.results.imports.capture import LINK_TYPE, Capture, CapturePlace, Item, Refused, Room, Skipped, Source
from gossamer.results.imports.content import address_of, begins_reply, date_of, keep, take_head
from gossamer.results.imports.texts import PREFIXES
from gossamer.stages.archive.chunks import Dechunked, is_chunked
from gossamer.stages.archive.foreign import CAPTURES, Block, Fault, ForeignRecord, RecordStream, UnreadableError
from gossamer.stages.archive.members import HEAD_BYTES_MAX
from gossamer.stages.archive.unpack import BrokenMemberError, Unpacked

SCHEMES = frozenset(("http", "https", "ftp", "ftps", "gopher", "gemini", "file"))
"""Of addresses of pages. Others are `dns:`, `urn:`, `metadata:`, `whois:`, `screenshot:` …"""
GROUP_MAX = 64
RENDERED_BYTES_MAX = 16 << 20
_HTTP = frozenset(("response", "revisit"))
_BESIDE = frozenset(("request", "metadata"))
_HOPS_MAX = 1_000
_DIGITS_MAX = 9
_ERROR_CHARACTERS_MAX = 4_096
_HOPS = {"E": EMBED, "R": "redirect"}
_NUMBERS = {"depth": "depth", "attempt": "attempt", "wireBytes": "wire_bytes", "hops": "hops"}
"""Fields of metadata records, and those of a capture."""
_PROTOCOLS = {"http/1.0": "1.0", "h2": "2", "h3": "3"}
"""HTTP versions by WARC-Protocol; heads in records are of HTTP/1.1."""
_METHOD = re.compile(r"[?&]__wb_method=([A-Za-z]{1,20})(?:&|\Z)")
"""Recorders write other methods than GET into the address."""


def captures_of_warc(source: Source, unpacked: Unpacked, room: Room, after: CapturePlace | None) -> Iterator[Item]:
    """Yield what the records of a WARC or ARC file are, in their order."""
    start = (after.offset - source.begin, after.within) if after is not None else None
    search_bytes = after.length if after is not None and after.within < 0 else 0
    stream = RecordStream(unpacked, is_arc=source.form == "arc", after=start, search_bytes=search_bytes)
    groups = _Grouping()
    reading = _ContentReader(room)
    is_whole = not (unpacked.has_dictionary or source.member or source.form == "arc")
    for record in stream:
        if isinstance(record, Fault):
            fault = record
        else:
            try:
                content = reading.read(record)
                offset, within, length = stream.finish()
            except (BrokenMemberError, UnreadableError) as error:
                fault = stream.refuse(error)
            else:
                is_one = is_whole and bool(length) and reading.is_regular and stream.is_standard
                place = CapturePlace(
                    source.number, source.begin + offset, within, length, unpacked.packing, linkable=is_one
                )
                yield from groups.add(record.fields, content, place)
                continue
        yield from groups.flush()
        yield Refused(source.number, source.name, source.begin + fault.offset, fault.reason)
    yield from groups.flush()


class _ContentReader:
    """Reads the content of records."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._last_date: float | None = None
        self.is_regular = True
        """Simple readers find the body of the last record."""

    def read(self, record: ForeignRecord) -> dict[str, Any] | bytes:
        """Return the fields of a capture, or the content of a record that says something of one beside it."""
        fields = record.fields
        kind = kind_of(fields)
        self.is_regular = kind not in _HTTP or fields.get("content-type", "").lower().startswith("application/http")
        if kind in _BESIDE:
            return record.block.take_all(HEAD_BYTES_MAX)
        if is_rendered(fields):
            document = record.block.take_all(RENDERED_BYTES_MAX)
            return document if len(document) < RENDERED_BYTES_MAX else b""
        url = url_of(fields)
        if self._room.counts and kind == "resource" and url.startswith(PREFIXES):
            return record.block.take_all(HEAD_BYTES_MAX)
        if kind not in CAPTURES or scheme_of(url) not in SCHEMES:
            return b""
        about: dict[str, Any] = {"kind": kind, "url": address_of(url)}
        date = date_of(fields.get("warc-date", ""))
        is_bare = not fields.get("content-type", "application/http").startswith("application/http") and not (
            begins_reply(record.block)
        )  # As in ARC files of programs that kept no heads.
        if kind == "resource" or (kind == "response" and (is_bare or scheme_of(url) not in ("http", "https"))):
            about["kind"] = "resource"
            about["status"] = 200
            about["headers"] = (("Content-Type", fields.get("content-type", "")),)
            body = iter(record.block.take, b"")
        elif date and self._room.counts and not self._room.heads and begins_reply(record.block):
            about["status"] = 0
            about["headers"] = ()
            body = iter(())
        else:
            body = self._read_http(record.block, about, fields.get("warc-protocol", ""))
        about["fetched_at"] = self._date(date, fields, about["headers"])
        cut = False
        if kind != "revisit" and not self._room.counts:
            about["body"], about["file"], cut = keep(iter(body), self._room)
        is_broken = isinstance(body, Dechunked) and body.is_cut
        about["truncated"] = fields.get("warc-truncated", "").lower()
        if cut or is_broken or "warc-segment-number" in fields:
            about["truncated"] = about["truncated"] or ("length" if cut else "unspecified")
        return about

    def _read_http(self, block: Block, about: dict[str, Any], protocol: str) -> Any:
        if about["kind"] == "revisit" and not begins_reply(block):
            about["status"] = 0
            about["headers"] = ()
            return ()
        head, is_regular = take_head(block)
        self.is_regular = self.is_regular and is_regular
        about["status"] = head.status
        about["headers"] = head.headers
        about["reason"] = head.reason
        about["http_version"] = _PROTOCOLS.get(protocol.lower(), head.http_version)
        pieces = iter(block.take, b"")
        return Dechunked(pieces) if is_chunked(head.headers) else pieces

    def _date(self, date: float | None, fields: dict[str, str], headers: tuple[tuple[str, str], ...]) -> float:
        """Return when a record was made: as it says, else as the server says, else when the last one was."""
        date = date or next((http_date(value) for name, value in headers if name.lower() == "date"), None)
        date = date or self._last_date
        if not date:
            raise UnreadableError(f"has no valid date ({fields.get('warc-date', '')[:40]!r})")
        self._last_date = date
        return date


class _Grouping:
    """Joins a capture and the records that belong to it."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._items: list[Item] = []
        self._at = -1
        self._ids: set[str] = set()
        self._url = ""
        self._beside: dict[str, Any] = {}

    def add(self, fields: dict[str, str], content: dict[str, Any] | bytes, place: CapturePlace) -> Iterator[Item]:
        """Take a record; yield the items of the last group if it belongs to another."""
        record_id = fields.get("warc-record-id", "").strip("<> ")
        url = url_of(fields)
        to = fields.get("warc-concurrent-to", fields.get("warc-refers-to", "")).strip("<> ")
        belongs = to in self._ids if to and self._ids else url == self._url
        kind = kind_of(fields)
        is_next = self._at >= 0 if isinstance(content, dict) else kind == "request" and "method" in self._beside
        if not belongs or is_next or len(self._items) >= GROUP_MAX:
            yield from self.flush()
        self._url = url
        if record_id:
            self._ids.add(record_id)
        if isinstance(content, dict):
            self._at = len(self._items)
            self._items.append(
                Capture(
                    place=place,
                    digest=fields.get("warc-payload-digest", ""),
                    record_id=record_id,
                    copy_of=fields.get("gossamer-copy-of", ""),
                    original=_original(fields) if content["kind"] == "revisit" else None,
                    ip=fields.get("warc-ip-address", ""),
                    method=match[1].upper() if (match := _METHOD.search(url)) else "GET",
                    authenticated=fields.get("gossamer-authenticated", "") == "yes",
                    **content,
                )
            )
            return
        if is_rendered(fields) and content and self._at >= 0 and "rendered" not in self._beside:
            self._beside["rendered"] = Rendered(content, fields.get("warc-page-id", ""))
            return
        if kind in _BESIDE:
            self._beside |= _request(content) if kind == "request" else _metadata(content)
            url = address_of(url)
        elif kind in CAPTURES:
            kind = f"{kind} {scheme_of(url)[:20]}".rstrip()
        text = content if kind == "resource urn" else b""
        self._items.append(Skipped(place, kind[:40] or "unknown", url, text))

    def flush(self) -> Iterator[Item]:
        """Yield the items of the group, and begin another."""
        items = self._items
        if self._at >= 0 and self._beside:
            capture = items[self._at]
            assert isinstance(capture, Capture), "it is at its place"
            if capture.kind != "resource":
                self._beside.pop("status", None)
            items[self._at] = replace(capture, **self._beside)
        self._begin()
        yield from items


def url_of(fields: dict[str, str]) -> str:
    """Return the address of a record. wget writes it in angle brackets, as WARC 1.0 has it in its grammar."""
    return fields.get("warc-target-uri", "").strip("<> ")


def kind_of(fields: dict[str, str]) -> str:
    """Return the type of a record."""
    return fields.get("warc-type", "").lower()


def is_rendered(fields: dict[str, str]) -> bool:
    """Return whether a record is the document that scripts made of a page: WET files have texts instead."""
    return kind_of(fields) == "conversion" and fields.get("content-type", "").startswith("text/html")


def scheme_of(url: str) -> str:
    """Return the scheme of an address in lower case; empty if there is none."""
    return url.partition(":")[0].lower() if ":" in url else ""


def _original(fields: dict[str, str]) -> Original:
    return Original(
        address_of(fields.get("warc-refers-to-target-uri", "").strip("<> ")),
        date_of(fields.get("warc-refers-to-date", "")) or 0.0,
        fields.get("warc-refers-to", "").strip("<> "),
    )


def _request(content: bytes) -> dict[str, Any]:
    head, _, _ = content.partition(b"\r\n\r\n")
    method = head.partition(b" ")[0].decode("latin-1")
    if not (method.isascii() and method.isalpha() and len(method) <= 20):
        return {}
    return {"method": method.upper(), "request_head": head + b"\r\n\r\n"}


def _metadata(content: bytes) -> dict[str, Any]:
    """Return the fields of Heritrix (`via`, `hopsFromSeed: LLE`, `fetchTimeMs`) and Gossamer (these and others)."""
    found: dict[str, Any] = {}
    for line in content.decode("utf-8", "replace").split("\n"):
        name, _, value = line.partition(":")
        value = value.strip()
        number = int(value) if value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX else -1
        if name in _NUMBERS and number >= 0:
            found[_NUMBERS[name]] = number
        elif name == "fetchTimeMs" and number >= 0:
            found["fetch_s"] = number / 1000
        elif name == "error":
            found["error"] = value[:_ERROR_CHARACTERS_MAX]
        elif name == "status" and 100 <= number <= 999:
            found["status"] = number
        elif name == "via" and scheme_of(value) in SCHEMES:
            found["via"] = address_of(value)
        elif name == "linkType" and value in (*LINK_TYPES, OUTLINK):
            found["link_type"] = value
        elif name == "hopsFromSeed" and len(value) <= _HOPS_MAX:
            found["depth"] = sum(map(value.count, "LEXS"))  # Links, embeds, guesses and forms; no redirects.
            found["link_type"] = _HOPS.get(value[-1:], LINK_TYPE)
    return found
