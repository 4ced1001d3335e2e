"""Name: makes the `Url` of an address, once, when the address is discovered."""

import re
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.url.canonical import Canonicalizer, Search, is_plain_start
from gossamer.url.join import absolute
from gossamer.url.site import partition_of, site_of
from gossamer.url.url import DEFAULT_PORTS, Url, drop_user_info, fingerprint, split_authority

_up_to_authority = re.compile("(?s:.*?)://[^/?#]*").match
SCHEMES: Final = ("http", "https", "ftp", "ftps", "gopher", "file")
"""Schemes with a built-in protocol module."""
REQUEST_MARK: Final = "#request="
"""The text after this mark in an address represents the method and the body of a listed request, and is part of its
key. No page can link to such an address: links lose their fragments.
"""
STARTS_MAX: Final = 16_384
"""Starts of addresses (`https://host:port`) that are cached in each of two generations: about 10 MB in all."""
KEYS_MAX: Final = 16_384
"""Keys by rules other than the default ones that are cached in each of two generations: about 12 MB in all."""
KEYS_BYTES_MAX: Final = 500
"""Longer keys are not cached."""
ORIGINS_MAX: Final = 1024
"""Origins whose port is cached: a host's pages come one after another."""
START_BYTES_MAX: Final = 300
"""Longer starts are not cached: a host name has 253 bytes at most (RFC 1035, section 3.1)."""


class SharedPrefix(msgspec.Struct, frozen=True, gc=False):
    """Common part of all addresses with the same scheme and authority."""

    host: str
    site: str
    partition: int
    plain: bool
    """No rule changes this prefix, only default rules are in use, and there are no credentials."""
    begun: str
    """Beginning of the keys of these addresses."""
    occasion: Search
    """Search that matches the rest of an address if a rule may change it."""
    bare: str = ""
    """Beginning of the addresses without credentials and, for an added scheme, with its host in lower case and without
    its default port; empty if it is the same.
    """
    rooted: bool = False
    """An empty path is written as `/` (RFC 3986, section 6.2.3): for added schemes."""


