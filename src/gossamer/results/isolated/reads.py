"""Reads: questions to the archives of crawls, answered by a separate process. A hostile page, or the memory of a
large table, does not affect the calling process.
"""

import base64
import hmac
from pathlib import Path

import msgspec

from gossamer.model.archived import Compared
from gossamer.results.isolated.questions import Answer, AnswerBounds, Questions

REPLAY_BYTES_MAX = 8 << 20
"""Of one archived page, or of something that it shows."""
READING = AnswerBounds(
    kind="read",
    name="reading the archive",
    plural="reads of archives",
    advice="use the command line for large crawls",
    answer_s_max=50.0,
    processor_s_max=40.0,
    memory_bytes_max=2 << 30,  # A table that needs more goes to temporary files.
    waiting_max=24,  # A page with its images asks many at once.
    idle_s_max=15.0,
    answer_bytes_max=REPLAY_BYTES_MAX + (4 << 20),
)


class ReplayPlace(msgspec.Struct, array_like=True, frozen=True):
    """An archived version, and where its content is: names of WARC files, offsets, lengths."""

    crawl: str
    url: str
    at: int
    """Microseconds since 1970."""
    media_type: str
    place: tuple[str, int, int]
    original: tuple[str, int, int] | None = None
    is_within: bool = False
    """Whether it is in a page, or a page links to it; else it is what the console shows."""
    is_rendered: bool = False
    """As in `ArchivedPage`."""


class ReadVersions(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """Which attempts there are at a page."""

    crawl: str
    url: str
    secret: bytes


class ReadItems(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """A part of the items."""

    kind: str
    limit: int
    offset: int


class ReadHost(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """How requests to a host ended."""

    host: str


class ReadComparison(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """Comparison with another, earlier crawl."""

    earlier: str
    change: Compared
    limit: int
    offset: int


class ReadReplay(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """An archived version as a browser shows it. Addresses in it become paths that `secret` signs."""

    place: ReplayPlace
    secret: bytes
    is_part: bool = False
    """Whether a page loads it, such as an image: then its media type is that of the server."""


class Replayed(msgspec.Struct, array_like=True, frozen=True, tag=True):
    """Content that a browser can show, without scripts."""

    media_type: str
    body: bytes


ReadQuestion = ReadVersions | ReadItems | ReadHost | ReadComparison | ReadReplay


class ArchiveQuestion(msgspec.Struct, array_like=True, frozen=True):
    """Input of the process."""

    directory: str
    question: ReadQuestion


_MAC_BYTES = 18
"""A multiple of three, so that its text has no padding."""


def seal(secret: bytes, place: ReplayPlace) -> str:
    """Return a path that only one who knows `secret` can make: it leads to this version and to nothing else."""
    data = msgspec.msgpack.encode(place)
    return base64.urlsafe_b64encode(_mac(secret, data) + data).decode().rstrip("=")


def unseal(secret: bytes, path: str) -> ReplayPlace | None:
    """Return the place that a sealed path names; None if it was not made with `secret`."""
    try:
        found = base64.urlsafe_b64decode(path + "=" * (-len(path) % 4))
    except ValueError:
        return None
    mac = found[:_MAC_BYTES]
    data = found[_MAC_BYTES:]
    return msgspec.msgpack.decode(data, type=ReplayPlace) if hmac.compare_digest(mac, _mac(secret, data)) else None


def _mac(secret: bytes, data: bytes) -> bytes:
    return hmac.digest(secret, data, "sha256")[:_MAC_BYTES]


class Reads(Questions):
    """Reads archives, one question at a time."""

    def __init__(self) -> None:
        super().__init__(READING)

    async def read(self, directory: Path, question: ReadQuestion, kind: type[Answer]) -> Answer:
        """Return the answer from the files of a crawl, a `kind`. Raises as `ask`, and:

        ConflictError: the files do not have it, or are damaged.
        MissingError: nothing has this name.
        """
        return await self.ask(ArchiveQuestion(str(directory), question), kind)
