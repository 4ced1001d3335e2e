"""Content: who had this body first."""

from __future__ import annotations

import msgspec
from xxhash import xxh3_64_digest

from gossamer.model.visits import Original
from gossamer.state.epoch import Epochs
from gossamer.state.store import META_PARTITION
from gossamer.url.url import Url

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, float, str]).decode


class ExactContentSeen:
    """Remembers the first holder of each digest within a host, a site or the shard. A put and a get a page."""

    def __init__(self, epochs: Epochs, scope: str) -> None:
        self._epochs = epochs
        self._scope = scope

    def find(self, digest: bytes, url: Url) -> Original | None:
        """Return who had it first, or None."""
        value = self._epochs.get("content", self._key(digest, url))
        return Original(*_decode(value)) if value is not None else None

    def remember(self, digest: bytes, url: Url, original: Original) -> None:
        """Note the first holder, after `find` found none: this does not look again."""
        value = _encode((original.url, original.fetched_at, original.record_id))
        self._epochs.put("content", self._key(digest, url), value)

    def _key(self, digest: bytes, url: Url) -> bytes:
        if self._scope == "shard":
            return META_PARTITION + digest
        owner = url.host if self._scope == "host" else url.site
        return url.partition.to_bytes(2) + xxh3_64_digest(owner.encode()) + digest
