"""Exclusion: hosts whose owners asked us to stay away."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.model.errors import ConfigError
from gossamer.url.join import absolute


class Exclusions:
    """The list as it stands: one host a line, `.example.org` or `*.example.org` with all below it, `#` comments."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        """Take hosts as they stand in the file.

        Raises:
            ConfigError: a line is no host.
        """
        self._modified_at: float | None = None
        self._hosts, self._domains = _read(lines)

    def update(self, text: str, modified_at: float) -> bool:
        """Take the file's content if its time of modification is another than last time; say whether it was taken.

        Raises:
            ConfigError: a line is no host; the list stays what it was.
        """
        if modified_at == self._modified_at:
            return False
        self._hosts, self._domains = _read(text.splitlines())
        self._modified_at = modified_at
        return True

    def is_current(self, modified_at: float) -> bool:
        """Say whether the file need not be read."""
        return modified_at == self._modified_at

    def covers(self, host: str) -> bool:
        """Say whether nothing may be asked of a host, as `Url.host` has it. Costs a look-up a label."""
        if host in self._hosts:
            return True
        while host and self._domains:
            if host in self._domains:
                return True
            host = host.partition(".")[2]
        return False


def _read(lines: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    hosts: set[str] = set()
    domains: set[str] = set()
    for number, line in enumerate(lines, 1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        name = entry.removeprefix("*").removeprefix(".").removesuffix(".")
        whole = absolute(f"http://{name}/")
        host = (whole or "").removeprefix("http://")[:-1]
        if not host or any(mark in name for mark in "/?@*") or (":" in name and name[-1] != "]"):
            raise ConfigError(f"exclusion list, line {number}: {entry!r} is no host; write example.org or .example.org")
        (domains if entry[0] in "*." else hosts).add(host)
    return frozenset(hosts), frozenset(domains)
