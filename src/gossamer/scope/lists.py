"""Lists: what the operator lists: excluded hosts, whose owners asked us not to come, sites, and patterns."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.url.join import absolute
from gossamer.url.site import HOST_BYTES_MAX, site_of
from gossamer.url.url import Url

if TYPE_CHECKING:
    from gossamer.scope.filters import Given

_HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")
"""A host as `absolute` has it, and as a name server may know it: URLs may have other marks in theirs."""


class HostSet:
    """Hosts, and domains with all under them. Raises ConfigError for what is neither."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts: set[str] = set()
        self._domains: set[str] = set()
        for host in hosts:
            self.add(host)

    def __len__(self) -> int:
        return len(self._hosts) + len(self._domains)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostSet) and self._hosts == other._hosts and self._domains == other._domains

    __hash__ = None  # type: ignore[assignment]

    def add(self, host: str) -> None:
        """Add a host, or with a leading dot a domain and all under it."""
        domain = host.strip().removeprefix(".")
        whole = absolute(f"http://{domain}/")
        name = (whole or "")[len("http://") : -1].removesuffix(".")
        if len(name) > HOST_BYTES_MAX or _HOST.fullmatch(name) is None or any(mark in domain for mark in "/?#@*"):
            raise ConfigError(f"{host!r} is not a host: write example.org for one host, .example.org for all under it")
        (self._domains if host.strip().startswith(".") else self._hosts).add(name)

    def covers(self, host: str) -> bool:
        """Say whether a host, as `Url.host` has it, is in. The cost grows with its labels, not with the list."""
        if host in self._hosts:
            return True
        if not self._domains:
            return False
        while host not in self._domains:
            host = host.partition(".")[2]
            if not host:
                return False
        return True

    def written(self) -> list[str]:
        """Return all of it as it was added, sorted."""
        return sorted(self._hosts) + sorted("." + domain for domain in self._domains)


class ExcludedHost:
    """Hosts that get no request: those whose owners object to crawling, as permanent entries and as a list that can be
    replaced; where `only_hosts` names some, all other hosts too.
    """

    name = "excluded_host"
    keys: tuple[str, ...] = ()
    """Queued URLs of a host end when it is excluded: no filter judges them again."""
    by_place = False

    def __init__(self, hosts: Iterable[str] = (), *, only: Iterable[str] = ()) -> None:
        self._added = HostSet(hosts)
        self._listed = HostSet()
        self._only = HostSet(only) or None
        self._is_empty = not (self._added or self._only)
        """No host is excluded."""
        self.revision = 0
        """Grows with every host added: what was dumped at an earlier one is stale."""

    @classmethod
    def made(cls, given: Given) -> ExcludedHost:
        return given.excluded

    def add(self, host: str) -> None:
        """Exclude a host, or with a leading dot a domain and all under it. Raises ConfigError for what is neither."""
        self._added.add(host)
        self._is_empty = False
        self.revision += 1

    def set_listed(self, hosts: HostSet) -> bool:
        """Exclude these in place of those listed before; say whether they are others. What was added stays."""
        before, self._listed = self._listed, hosts
        self._is_empty = not (self._added or hosts or self._only)
        return before != hosts

    @property
    def listed(self) -> HostSet:
        """The list that was set last."""
        return self._listed

    def covers(self, host: str) -> bool:
        """Say whether a host, as `Url.host` has it, is excluded."""
        if self._is_empty:
            return False
        return self._added.covers(host) or self._listed.covers(host) or self._is_other(host)

    def rejects(self, link: Link) -> bool:
        return self.covers(link.url.host)

    def detail(self, link: Link) -> str:
        host = link.url.host
        if self._is_other(host):
            return f"{host} is not among the hosts of only_hosts"
        by = "the list of excluded hosts" if self._listed.covers(host) else "exclude_hosts or `exclude`"
        return f"{host} is excluded by {by}"

    def _is_other(self, host: str) -> bool:
        return self._only is not None and not self._only.covers(host)

    def dump(self) -> bytes:
        """Return all hosts that were added, for the commit. A list is read again at each start."""
        return msgspec.msgpack.encode(self._added.written())

    def load(self, dumped: bytes) -> None:
        """Add dumped entries to the exclusions."""
        for host in msgspec.msgpack.decode(dumped, type=list[str]):
            self.add(host)


VERDICTS_MAX: Final = 16_384
"""Sites whose verdict is remembered: about 2 MB."""


class Whitelist:
    """Sites by 64-bit fingerprint, sorted: 8 bytes each, and as much again while they are read.

    Among a million listed sites the chance that one that is not listed passes for one is 1 in 18 million million.
    A look-up costs 0.1 µs for a site asked about before and 1.4 µs for any other (benchmarks/bench_scope.py).
    """

    name = "whitelist"
    keys: tuple[str, ...] = ("whitelist_file",)
    by_place = True

    def __init__(self, domains: Iterable[str]) -> None:
        """Take domains or hosts; each stands for its site. Raises ConfigError for what is neither."""
        # By their first byte, so that sorting needs room for a 256th of them as objects.
        heaps = [array("Q") for _ in range(256)]
        for domain in domains:
            found = xxh3_64_intdigest(listed_site(domain).encode())
            heaps[found >> 56].append(found)
        self._fingerprints = array("Q")
        for at, heap in enumerate(heaps):
            self._fingerprints.extend(sorted(set(heap)))
            heaps[at] = array("Q")
        self._verdicts: dict[str, bool] = {}

    @classmethod
    def made(cls, given: Given) -> Whitelist | None:
        return given.lists.whitelist

    def __len__(self) -> int:
        return len(self._fingerprints)

    @property
    def bytes(self) -> int:
        """What the list itself holds in memory."""
        return len(self._fingerprints) * self._fingerprints.itemsize

    def covers(self, url: Url) -> bool:
        """Say whether a URL's site is listed."""
        known = self._verdicts.get(url.site)
        if known is None:
            known = self._holds(url.site)
            if len(self._verdicts) >= VERDICTS_MAX:
                self._verdicts.clear()
            self._verdicts[url.site] = known
        return known

    def rejects(self, link: Link) -> bool:
        return not self.covers(link.url) and link.link_type != "seed"

    def detail(self, link: Link) -> str:
        return f"the site {link.url.site} is not among the {len(self):,} listed"

    def _holds(self, site: str) -> bool:
        wanted = xxh3_64_intdigest(site.encode())
        at = bisect_left(self._fingerprints, wanted)
        return at < len(self._fingerprints) and self._fingerprints[at] == wanted


def listed_site(domain: str) -> str:
    """Return the site that a line of a list means. Raises ConfigError when it is no domain."""
    name = domain
    if not (domain.isascii() and domain.replace(".", "").replace("-", "").isalnum() and domain.islower()):
        whole = absolute(f"http://{domain}/")
        name = (whole or "")[len("http://") : -1]
        if any(mark in domain for mark in "/?#@:* \t"):
            name = ""
    name = name.removesuffix(".")
    if not name or name[0] == "." or ".." in name:
        raise ConfigError(f"{domain!r} is not a domain; write one such as example.org")
    return site_of(name)


class Lists(msgspec.Struct, frozen=True):
    """What is in the operator's files, as `config` read it."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    excluded_hosts: HostSet = HostSet()
    whitelist: Whitelist | None = None


NO_LISTS = Lists()
