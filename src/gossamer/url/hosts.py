"""Hosts: names of one server compared as one, by the three kinds of rule that LARM's host resolver had (2002)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gossamer.url.join import absolute
from gossamer.url.site import HOST_BYTES_MAX, is_suffix, site_of

ROUNDS_MAX: Final = 8
"""Rounds after which a host that rules still change keeps its own name."""


class HostNameRules:
    """Says by which name a host is compared: `starts_with`, `ends_with` and `synonyms`, in this order, until none fits.

    Of the rules of a kind the first that fits is applied, in the order given. They work on whole labels: a start ends
    with a dot (`www.`), an end begins with one (`.uni-muenchen.de`). A start never leads out of a site: `www.co.uk`
    stays. Raises ValueError for rules that cannot be meant. Costs 10 to 20 µs a host, so keep the answer.
    """

    def __init__(
        self,
        starts_with: Mapping[str, str] | None = None,
        ends_with: Mapping[str, str] | None = None,
        synonyms: Mapping[str, str] | None = None,
    ) -> None:
        self._starts = [(_start(old), _start(new) if new else "") for old, new in (starts_with or {}).items()]
        self._ends = [(_end(old), _end(new)) for old, new in (ends_with or {}).items()]
        self._synonyms = {_name(old): _name(new) for old, new in (synonyms or {}).items()}
        self._check()
        self._known: set[str] = set()
        """Sites that rules connect with others."""
        self._leaders: dict[str, str] = {}
        """Steps from each of them to the one that represents all."""
        self._connect()

    def __bool__(self) -> bool:
        return bool(self._starts or self._ends or self._synonyms)

    def resolve(self, host: str) -> str:
        """Return the name by which a host, as `Url.host` has it, is compared; that of such a name is itself."""
        name = host
        for _ in range(ROUNDS_MAX):
            before, name = name, self._once(name)
            if name == before:
                return name
        return host

    def home(self, site: str) -> str:
        """Return the site whose partition holds a site: one for all sites with hosts that are compared as one."""
        at, way = site, {site}
        while at not in self._known:
            other = self._moved(at)
            if other is None:
                return at
            if other in way:
                return site
            at = other
            way.add(at)
        return self._leader(at)

    def keeps_to(self, site: str) -> bool:
        """Say whether no rule leads from a site to another one, or from another one to it."""
        for old, new in self._ends:
            if _is_open(old[1:]):
                if site.endswith((old, new)) or site_of(new[1:]) == site:
                    return False
            elif site in {site_of(old[1:]), site_of(new[1:])} and site_of(old[1:]) != site_of(new[1:]):
                return False
        pairs = ({site_of(old), site_of(new)} for old, new in self._synonyms.items())
        return not any(site in pair and len(pair) > 1 for pair in pairs)

    def _once(self, host: str) -> str:
        host = self._other_end(self._other_start(host))
        return self._synonyms.get(host, host)

    def _other_start(self, host: str) -> str:
        for old, new in self._starts:
            if host.startswith(old):
                other = new + host[len(old) :]
                return other if _is_name(other) and site_of(other) == site_of(host) else host
        return host

    def _other_end(self, host: str) -> str:
        for old, new in self._ends:
            if host.endswith(old):
                other, site = host[: -len(old)] + new, site_of(host)
                # Below a deeper public suffix, such as s3.amazonaws.com, hosts of one site would map to many sites.
                goal = self._image(site, old, new) if _is_open(old[1:]) else site_of(new[1:])
                meant = _is_open(old[1:]) or site == site_of(old[1:])
                return other if meant and _is_name(other) and site_of(other) == goal else host
        return host

    def _moved(self, site: str) -> str | None:
        """Return the site to which a rule leads a whole site; None when none does."""
        for old, new in self._ends:
            if site.endswith(old) and _is_open(old[1:]):
                return self._image(site, old, new)
        return None

    @staticmethod
    def _image(site: str, old: str, new: str) -> str:
        return site_of(site[: -len(old)] + new) if site.endswith(old) else site

    def _check(self) -> None:
        for old, new in (*self._starts, *self._ends, *self._synonyms.items()):
            if old == new:
                raise ValueError(f"the host rule {old!r} changes nothing; leave it out")
        for old, new in self._starts:
            if new.startswith(old):
                raise ValueError(f"the host rule {old!r} fits what it makes, {new!r}: it would never come to rest")
        for old, new in self._ends:
            if new.endswith(old):
                raise ValueError(f"the host rule {old!r} fits what it makes, {new!r}: it would never come to rest")
            if _is_open(new[1:]) and not _is_open(old[1:]):
                raise ValueError(
                    f"the host rule {old!r} leads to {new!r}, under which anyone can register names: "
                    "name a domain, or synonyms"
                )
        for old in self._synonyms:
            way = [old]
            while (at := self._synonyms.get(way[-1])) is not None:
                if at in way:
                    raise ValueError(f"these synonyms go in a circle: {', '.join(way)}")
                way.append(at)

    def _connect(self) -> None:
        """Unite the sites between which rules lead some hosts and not others.

        Ends that are public suffixes lead whole sites elsewhere: `home` follows them, but for sites that are united.
        """
        pairs = [(site_of(old[1:]), site_of(new[1:])) for old, new in self._ends if not _is_open(old[1:])]
        pairs += [(site_of(old), site_of(new)) for old, new in self._synonyms.items()]
        while pairs:
            one, other = pairs.pop()
            self._unite(one, other)
            for site in {one, other} - self._known:
                self._known.add(site)
                for old, new in self._ends:
                    if site.endswith(old) and _is_open(old[1:]):
                        pairs.append((site, self._image(site, old, new)))

    def _unite(self, one: str, other: str) -> None:
        first, second = sorted((self._leader(one), self._leader(other)))
        if first != second:
            self._leaders[second] = first

    def _leader(self, site: str) -> str:
        while site in self._leaders:
            site = self._leaders[site]
        return site


def _is_open(domain: str) -> bool:
    """Say whether sites of many owners end so."""
    return "." not in domain or is_suffix(domain)


def _is_name(host: str) -> bool:
    return bool(host) and len(host) <= HOST_BYTES_MAX and host[0] != "." and not host[0].isspace()


def _start(text: str) -> str:
    if not text.endswith(".") or text.startswith(".") or len(text) < 2:
        raise ValueError(f"{text!r} is not the start of a host: write whole labels and a dot, such as 'www.'")
    return _name(text + "x").removesuffix("x")


def _end(text: str) -> str:
    if not text.startswith(".") or text.endswith(".") or len(text) < 2:
        raise ValueError(f"{text!r} is not the end of a host: write a dot and whole labels, such as '.example.org'")
    return _name("x" + text).removeprefix("x")


def _name(text: str) -> str:
    """Return a host as `Url.host` has it. Raises ValueError for what is none."""
    whole = absolute(f"http://{text}/")
    name = (whole or "")[len("http://") : -1].removesuffix(".")
    if not name or any(mark in text for mark in "/?#@ \t") or (":" in name and not name.endswith("]")) or ".." in name:
        raise ValueError(f"{text!r} is not a host; write one such as example.org")
    return name
