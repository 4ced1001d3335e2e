"""Seeds: where a crawl begins: read, checked, and refused to the anonymous where strangers' servers are meant."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from gossamer.config.lines import lines_of
from gossamer.config.sections import Config
from gossamer.model.errors import ConfigError
from gossamer.scope.seeds import seed_url


def seed(text: str) -> str:
    """Return a seed of any scheme that is visited by default, as an absolute address.

    Raises:
        ConfigError: it is none; the line says what to write instead.
    """
    return seed_url(text)


def file_seeds(path: Path, schemes: Sequence[str]) -> Iterator[str]:
    """Yield the seeds of a file: one a line, `#` begins a comment, checked one by one; memory does not grow.

    Raises:
        ConfigError: the file cannot be read, or a line is no seed; the line number is named.
    """
    for number, text in lines_of(path, "seeds"):
        try:
            yield seed_url(text, schemes)
        except ConfigError as error:
            raise ConfigError(f"{path} line {number}: {error}") from error


def check_seeds(config: Config) -> None:
    """Look at every seed before anything is started: is it one, may it be visited, do we say who we are?

    Raises:
        ConfigError: there is none, or one is wrong.
    """
    if not check_addresses(config, all_seeds(config)):
        raise ConfigError("no seeds; name a URL (gossamer crawl https://example.org/) or a file of them (--seeds FILE)")


def check_addresses(config: Config, addresses: Iterable[str]) -> int:
    """Look at seeds as `check_seeds` does, and return how many there are.

    Raises:
        ConfigError: one of them may not be visited.
    """
    local = local_names(Path(config.resolve.hosts_file)) if config.resolve.hosts_file else frozenset()
    count = 0
    for address in addresses:
        count += 1
        parts = urlsplit(address)
        host = (parts.hostname or ("localhost" if parts.scheme == "file" else "")).rstrip(".")
        private = is_private(host) or host in local
        if private and not config.resolve.allow_private:
            raise ConfigError(f"seed {address} is at a private address; add --allow-private to visit those")
        if not private and not config.operator.contact:
            raise ConfigError(
                f"seed {address} is on the public web, where crawlers say who they are: "
                "add --contact with a URL or mail address of yours"
            )
    return count


def all_seeds(config: Config) -> Iterable[str]:
    """Yield the seeds of arguments and configuration, then those of the file, each checked."""
    for text in config.seeds.urls:
        yield seed_url(text, config.scope.schemes)
    if config.seeds.file:
        yield from file_seeds(Path(config.seeds.file), config.scope.schemes)


def is_private(host: str) -> bool:
    """Say whether a host is, by its name alone, no address of the public Internet."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")  # RFC 6761, section 6.3


def local_names(file: Path) -> frozenset[str]:
    """Return the names that a hosts file gives private addresses only.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read hosts from {file}: {error.strerror}; name a file that you can read") from error
    private: set[str] = set()
    public: set[str] = set()
    for line in lines:
        address, *names = line.partition("#")[0].split() or [""]
        (private if is_private(address) else public).update(name.lower().rstrip(".") for name in names)
    return frozenset(private - public)
