"""Site: the registrable domain that a host belongs to, so that all hosts of one owner pass the same gate."""

from __future__ import annotations

import functools
from collections.abc import Container
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    from importlib.abc import FileLoader

    from tldextract import TLDExtract

PARTITIONS = 4096
HOST_BYTES_MAX = 253
"""RFC 1035, section 3.1."""
LABELS_MAX = 16
"""Labels of a host, from its end, to which rules are applied: the longest has 7, and a redirect may name thousands."""


def site_of(host: str) -> str:
    """Return the registrable domain of a host as in `Url.host`: `example.co.uk` for `www.example.co.uk`.

    Under a suffix that is not listed it is the last two labels (the list's algorithm: the prevailing rule is `*`).
    Returns the host itself for IP literals, single labels and public suffixes. The list (publicsuffix.org, with its
    private section) is the one that ships with `tldextract`: nothing is downloaded or written. The first call reads it
    (6 ms); later calls cost 0.5 µs for a name directly under a top-level domain, else 1.5 µs, so cache the result.
    """
    if "." not in host or host[0] == "[" or host.rpartition(".")[2].isdigit():
        # By the WHATWG rules a host whose last label is a number is an IPv4 address.
        return host
    label, _, top = host.partition(".")
    if top in _plain_tops() and host not in _two_label_suffixes() and label:
        return host
    if not _is_plain(host):
        return site_by_list(host)
    suffix = _suffix_of(host) or host.rpartition(".")[2]
    return host if suffix == host else f"{host[: -len(suffix) - 1].rpartition('.')[2]}.{suffix}"


def site_by_list(host: str) -> str:
    """Do the same as `site_of` for a host of several labels, using the library."""
    found = _suffix_list()(host)
    if not found.suffix:
        return ".".join(host.split(".")[-2:])
    return found.top_domain_under_public_suffix or host


def is_suffix(host: str) -> bool:
    """Return whether names under this one are open for registration (`com`, `co.uk`, `github.io`)."""
    return _suffix_of(host) == host if _is_plain(host) else is_suffix_by_list(host)


def is_suffix_by_list(host: str) -> bool:
    """Do the same as `is_suffix`, using the library."""
    found = _suffix_list()(host)
    return bool(found.suffix) and not found.domain


def _is_plain(host: str) -> bool:
    """Return whether a host can be looked up in the rules: it is as in `Url.host`, without empty labels."""
    return host.isascii() and host.islower() and ".." not in host and "." not in host[:1] + host[-1:]


def _suffix_of(host: str) -> str:
    """Return the longest public suffix of a host; empty if no rule matches."""
    if "xn--" not in host:
        return _longest(host)
    # Rules are in Unicode, so decode each label.
    labels = host.split(".")
    suffix = _longest(".".join(_decode_label(label) for label in labels))
    return ".".join(labels[-suffix.count(".") - 1 :]) if suffix else ""


def _longest(host: str) -> str:
    """Apply the list's algorithm (publicsuffix.org) to a host whose labels are in Unicode."""
    rules = _rules()
    rest = host if host.count(".") < LABELS_MAX else ".".join(host.rsplit(".", LABELS_MAX)[1:])
    while rest:
        parent = rest.partition(".")[2]
        if f"!{rest}" in rules:
            return parent
        if rest in rules or f"*.{parent}" in rules:
            return rest
        rest = parent
    return ""


def _decode_label(label: str) -> str:
    """Return a Punycode label in Unicode (RFC 3492); any other label unchanged."""
    if not label.startswith("xn--"):
        return label
    try:
        decoded = label[4:].encode().decode("punycode")
    except UnicodeError:
        return label
    return label if decoded.isascii() else decoded


def partition_of(site: str) -> int:
    """Return xxh3_64(site) % 4096: the unit that moves between shards."""
    return xxh3_64_intdigest(site.encode()) % PARTITIONS


def site_partition(site: str, partition: int, split: Container[str]) -> int:
    """Return the partition under which a shard keeps data about a site as a whole; `partition` is that of one of its
    hosts. The two are the same, except for sites in `split`, whose hosts have a partition each.
    """
    return partition_of(site) if site in split else partition


@functools.cache
def _suffix_list() -> TLDExtract:
    # Importing tldextract costs 0.09 s, most of it for a download that never happens.
    from tldextract import TLDExtract  # noqa: PLC0415

    return TLDExtract(cache_dir=None, suffix_list_urls=(), fallback_to_snapshot=True, include_psl_private_domains=True)


@functools.cache
def _rules() -> frozenset[str]:
    """Return the rules of the library's list, read without the library."""
    found = find_spec("tldextract")
    assert found is not None, "it is a dependency"
    try:
        loader, package = cast("FileLoader", found.loader), str(found.origin).removesuffix("__init__.py")
        text = bytes(loader.get_data(f"{package}.tld_set_snapshot")).decode()
    except (AttributeError, OSError):  # Another release may have it elsewhere.
        return frozenset(_suffix_list().tlds)
    lines = (line for line in text.split("\n") if line and not line.startswith("//"))
    return frozenset(line.split(None, 1)[0] for line in lines if not line[0].isspace())


@functools.cache
def _plain_tops() -> frozenset[str]:
    """Top-level domains that are open for registration at their second level."""
    wild = {rule[2:] for rule in _rules() if rule.startswith("*.")}
    return frozenset(rule for rule in _rules() if "." not in rule and rule not in wild)


@functools.cache
def _two_label_suffixes() -> frozenset[str]:
    return frozenset(suffix for suffix in _rules() if suffix.count(".") == 1)
