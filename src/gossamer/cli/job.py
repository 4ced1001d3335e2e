"""Job: the messages between the supervisor and the process that crawls: a request, the job made of it, standard input.

Plain tuples and the standard library's JSON: the supervisor imports this, and every module counts twice there.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gossamer.world.inputs import read_input

AGAIN = 75
"""Exit status of a child that is to be started again, once no command works on the crawl (sysexits.h: EX_TEMPFAIL)."""


def is_maintained(directory: Path) -> bool:
    """Return whether a command holds `MAINTENANCE`: a crawl that stopped for it starts again afterwards."""
    from gossamer.world.process import MAINTENANCE, DirectoryLock  # For the supervisor, only when a child has ended.

    return DirectoryLock.is_held(directory / MAINTENANCE)


class CrawlRequest(NamedTuple):
    """A command line of `crawl` or `resume`, before it is checked."""

    command: Literal["crawl", "resume"]
    options: Mapping[str, object]
    """Values of options by their names in the table of flags."""
    sets: Sequence[str] = ()
    directory: Path = Path()
    """Of `resume`."""
    seeds: Sequence[str] = ()
    file: Path | None = None
    or_resume: bool = False
    recipe: str = ""
    """Command that crawls and goes on afterwards, such as `archive`; empty: none."""


class Spool(NamedTuple):
    """Requests standard input: only the process in the foreground can read a terminal."""

    file: str
    """File to which it is to be copied."""


class CrawlJob(NamedTuple):
    """One crawl, checked."""

    directory: str
    values: str
    """The effective configuration with the origins of its values, as JSON: quicker to read than the file for people."""
    seeds: tuple[str, ...] = ()
    """As arguments; those of a file are read by the crawl from `seeds.file`."""
    resume: bool = False
    settle: bool = False
    """When resuming: where the crawl had ended, only finish its files."""
    restart: bool = False
    """The previous child died: resume without a message if there is anything to resume."""
    written: str = ""
    """When restarting: what the crawl's `crawl.toml` said when this was made."""
    process_s_max: float = 0.0
    """How long a stage may take for one page; the supervisor enforces it."""
    beats: bool = False
    """Whether its process notes heartbeats of its event loop: one of several shards does so elsewhere."""
    recipe: str = ""
    """As in the request."""
    missing: tuple[str, ...] = ()
    """Directories that were not there before, innermost first: a refused crawl leaves nothing behind."""
    before: tuple[str, ...] | None = None
    """Names that the crawl's directory held before; None: nothing of it is ever removed."""
    rights: dict[str, Any] | None = None
    """Files that its processes may open (`world.sandbox.Rights`), in force before a page is read; None: no sandbox."""
    unconfined: str = ""
    """Why there is no sandbox."""
    is_required: bool = False
    """Whether the crawl is refused where the system refuses a sandbox."""


def toml_text(directory: Path) -> str:
    """Return the text of `crawl.toml`; empty if there is none yet."""
    try:
        return read_input(directory / "crawl.toml").decode("utf-8", "replace")
    except OSError:
        return ""


def encode(message: CrawlJob | Spool) -> bytes:
    """Return a message as one line of JSON."""
    return encode_line({type(message).__name__: message._asdict()})


def encode_line(value: object) -> bytes:
    """Return a value as one line of JSON. Words of a command line may be no UTF-8: they are escaped."""
    return json.dumps(value).encode("ascii") + b"\n"


def decode(line: bytes) -> CrawlJob | Spool:
    """Decode the output of `encode`."""
    [(kind, fields)] = json.loads(line).items()
    if kind == "Spool":
        return Spool(**fields)
    job = CrawlJob(**fields)
    before = None if job.before is None else tuple(job.before)
    return job._replace(seeds=tuple(job.seeds), missing=tuple(job.missing), before=before)
