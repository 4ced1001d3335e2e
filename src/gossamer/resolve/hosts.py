"""Hosts: names that the operator has given addresses to, in the format of /etc/hosts (hosts(5))."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gossamer.model.errors import ConfigError
from gossamer.resolve.guard import canonical


class Hosts:
    """The addresses by name, in the order of the file. Frozen between two readings; about 300 bytes a name."""

    def __init__(self, path: str = "") -> None:
        """Read the file. Raises ConfigError as `read` does; an empty path is a file without lines."""
        self._path = path
        self._addresses: dict[str, tuple[str, ...]] = {}
        self.read()

    def __len__(self) -> int:
        return len(self._addresses)

    def read(self) -> None:
        """Read the file again. Raises ConfigError, naming the line, and then keeps what was known."""
        if not self._path:
            return
        try:
            text = Path(self._path).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise ConfigError(f"hosts file {self._path}: {error.strerror}; give a readable file") from error
        self._addresses = parse_hosts(text.splitlines(), self._path)

    def addresses(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a name in lower case, or none."""
        return self._addresses.get(name, ())


def parse_hosts(lines: Iterable[str], path: str = "hosts") -> dict[str, tuple[str, ...]]:
    """Parse lines of an address and its names; `#` begins a comment. A name on several lines has all the addresses.

    Raises ConfigError with the number of the first line that is neither empty nor an address with names.
    """
    found: dict[str, tuple[str, ...]] = {}
    spelt: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        address = spelt.get(words[0])
        if address is None:
            address = spelt[words[0]] = _address(words[0], f"{path}:{number}")
        if len(words) == 1:
            raise ConfigError(f"{path}:{number}: {words[0]} has no names; expected ADDRESS NAME…")
        for name in words[1:]:
            name = name.lower().rstrip(".")
            known = found.get(name)
            if known is None:
                found[name] = (address,)
            elif address not in known:
                found[name] = (*known, address)
    return found


def _address(word: str, where: str) -> str:
    try:
        return canonical(word)
    except ValueError:
        raise ConfigError(f"{where}: {word[:64]!r} is no address; expected ADDRESS NAME…") from None
