"""Log: pages on their way into the index, durable with the epoch that fetched them."""

from __future__ import annotations

from gossamer.archive.frames import frame
from gossamer.archive.search.documents import Document, batch_of, document_of
from gossamer.archive.search.options import SearchOptions
from gossamer.archive.segments import Segments
from gossamer.model.visits import Archived, Visited
from gossamer.state.journals import Journals
from gossamer.world.clock import Clock

LOG_FOLDER = "state/search/"
LOG_PREFIX = LOG_FOLDER + "search"
LOG_SUFFIX = ".journal"


class SearchLog:
    """`ports.Archive` that notes the text of pages; what it finishes, the follower indexes and removes.

    In memory: at most `frame_bytes_max` of text, and that of one page. Costs about 30 µs a page beside the
    extraction of its text.
    """

    def __init__(
        self, options: SearchOptions, journals: Journals, clock: Clock, shard: int = 0, incarnation: int = 1
    ) -> None:
        self._options = options
        self._clock = clock
        self._segments = Segments(journals, LOG_PREFIX, LOG_SUFFIX, shard, incarnation)
        self._held: list[Document] = []
        self._held_bytes = 0
        self._pages = 0
        self._begun_at = clock.now()

    def add(self, visited: Visited) -> Archived:
        """Take one finished attempt.

        Raises:
            OSError: the disk is full; the page is kept for the next `cut`.
        """
        document = document_of(visited)
        if document is not None:
            self._held.append(document)
            self._held_bytes += len(document.text) + len(document.title) + len(document.url)
            if self._held_bytes >= self._options.frame_bytes_max:
                self._write()
        return Archived()

    def cut(self) -> None:
        """Write what is held, and finish the log when it is time that its pages can be found."""
        self._write()
        options = self._options
        if self._segments.journal is None:
            self._begun_at = self._clock.now()
        elif self._pages >= options.commit_pages or self._clock.now() - self._begun_at >= options.commit_s:
            self._finish()

    def close(self) -> None:
        """Write what is held and finish the log."""
        self._write()
        self._finish()

    def _write(self) -> None:
        if not self._held:
            return
        data = frame(batch_of(self._held))
        journal = self._segments.journal
        if journal is None:
            journal = self._segments.begin()
            self._begun_at = self._clock.now()
        journal.append(data)
        self._pages += len(self._held)
        self._held, self._held_bytes = [], 0

    def _finish(self) -> None:
        self._segments.finish()
        self._pages = 0
        self._begun_at = self._clock.now()
