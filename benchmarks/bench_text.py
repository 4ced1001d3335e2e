"""Main text against other extractors, on pages whose main content people have marked.

    python benchmarks/bench_text.py WCXB/dev [--only gossamer resiliparse] [--every 1]

`WCXB` is a checkout of github.com/Murrough-Foley/web-content-extraction-benchmark: `dev` holds `html/*.html.gz` and
`ground-truth/*.json`. F1 and precision are the benchmark's: of the words of a page as a multiset, averaged over pages.
Time is processor time of this process. Extractors that are not installed are left out, with a word.
"""

# ruff: noqa: PLC0415 - each extractor is imported where it is measured
from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import NamedTuple

Extract = Callable[[bytes, str], str]
_WORD = re.compile(r"\w+")


class Marked(NamedTuple):
    """A page and what people say of it."""

    name: str
    url: str
    kind: str
    html: bytes
    text: str
    """The main content."""


class Score(NamedTuple):
    f1: float
    precision: float
    seconds: float


def marked_pages(folder: Path, every: int = 1) -> Iterator[Marked]:
    for path in sorted((folder / "ground-truth").glob("*.json"))[::every]:
        marked = json.loads(path.read_bytes())
        kind = marked["_internal"]["page_type"]["primary"]
        with gzip.open(folder / "html" / f"{path.stem}.html.gz") as file:
            html = file.read()
        text = marked["ground_truth"].get("main_content") or ""
        yield Marked(path.stem, marked.get("url") or "", "collection" if kind == "category" else kind, html, text)


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def scored(found: Counter[str], wanted: Counter[str]) -> tuple[float, float]:
    """Return F1 and precision, as the benchmark's evaluate.py has them."""
    if not wanted or not found:
        return (1.0, 1.0) if not wanted and not found else (0.0, 0.0)
    shared = (found & wanted).total()
    precision, recall = shared / found.total(), shared / wanted.total()
    return (2 * precision * recall / (precision + recall) if shared else 0.0), precision


def gossamer() -> Extract:
    from gossamer.model.pages import Findings, Page
    from gossamer.stages.process.content import MainText

    module = MainText()

    def extract(html: bytes, url: str) -> str:
        findings = Findings()
        module.process(Page(url or "https://example.org/", "text/html", "utf-8", (), html), findings)
        return findings.text

    return extract


def resiliparse() -> Extract:
    from resiliparse.extract.html2text import extract_plain_text

    return lambda html, _: extract_plain_text(html.decode("utf-8", "replace"), main_content=True)


def trafilatura() -> Extract:
    from trafilatura import extract

    return lambda html, url: extract(html, url=url or None) or ""


def trafilatura_fast() -> Extract:
    from trafilatura import extract

    return lambda html, url: extract(html, url=url or None, fast=True) or ""


def readability() -> Extract:
    from lxml.html import fromstring
    from readability import Document

    return lambda html, _: fromstring(Document(html.decode("utf-8", "replace")).summary()).text_content()


def justext() -> Extract:
    from justext import get_stoplist
    from justext import justext as classified

    words = get_stoplist("English")
    return lambda html, _: "\n".join(one.text for one in classified(html, words) if not one.is_boilerplate)


def magic_html() -> Extract:
    from lxml.html import fromstring
    from magic_html import GeneralExtractor

    extractor = GeneralExtractor()
    return lambda html, url: fromstring(
        extractor.extract(html.decode("utf-8", "replace"), base_url=url)["html"] or "<p>"
    ).text_content()


EXTRACTORS = (gossamer, resiliparse, trafilatura, trafilatura_fast, readability, justext, magic_html)


def measured(extract: Extract, pages: Iterator[Marked]) -> dict[str, list[Score]]:
    scores: dict[str, list[Score]] = defaultdict(list)
    for page in pages:
        started = time.process_time()
        try:
            text = extract(page.html, page.url)
        except Exception as error:  # noqa: BLE001 - an extractor that fails on a page has found nothing
            print(f"{page.name}: {type(error).__name__}: {error}", file=sys.stderr)
            text = ""
        seconds = time.process_time() - started
        scores[page.kind].append(Score(*scored(Counter(words_of(text)), Counter(words_of(page.text))), seconds))
    return scores


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--only", nargs="+", default=[one.__name__ for one in EXTRACTORS])
    arguments.add_argument("--every", type=int, default=1, help="look at one page of so many")
    given = arguments.parse_args()
    header = False
    for made in EXTRACTORS:
        if made.__name__ not in given.only:
            continue
        try:
            extract = made()
        except ImportError as error:
            print(f"{made.__name__} is not installed: {error}", file=sys.stderr)
            continue
        extract(b"<p>What an extractor reads once is not counted.</p>", "")
        scores = measured(extract, marked_pages(given.folder, given.every))
        if not header:
            print("| extractor | F1 | precision | ms a page |", *(f"{kind} |" for kind in sorted(scores)))
            print("| --- |" + " --: |" * (3 + len(scores)))
            header = True
        every = [one for kind in scores.values() for one in kind]
        print(
            f"| {made.__name__} | {mean(one.f1 for one in every):.3f} | {mean(one.precision for one in every):.3f} "
            f"| {mean(one.seconds for one in every) * 1000:.1f} |",
            *(
                f"{mean(one.f1 for one in scores[k]):.3f} ({mean(one.precision for one in scores[k]):.2f}) |"
                for k in sorted(scores)
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
