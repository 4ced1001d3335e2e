"""Hosts: compares several names of one server as one, by the three kinds of rules of LARM's host resolver (2002)."""

from collections.abc import Mapping
from typing import Final

from gossamer.url.join import absolute
from gossamer.url.site import HOST_BYTES_MAX, is_suffix, site_of

ROUNDS_MAX: Final = 8
"""Rounds of rules, after which a host that still changes keeps its own name."""


class HostNameRules:
    """Maps hosts to the names by which they are compared: `starts_with`, `ends_with` and `synonyms`, in this order,
    until no rule applies.

    The first rule of each kind that matches is applied, in the order given. Rules match whole labels: a start ends with
    a dot (`www.`), an end begins with one (`.uni-muenchen.de`). A start never leads out of a site: `www.co.uk` stays.
    Raises ValueError for rules that make no sense. Costs 10 to 20 µs a host, so cache the result.
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
        """Sites that rules connect with other sites."""
        self._leaders: dict[str, str] = {}
        """From each of these one step towards the site that represents its group (union-find)."""
        self._connect()

    def __bool__(self) -> bool:
        return bool(self._starts or self._ends or self._synonyms)

    def resolve(self, host: str) -> str:
        """Return the name by which a host, as in `Url.host`, is compared; for such a name, the name itself."""
        name = host
        for _ in range(ROUNDS_MAX):
            before = name
            name = self._once(name)
            if name == before:
                return name
        return host

    def home(self, site: str) -> str:
        """Return the site whose partition holds a site: the same for all sites with hosts that are compared as one."""
        at = site
        way = {site}
        while at not in self._known:
            other = self._target_of(at)
            if other is None:
                return at
            if other in way:
                return site
            at = other
            way.add(at)
        return self._leader(at)

    def keeps_to(self, site: str) -> bool:
        """Return whether no rule connects a site with another one, in either direction."""
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
                other = host[: -len(old)] + new
                site = site_of(host)
                # Below a deeper public suffix, such as s3.amazonaws.com, hosts of one site would map to many sites.
                goal = self._image(site, old, new) if _is_open(old[1:]) else site_of(new[1:])
                meant = _is_open(old[1:]) or site == site_of(old[1:])
                return other if meant and _is_name(other) and site_of(other) == goal else host
        return host

    def _target_of(self, site: str) -> str | None:
        """Return the site to which a rule maps a whole site; None if no rule does."""
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
        """Unite the sites between which rules map some of the hosts.

        Rules whose end is a public suffix map whole sites: `home` follows them, except from united sites.
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
    """Return whether the sites below a domain have many owners."""
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
    """Return a host as in `Url.host`. Raises ValueError if the text is not a host."""
    whole = absolute(f"http://{text}/")
    name = (whole or "")[len("http://") : -1].removesuffix(".")
    if not name or any(mark in text for mark in "/?#@ \t") or (":" in name and not name.endswith("]")) or ".." in name:
        raise ValueError(f"{text!r} is not a host; write one such as example.org")
    return name
