"""A strict reader of WARC files, with the objections of JWAT and some more. It shares no code with what wrote them.

By ISO 28500:2017 (WARC 1.1): each rule has its section beside it. Readers of others forgive most of this.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import zstandard

TYPES = {"warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation"}
MANDATORY = ("WARC-Type", "WARC-Record-ID", "WARC-Date", "Content-Length")
WITH_TARGET = {"response", "resource", "request", "revisit", "conversion", "continuation"}
TRUNCATIONS = {"length", "time", "disconnect", "unspecified"}
PROFILES = "http://netpreserve.org/warc/1.1/revisit/"
_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
FIELD = re.compile(rf"({_TOKEN}):[ \t]*(.*)")
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")
RECORD_ID = re.compile(r"<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}>")
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s<>\"\x00-\x20\x7f]+")
STATUS_LINE = re.compile(rb"HTTP/1\.[01] \d{3} [^\r\n]*\r\n")
REQUEST_LINE = re.compile(rb"[A-Z]+ \S+ HTTP/1\.[01]\r\n")


@dataclass
class Read:
    """One record as it stands in a file."""

    file: str
    offset: int
    length: int
    """Of the packed record."""
    fields: dict[str, str]
    block: bytes
    faults: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.fields.get("WARC-Type", "")

    @property
    def id(self) -> str:
        return self.fields.get("WARC-Record-ID", "")

    @property
    def target(self) -> str:
        return self.fields.get("WARC-Target-URI", "")

    @property
    def head(self) -> bytes:
        """Of an HTTP message, with the empty line."""
        return self.block[: self.block.find(b"\r\n\r\n") + 4]

    @property
    def payload(self) -> bytes:
        """Section 6: of HTTP messages the body, of other blocks the whole."""
        return (
            self.block[len(self.head) :]
            if self.fields.get("Content-Type", "").startswith("application/http")
            else (self.block)
        )

    def story(self) -> dict[str, list[str]]:
        """Return the fields of a block of application/warc-fields; a name may come more than once."""
        found: dict[str, list[str]] = {}
        for line in re.sub(r"\r\n[ \t]+", "\n", self.block.decode()).split("\r\n"):
            name, _, value = line.partition(": ")
            found.setdefault(name, []).append(value)
        return found


def read(path: Path) -> Iterator[Read]:
    """Yield the records of a file. Raises ValueError where it cannot be read on."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        text, length, faults = _unpacked(data, at, path.suffix)
        yield _parsed(path.name, at, length, text, faults)
        at += length


def _unpacked(data: bytes, at: int, suffix: str) -> tuple[bytes, int, list[str]]:
    """Return one member (annex D: one record each) and its packed length."""
    if suffix == ".zst":
        frame = zstandard.get_frame_parameters(data[at : at + 18])
        zst = zstandard.ZstdDecompressor().decompressobj()
        text = zst.decompress(data[at:])
        faults = [] if frame.has_checksum else ["the frame has no checksum"]
        if frame.content_size != len(text):
            faults.append("the frame does not say its size")
        return text, len(data) - at - len(zst.unused_data), faults
    gzip = zlib.decompressobj(31)
    text = gzip.decompress(data[at:])
    if not gzip.eof:
        raise ValueError(f"the member at {at} has no end")
    return text, len(data) - at - len(gzip.unused_data), []


def _parsed(file: str, at: int, length: int, text: bytes, faults: list[str]) -> Read:
    head, end, rest = text.partition(b"\r\n\r\n")
    version, *lines = head.split(b"\r\n")
    if version != b"WARC/1.1" or not end:
        raise ValueError(f"{file}: no record begins at {at}: {text[:40]!r}")
    fields: dict[str, str] = {}
    for line in lines:
        match = FIELD.fullmatch(line.decode("utf-8"))
        if match is None or "\r" in line.decode() or "\n" in line.decode():
            faults.append(f"not a named field: {line!r}")  # Section 4.
            continue
        name, value = match[1], match[2]
        if name in fields:
            faults.append(f"{name} stands there twice")
        if value != value.strip() or not value:
            faults.append(f"{name} is empty or padded: {value!r}")
        fields[name] = value
    stated = fields.get("Content-Length", "")
    if not stated.isdigit() or len(rest) != int(stated) + 4 or not rest.endswith(b"\r\n\r\n"):
        faults.append(f"Content-Length {stated} and {len(rest) - 4} bytes are there")  # Section 5.3.
    return Read(file, at, length, fields, rest[:-4], faults)


def faults(paths: Iterable[Path], *, forgotten: bool = False) -> list[str]:
    """Return everything that is wrong with the files of one crawl; each sentence names its record. With `forgotten`
    there may be tombstones, which are blank, and records that were written anew into another file.
    """
    records = [record for path in paths for record in read(path)]
    if forgotten:
        tombs = [one for one in records if one.kind == "metadata" and one.fields.get("Content-Type") == "text/plain"]
        assert all(one.block.strip() == b"" and not one.faults for one in tombs)
        records = [one for one in records if one not in tombs]
    by_id = {record.id: record for record in records}
    found = [f"record id twice: {name}" for name, count in Counter(r.id for r in records).items() if count > 1]
    for record in records:
        record.faults += [*_named(record), *_digests(record), *_block(record), *_relations(record, by_id, forgotten)]
        if (record.offset == 0) != (record.kind == "warcinfo"):
            record.faults.append("a warcinfo record stands first in each file, and nowhere else")
        found += [f"{record.file} at {record.offset} ({record.kind} {record.target}): {f}" for f in record.faults]
    return found


