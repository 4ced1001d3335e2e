"""Following: reads the pages of a crawl of several shards from its files as the shards commit them.

It reads files and not messages, so that each committed page comes once, however a shard's process ends.
"""

from datetime import datetime
from typing import cast

import msgspec

from gossamer.assembly.home import Home
from gossamer.assembly.schemes import namer_for
from gossamer.config import Config
from gossamer.model.errors import ConfigError
from gossamer.model.links import Found
from gossamer.model.pages import RENDERINGS, Findings, PageRow, Visited
from gossamer.model.visits import Content, Reply
from gossamer.results.export.bodies import ArchivedPage, RecordBodies, RecordPlace
from gossamer.results.export.cursor import Row, TableCursor
from gossamer.results.export.opening import export_means, files_of_commit
from gossamer.state import slots
from gossamer.url.name import Namer

PAGES_A_TURN_MAX = 8
"""Pages of one shard that are read before the next shard's; they are in memory at once with their bodies."""
TRIES = 20
"""Attempts to read a shard's files, which the shard renames and converts meanwhile."""
_COLUMNS = frozenset(PageRow.__struct_fields__)


class CommittedPages:
    """The pages of all shards in the order of each shard's commits. All of it blocks: for a thread.

    About 60 µs a page of 26 KB, and an opening of a shard's store for each commit that is looked at. Nothing is held
    for a slow reader: pages that are not read yet are on disk.
    """

    def __init__(self, config: Config, homes: list[Home]) -> None:
        namer = namer_for(config)
        decode = export_means(config).decode
        self._shards = [_ShardPages(config, home, namer) for home in homes]
        self._bodies = RecordBodies(homes[0].directory / "warc", decode)

    def skip(self) -> None:
        """Skip all pages that are committed now."""
        for shard in self._shards:
            shard.skip()

    def next(self) -> list[Visited]:
        """Return some pages that were committed since; none when all were returned. Raises DamagedError: a file is not
        what was written.
        """
        return [visited for shard in self._shards for visited in shard.next(self._bodies)]

    def close(self) -> None:
        """Close the files."""
        self._bodies.__exit__()


class _ShardPages:
    """The pages of one shard. The rows of `links` are in the order of those of `pages`."""

    def __init__(self, config: Config, home: Home, namer: Namer) -> None:
        self._config = config
        self._home = home
        self._namer = namer
        path = home.journals().path
        self._pages = TableCursor("pages", path)
        self._links = TableCursor("links", path)
        self._found: list[Found] = []
        """Links of the next page, as far as they are read."""
        self._epoch = 0

    def skip(self) -> None:
        if self._refresh():
            self._pages.skip()
            self._links.skip()

    def next(self, bodies: RecordBodies) -> list[Visited]:
        found: list[Visited] = []
        for left in reversed(range(TRIES)):
            try:
                self._read(found, bodies)
                break
            except FileNotFoundError:
                if not left:
                    raise
                self._epoch = 0
        return found

    def _read(self, found: list[Visited], bodies: RecordBodies) -> None:
        if not self._epoch or self._pages.peek() is None:
            self._refresh()
        while len(found) < PAGES_A_TURN_MAX and (row := self._pages.peek()) is not None:
            while (link := self._links.peek()) is not None and link["from_url"] == row["url"]:
                self._found.append(
                    Found(str(link["to_url"]), str(link["link_type"]), str(link["anchor_text"]), bool(link["nofollow"]))
                )
                self._links.take()
            found.append(self._visit_of(row, bodies))
            self._pages.take()
            self._found = []

    def _refresh(self) -> bool:
        """Take in what was committed; return whether there may be anything new."""
        reached = slots.progress(self._home.state)
        if reached == self._epoch:
            return False
        try:
            manifest = files_of_commit(self._config, self._home)
        except OSError:  # It died within a commit, which its successor completes.
            return False
        self._epoch = reached
        self._pages.commit(manifest)
        self._links.commit(manifest)
        return True

    def _visit_of(self, row: Row, bodies: RecordBodies) -> Visited:
        known = {name: value for name, value in row.items() if name in _COLUMNS}
        known["fetched_at"] = cast("datetime", row["fetched_at"]).timestamp()
        page = msgspec.convert(known, PageRow)
        url = self._namer.name(str(row["url"]))
        assert url is not None, "the crawl has named it"
        columns = {name: value for name, value in row.items() if name not in _COLUMNS and value is not None}
        reply, content = _reply_of(page, bodies)
        return Visited(url, page, reply, self._found, content=content, findings=Findings(columns=columns))


def _reply_of(row: PageRow, bodies: RecordBodies) -> tuple[Reply | None, Content | None]:
    """Return the reply as sent, or as scripts changed it; None without a record of it here, as of a copy, or of a file
    that was uploaded.
    """
    if row.warc_offset is None or row.warc_length is None:
        return None, None
    place = RecordPlace(row.warc_file, row.warc_offset, row.warc_length)
    try:
        page = bodies.page(ArchivedPage(place, None, row.url, is_rendered=row.rendered in RENDERINGS))
    except ConfigError:
        page = None
    if page is None:
        return None, None
    reply = Reply(
        row.url, row.status or 0, page.headers, b"", row.ip, row.fetched_at, row.fetch_s, row.wire_bytes,
        truncated=row.truncated, media_type=row.media_type, charset=row.charset,
    )  # fmt: skip
    return reply, Content(page.body, row.truncated)
