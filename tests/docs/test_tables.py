"""Tables that the documentation has from the code are as the code has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables import PAGES, TABLES, made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_of_a_page_are_up_to_date(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert made(text) == text, "`make docs` writes them"


def test_every_table_is_on_a_page_and_is_replaced() -> None:
    texts = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in TABLES:
        assert f"<!-- table: {name} -->" in texts
        before = f"Above.\n\n<!-- table: {name} -->\n\nOld.\n\n<!-- end -->\n\nBelow.\n"
        assert made(before) == before.replace("Old.", "\n".join(TABLES[name]()))
