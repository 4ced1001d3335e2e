"""Site: the registrable domain that a host belongs to, so that all of a company's hosts meet the same gate."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from xxhash import xxh3_64_hexdigest, xxh3_64_intdigest

from gossamer.url.fingerprint import PARTITIONS

if TYPE_CHECKING:
    from tldextract import TLDExtract

SUFFIX_LIST_VERSION: str
"""A digest of the public suffix list in use: two crawls with the same one agree on every site. Made when first read."""


def site_of(host: str) -> str:
    """Return the registrable domain of a host as `Url.host` has it: `example.co.uk` of `www.example.co.uk`.

    Under a suffix that is not listed it is the last two labels (the list's algorithm: the rule that prevails is `*`).
    The host itself is returned for IP literals, single labels and public suffixes. The list (publicsuffix.org, its
    private section included) is the one that ships with `tldextract`: none is downloaded, nothing is written. The
    first call loads it (0.2 s); later ones cost 0.5 µs where the host is a name directly under a top-level domain, else
    3 µs, so keep the answer.
    """
    if "." not in host or host[0] == "[" or host.rpartition(".")[2].isdigit():
        # By the WHATWG rules a host whose last label is a number is an IPv4 address.
        return host
    label, _, top = host.partition(".")
    if top in _plain_tops() and host not in _two_label_suffixes() and label:
        return host
    return site_by_list(host)


def site_by_list(host: str) -> str:
    """Return what `site_of` returns for a host of several labels: the readable path."""
    found = _suffix_list()(host)
    if not found.suffix:
        return ".".join(host.split(".")[-2:])
    return found.top_domain_under_public_suffix or host


def is_suffix(host: str) -> bool:
    """Say whether anybody may register names under this one (`com`, `co.uk`, `github.io`)."""
    found = _suffix_list()(host)
    return bool(found.suffix) and not found.domain


def partition_of(site: str) -> int:
    """Return xxh3_64(site) % 4096: the unit that moves between shards."""
    return xxh3_64_intdigest(site.encode()) % PARTITIONS


@functools.cache
def _suffix_list() -> TLDExtract:
    # Importing tldextract costs 0.14 s, most of it for a download that never happens.
    from tldextract import TLDExtract  # noqa: PLC0415

    return TLDExtract(cache_dir=None, suffix_list_urls=(), fallback_to_snapshot=True, include_psl_private_domains=True)


@functools.cache
def _plain_tops() -> frozenset[str]:
    """Top-level domains directly under which anybody registers names."""
    suffixes = _suffix_list().tlds
    wild = {suffix[2:] for suffix in suffixes if suffix.startswith("*.")}
    return frozenset(suffix for suffix in suffixes if "." not in suffix and suffix not in wild)


@functools.cache
def _two_label_suffixes() -> frozenset[str]:
    return frozenset(suffix for suffix in _suffix_list().tlds if suffix.count(".") == 1)


@functools.cache
def _suffix_list_version() -> str:
    return "psl-" + xxh3_64_hexdigest("\n".join(sorted(_suffix_list().tlds)).encode())


def __getattr__(name: str) -> str:
    if name == "SUFFIX_LIST_VERSION":
        return _suffix_list_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
