"""Follower: indexes the pages of finished logs, one commit a log, and lets the log go.

The steps and why a crash between any two does no harm: the log's pages are put and committed with the log's name as
position; then the log leaves the manifest with the next commit; then it is removed. A log that the index has already
is passed over; one that it has in part is put again, each page in its own place.
"""

from __future__ import annotations

from pathlib import Path

from gossamer.archive.frames import batches
from gossamer.archive.search.documents import documents_of
from gossamer.archive.search.folders import FOLDER, SHARD
from gossamer.archive.search.index import IndexWriter, opened, put_all
from gossamer.archive.search.log import LOG_FOLDER, LOG_SUFFIX
from gossamer.archive.search.options import SearchOptions
from gossamer.state.journals import Journals


class Indexing:
    """One finished log and the index it goes into."""

    def __init__(self, log: str, source: Path, follower: IndexFollower) -> None:
        self.log = log
        self._source = source
        self._follower = follower

    def make(self) -> int:
        """Index the log's pages and return how many. Blocks; for a thread.

        Raises:
            BrokenFrameError: the log is damaged.
            OSError: the disk is full.
        """
        writer = self._follower.writer()
        if writer.position() == self.log:
            return 0
        count = sum(put_all(writer, documents_of(batch)) for batch in batches(self._source))
        writer.commit(self.log)
        return count


class IndexFollower:
    """Says which log is next, and lets go of those that are indexed. All but `Indexing.make` runs on the loop."""

    frees_disk = True

    def __init__(self, options: SearchOptions, journals: Journals) -> None:
        """Take up the index of a crawl.

        Raises:
            ConfigError: it is one that this version cannot read.
        """
        self._options = options
        self._journals = journals
        self._folder = journals.directory / FOLDER
        if journals.shard is not None:  # An index has one writer.
            self._folder /= f"{SHARD}{journals.shard}"
        self._writer: IndexWriter | None = None
        if (self._folder / "meta.json").exists():
            opened(self._folder)
        self._sweep()

    def writer(self) -> IndexWriter:
        """Return the index's writer, opened when it is first needed."""
        if self._writer is None:
            self._writer = IndexWriter(self._folder, self._options.memory_bytes_max)
        return self._writer

    def next(self) -> Indexing | None:
        """Return the oldest finished log, or None when there is none. Ask again after `settle`."""
        for entry in self._journals.finals(LOG_FOLDER):
            return Indexing(entry.name, self._journals.path(entry.name), self)
        return None

    def settle(self, indexing: Indexing, _count: int) -> None:
        """Let the log go; takes effect with the next commit."""
        self._journals.drop(indexing.log)

    def _sweep(self) -> None:
        """Remove logs that the manifest let go."""
        kept = {entry.name for entry in self._journals.finals(LOG_FOLDER)}
        for log in self._journals.path(LOG_FOLDER).glob(self._journals.stray + LOG_SUFFIX):
            if LOG_FOLDER + log.name not in kept:
                log.unlink()

    def close(self) -> None:
        """End the writing. Blocks until segments under way are merged."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
