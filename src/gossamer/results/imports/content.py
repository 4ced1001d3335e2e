"""Content: the HTTP reply in a record, its transfer coding removed, its body bounded, and the dates of records."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO

from gossamer.model.visits import LargeBody
from gossamer.results.imports.capture import Room
from gossamer.stages.archive.foreign import Block, UnreadableError
from gossamer.stages.fetch.headers import Head, parse_head
from gossamer.url.join import absolute
from gossamer.world.spill import Spill

_BEGINS = (b"HTTP", b"http/", b"ICY ", b":status:")
_ODD_STATUS = re.compile(rb"(?:HTTPX?(?:/[0-9.]{1,9})?|ICY|:status:)[ \t]*+(?=[1-9][0-9]{2})", re.IGNORECASE)
"""Matches how others begin a reply: streams of radio, browsers that speak HTTP/2, a rewriting proxy."""
_DIGITS = re.compile(r"[0-9]{4,}+")
_NO_DATE = "19700101000000"


def take_head(block: Block) -> tuple[Head, bool]:
    """Take the head of the final reply in a record, and whether it is plain. Raises UnreadableError: there is none."""
    head = None
    count = 0
    data = b""
    is_odd = False
    while head is None and begins_reply(block):
        data = block.take_head()
        if not data.startswith(b"HTTP/"):
            data = _ODD_STATUS.sub(b"HTTP/1.1 ", data, count=1)
            is_odd = True
        head = parse_head(BytesIO(data.replace(b"\r\r\n", b"\r\n")).readlines())
        count += 1
    if head is None:
        raise UnreadableError("holds no HTTP reply")
    is_plain = data.count(b"\r\n") == data.count(b"\n") == data.count(b"\r")
    return head, is_plain and count == 1 and not is_odd


def begins_reply(block: Block) -> bool:
    """Return whether a record seems to begin with the head of a reply."""
    return any(map(block.begins_with, _BEGINS))


def keep(pieces: Iterator[bytes], room: Room) -> tuple[bytes, LargeBody | None, bool]:
    """Return a body in memory, or in a file where it is large, and whether it was cut at the bound."""
    held: list[bytes] = []
    spill: Spill | None = None
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > room.held_bytes_max:
            spill = spill or room.spills.make()
            for one in held:
                spill.write(one[: room.body_bytes_max - spill.size])
            held = []
        if size > room.body_bytes_max:
            break
    if spill is not None:
        spill.flush()
    return b"".join(held), spill, size > room.body_bytes_max


def address_of(text: str) -> str:
    """Return a recorded address in the form that links to it have; one that is not valid as it is."""
    return absolute(text) or text


def date_of(text: str) -> float | None:
    """Return seconds since 1970 of a date as WARC (W3C's profile of ISO 8601) or ARC (digits) has it; None of none."""
    text = text.strip()
    if _DIGITS.fullmatch(text):
        text = (text + _NO_DATE[len(text) :])[:14]
        text = f"{text[:8]}T{text[8:]}"
    elif len(text) in (4, 7):
        text += "-01-01"[: 10 - len(text)]
    try:
        moment = datetime.fromisoformat(text)
        seconds = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None
