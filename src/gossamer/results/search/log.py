"""Log: pages on their way into the index, durable with the epoch that fetched them, and the follower that indexes them.

The steps and why a crash between any two does no harm: the log's pages are put and committed with the log's name as
position; then the log leaves the manifest with the next commit; then it is removed. A log that the index has already
is passed over; one that it has in part is put again, each page in its own place.
"""

from gossamer.model.pages import Archived, Visited
from gossamer.results.search.documents import IndexedPage, batch_of, document_of, documents_of
from gossamer.results.search.folder import FOLDER, LACKING, LOG_FOLDER, SHARD, is_behind
from gossamer.results.search.index import IndexWriter, open_index, position_in
from gossamer.stages.archive.archive import FollowerTask, Following
from gossamer.stages.archive.logs import batches, frame
from gossamer.stages.archive.options import SearchOptions
from gossamer.stages.archive.segments import Segments, remove_strays
from gossamer.state.journals import Journals
from gossamer.world.clock import Clock

LOG_PREFIX = LOG_FOLDER + "search"
LOG_SUFFIX = ".journal"


class SearchLog:
    """`ports.Archive` that notes the text of pages; what it finishes, the follower indexes and removes.

    In memory: at most `frame_bytes_max` of text, and that of one page. About 30 µs a page beside its extraction.
    """

    def __init__(
        self, options: SearchOptions, journals: Journals, clock: Clock, shard: int = 0, incarnation: int = 1
    ) -> None:
        self._options = options
        self._clock = clock
        self._segments = Segments(journals, LOG_PREFIX, LOG_SUFFIX, shard, incarnation)
        self._held: list[IndexedPage] = []
        self._held_bytes = 0
        self._pages = 0
        self._begun_at = clock.now()

    def add(self, visited: Visited) -> Archived:
        """Add one finished attempt. Raises OSError: the disk is full; the page is kept for the next `cut`."""
        if (document := document_of(visited)) is not None:
            self._held.append(document)
            self._held_bytes += len(document.text) + len(document.title) + len(document.url)
            if self._held_bytes >= self._options.frame_bytes_max:
                self._write()
        return Archived()

    def cut(self) -> None:
        """Write the buffered pages, and finish the log when it is time to make them findable."""
        self._write()
        options = self._options
        if self._segments.journal is None:
            self._begun_at = self._clock.now()
        elif self._pages >= options.commit_pages or self._clock.now() - self._begun_at >= options.commit_s:
            self._finish()

    def close(self) -> None:
        """Write the buffered pages and finish the log."""
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
        self._held = []
        self._held_bytes = 0

    def _finish(self) -> None:
        self._segments.finish()
        self._pages = 0
        self._begun_at = self._clock.now()


class IndexFollower(Following):
    """Indexes finished logs, and removes them."""

    def __init__(self, options: SearchOptions, journals: Journals) -> None:
        """Open the index of a crawl. Raises ConfigError: this version cannot read it."""
        self._options = options
        self._journals = journals
        self._folder = journals.directory / FOLDER
        if journals.shard is not None:  # An index has one writer.
            self._folder /= f"{SHARD}{journals.shard}"
        self._writer: IndexWriter | None = None
        if (self._folder / "meta.json").exists():
            position = position_in(open_index(self._folder))
            # Until this run has begun, `crawl.toml` says whether the last one kept the index.
            if not position.endswith(LACKING) and is_behind(journals.directory, position):
                self.writer().commit(position + LACKING)
        remove_strays(journals, LOG_FOLDER, LOG_SUFFIX)

    def writer(self) -> IndexWriter:
        """Return the index's writer, opened when it is first needed."""
        if self._writer is None:
            self._writer = IndexWriter(self._folder, self._options.memory_bytes_max)
        return self._writer

    def next(self) -> FollowerTask | None:
        """Return the task for the oldest finished log, or None."""
        entry = next(iter(self._journals.finals(LOG_FOLDER)), None)
        if entry is None:
            return None
        return FollowerTask(lambda: self._index(entry.name), lambda _: self._journals.drop(entry.name))

    def _index(self, log: str) -> None:
        """Index the pages of a log. Blocks; for a thread. Raises BrokenFrameError: the log is damaged; OSError: the
        disk is full.
        """
        writer = self.writer()
        before = writer.position()
        if before.removesuffix(LACKING) != log:
            for batch in batches(self._journals.path(log)):
                for document in documents_of(batch):
                    writer.put(document)
            writer.commit(log + (LACKING if before.endswith(LACKING) else ""))

    def close(self) -> None:
        """Close the writer. Blocks until merges of segments under way are finished."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
