"""Fingerprint: 64 bits that stand for a key."""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

PARTITIONS = 4096


def fingerprint(key: str) -> int:
    """Return xxh3_64 of the key's UTF-8 bytes, from 0 to 2**64 - 1; the same on every machine and in every run.

    Among a billion keys the chance that any two share one is 2.7 %, among a hundred million 0.03 % (birthday bound).
    """
    return xxh3_64_intdigest(key.encode())
