"""Record: what is kept of a host's robots.txt, so that a restart asks no sooner and forgets nothing."""

from __future__ import annotations

import enum

import msgspec

VERSION = 1


class Kind(enum.IntEnum):
    """What the last answer that settled anything said."""

    RULES = 0
    ALLOW_ALL = 1
    UNREACHABLE = 2
    """None did yet: all is disallowed."""


class RobotsRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One origin's robots.txt as it stands: the last copy, and the failures since. Times are wall time in seconds."""

    kind: Kind
    text: bytes = b""
    """Of `RULES`: what is read of the file, in UTF-8."""
    fetched_at: float = 0.0
    """When the copy came; its rules are known by this and their origin."""
    expires_at: float = 0.0
    """When it must be asked for again."""
    failures: int = 0
    """In a row since the copy, or since ever."""
    first_failed_at: float = 0.0
    retry_at: float = 0.0
    """No sooner than this is it asked for again after a failure."""
    version: int = VERSION
    error: str = ""
    """What was wrong the last time."""
    lasting: int = 0
    """Of the failures the last so many were of a kind that another try hardly mends: certificates."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(RobotsRecord)


def encode(record: RobotsRecord) -> bytes:
    """Return the record as bytes for the store."""
    return _encoder.encode(record)


def decode(data: bytes) -> RobotsRecord | None:
    """Return what `encode` made, or None for another version: then the file is asked for again."""
    try:
        record = _decoder.decode(data)
    except msgspec.MsgspecError:
        return None
    return record if record.version == VERSION else None
