"""robots.txt files of 4,231 real sites, read as Google's parser reads them but for the causes that are listed."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from compare_robots import CAUSES, addresses, key_of, ours  # noqa: E402

CORPUS = ROOT / ".parts/robots"
RECORD = Path(__file__).parent / "data/google-robots.json.gz"
"""By file: the answers of github.com/google/robotstxt (22b355f), and each of ours that differs with its cause."""
FILES = 4_231
LISTED = {*CAUSES, "/robots.txt is always allowed", "an escape and its character are one", "UTF-16"}
SAID = {
    "a rule that begins without /": 670,
    "a space or a quotation mark in a rule": 240,
    "/robots.txt is always allowed": 82,
    "an escape in a rule": 9,
    "an escape and its character are one": 39,
    "Allow: …/index.html": 3,
}
"""Numbers of `docs/reference/robots.md`, where both causes about escapes are one line."""

pytestmark = [
    pytest.mark.together,
    pytest.mark.acceptance,
    pytest.mark.promise(
        "Politeness", "robots.txt is read as Google's parser reads it, but for the differences listed."
    ),
]


@pytest.fixture(scope="module")
def compared() -> list[tuple[str, str, str, str]]:
    """Return (address, our answer, Google's answer, recorded cause) of all files."""
    lines = gzip.decompress(RECORD.read_bytes()).splitlines()
    record = {key: (answers, causes) for key, answers, causes in map(json.loads, lines)}
    found = []
    assert CORPUS.is_dir(), "the files are missing: `make corpus` brings them"
    files = sorted(CORPUS.iterdir())
    assert len(files) == FILES
    for file in files:
        text = file.read_bytes()
        answers, causes = record[key_of(text)]
        urls = addresses(text)
        for number, (url, mine, theirs) in enumerate(zip(urls, ours(text, "gossamer", urls), answers, strict=True)):
            found.append((url, mine, theirs, causes.get(str(number), "")))
    return found


@pytest.mark.long
def test_every_difference_has_a_listed_cause(compared: list[tuple[str, str, str, str]]) -> None:
    differing = [(url, mine, cause) for url, mine, theirs, cause in compared if mine != theirs]
    assert {cause for *_, cause in differing} <= LISTED
    assert {url for url, mine, _ in differing if mine == "1"} == {"https://example.org/robots.txt"}, "open for us alone"
    agreement = 1 - sum(not cause for *_, cause in differing) / len(compared)
    assert agreement >= 0.999
    assert len(compared) > 290_000
    assert not [url for url, *_ in differing if url == "https://example.org/"], "no whole site is closed or opened"


@pytest.mark.long
def test_the_figures_of_the_documentation(compared: list[tuple[str, str, str, str]]) -> None:
    causes = Counter(cause for _, mine, theirs, cause in compared if mine != theirs)
    assert causes == SAID
    text = (ROOT / "docs/reference/robots.md").read_text(encoding="utf-8")
    assert f"| `gossamer` | {len(compared):,} | {causes.total():,} |" in text
    assert f"Gossamer {100 * (1 - causes.total() / len(compared)):.2f} %" in text
