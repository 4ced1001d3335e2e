"""A content-seen test for `components.content_seen`: copies are looked for within one host.

gossamer crawl https://docs.example.org/ --contact you@example.org --set components.content_seen=content_seen.py:OfHost
"""

import msgspec
from xxhash import xxh3_64_digest

from gossamer.model.pages import Original
from gossamer.state.epoch import Epochs
from gossamer.url.url import Url


class OfHost:
    """Remembers the first page of a host with each content."""

    def __init__(self, *, epochs: Epochs) -> None:
        self._epochs = epochs

    def find(self, digest: bytes, url: Url) -> Original | None:
        stored = self._epochs.get("content", _key(digest, url))
        return None if stored is None else msgspec.msgpack.decode(stored, type=Original)

    def remember(self, digest: bytes, url: Url, original: Original) -> None:
        self._epochs.put("content", _key(digest, url), msgspec.msgpack.encode(original))


def _key(digest: bytes, url: Url) -> bytes:
    return url.partition.to_bytes(2) + b"of_host" + xxh3_64_digest(url.host.encode()) + digest
