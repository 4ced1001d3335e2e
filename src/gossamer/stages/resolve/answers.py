"""Answers: addresses from the hosts file, and the answers of name servers.

Separate from `lookup`, which loads c-ares, because most crawls of known hosts do not need that.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure, Reply
from gossamer.stages.resolve.guard import canonical
from gossamer.world.inputs import read_input


class DnsRecords(NamedTuple):
    """The answer of name servers about a host."""

    addresses: tuple[str, ...]
    ttl_s: float
    """The shortest of all records in the answers, aliases included."""
    lines: tuple[str, ...] = ()
    """The answers as lines of a zone file (RFC 1035, section 5), aliases included."""


class LookupAnswer(NamedTuple):
    """Addresses of a host or why there are none, and whether this can be trusted."""

    found: DnsRecords | Failure
    is_malformed: bool = False
    """An answer to this name cannot be parsed, or one to a name that was looked up in the same channel."""
    is_doubtful: bool = False
    """The lookup may have failed because of another name: repeat it alone."""
    has_timed_out: bool = False


def reply_of(host: str, records: DnsRecords, asked_at: float, answered_at: float) -> Reply:
    """Return an answer of name servers in its archived form: text/dns (RFC 4027) after the date, as in Heritrix."""
    date = f"{datetime.fromtimestamp(asked_at, UTC):%Y%m%d%H%M%S}"
    body = "".join(f"{line}\n" for line in (date, *records.lines)).encode("utf-8", "replace")
    return Reply(f"dns:{host}", 1, (), body, "", asked_at, answered_at - asked_at, len(body), media_type="text/dns")


def fail(error: str, *, retry: bool) -> Failure:
    """Return the failure of a name resolution, which concerns the host and not one URL."""
    return Failure("dns_error", f"name resolution: {error}", retry=retry, host_level=True)


class HostsFile:
    """Addresses by name, in the order of the file. Unchanged between two readings; about 300 bytes a name."""

    def __init__(self, path: str = "") -> None:
        """Read the file. Raises ConfigError as `read`; an empty path means no file."""
        self._path = path
        self._addresses: dict[str, tuple[str, ...]] = {}
        self.read()

    def __len__(self) -> int:
        return len(self._addresses)

    def read(self) -> None:
        """Read the file again. Raises ConfigError with the line, and then keeps the old addresses."""
        if not self._path:
            return
        try:
            text = read_input(Path(self._path)).decode("utf-8", "replace")
        except OSError as error:
            raise ConfigError(f"hosts file {self._path}: {error.strerror}; give a readable file") from error
        self._addresses = parse_hosts(text.splitlines(), self._path)

    def addresses(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a name, which is in lower case; empty if unknown."""
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
