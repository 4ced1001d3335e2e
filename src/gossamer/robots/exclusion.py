"""Exclusion: hosts whose owners asked us to stay away."""

from __future__ import annotations

from collections.abc import Iterable

from ada_url import idna_to_ascii

from gossamer.model.errors import ConfigError


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

    def excluded(self, host: str, site: str) -> bool:
        """Say whether nothing may be asked of a host (lower case, ASCII form) of this site."""
        if host in self._hosts:
            return True
        if not self._domains:
            return False
        if site in self._domains:
            return True
        name = host
        while name:
            if name in self._domains:
                return True
            name = name.partition(".")[2]
        return False


def _read(lines: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    hosts, domains = set(), set()
    for number, line in enumerate(lines, 1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        name = entry.removeprefix("*").removeprefix(".").rstrip(".")
        below = entry[0] in "*."
        host = "" if any(mark in name for mark in "/ \t*@?") else _ascii(name)
        if not host:
            raise ConfigError(
                f"exclusion list, line {number}: {entry!r} is no host; write example.org or *.example.org"
            )
        (domains if below else hosts).add(host)
    return frozenset(hosts), frozenset(domains)


def _ascii(name: str) -> str:
    if name.isascii():
        return name.lower()
    try:
        return str(idna_to_ascii(name).decode() if isinstance(idna_to_ascii(name), bytes) else idna_to_ascii(name))
    except ValueError:
        return ""
