"""Lists: the operator's files: their text, and the patterns, hosts and domains in them, read for the scope."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from msgspec.structs import replace

from gossamer.config.sections import Config
from gossamer.model.errors import ConfigError
from gossamer.model.patterns import PatternSet
from gossamer.model.product import FORGOTTEN
from gossamer.stages.scope.forgotten import ForgottenEntry, Matching
from gossamer.stages.scope.hosts import HostSet
from gossamer.stages.scope.lists import Lists, Whitelist
from gossamer.world.inputs import INPUT_BYTES_MAX, open_input, read_input

CHECKED_LINES = 1_000
LIST_BYTES_MAX = 64 << 20
"""Largest file of hosts or patterns, which is kept in memory. A whitelist has no bound: it takes 8 bytes a line."""


def scope_lists(config: Config) -> Lists:
    """Read all files that the section `scope` names. Raises ConfigError: one cannot be read, or a line is wrong."""
    scope = config.scope
    return Lists(
        include=patterns_of(Path(scope.include_file)) if scope.include_file else (),
        exclude=patterns_of(Path(scope.exclude_file)) if scope.exclude_file else (),
        excluded_hosts=hosts_of(Path(scope.exclude_hosts_file)) if scope.exclude_hosts_file else HostSet(),
        whitelist=whitelist_of(Path(scope.whitelist_file)) if scope.whitelist_file else None,
    )


def check_lists(config: Config) -> None:
    """Check these files before anything starts; of a whitelist only the beginning. Raises as `scope_lists`."""
    whitelist = config.scope.whitelist_file
    scope_lists(replace(config, scope=replace(config.scope, whitelist_file="")))
    if whitelist:
        whitelist_of(Path(whitelist), CHECKED_LINES)


def patterns_of(path: Path) -> tuple[str, ...]:
    """Return the patterns of a file. Raises ConfigError: it cannot be read, or one is not a regular expression."""
    numbered = list(lines_of(path, bytes_max=LIST_BYTES_MAX))
    patterns = tuple(text for _, text in numbered)
    try:
        PatternSet(patterns)
    except ConfigError as error:
        number = next((number for number, text in numbered if repr(text) in str(error)), None)
        raise ConfigError(f"{path}{f' line {number}' if number else ''}: {error}") from error
    return patterns


def hosts_of(path: Path) -> HostSet:
    """Return the hosts of a file. Raises ConfigError: it cannot be read, or a line is not a host."""
    hosts = HostSet()
    for number, text in lines_of(path, bytes_max=LIST_BYTES_MAX):
        try:
            hosts.add(text)
        except ConfigError as error:
            raise ConfigError(f"{path} line {number}: {error}") from error
    return hosts


def all_forgotten(config: Config, directory: Path) -> list[ForgottenEntry]:
    """Return the forgotten pages: of the crawl's own list, of the one that it shares with others, and of the crawls
    whose pages it does not fetch again. Raises ConfigError: the shared list cannot be read, or a line of either is not
    an entry.
    """
    own = directory / FORGOTTEN
    shared = config.scope.forgotten_file
    kept = [path for path in (own, *(Path(name) / FORGOTTEN for name in config.scope.against)) if path.exists()]
    if shared and Path(shared).resolve() != own.resolve():
        kept.append(Path(shared))
    return [entry for path in kept for entry in read_forgotten(path)]


def read_forgotten(path: Path) -> list[ForgottenEntry]:
    """Return the entries of a list of forgotten pages, one JSON object a line. Raises ConfigError: it cannot be read,
    or a line is not an entry.
    """
    found = []
    try:
        lines = read_input(path).splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; name a file that you can read") from error
    for number, line in enumerate(lines, 1):
        try:
            entry = msgspec.json.decode(line, type=ForgottenEntry)
            Matching([entry.pattern])
            _ = entry.until_at
        except (ConfigError, ValueError) as error:
            raise ConfigError(f"{path} line {number}: no entry of a list of forgotten pages: {error}") from error
        found.append(entry)
    return found


def whitelist_of(path: Path, lines_max: int | None = None) -> Whitelist:
    """Return the sites of a file. Raises ConfigError: it cannot be read, holds nothing, or a line is not a domain."""
    at = 0

    def domains() -> Iterator[str]:
        nonlocal at
        for number, text in islice(lines_of(path), lines_max):
            at = number
            yield text

    try:
        whitelist = Whitelist(domains())
    except ConfigError as error:
        raise ConfigError(str(error) if str(path) in str(error) else f"{path} line {at}: {error}") from error
    if not whitelist:
        raise ConfigError(f"{path} lists no domain, so that nothing would be visited; list some, one a line")
    return whitelist


LINE_CHARACTERS_MAX = 65_536
_KINDS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK\3\4": "a ZIP archive, as WACZ is", b"%PDF": "a PDF"}


def lines_of(path: Path, holding: str = "", bytes_max: int | None = None) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of the lines that hold something; memory does not grow with the file.

    `holding` says in the message what was sought in it. Raises ConfigError: the file cannot be read, is no UTF-8, is
    longer than `bytes_max`, or has a line without end.
    """
    try:
        size = 0
        with open_unpacked(path) as file, io.TextIOWrapper(file, "utf-8-sig") as lines:
            for number, line in enumerate(iter(partial(lines.readline, LINE_CHARACTERS_MAX + 2), ""), 1):
                size += len(line)
                if bytes_max is not None and size > bytes_max:
                    raise ConfigError(f"{path} has more than {bytes_max >> 20} MiB; shorten it")
                # A comment is a line, or what follows a space: patterns and URLs may hold a #.
                text = f" {line.strip()}".partition(" #")[0].strip()
                if len(line) > LINE_CHARACTERS_MAX + 1:
                    raise ConfigError(f"{path} line {number}: longer than {LINE_CHARACTERS_MAX} characters")
                if "\0" in text:
                    raise ConfigError(f"{path} line {number}: a zero byte, as UTF-16 has; save it as UTF-8")
                if text:
                    yield number, text
    except (OSError, EOFError, zlib.error) as error:
        what = f"{holding} from {path}" if holding else str(path)
        said = getattr(error, "strerror", "") or error  # What gzip says has no number.
        is_web = "http:/" in str(path) or "https:/" in str(path)
        advice = "save what is at the address, and name that file" if is_web else "name a file that you can read"
        raise ConfigError(f"cannot read {what}: {said}; {advice}") from error
    except UnicodeDecodeError as error:
        raise _no_text(path, error) from error


def _no_text(path: Path, error: UnicodeDecodeError) -> ConfigError:
    kind = next((kind for begin, kind in _KINDS.items() if error.object.startswith(begin)), "")
    expected = "save it as UTF-8" if kind in ("", "UTF-16") else "a text file in UTF-8 is expected"
    return ConfigError(f"{path} is {kind or f'not UTF-8 (byte {error.start})'}; {expected}")


@contextmanager
def open_unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a file, gzipped or not. Raises OSError as `open_input`."""
    with open_input(path) as file:
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not is_packed:
            yield file
            return
        with gzip.open(file) as unpacked:
            yield cast("BinaryIO", unpacked)


def read_text(file: Path, bytes_max: int = INPUT_BYTES_MAX) -> str:
    """Return a configuration file's text. Raises ConfigError: it cannot be read, or has more than `bytes_max` bytes."""
    try:
        return read_input(file, bytes_max).decode("utf-8-sig")
    except PermissionError as error:
        raise ConfigError(f"you may not read {file}; run this as its owner, or have them permit it") from error
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}; name a file that you can read") from error
    except UnicodeDecodeError as error:
        raise _no_text(file, error) from error
