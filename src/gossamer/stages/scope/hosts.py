"""Hosts: a set of hosts and domains, for lists and options that name them."""

import re
from collections.abc import Iterable

from gossamer.model.errors import ConfigError
from gossamer.url.join import absolute
from gossamer.url.site import HOST_BYTES_MAX

_HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")
"""A host in the form of `absolute`, with only the characters that host names in DNS have: URLs may contain others."""


class HostSet:
    """Hosts, and domains with all hosts under them. Raises ConfigError for text that is neither."""

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
        """Add a host, or with a leading dot a domain and all hosts under it. Raises ConfigError for other text."""
        domain = host.strip().removeprefix(".")
        whole = absolute(f"http://{domain}/")
        name = (whole or "")[len("http://") : -1].removesuffix(".")
        if len(name) > HOST_BYTES_MAX or _HOST.fullmatch(name) is None or any(mark in domain for mark in "/?#@*"):
            raise ConfigError(f"{host!r} is not a host: write example.org for one host, .example.org for all under it")
        (self._domains if host.strip().startswith(".") else self._hosts).add(name)

    def covers(self, host: str) -> bool:
        """Return whether a host, as in `Url.host`, is included. The cost grows with its labels, not with the list."""
        if host in self._hosts:
            return True
        if not self._domains:
            return False
        while host not in self._domains:
            host = host.partition(".")[2]
            if not host:
                return False
        return True

    def entries(self) -> list[str]:
        """Return all entries as they were added, sorted."""
        return sorted(self._hosts) + sorted("." + domain for domain in self._domains)
