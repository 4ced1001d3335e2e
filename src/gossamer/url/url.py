"""Url: one address, named once and carried everywhere, and the 64 bits that stand for its key."""

from __future__ import annotations

import msgspec
from xxhash import xxh3_64_intdigest

PARTITIONS = 4096


def fingerprint(key: str) -> int:
    """Return xxh3_64 of the key's UTF-8 bytes, from 0 to 2**64 - 1; the same on every machine and in every run.

    Among a billion keys the chance that any two share one is 2.7 %, among a hundred million 0.03 % (birthday bound).
    """
    return xxh3_64_intdigest(key.encode())


class Url(msgspec.Struct, frozen=True, gc=False):
    """An absolute address without fragment. `text` is what is fetched, `key` is what is compared.

    Two `Url`s with one `key` are one page to us (RFC 3986, section 6, within the rules that are switched on).
    """

    text: str
    """The address as written, resolved against its base by the WHATWG rules."""
    key: str
    """The canonical form, made by the named rules of `canonical`."""
    fingerprint: int
    """xxh3_64 of the key."""
    host: str
    """The name or IP literal (brackets kept for IPv6), lower case, without port: what the gates and queues go by."""
    site: str
    """The registrable domain of `host`, or `host` itself where there is none."""
    partition: int
    """xxh3_64(home) % 4096. The home is the site. If host rules compare hosts of several sites as one, it is the site
    that represents them, so that equal keys meet in one partition and a site still has one."""

    @property
    def scheme(self) -> str:
        """Scheme without colon, lower case."""
        return self.text[: self.text.index(":")]

    @property
    def origin(self) -> str:
        """`scheme://host[:port]`, default port left out: the unit of robots.txt (RFC 9309, section 2.3)."""
        text = self.text
        start = text.index("://") + 3
        end = text.find("/", start)
        beginning = text[:end] if end >= 0 else text
        if "?" in beginning or "#" in beginning or "@" in beginning:  # An address of the web has no such beginning.
            authority = beginning[start:].partition("?")[0].partition("#")[0]
            return text[:start] + authority.rpartition("@")[2]
        return beginning
