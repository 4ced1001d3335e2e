"""How names and texts are written into questions to a database."""

from __future__ import annotations

from pathlib import Path

from gossamer.results.export.source import literal, open_database, quote

HARD = 'it\'s "quoted"; DROP TABLE --\\'


def test_a_text_and_a_name_of_any_characters_mean_themselves() -> None:
    with open_database(64_000_000, None) as database:
        found = database.execute(f"SELECT {literal(HARD)} AS {quote(HARD)}")
        assert [column[0] for column in found.description or ()] == [HARD]
        assert found.fetchone() == (HARD,)
        listed = database.execute(f"SELECT {literal([Path('a'), HARD])}").fetchone()
        assert listed == (["a", HARD],)
