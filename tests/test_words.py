"""What people read is plain: words that must not come back are in no page, no help, no docstring and no message."""

from __future__ import annotations

import pytest

from tests.strings import CATALOGUE, catalogue
from tests.words import pattern, texts


def test_no_text_has_a_word_of_the_list() -> None:
    found = [f"{place}: {text[max(0, m.start() - 30) : m.end() + 30]!r}" for place, text in texts()
             for m in pattern().finditer(text)]  # fmt: skip
    assert found == [], "say it with the standard term (tests/words.toml)"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Nobody is asked anew.", 3),
        ("It lies\nin ./crawl", 1),
        ("Somebodys, inanewest, is None", 0),
        ("nobody@example.org at a.nobody.test", 0),
    ],
)
def test_words_are_found_as_words(text: str, found: int) -> None:
    assert len(pattern().findall(text)) == found


def test_all_texts_are_in_the_catalogue() -> None:
    """Read what changed in it as a user would, then run `python -m tests.strings`."""
    assert CATALOGUE.read_text(encoding="utf-8") == catalogue(), "run `python -m tests.strings`"


def test_no_text_of_the_dashboard_has_a_word_of_the_list() -> None:
    lines = CATALOGUE.read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if not line.startswith("# ") and pattern().search(line)]
    assert found == []
