"""Exclusions: hosts whose owners asked us not to come."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.url.hosts import HOST_BYTES_MAX
from gossamer.url.join import absolute


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
        if (
            not 0 < len(name) <= HOST_BYTES_MAX
            or any(mark in domain for mark in "/?#@*")
            or (":" in name and not name.endswith("]"))
        ):
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
    """Hosts whose owners asked us not to come: those added, for good, and those of a list that may be set anew."""

    name = "excluded_host"

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._added = HostSet(hosts)
        self._listed = HostSet()
        self.revision = 0
        """Grows with every host added: what was dumped at an earlier one is stale."""

    def add(self, host: str) -> None:
        """Exclude a host, or with a leading dot a domain and all under it. Raises ConfigError for what is neither."""
        self._added.add(host)
        self.revision += 1

    def set_listed(self, hosts: HostSet) -> bool:
        """Exclude these in place of those listed before; say whether they are others. What was added stays."""
        before, self._listed = self._listed, hosts
        return before != hosts

    @property
    def listed(self) -> HostSet:
        """The list that was set last."""
        return self._listed

    def covers(self, host: str) -> bool:
        """Say whether a host, as `Url.host` has it, is excluded."""
        return self._added.covers(host) or self._listed.covers(host)

    def rejects(self, link: Link) -> bool:
        return self.covers(link.url.host)

    def detail(self, link: Link) -> str:
        by = "the list of excluded hosts" if self._listed.covers(link.url.host) else "exclude_hosts or `exclude`"
        return f"{link.url.host} is excluded by {by}"

    def dump(self) -> bytes:
        """Return all hosts that were added, for the commit. A list is read again at each start."""
        return msgspec.msgpack.encode(self._added.written())

    def load(self, dumped: bytes) -> None:
        """Exclude what was dumped, besides what is excluded already."""
        for host in msgspec.msgpack.decode(dumped, type=list[str]):
            self.add(host)
