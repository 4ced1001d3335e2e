"""Lists: the operator's lists: hosts to exclude, for example because their owners object, sites, and patterns."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.stages.scope.hosts import HostSet
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.roots import Roots
from gossamer.url.join import absolute
from gossamer.url.site import site_of
from gossamer.url.url import Url


class ExcludedHost:
    """Hosts that get no request: permanent entries, a replaceable list, and all that a given `only_hosts` omits."""

    name = "excluded_host"
    keys: tuple[str, ...] = ()
    """None: excluding a host ends its queued URLs, so no filter has to judge them again."""
    by_place = False

    def __init__(self, hosts: Iterable[str] = (), *, only: Iterable[str] = ()) -> None:
        self._added = HostSet(hosts)
        self.hosts = HostSet()
        """The list that was set last."""
        self._only = HostSet(only) or None
        self._is_empty = not (self._added or self._only)
        """Whether no host is excluded."""
        self.revision = 0
        """Grows with every added host: a dump of an earlier revision is outdated."""

    @classmethod
    def make(cls, given: Given) -> ExcludedHost:
        return given.excluded

    def add(self, host: str) -> None:
        """Exclude a host, or with a leading dot a domain and all hosts under it. Raises ConfigError for other text."""
        self._added.add(host)
        self._is_empty = False
        self.revision += 1

    def set_listed(self, hosts: HostSet) -> bool:
        """Replace the list of excluded hosts; return whether it changed. Permanent entries stay."""
        before = self.hosts
        self.hosts = hosts
        self._is_empty = not (self._added or hosts or self._only)
        return before != hosts

    def covers(self, host: str) -> bool:
        """Return whether a host, as in `Url.host`, is excluded."""
        if self._is_empty:
            return False
        return self._added.covers(host) or self.hosts.covers(host) or self._is_other(host)

    def rejects(self, link: Link) -> bool:
        return self.covers(link.url.host)

    def detail(self, link: Link) -> str:
        host = link.url.host
        if self._is_other(host):
            return f"{host} is not among the hosts of only_hosts"
        by = "the list of excluded hosts" if self.hosts.covers(host) else "exclude_hosts or `exclude`"
        return f"{host} is excluded by {by}"

    def _is_other(self, host: str) -> bool:
        return self._only is not None and not self._only.covers(host)

    def dump(self) -> bytes:
        """Return the permanent entries, for the commit. A list is read again at each start."""
        return msgspec.msgpack.encode(self._added.entries())

    def load(self, dumped: bytes) -> None:
        """Add dumped entries to the exclusions."""
        for host in msgspec.msgpack.decode(dumped, type=list[str]):
            self.add(host)


VERDICTS_MAX: Final = 16_384
"""Sites whose result is cached: about 2 MB."""


class Whitelist:
    """Sites as sorted 64-bit fingerprints: 8 bytes each, and twice that while the list is read.

    With a million listed sites, the chance that another site is taken for a listed one is 1 in 18 million million. A
    lookup costs 0.1 µs for a cached site and 1.4 µs for any other (benchmarks/bench_scope.py).
    """

    name = "whitelist"
    keys: tuple[str, ...] = ("whitelist_file",)
    by_place = True

    def __init__(self, domains: Iterable[str]) -> None:
        """`domains` are domains or hosts; each means its site. Raises ConfigError for text that is neither."""
        # Split by their first byte, so that sorting needs memory for only a 256th of them as objects.
        heaps = [array("Q") for _ in range(256)]
        for domain in domains:
            found = xxh3_64_intdigest(site_of_line(domain).encode())
            heaps[found >> 56].append(found)
        self._fingerprints = array("Q")
        for at, heap in enumerate(heaps):
            self._fingerprints.extend(sorted(set(heap)))
            heaps[at] = array("Q")
        self._verdicts: dict[str, bool] = {}

    @classmethod
    def make(cls, given: Given) -> Whitelist | None:
        return given.lists.whitelist

    def __len__(self) -> int:
        return len(self._fingerprints)

    def covers(self, url: Url) -> bool:
        """Return whether a URL's site is listed."""
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


def site_of_line(domain: str) -> str:
    """Return the site that a line of a list means. Raises ConfigError if it is not a domain."""
    name = domain
    if not (domain.isascii() and domain.replace(".", "").replace("-", "").isalnum() and domain.islower()):
        whole = "" if any(mark in domain for mark in "/?#@:,* \t") else absolute(f"http://{domain}/")
        name = (whole or "")[len("http://") : -1]
    name = name.removesuffix(".")
    if not name or name[0] == "." or ".." in name:
        raise ConfigError(f"{domain!r} is not a domain; write one such as example.org")
    return site_of(name)


class Lists(msgspec.Struct, frozen=True):
    """The contents of the operator's list files, as `config` read them."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    excluded_hosts: HostSet = HostSet()
    whitelist: Whitelist | None = None


NO_LISTS = Lists()


class Given(msgspec.Struct, frozen=True):
    """Parts from which filters are built."""

    options: ScopeOptions
    roots: Roots
    excluded: ExcludedHost
    lists: Lists
