"""Archives: several as one, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gossamer.model.visits import Archived, Visited
from gossamer.ports import Archive


class Closing(Archive, Protocol):
    """An archive that can be finished."""

    def close(self) -> None:
        """Finish what grows; takes effect with the commit."""
        ...


class Archives:
    """Gives each attempt to every archive. The WARC archive comes first, since it fills in the row's place."""

    def __init__(self, archives: Sequence[Closing]) -> None:
        self._archives = tuple(archives)

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

    def cut(self) -> None:
        """Write what is buffered to the journals."""
        for archive in self._archives:
            archive.cut()

    def close(self) -> None:
        """Finish everything: the commit that follows makes the files final."""
        for archive in self._archives:
            archive.close()
