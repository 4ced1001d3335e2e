"""Canonical: when two addresses are one, by named rules."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from gossamer.url.hosts import HostNameRules
from gossamer.url.join import absolute
from gossamer.url.rules import DEFAULT_RULES, RULES, Rule, occasion
from gossamer.url.site import site_of
from gossamer.url.url import Parts, split

Search = Callable[[str], re.Match[str] | None]

Steps = Mapping[str, Rule]
"""Rules by name, in the order in which they run."""

STABLE_ROUNDS_MAX = 64
"""Rounds after which rules that still change an address are left alone; no address of lawful length needs as many."""

HOSTS_MAX: Final = 16_384
"""Hosts whose rules, and whose names by host rules, are remembered: about 3 MB each."""


class Canonicalizer:
    """Makes the key by which addresses are compared, by the rules that are switched on.

    The default rules merge only what RFC 3986 declares equal (sections 6.2.2 and 6.2.3) and the final dot of a host.
    Rules run in the order of `RULES`, after the host rules. `sites` names the rules of single sites, by registrable
    domain, which replace the others. Raises ValueError for an unknown rule, and for a name that is no site.
    """

    def __init__(
        self,
        rules: Sequence[str] = DEFAULT_RULES,
        hosts: HostNameRules | None = None,
        sites: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._steps = _steps_of(rules)
        self.rules = tuple(self._steps)
        self.hosts = hosts if hosts is not None else HostNameRules()
        self._sites = {check_site(site): _steps_of(own) for site, own in (sites or {}).items()}
        self.cautious = all(is_cautious(steps) for steps in (self._steps, *self._sites.values()))
        """No rule but default ones is on, anywhere: then `is_plain` holds for hosts that host rules leave alone."""
        self._of_hosts: dict[str, Steps] = {}
        self._names: dict[str, str] = {}
        self._occasions: dict[tuple[str, ...], Search] = {}

    def key(self, url: str) -> str:
        """Return the key of an address that `join` or `absolute` gave; the key of a key is itself.

        0.3 µs where the default rules find nothing to do; 2 to 6 µs otherwise and with further rules.
        """
        return url if self.cautious and not self.hosts and is_plain(url) else self.key_by_rules(url)

    def key_by_rules(self, url: str) -> str:
        """Return what `key` returns, rule by rule: the readable path."""
        parts = split(url)
        if parts is None:
            return url
        for _ in range(STABLE_ROUNDS_MAX):
            # One rule's work may be another's occasion: /a/index.html/ loses its slash first, then its index file.
            before, parts = parts, self._with_host(parts)
            for rule in self.steps_of(parts.host).values():
                parts = rule(parts)
            if parts == before:
                break
        return parts.text()

    def changes(self, url: str) -> list[tuple[str, str]]:
        """Return (rule, address after it) for each rule that has a part in the key of an address, in order.

        Host rules stand as `hosts`. For people who ask why.
        """
        parts = split(url)
        changes: list[tuple[str, str]] = []
        for _ in range(STABLE_ROUNDS_MAX if parts is not None else 0):
            assert parts is not None
            before = parts
            for name, rule in [("hosts", self._with_host), *self.steps_of(self._with_host(parts).host).items()]:
                changed = rule(parts)
                if changed != parts:
                    changes.append((name, changed.text()))
                parts = changed
            if parts == before:
                break
        return changes

    def steps_of(self, host: str) -> Steps:
        """Return the rules for a host by name, in order: those of its site where it has its own."""
        if not self._sites:
            return self._steps
        steps = self._of_hosts.get(host)
        if steps is None:
            if len(self._of_hosts) >= HOSTS_MAX:
                self._of_hosts.clear()
            steps = self._of_hosts[host] = self._sites.get(site_of(_plain_host(host)), self._steps)
        return steps

    def start(self, prefix: str) -> tuple[str, Search]:
        """Return the start of the keys of all addresses with this prefix (scheme and authority), and a search that
        matches the rest of an address if a rule may change it; without a match, the key has the rest unchanged.
        """
        begun = self.key_by_rules(prefix + "/").removesuffix("/")
        parts = split(begun)
        names = tuple(self.steps_of(parts.host) if parts is not None else ())
        search = self._occasions.get(names)
        if search is None:
            search = self._occasions[names] = re.compile(occasion(names)).search
        return begun, search

    def _with_host(self, parts: Parts) -> Parts:
        if not self.hosts:
            return parts
        name = self._names.get(parts.host)
        if name is None:
            if len(self._names) >= HOSTS_MAX:
                self._names.clear()
            host = _plain_host(parts.host)
            resolved = self.hosts.resolve(host)
            name = self._names[parts.host] = parts.host if resolved == host else resolved
        return parts if name == parts.host else replace(parts, host=name)


def _plain_host(host: str) -> str:
    return host.lower().removesuffix(".")


def _steps_of(rules: Sequence[str]) -> Steps:
    wanted = check_rules(rules)
    return {name: RULES[name] for name in RULES if name in wanted}


def is_cautious(rules: Iterable[str]) -> bool:
    """Say whether all of these are default rules."""
    return all(name in DEFAULT_RULES for name in rules)


def is_plain(url: str) -> bool:
    """Say that no default rule changes this address: the fast path. May miss some, but is right if true."""
    end = url.find("/", 8)
    return end > 0 and "%" not in url and "#" not in url and is_plain_start(url[:end])


def is_plain_start(start: str) -> bool:
    """Say that no default rule changes an address for the sake of its start: scheme and authority."""
    # http and https only: the WHATWG rules leave host case and port of other schemes as written.
    return start.startswith(("http://", "https://")) and start[-1] != "." and ".:" not in start


def check_rules(rules: Iterable[str]) -> frozenset[str]:
    """Return the names as a set. Raises ValueError, naming the nearest rule, when one is unknown."""
    for name in rules:
        if name not in RULES:
            near = difflib.get_close_matches(name, RULES, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else "the rules are " + ", ".join(RULES)
            raise ValueError(f"no canonical rule is called {name!r}; {hint}")
    return frozenset(rules)


def check_site(name: str) -> str:
    """Return a site's name as `Url.site` has it. Raises ValueError when it is none, naming the site it belongs to."""
    whole = absolute(f"http://{name}/")
    host = (whole or "")[len("http://") : -1].removesuffix(".")
    if not host or any(mark in name for mark in "/?#@ ") or (":" in host and not host.endswith("]")):
        raise ValueError(f"{name!r} is not a site; write one such as example.org")
    site = site_of(host)
    if site != host:
        raise ValueError(f"{name!r} is a host of the site {site!r}, and rules are by site; write {site!r}")
    return site
