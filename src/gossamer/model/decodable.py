"""Decodable: how values of a type are decoded is worked out where the type is defined, before threads share it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

Kind = TypeVar("Kind", bound=type[msgspec.Struct])


def decodable(kind: Kind) -> Kind:
    """Have msgspec work out how a type that holds structs is decoded. It would do so at the first decoding, in steps
    between which another thread can run; one that decodes the same type then follows a null pointer, and the process
    is gone (msgspec 0.22, `StructInfo_Convert` in `_core.c`).
    """
    msgspec.msgpack.Decoder(kind)
    return kind