def _named(record: Read) -> Iterator[str]:
    fields = record.fields
    for name in MANDATORY:
        if name not in fields:
            yield f"{name} is missing"  # Section 5.1.
    if record.kind not in TYPES:
        yield f"{record.kind!r} is no type"
    if not RECORD_ID.fullmatch(record.id):
        yield f"{record.id!r} is no UUID"
    date = fields.get("WARC-Date", "")
    if not DATE.fullmatch(date):
        yield f"{date!r} is no date"  # Section 5.4, W3CDTF.
    else:
        datetime.fromisoformat(date)
    if record.kind in WITH_TARGET and not URI.fullmatch(record.target):
        yield f"{record.target!r} is no URI"  # Section 5.9.
    if record.kind == "warcinfo" and (record.target or fields.get("WARC-Filename") != record.file):
        yield "a warcinfo record names its file and no target"  # Section 5.15.
    if record.block and "Content-Type" not in fields:
        yield "a block has a type"  # Section 5.6.
    yield from _optional(record)


def _optional(record: Read) -> Iterator[str]:
    fields = record.fields
    if "WARC-IP-Address" in fields:
        ipaddress.ip_address(fields["WARC-IP-Address"])
    if fields.get("WARC-Truncated", "length") not in TRUNCATIONS:
        yield f"{fields['WARC-Truncated']!r} is no reason"
    if fields.get("WARC-Protocol", "h2") not in ("http/1.0", "http/1.1", "h2", "h3"):
        yield f"{fields['WARC-Protocol']!r} is no protocol of ours"
    for name in fields:
        if name.startswith("WARC-Refers-To") and record.kind not in ("revisit", "metadata", "conversion"):
            yield f"a {record.kind} has no {name}"  # Section 5.11.


def _digests(record: Read) -> Iterator[str]:
    for name, data in (("WARC-Block-Digest", record.block), ("WARC-Payload-Digest", record.payload)):
        stated = record.fields.get(name)
        if name == "WARC-Payload-Digest" and record.kind == "revisit":
            continue  # Of what is not there: `_relations`.
        if stated is None:
            if name == "WARC-Block-Digest" or record.kind in ("response", "resource"):
                yield f"{name} is missing"
            continue
        algorithm, _, value = stated.partition(":")
        if base64.b32encode(hashlib.new(algorithm, data).digest()).decode() != value:
            yield f"{name} is another's"


def _block(record: Read) -> Iterator[str]:
    kind, content_type = record.kind, record.fields.get("Content-Type", "")
    if kind in ("warcinfo", "metadata"):
        if content_type != "application/warc-fields":
            yield f"a {kind} of {content_type}"
        if not record.block.endswith(b"\r\n"):
            yield "the last field has no end"
        for line in record.block.decode().split("\r\n")[:-1]:
            if not (FIELD.fullmatch(line) or line.startswith(("\t", " "))) or "\n" in line or "\r" in line:
                yield f"not a field: {line!r}"
    elif kind == "request":
        if content_type != "application/http; msgtype=request" or not REQUEST_LINE.match(record.block):
            yield f"no request: {record.block[:40]!r}"
    elif kind in ("response", "revisit"):
        if content_type != "application/http; msgtype=response" or not STATUS_LINE.match(record.block):
            yield f"no response: {record.block[:40]!r}"
        if not record.head.endswith(b"\r\n\r\n"):
            yield "the head has no end"
        elif kind == "response":
            yield from _framing(record)


def _framing(record: Read) -> Iterator[str]:
    """What would make a reader of the stored message wait, or read too little."""
    head = record.head.decode("latin-1")
    if re.search(r"(?im)^transfer-encoding:", head):
        yield "a stored body has no transfer coding"
    lengths = re.findall(r"(?im)^content-length:\s*(\d+)\s*$", head)
    if lengths and int(lengths[0]) != len(record.payload) and b" 304 " not in record.head[:16]:
        yield f"the body has {len(record.payload)} bytes, its head says {lengths[0]}"


def _relations(record: Read, by_id: dict[str, Read], elsewhere: bool) -> Iterator[str]:
    fields = record.fields
    if (concurrent := fields.get("WARC-Concurrent-To")) is not None:
        other = by_id.get(concurrent)
        if other is None or (other.file != record.file and not elsewhere) or other.target != record.target:
            yield f"{concurrent} is not there"  # Section 5.8.
        elif other.fields.get("WARC-Date") != fields.get("WARC-Date"):
            yield "records of one capture have one date"
    elif record.kind in ("request", "metadata"):
        yield "it belongs to nothing"
    if record.kind == "revisit":
        yield from _original(record, by_id)


def _original(record: Read, by_id: dict[str, Read]) -> Iterator[str]:
    fields = record.fields
    profile = fields.get("WARC-Profile", "")
    if not profile.startswith(PROFILES):
        yield f"{profile!r} is no profile"  # Section 6.7.
    if record.payload:
        yield "a revisit has no payload"
    original = by_id.get(fields.get("WARC-Refers-To", ""))
    if original is None:
        yield "its original is not there"
        return
    if original.target != fields.get("WARC-Refers-To-Target-URI"):
        yield "the original has another target"
    if original.fields.get("WARC-Date") != fields.get("WARC-Refers-To-Date"):
        yield "the original has another date"
    if profile.endswith("identical-payload-digest"):
        if original.kind not in ("response", "resource"):
            yield f"its original is a {original.kind}"
        if original.fields.get("WARC-Payload-Digest") != fields.get("WARC-Payload-Digest"):
            yield "the original has another payload"
