"""Exclusions: hosts whose owners asked us not to come."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.url.join import absolute


class ExcludedHost:
    """Hosts whose owners asked us not to come. May grow while the crawl runs."""

    name = "excluded_host"

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts: set[str] = set()
        self._domains: set[str] = set()
        self.revision = 0
        """Grows with every change: what was dumped at an earlier one is stale."""
        for host in hosts:
            self.add(host)

    def add(self, host: str) -> None:
        """Exclude a host, or with a leading dot a domain and all under it. Raises ConfigError for what is neither."""
        domain = host.strip().removeprefix(".")
        whole = absolute(f"http://{domain}/")
        name = (whole or "")[len("http://") : -1].removesuffix(".")
        if not name or any(mark in domain for mark in "/?#@") or (":" in name and not name.endswith("]")):
            raise ConfigError(f"{host!r} is not a host: write example.org for one host, .example.org for all under it")
        (self._domains if host.strip().startswith(".") else self._hosts).add(name)
        self.revision += 1

    def covers(self, host: str) -> bool:
        """Say whether a host, as `Url.host` has it, is excluded. The cost grows with its labels, not with the list."""
        if host in self._hosts:
            return True
        if not self._domains:
            return False
        while host not in self._domains:
            host = host.partition(".")[2]
            if not host:
                return False
        return True

    def rejects(self, link: Link) -> bool:
        return self.covers(link.url.host)

    def dump(self) -> bytes:
        """Return all excluded hosts, for the commit."""
        return msgspec.msgpack.encode(sorted(self._hosts) + sorted("." + domain for domain in self._domains))

    def load(self, dumped: bytes) -> None:
        """Exclude what was dumped, besides what is excluded already."""
        for host in msgspec.msgpack.decode(dumped, type=list[str]):
            self.add(host)
