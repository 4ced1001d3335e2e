"""Archive: what was fetched, in a list."""

from __future__ import annotations

from gossamer.model.visits import Archived, Reply, Visited

FILE = "memory.warc.gz"


class MemoryArchive:
    """`ports.Archive` that keeps visits in the order in which they were added."""

    def __init__(self) -> None:
        self.added: list[Visited] = []
        """Everything that was given."""
        self.cut_at: list[int] = []
        """How many visits there were at each cut: what stood in the list then belongs to an epoch that closed."""
        self.prerequisites: list[tuple[Reply, str, str]] = []
        """Each robots.txt that came, with the URL that waited for it and the kind."""
        self._length = 0

    @property
    def urls(self) -> list[str]:
        """The addresses that were added, in order."""
        return [visited.row.url for visited in self.added]

    @property
    def outcomes(self) -> dict[str, str]:
        """The last outcome of each address."""
        return {visited.row.url: visited.row.outcome for visited in self.added}

    def add(self, visited: Visited) -> Archived:
        """Keep a visit. A response has a place in one endless file, any other attempt has none."""
        self.added.append(visited)
        if visited.reply is None:
            return Archived()
        offset, length = self._length, len(visited.reply.body) + 1
        self._length += length
        row = visited.row
        row.warc_file, row.warc_offset, row.warc_length = FILE, offset, length
        return Archived(FILE, offset, length, f"<urn:memory:{len(self.added)}>")

    def add_prerequisite(self, reply: Reply, via: str, link_type: str) -> None:
        """Keep what had to be asked before a page."""
        self.prerequisites.append((reply, via, link_type))

    def cut(self) -> None:
        """Note that an epoch closes."""
        self.cut_at.append(len(self.added))

    def close(self) -> None:
        """Do nothing: there is no file to finish."""
