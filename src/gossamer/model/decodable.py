"""Decodable: prepares a type's msgspec decoder when the type is defined, before threads share it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

Kind = TypeVar("Kind", bound=type[msgspec.Struct])


def decodable(kind: Kind) -> Kind:
    """Have msgspec prepare now how it decodes `kind`, a type that holds structs, and return `kind`. Otherwise msgspec
    prepares it at the first decoding, in steps between which another thread can run; if that thread decodes the same
    type, it follows a null pointer and the process crashes (msgspec 0.22, `StructInfo_Convert` in `_core.c`).
    """
    msgspec.msgpack.Decoder(kind)
    return kind
