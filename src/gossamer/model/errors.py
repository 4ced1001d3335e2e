"""Errors: mistakes that the operator can fix, failures that end a crawl, and damage to its files."""

import errno
import signal
from collections.abc import Sequence
from functools import partial
from typing import Literal

import msgspec


class ConfigError(Exception):
    """A mistake that the operator can fix. The text is one line that says how."""

    def __init__(self, *lines: str) -> None:
        """Take the line, or one for each of several mistakes, of which the text is the first."""
        super().__init__(*lines[:1])
        self.lines = lines


class OtherFormatError(ConfigError):
    """A crawl's directory that another version of Gossamer made, in a format that this one does not read."""


class NoClusterError(ConfigError):
    """No cluster at the address, or this machine has not joined it: a crawl that is resumed waits for both."""


class CrawlFailedError(Exception):
    """A failure that ends a crawl; its state is saved. The text is one line for people."""


class HeadLostError(CrawlFailedError):
    """The head of the cluster is gone, and all processes of the crawl with it: it continues in a new process."""


class DamagedError(CrawlFailedError):
    """A file of a crawl that is missing or changed: one line that names it, what is affected and what to do."""


class ComponentFailedError(CrawlFailedError):
    """A component of the operator failed, and the crawl cannot go on without. `trace`: the stack trace, in lines."""

    def __init__(self, line: str, trace: str) -> None:
        super().__init__(line)
        self.trace = trace


class ComponentError(RuntimeError):
    """A call of a component of the operator failed: one line that names both."""


DISK_ERRORS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG))


def is_mistake(error: BaseException) -> bool:
    """Return whether an exception raised in a component is the component's mistake, as `SystemExit` and panics of Rust
    are. So is `KeyboardInterrupt` in a process whose event loop handles signals, since Ctrl-C does not raise it there.
    """
    if isinstance(error, KeyboardInterrupt):
        handler = signal.getsignal(signal.SIGINT)
        return handler is not signal.default_int_handler and not isinstance(handler, partial)  # Of `asyncio.Runner`.
    return not isinstance(error, GeneratorExit)


def is_fatal(error: BaseException) -> bool:
    """Return whether an error ends the crawl: of the disk, or an indispensable component. The page stays queued."""
    return isinstance(error, CrawlFailedError) or (isinstance(error, OSError) and error.errno in DISK_ERRORS)


DamageKind = Literal[
    "checkpoint", "configuration", "contacts", "index", "journal", "partitions", "search", "seen", "store", "table",
    "views", "warc",
]  # fmt: skip


class Damage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is wrong with one file."""

    file: str
    """Its path, the crawl's directory included."""
    kind: DamageKind
    what: str
    """The damage, as the rest of a sentence that begins with the file: `is missing`."""
    affects: str
    remedy: str
    """The remedy, with its command if there is one."""
    offset: int | None = None
    """Byte offset in the file, if known."""
    url: str = ""
    """The URL concerned, if known."""

    def says(self) -> str:
        """Return the damage as one line for people."""
        where = f" at offset {self.offset}" if self.offset is not None else ""
        of = f" ({self.url})" if self.url else ""
        return f"{self.file} {self.what}{where}{of}; affected: {self.affects}; {self.remedy}"

    def as_object(self) -> dict[str, object]:
        """Return the fields as a JSON object, with the line for people as `says`."""
        found: dict[str, object] = msgspec.to_builtins(self)
        return {**found, "says": self.says()}


def require_none(found: Sequence[Damage], verify: str) -> None:
    """Raise DamagedError for the first damage; `verify` is the command that lists all of it."""
    if found:
        more = f"; {len(found) - 1:,} more: {verify} lists them" if len(found) > 1 else ""
        raise DamagedError(found[0].says() + more)


class StoreError(Exception):
    """A store failed; the text is one line."""

    def __init__(self, text: str, *, lasting: bool = False, refused: bool = False, of_file: bool = False) -> None:
        """`lasting`: the operator must act. `refused`: the same, of permissions. `of_file`: this file's fault."""
        super().__init__(text)
        self.lasting = lasting or refused
        self.refused = refused
        self.of_file = of_file
