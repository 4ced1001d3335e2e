"""Archives: several as one, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from gossamer.model.visits import Archived, EpochRow, Reply, Visited
from gossamer.ports import Archive, EpochArchive, PrerequisiteArchive


class Closing(Archive, Protocol):
    """An archive that can be finished."""

    def close(self) -> None:
        """Finish what grows; takes effect with the commit."""
        ...


class Task(Protocol):
    """What a follower does with one finished log."""

    def make(self) -> int:
        """Do it, and return what the follower wants to hear. Blocks; for a thread."""
        ...


class Following(Protocol):
    """Makes something of finished logs, one after another."""

    def next(self) -> Task | None:
        """Return what is next; the same until it is settled."""
        ...

    def settle(self, task: Any, result: int, /) -> None:
        """Enter what was made; takes effect with the next commit."""
        ...

    def close(self) -> None:
        """Let go. Blocks."""
        ...


class Followers:
    """Several followers as one: each in turn while it has something to do."""

    def __init__(self, followers: Sequence[Following]) -> None:
        self._followers = tuple(followers)

    def next(self) -> tuple[Following, Task] | None:
        """Return what is next, and whose it is."""
        for follower in self._followers:
            if (task := follower.next()) is not None:
                return follower, task
        return None

    def close(self) -> None:
        """Let go of all. Blocks: an index merges what it has under way."""
        for follower in self._followers:
            follower.close()


class Archives:
    """Gives each attempt to every archive. The WARC archive comes first, since it fills in the row's place."""

    def __init__(self, archives: Sequence[Closing]) -> None:
        self._archives = tuple(archives)
        self._of_epochs = [archive for archive in self._archives if isinstance(archive, EpochArchive)]
        self._of_prerequisites = [archive for archive in self._archives if isinstance(archive, PrerequisiteArchive)]

    def add(self, visited: Visited) -> Archived:
        """Return where the first archive that keeps responses put this one.

        Raises:
            OSError: the disk is full.
        """
        place = Archived()
        for archive in self._archives:
            archived = archive.add(visited)
            if archived.warc_file and not place.warc_file:
                place = archived
        return place

    def add_prerequisite(self, reply: Reply, via: str, link_type: str) -> None:
        """Give it to those archives that keep such replies.

        Raises:
            OSError: the disk is full.
        """
        for archive in self._of_prerequisites:
            archive.add_prerequisite(reply, via, link_type)

    def add_epoch(self, row: EpochRow) -> None:
        """Give the row of a commit to those archives that keep such rows."""
        for archive in self._of_epochs:
            archive.add_epoch(row)

    def cut(self) -> None:
        """Write what is buffered to the journals."""
        for archive in self._archives:
            archive.cut()

    def close(self) -> None:
        """Finish everything: the commit that follows makes the files final."""
        for archive in self._archives:
            archive.close()
