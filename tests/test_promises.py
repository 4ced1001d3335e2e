"""The page of promises is what the marks on tests say."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests import promises


@pytest.fixture(scope="module")
def found() -> list[promises.Promise]:
    return promises.promises()


def test_the_page_is_up_to_date(found: list[promises.Promise]) -> None:
    written = promises.PAGE.read_text(encoding="utf-8")
    assert written == promises.page(found), "`make docs` writes it"


def test_each_promise_is_one_sentence_in_one_area(found: list[promises.Promise]) -> None:
    areas = defaultdict(set)
    for one in found:
        areas[one.sentence].add(one.area)
        assert one.sentence.endswith(".")
        assert ". " not in one.sentence
    assert {area for named in areas.values() for area in named} == set(promises.AREAS)
    assert [sentence for sentence, named in areas.items() if len(named) > 1] == []


@pytest.mark.parametrize(
    "text",
    [
        '@pytest.mark.promise("Bounds", "It holds.")\ndef helper(): ...\n',
        '@pytest.mark.promise("Bounds", "It holds.")\nclass TestIt: ...\n',
        'CASE = pytest.param(1, marks=pytest.mark.promise("Bounds", "It holds."))\n',
    ],
)
def test_what_is_no_test_makes_no_promise(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_made.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(promises, "TESTS", tmp_path / "tests")
    with pytest.raises(ValueError, match=r"test_made\.py"):
        promises.promises()
