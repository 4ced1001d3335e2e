"""Sources: a record for each sitemap and feed: for whom it may speak, what it said, and whether that was true."""

from __future__ import annotations

import msgspec

from gossamer.state.epoch import Epochs
from gossamer.url.url import Url

VOUCHERS_MAX = 1_000
"""Hosts for which one sitemap may speak besides its own."""
CLAIMS_MAX = 64
"""Claims of a source that wait to be checked."""


class Claim(msgspec.Struct, array_like=True, frozen=True):
    """A page of which a source said that it has changed."""

    url: str
    payload: bytes
    """Digest of what we had of it."""
    at: float


class Source(msgspec.Struct, array_like=True):
    """One sitemap or feed."""

    vouchers: list[str] = msgspec.field(default_factory=list)
    """Hosts whose robots.txt names it, or an index that leads to it, besides its own."""
    read_at: float = 0.0
    newest: float = 0.0
    """The latest change that it told of."""
    true_claims: float = 0.0
    false_claims: float = 0.0
    claims: list[Claim] = msgspec.field(default_factory=list)

    @property
    def is_believed(self) -> bool:
        """Whether its dates are worth a visit: until at least five were checked, and while a fifth were true."""
        checked = self.true_claims + self.false_claims
        return checked < CHECKED_MIN or self.true_claims >= BELIEVED_SHARE * checked


CHECKED_MIN = 5
BELIEVED_SHARE = 0.2
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Source).decode


class Sources:
    """The records, in the store's family `told`; durable with the epoch."""

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs

    def get(self, url: Url) -> Source:
        """Return the record of a sitemap or feed; an empty one where nothing is known."""
        value = self._epochs.get("told", _key(url))
        return _decode(value) if value is not None else Source()

    def put(self, url: Url, source: Source) -> None:
        """Keep it."""
        self._epochs.put("told", _key(url), _encode(source))

    def begin(self, url: Url, kind: bytes, most: int) -> bool:
        """Count a document of a kind for its host, once; False where the host has `most` others already."""
        if self._epochs.get("told", _key(url)) is not None:
            return True
        key = url.partition.to_bytes(2) + b"\0" + kind + url.host.encode()
        value = self._epochs.get("told", key)
        counted = int.from_bytes(value) if value is not None else 0
        if counted >= most:
            return False
        self._epochs.put("told", key, (counted + 1).to_bytes(4))
        self.put(url, Source())
        return True


def _key(url: Url) -> bytes:
    return url.partition.to_bytes(2) + b"\1" + url.fingerprint.to_bytes(8)