class Namer:
    """Makes a `Url` from an address. Caches hosts, so that a page's links cost about 0.4 µs each.

    With other than default rules it also caches keys that took work: pages of a site repeat their links.
    """

    def __init__(
        self,
        canonicalizer: Canonicalizer | None = None,
        added: Mapping[str, int] = MappingProxyType({}),
        split: Iterable[str] = (),
    ) -> None:
        """`added` are schemes beside `SCHEMES` with their default ports; 0: none. Their addresses follow the generic
        syntax of RFC 3986: host in lower case, no default port, no empty path. Each host of the sites in `split` has
        its own partition.
        """
        self.split = frozenset(split)
        self._added = dict(added)
        self.canonicalizer = canonicalizer or Canonicalizer()
        self._young: dict[str, SharedPrefix | None] = {}
        self._old: dict[str, SharedPrefix | None] = {}
        self._keeps = not self.canonicalizer.cautious or bool(self.canonicalizer.hosts)
        self._keys: dict[str, str] = {}
        self._keys_before: dict[str, str] = {}

    def name(self, text: str) -> Url | None:
        """Return the `Url` of an address that `join` or `absolute` returned; None if it has no host to visit.

        User name and password are removed: they are never sent, so they make no difference to a server, and a password
        must not reach the output.
        """
        # Inlined `names` for one address: each visit calls this.
        prefix = text[: text.find("/", 8)] if text.startswith("http") else _prefix(text)
        start = self._young.get(prefix)
        if start is None or not start.plain or "%" in text or "#" in text:
            return self.names((text,))[0]
        return Url(text, text, xxh3_64_intdigest(text.encode()), start.host, start.site, start.partition)

    def name_typed(self, text: str) -> Url | None:
        """Name an address a person wrote: with spaces around, capitals in its host, a user's name. Else as `name`."""
        before, mark, request = text.strip().partition(REQUEST_MARK)
        address = absolute(drop_user_info(before))
        return self.name(address + mark + request) if address is not None else None

    def port(self, url: Url) -> int:
        """Return the port in a URL, or its scheme's default port; 0 if there is none."""
        scheme, port = _port(url.origin)
        return port if port is not None else self._added.get(scheme) or DEFAULT_PORTS.get(scheme, 0)

    def changes(self, text: str) -> list[tuple[str, str]]:
        """Return the rules that change an address on the way to its key, each with the result. For explanations."""
        return self.canonicalizer.changes(text)

    def names(self, texts: Iterable[str]) -> list[Url | None]:
        """Do the same as `name` for each of several addresses."""
        named: list[Url | None] = []
        for text in texts:
            # An http address always has a path, so this slash ends its authority; `_prefix` handles other schemes.
            prefix = text[: text.find("/", 8)] if text[:4] == "http" else _prefix(text)
            try:
                start = self._young[prefix]
            except KeyError:
                start = self._recall(prefix)
            if start is None:
                named.append(None)
                continue
            if start.plain and "%" not in text and "#" not in text:
                key = text
            elif REQUEST_MARK in text:
                named.append(self._name_listed(text))
                continue
            else:
                rest = text[len(prefix) :]
                if start.rooted and rest[:1] != "/":
                    rest = "/" + rest
                if start.bare or start.rooted:
                    text = (start.bare or prefix) + rest
                if not self._keeps:
                    key = self.canonicalizer.key_by_rules(text)
                else:
                    key = start.begun + rest if start.occasion(rest) is None else self._key(text)
            named.append(Url(text, key, xxh3_64_intdigest(key.encode()), start.host, start.site, start.partition))
        return named

    def _name_listed(self, text: str) -> Url | None:
        """Name a listed request: its key is that of its address, with its method and body."""
        address, mark, sent = text.partition(REQUEST_MARK)
        url = self.names((address,))[0]
        if url is None:
            return None
        key = url.key + mark + sent
        return msgspec.structs.replace(url, text=url.text + mark + sent, key=key, fingerprint=fingerprint(key))

    def _key(self, text: str) -> str:
        key = self._keys.get(text)
        if key is None:
            key = self._keys_before.get(text) or self.canonicalizer.key_by_rules(text)
            if len(text) <= KEYS_BYTES_MAX:
                if len(self._keys) >= KEYS_MAX:
                    self._keys_before = self._keys
                    self._keys = {}
                self._keys[text] = key
        return key

    def _recall(self, prefix: str) -> SharedPrefix | None:
        """Look up a prefix in the older generation, or compute it. Prefixes in use move to the younger generation; the
        others are dropped with the older one.
        """
        start = self._old[prefix] if prefix in self._old else self._start(prefix)
        if len(prefix) <= START_BYTES_MAX:
            if len(self._young) >= STARTS_MAX:
                self._old = self._young
                self._young = {}
            self._young[prefix] = start
        return start

    def _start(self, prefix: str) -> SharedPrefix | None:
        scheme = prefix.partition(":")[0]
        rooted = scheme in self._added
        host = host_of(prefix, self._added if rooted else SCHEMES)
        if host is None:
            return None
        site = site_of(host)
        hosts = self.canonicalizer.hosts
        bare = _plain_authority(prefix, host, self._added[scheme]) if rooted else _bare(prefix)
        prefix = bare or prefix
        plain = not bare and self.canonicalizer.cautious and is_plain_start(prefix)
        begun, occasion = self.canonicalizer.start(prefix)
        if not hosts and site not in self.split:
            return SharedPrefix(host, site, partition_of(site), plain, begun, occasion, bare, rooted)
        home = partition_of(self._host_in_key(host) if site in self.split else hosts.home(site))
        return SharedPrefix(host, site, home, plain and hosts.resolve(host) == host, begun, occasion, bare, rooted)

    def _host_in_key(self, host: str) -> str:
        """Return a host as it is in the keys of its addresses, so that equal keys are in one partition."""
        return host_of(self.canonicalizer.key(f"http://{host}/")) or host


@lru_cache(maxsize=ORIGINS_MAX)
def _port(origin: str) -> tuple[str, int | None]:
    scheme, _, authority = origin.partition("://")
    port = split_authority(authority)[2]
    return scheme, int(port) if port else None


def _bare(prefix: str) -> str:
    """Return a prefix without its credentials; empty if it has none."""
    scheme, mark, authority = prefix.partition("://")
    _, at, host = authority.rpartition("@")
    return scheme + mark + host if at else ""


def _plain_authority(prefix: str, host: str, default_port: int) -> str:
    """Return the normalized prefix of an added scheme's address."""
    scheme, mark, authority = prefix.partition("://")
    port = split_authority(authority)[2]
    return f"{scheme}{mark}{host}" + (f":{int(port)}" if port and int(port) != default_port else "")


def _prefix(text: str) -> str:
    """Return an address up to the end of its authority; empty if it has none."""
    match = _up_to_authority(text)
    return match[0] if match is not None else ""


def host_of(text: str, schemes: Container[str] | None = SCHEMES) -> str | None:
    """Return the host of an address that `join` or `absolute` returned, as in `Url.host`.

    None if the scheme is not in `schemes` (None: any scheme), or if no such host can exist.
    """
    scheme, _, authority = _prefix(text).partition("://")
    if schemes is not None and scheme not in schemes:
        return None
    _, host, _ = split_authority(authority)
    if scheme == "file" and not host:
        return "localhost"  # RFC 8089, section 2.
    if scheme in {"gopher", "ftps"} or scheme not in SCHEMES:
        # The WHATWG rules leave hosts of other schemes as written; in these schemes hosts are names as in http.
        web = absolute(f"http://{host}/") if host else None
        host = web[len("http://") : -1] if web else ""
    host = host.removesuffix(".")
    # Only the root of the name space has an empty label (RFC 1035, section 3.1).
    return None if not host or ".." in host or host[0] == "." or host[-1] == "." else host
