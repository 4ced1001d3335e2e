"""Build: an index made of an archive, and one without some of its pages."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import tee
from pathlib import Path
from typing import Any

import msgspec
import tantivy

from gossamer.model.pages import Page
from gossamer.results.export.bodies import ArchivedPage, Means, PageText, RecordBodies
from gossamer.results.export.export import ExportedCrawl, inputs_of
from gossamer.results.export.pages import PAGES_MIN
from gossamer.results.export.plan import Planned, make_plan, read_plan, rows_of
from gossamer.results.export.work import ExportFolder, ExportOrder, Share
from gossamer.results.search.documents import INDEXED_TYPES, IndexedPage, language_of
from gossamer.results.search.folder import FOLDER, position_of, rows_at
from gossamer.results.search.index import POSITION, IndexWriter, open_index, text_in, time_in

PAGES_A_COMMIT = 5_000


class IndexBuilt(msgspec.Struct, frozen=True):
    """Result of a build."""

    pages: int
    resumed: bool
    running: bool


def build(
    crawl: ExportedCrawl,
    means: Means,
    index_memory_bytes_max: int,
    memory_bytes_max: int,
    advance: Callable[[int, int], None],
    target: Path | None = None,
    share: Share | None = None,
) -> IndexBuilt:
    """Build `search/`, or at `target` the index of a `share` of the pages, from each URL's last successful fetch, with
    the anchor texts of the links to it. Resumes after a kill, and replaces the old index at the end. This process finds
    the texts unless `means` says how: with others an index takes a seventh more processor time and comes no sooner.

    Costs about 2 ms a page. Raises ConfigError: a mistake that the operator can fix; OSError: the disk is full; another
    call goes on.
    """
    target = target or crawl.directory / FOLDER
    crawl.require(["pages", "links"], warcs=True)
    order = ExportOrder(str(crawl.directory.resolve()), "search", share=share)
    with ExportFolder(target, order, replaces=True) as work:
        if work.is_complete:
            work.finish()
            return IndexBuilt(0, resumed=True, running=False)
        if work.inputs is None:
            work.begin(inputs_of(crawl, ["pages", "links"], work.folder / "logs"))
        inputs = work.inputs
        assert inputs is not None
        work.sweep("logs", "plan.parquet")
        plan = work.folder / "plan.parquet"
        make_plan(plan, inputs.tables["pages"], "", memory_bytes_max, links=inputs.tables["links"], share=share)
        # A log of a crawl that runs grows beyond what was read of it.
        files = [Path(piece.path) for piece in inputs.tables["pages"]]
        ended = [path.name for path in files if not (inputs.running and path.is_relative_to(work.folder))]
        at = position_of(rows_of(plan), ended)
        pages = _index(work.out, plan, at, crawl.directory / "warc", means, index_memory_bytes_max, advance)
        work.finish()
    return IndexBuilt(pages, work.resumed, inputs.running)


def _index(
    folder: Path, plan: Path, end: str, warcs: Path, means: Means, bytes_max: int, advance: Callable[[int, int], None]
) -> int:
    rows = rows_of(plan)
    with closing(IndexWriter(folder, bytes_max)) as writer:
        start = rows_at(writer.position())
        find = partial(texts_of, means) if means.texts_of is None or rows - start < PAGES_MIN else means.texts_of
        planned, ahead = tee(read_plan(plan, start))
        texts = find(warcs, (row.record for _, row in ahead if row.media_type in INDEXED_TYPES))
        for position, row in planned:
            text = next(texts) if row.media_type in INDEXED_TYPES else None
            if text is not None or row.document:
                writer.put(_page(row, text or PageText("")))
            if position % PAGES_A_COMMIT == 0:
                writer.commit(str(position))
            advance(position, rows)
        writer.commit(end)
        return writer.pages()


def texts_of(means: Means, warc_folder: Path, pages: Iterable[ArchivedPage]) -> Iterator[PageText | None]:
    """Find the visible texts of archived pages, and which languages they claim, in this process. See `Texts`."""
    with RecordBodies(warc_folder, means.decode) as bodies:
        for one in pages:
            page = bodies.page(one)
            yield text_in_page(means, page) if page is not None else None


def text_in_page(means: Means, page: Page) -> PageText:
    """Return the visible text of a page, and which language it claims."""
    return means.text_of(page)._replace(language=language_of(page.body, page.headers))


def _page(row: Planned, found: PageText) -> IndexedPage:
    text = row.document or found.text
    emphasis = "" if row.document else found.emphasis
    language = found.language or row.language
    return IndexedPage(row.key, row.url, row.host, row.site, row.title, text, language, row.anchors, row.at, emphasis)


def rewrite(folder: Path, target: Path, memory_bytes_max: int, leaves: Callable[[str], bool]) -> int:
    """Write an index to `target` without the pages whose address `leaves`; return how many leave. Where none does,
    nothing is written. Anchor texts are not stored, so the new index has none.

    Blocks: about 0.1 ms a page of 500 words. Raises ConfigError: the index cannot be read; OSError: the disk is full.
    """
    index: Any = open_index(folder)
    searcher = index.searcher()
    places = [place for _, place in searcher.search(tantivy.Query.all_query(), max(1, searcher.num_docs)).hits]
    gone = sum(leaves(text_in(searcher.doc(place), "url")) for place in places)
    if not gone:
        return 0
    position = ""
    with closing(IndexWriter(target, memory_bytes_max)) as writer:
        for number, place in enumerate(places, 1):
            document = searcher.doc(place)
            if text_in(document, "key") == POSITION:
                position = text_in(document, "position")
            elif not leaves(text_in(document, "url")):
                writer.put(_document(document))
            if number % PAGES_A_COMMIT == 0:
                writer.commit("")
        writer.commit(position)
    return gone


def _document(found: Any) -> IndexedPage:
    names = ("key", "url", "host", "site", "title", "text", "language", "emphasis")
    fields = {name: text_in(found, name) for name in names}
    return IndexedPage(**fields, anchors="", at=round(time_in(found).timestamp() * 1_000_000))
