"""Content: who had this body first."""

from __future__ import annotations

import msgspec
from xxhash import xxh3_64_digest

from gossamer.model.visits import Original
from gossamer.state.epoch import Epochs
from gossamer.state.schema import CONTENT
from gossamer.url.url import Url


class Holder(msgspec.Struct, array_like=True, frozen=True):
    """What is kept of an `Original`."""

    url: str
    fetched_at: float
    record_id: str
    links: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Holder).decode


class ExactContentSeen:
    """Remembers the first holder of each digest within a host, a site or the shard. A put and a get a page."""

    def __init__(self, epochs: Epochs, scope: str) -> None:
        self._epochs = epochs
        self._scope = scope

    def find(self, digest: bytes, url: Url) -> Original | None:
        """Return who had it first, or None."""
        value = self._epochs.get("content", self._key(digest, url))
        if value is None:
            return None
        holder = _decode(value)
        return Original(holder.url, holder.fetched_at, holder.record_id, holder.links)

    def remember(self, digest: bytes, url: Url, original: Original) -> None:
        """Note the first holder, after `find` found none: this does not look again."""
        value = _encode(Holder(original.url, original.fetched_at, original.record_id, original.links))
        self._epochs.put("content", self._key(digest, url), value)

    def _key(self, digest: bytes, url: Url) -> bytes:
        if self._scope == "shard":
            return CONTENT + digest
        owner = url.host if self._scope == "host" else url.site
        return url.partition.to_bytes(2) + xxh3_64_digest(owner.encode()) + digest
