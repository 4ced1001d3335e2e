"""What people read is plain: words that must not come back are in no page and no help, and grow rarer in the source."""

from __future__ import annotations

import pytest

from tests.docs.shown import PAGES
from tests.words import GENERATED, ROOT, counts, listed, pattern

READ = [page for page in [*PAGES, ROOT / "CONTRIBUTING.md"] if not page.match(GENERATED)]


def test_no_page_has_a_word_of_the_list() -> None:
    found = [
        f"{page.relative_to(ROOT)}:{number}: {match[0]}"
        for page in READ
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        for match in pattern().finditer(line)
    ]
    assert found == []


def test_no_package_has_more_of_them_than_before() -> None:
    baseline = listed()["baseline"]
    assert isinstance(baseline, dict)
    grown = {place: f"{number}, was {baseline.get(place, 0)}" for place, number in counts().items()
             if number > baseline.get(place, 0)}  # fmt: skip
    assert grown == {}, "say it with the standard term (tests/words.toml)"


@pytest.mark.parametrize(
    ("text", "found"),
    [("Nobody is asked anew.", 3), ("It lies\nin ./crawl", 1), ("Somebodys, inanewest, is None", 0)],
)
def test_words_are_found_as_words(text: str, found: int) -> None:
    assert len(pattern().findall(text)) == found
