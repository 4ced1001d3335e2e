"""Job: what the command line hands to the process that crawls, and what that makes of it."""

from __future__ import annotations

import json
from typing import Literal

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """A line of JSON between the two processes."""

    def encode(self) -> bytes:
        """Return it as one line. Words of a command line may be no UTF-8: the standard library escapes them."""
        return json.dumps(msgspec.to_builtins(self)).encode("ascii") + b"\n"


class Order(Message, frozen=True, kw_only=True, tag="order"):
    """`crawl` or `resume` as it was typed; nothing of it is checked."""

    command: Literal["crawl", "resume"]
    directory: str = ""
    """Of `resume`."""
    seeds: tuple[str, ...] = ()
    file: str | None = None
    options: dict[str, object] = {}
    sets: tuple[str, ...] = ()
    or_resume: bool = False
    parent: int
    """The process that must be alive for this one to be."""


class Spool(Message, frozen=True, kw_only=True, tag="spool"):
    """Asks for standard input: who types at a terminal is heard by the process in front alone."""

    file: str
    """Where it is wanted."""


class Job(Message, frozen=True, kw_only=True, tag="job"):
    """One crawl, checked."""

    directory: str
    values: str
    """The effective configuration, as JSON: 40 ms quicker to read than the file that people read."""
    origins: dict[str, str] = {}
    """Where its values came from, by dotted key."""
    seeds: tuple[str, ...] = ()
    """As arguments; those of a file are read by the crawl from `seeds.file`."""
    resume: bool = False
    settle: bool = False
    """When resuming: where the crawl had ended, only finish its files."""
    restart: bool = False
    """The child before this one died: resume if there is anything to resume, without a word."""
    parent: int = 0
    """The process that must be alive for this one to be."""
    process_s_max: float = 0.0
    """How long a stage may be at one page, for the supervisor."""
    missing: tuple[str, ...] = ()
    """Directories that were not there before, innermost first: a refused crawl leaves nothing behind."""
    before: tuple[str, ...] | None = None
    """Names that the crawl's directory held before; None: nothing of it goes whatever happens."""


def decode(line: bytes) -> Order | Job | Spool:
    """Return what a line holds. Raises msgspec.ValidationError or json.JSONDecodeError when it holds none of them."""
    return msgspec.convert(json.loads(line), type=Order | Job | Spool)
