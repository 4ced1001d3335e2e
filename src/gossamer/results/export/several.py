"""Several: exports of one crawl to some formats, for which the content of each page is found once."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain, tee
from pathlib import Path
from typing import TypeVar

import msgspec
import zstandard

from gossamer.results.export import corpus
from gossamer.results.export.bodies import ArchivedPage, Contents, MarkdownPage, Means, PageText, Texts
from gossamer.results.export.export import ONE_FILE, Exported
from gossamer.results.export.tables import FORMS
from gossamer.results.export.work import ExportFolder, ExportOrder, Progress

CONTENTS = "contents.sqlite"
PAGES_A_COMMIT = 500
_OF_CONTENTS = frozenset(("markdown", *corpus.FORMATS))
FILES = {to: f"{'pages' if to in FORMS else 'crawl'}.{to}" for to in ONE_FILE}
"""Names of exports that are files; those of folders are their formats."""
_decode = msgspec.msgpack.Decoder(MarkdownPage | None).decode
T = TypeVar("T")
Index = Callable[[Means], None]
"""Builds the crawl's own index."""
Make = Callable[[str, Path, Means, Progress], Exported]
"""Exports to a format."""


def export_several(
    target: Path, orders: Sequence[ExportOrder], means: Means, make: Make, progress: Progress, index: Index | None
) -> Exported:
    """Export to several formats, as `make` does each alone, into the folder `target`, and then `index` the crawl.
    Resumes after a kill. Contents of pages take some 4 KB on disk meanwhile, each. Raises ConfigError: as `export`;
    OSError: the disk is full; another call goes on.
    """
    total = Exported({}, resumed=False, running=False, newer=0)
    formats = [order.to for order in orders]
    name = ",".join([*formats, *(("search",) if index is not None else ())])
    with ExportFolder(target, msgspec.structs.replace(orders[0], to=name)) as work:
        if work.is_complete:
            work.finish()
            return replace(total, resumed=True)
        work.sweep(CONTENTS)
        work.out.mkdir(exist_ok=True)
        with closing(sqlite3.connect(work.folder / CONTENTS)) as database:
            if len(_OF_CONTENTS.intersection(formats)) + (index is not None) > 1:
                kept = KeptContents(database, means.contents_of or means.contents, means.texts_of)
                means = replace(means, contents_of=kept.contents_of, texts_of=means.texts_of and kept.texts_of)
            for to in formats:
                place = work.out / FILES.get(to, to)
                if not place.exists() or place.with_name(place.name + ".part").exists():
                    done = make(to, place, means, lambda name, *rows, to=to: progress(f"{to}: {name}", *rows))
                    rows = {f"{name} as {to}": count for name, count in done.rows.items()}
                    total = replace(done, rows={**total.rows, **rows}, removed=done.removed or total.removed)
            if index is not None:
                index(means)
        work.finish()
    return replace(total, resumed=work.resumed)


class KeptContents:
    """Contents of archived pages, kept for the next format, which asks for the same pages in the same order."""

    def __init__(self, database: sqlite3.Connection, find: Contents, texts_of: Texts | None = None) -> None:
        """`find` finds contents that are not kept, `texts_of` visible texts."""
        database.execute("CREATE TABLE IF NOT EXISTS contents (page BLOB PRIMARY KEY, content BLOB) WITHOUT ROWID")
        self._database = database
        self._find = find
        self._texts_of = texts_of

    def contents_of(self, warc_folder: Path, pages: Iterable[ArchivedPage]) -> Iterator[MarkdownPage | None]:
        """Return the contents of pages in their order. About 60 µs for one that is kept. See `Contents`."""
        return self._kept(warc_folder, pages, lambda content: content, self._find_rest)

    def texts_of(self, warc_folder: Path, pages: Iterable[ArchivedPage]) -> Iterator[PageText | None]:
        """Return the visible texts of pages in their order. See `Texts`."""
        assert self._texts_of is not None
        return self._kept(warc_folder, pages, lambda content: content.visible, self._texts_of)

    def _kept(
        self,
        warc_folder: Path,
        pages: Iterable[ArchivedPage],
        part: Callable[[MarkdownPage], T | None],
        find: Callable[[Path, Iterable[ArchivedPage]], Iterator[T | None]],
    ) -> Iterator[T | None]:
        """Yield a part of the contents that are kept; from the first page without it on, find it."""
        rest = iter(pages)
        unpack = zstandard.ZstdDecompressor().decompress
        for page in rest:
            key = msgspec.msgpack.encode((str(warc_folder), page))
            row = self._database.execute("SELECT content FROM contents WHERE page = ?", (key,)).fetchone()
            content = _decode(unpack(row[0])) if row is not None else None
            found = part(content) if content is not None else None
            if row is None or (content is not None and found is None):
                yield from find(warc_folder, chain([page], rest))
                return
            yield found

    def _find_rest(self, warc_folder: Path, pages: Iterable[ArchivedPage]) -> Iterator[MarkdownPage | None]:
        wanted, ahead = tee(pages)
        pack = zstandard.ZstdCompressor(level=1).compress
        try:
            for number, (page, one) in enumerate(zip(wanted, self._find(warc_folder, ahead), strict=True), 1):
                key = msgspec.msgpack.encode((str(warc_folder), page))
                packed = pack(msgspec.msgpack.encode(one.as_sent() if one is not None else None))
                self._database.execute("REPLACE INTO contents VALUES (?, ?)", (key, packed))
                if number % PAGES_A_COMMIT == 0:
                    self._database.commit()
                yield one
        finally:
            self._database.commit()
