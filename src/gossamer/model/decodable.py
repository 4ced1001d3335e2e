"""Decodable: prepares a type's msgspec decoder before threads share it, and decodes records of one version."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

Kind = TypeVar("Kind", bound=type[msgspec.Struct])
Record = TypeVar("Record")


def decodable(kind: Kind) -> Kind:
    """Have msgspec prepare now how it decodes `kind`, a type that holds structs, and return `kind`. Otherwise msgspec
    prepares it at the first decoding, in steps between which another thread can run; if that thread decodes the same
    type, it follows a null pointer and the process crashes (msgspec 0.22, `StructInfo_Convert` in `_core.c`).
    """
    msgspec.msgpack.Decoder(kind)
    return kind


def of_version(version: int, decode: Callable[[bytes], Record], data: bytes) -> Record | None:
    """Return a stored record that has a field `version`; None for another version, and for what cannot be decoded."""
    try:
        record = decode(data)
    except msgspec.MsgspecError:
        return None
    return record if getattr(record, "version", None) == version else None
