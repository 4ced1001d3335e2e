"""Full-text search, by an index of the first layout with tantivy's parser (before) and by today's (after).

    python benchmarks/bench_search.py FOLDER [--json FILE]

FOLDER holds HTML files (a documentation package, say). Success at 10: the share of queries whose page is among the
first ten. The queries are the sentences of `tests/results/search/sentences.py`, and of FOLDER the titles of pages, as
they stand and with their longest word in the other number. CPU is that of all threads. About 10 s.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tantivy

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.results.search.sentences import PAGES, QUERIES
from tests.results.search.test_sentences import AT, old_index

from gossamer.model.pages import Findings, Page
from gossamer.results.search.documents import IndexedPage
from gossamer.results.search.index import IndexWriter
from gossamer.results.search.query import search
from gossamer.results.search.question import SearchQuestion
from gossamer.stages.process.html import document_of
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.text import TitleAndText

PAGES_MAX, QUERIES_MAX = 400, 200
WEIGHTS = {"title": 3.0, "anchors": 2.0, "text": 1.0, "url": 0.5}
Answer = Callable[[str], Iterable[str]]


def before(folder: Path) -> Answer:
    """Return what the version before answers."""
    index = tantivy.Index.open(str(folder))
    searcher: Any = index.searcher()

    def answer(query: str) -> list[str]:
        asked, _ = index.parse_query_lenient(query, list(WEIGHTS), WEIGHTS, conjunction_by_default=True)
        return [str(searcher.doc(place).get_first("key")) for _, place in searcher.search(asked, 10).hits]

    return answer


def after(folder: Path) -> Answer:
    """Return what this version answers."""
    return lambda query: [hit.url for hit in search([folder], SearchQuestion(query)).hits]


def write(folder: Path, pages: list[IndexedPage]) -> tuple[float, int]:
    """Index pages; return the seconds of CPU and the bytes."""
    begun = time.process_time()
    writer = IndexWriter(folder, 50_000_000)
    for page in pages:
        writer.put(page)
    writer.commit("")
    writer.close()
    return time.process_time() - begun, sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def read(name: str, body: bytes, *, emphasis: bool) -> IndexedPage:
    options = ProcessOptions(text=True)
    page = Page(name, "text/html", "utf-8", (), body)
    if emphasis:
        findings = Findings()
        TitleAndText(options).process(page, findings)
        return IndexedPage(name, name, "h", "h", findings.title, findings.text, "en", "", AT, findings.emphasis)
    markup = document_of(page, options).markup
    return IndexedPage(name, name, "h", "h", markup.title or "", markup.text(), "en", "", AT)


def headings(pages: list[IndexedPage]) -> list[tuple[str, str]]:
    """Return a query for each page by its title, and one with a word of it inflected."""
    queries = []
    for page in pages:
        words = page.title.partition(" — ")[0].split()[:6]
        if words:
            longest = max(words, key=len)
            queries.append((" ".join(words), page.key))
            other = longest.removesuffix("s") if longest.endswith("s") else f"{longest}s"
            queries.append((" ".join(other if word is longest else word for word in words), page.key))
    return queries


def share(answer: Answer, queries: Iterable[tuple[str, str]]) -> float:
    answers = [name in answer(query) for query, name in queries]
    return sum(answers) / len(answers)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder")
    arguments.add_argument("--json")
    given = arguments.parse_args()
    paths = [path for path in sorted(Path(given.folder).rglob("*.html")) if 10_000 < path.stat().st_size < 200_000]
    made = [path.read_bytes() for path in paths[:PAGES_MAX]]
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        old, new = old_index(Path(name) / "old"), Path(name) / "new"
        begun = time.process_time()
        plain = [read(f"p{number}", body, emphasis=False) for number, body in enumerate(made)]
        reading_s = time.process_time() - begun
        pages = [read(f"p{number}", body, emphasis=True) for number, body in enumerate(made)]
        reading_new_s = time.process_time() - begun - reading_s
        (old_s, old_bytes), (new_s, new_bytes) = write(old, plain), write(new, pages)
        figures["ms_a_page_before"] = (reading_s + old_s) / len(made) * 1e3
        figures["ms_a_page_after"] = (reading_new_s + new_s) / len(made) * 1e3
        figures["indexing_ms_a_page_before"] = old_s / len(made) * 1e3
        figures["indexing_ms_a_page_after"] = new_s / len(made) * 1e3
        figures["bytes_a_page_before"] = old_bytes / len(made)
        figures["bytes_a_page_after"] = new_bytes / len(made)
        figures["time_ratio"] = (reading_new_s + new_s) / (reading_s + old_s)
        figures["size_ratio"] = new_bytes / old_bytes
        queries = headings(pages)[:QUERIES_MAX]
        figures["headings_success_before"] = share(before(old), queries)
        begun = time.perf_counter()
        figures["headings_success_after"] = share(after(new), queries)
        figures["query_ms_after"] = (time.perf_counter() - begun) / len(queries) * 1e3
        sentences = [IndexedPage(key, key, "h", "h", "", text, lang, "", AT) for key, (lang, text) in PAGES.items()]
        old, new = old_index(Path(name) / "old-sentences"), Path(name) / "new-sentences"
        write(old, sentences)
        write(new, sentences)
        figures["sentences_success_before"] = share(before(old), QUERIES)
        figures["sentences_success_after"] = share(after(new), QUERIES)
    for figure, value in figures.items():
        print(f"{figure:<28}{value:10.3f}")
    if given.json:
        Path(given.json).write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
