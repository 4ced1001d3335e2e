"""Url: an address with its key and other derived values, the 64-bit fingerprint of a key, parts of an address."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from xxhash import xxh3_64_intdigest


def fingerprint(key: str) -> int:
    """Return xxh3_64 of the key's UTF-8 bytes, from 0 to 2**64 - 1; the same on every machine and in every run.

    The chance that any two keys share a fingerprint is 2.7 % among a billion keys, 0.03 % among a hundred million
    (birthday bound).
    """
    return xxh3_64_intdigest(key.encode())


class Url(msgspec.Struct, frozen=True, gc=False):
    """An absolute address without fragment. `text` is what is fetched, `key` is what is compared.

    Two `Url`s with the same `key` count as one page (RFC 3986, section 6, by the selected rules).
    """

    text: str
    """The address as written, resolved against its base by the WHATWG rules."""
    key: str
    """The canonical form, made by the named rules of `canonical`."""
    fingerprint: int
    """xxh3_64 of the key."""
    host: str
    """The name or IP literal (IPv6 with brackets), lower case, without port: the unit of gates and queues."""
    site: str
    """The registrable domain of `host`, or `host` itself if there is none."""
    partition: int
    """xxh3_64(home) % 4096. The home is the site. If host rules compare hosts of several sites as one, the home is the
    site that represents them, so that equal keys are in one partition and each site still has only one. For a split
    site the home is the host, as in the key."""

    def store_key(self, kind: bytes = b"") -> bytes:
        """Return its key among those of one kind in a family of the store, which are in the order of partitions."""
        return self.partition.to_bytes(2) + kind + self.fingerprint.to_bytes(8)

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
        if "?" in beginning or "#" in beginning or "@" in beginning:  # Not in an http address, which always has a path.
            authority = beginning[start:].partition("?")[0].partition("#")[0]
            return text[:start] + authority.rpartition("@")[2]
        return beginning


NameUrl = Callable[[str], Url | None]
"""Returns the `Url` of an address, or None."""


# RFC 3986, appendix B, for addresses that have an authority.
_SPLIT = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL).fullmatch
_PORT = re.compile(r":([0-9]*)$").search
DEFAULT_PORTS: Final[Mapping[str, int]] = MappingProxyType(
    {"http": 80, "https": 443, "ftp": 21, "ftps": 990, "gopher": 70}
)
"""The default port of each scheme. The WHATWG rules drop only those of http, https and ftp."""
USER_INFO = re.compile(r"(?<=://)[^/?#\s\"']*@")
"""Matches the user name and the password of addresses anywhere in a text."""


class Parts(msgspec.Struct, frozen=True, gc=False):
    """The parts of an address with an authority. `text()` joins them to exactly the same address."""

    scheme: str
    userinfo: str | None
    host: str
    port: str | None
    path: str
    query: str | None
    """None if there is no `?`, empty if nothing follows it."""
    fragment: str | None

    def text(self) -> str:
        userinfo = "" if self.userinfo is None else self.userinfo + "@"
        port = "" if self.port is None else ":" + self.port
        query = "" if self.query is None else "?" + self.query
        fragment = "" if self.fragment is None else "#" + self.fragment
        return f"{self.scheme}://{userinfo}{self.host}{port}{self.path}{query}{fragment}"


def split(url: str) -> Parts | None:
    """Split an address into its parts; None if it has no authority (`mailto:`, `data:`)."""
    match = _SPLIT(url)
    if match is None:
        return None
    scheme, authority, path, query, fragment = match.groups()
    userinfo, host, port = split_authority(authority)
    return Parts(scheme, userinfo, host, port, path, query, fragment)


def is_default_port(scheme: str, port: str) -> bool:
    """Return whether a port, as written in an address, is its scheme's default port."""
    return scheme in DEFAULT_PORTS and port == str(DEFAULT_PORTS[scheme])


def drop_user_info(url: str) -> str:
    """Return an address without user name and password."""
    return USER_INFO.sub("", url, count=1) if "@" in url else url


def split_authority(authority: str) -> tuple[str | None, str, str | None]:
    """Return userinfo, host (IPv6 with brackets) and port; None for a missing part."""
    before, at, after = authority.rpartition("@")
    port = _PORT(after)
    return before if at else None, after[: port.start()] if port else after, port[1] if port else None
