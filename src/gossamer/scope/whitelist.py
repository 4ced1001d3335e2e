"""Whitelist: the sites that a crawl is confined to, a million of them in eight megabytes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from xxhash import xxh3_64_intdigest

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.url.join import absolute
from gossamer.url.site import site_of
from gossamer.url.url import Url

VERDICTS_MAX: Final = 16_384
"""Sites whose verdict is remembered: about 2 MB."""


class Whitelist:
    """Sites by 64-bit fingerprint, sorted: 8 bytes each, and as much again while they are read.

    Among a million listed sites the chance that one that is not listed passes for one is 1 in 18 million million.
    A look-up costs 0.1 µs for a site asked about before and 1.4 µs for any other (benchmarks/bench_scope.py).
    """

    name = "whitelist"
    keys = ("whitelist_file",)
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
