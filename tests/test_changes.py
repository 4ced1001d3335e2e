"""The changelog, and the files of changes that are not in it yet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.changes import AREAS, ROOT, SLUGS, find_fault, insert_changes, list_fragments

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
LINES_MAX = 120
"""Of one release: two pages."""


def test_fragments_have_the_right_form() -> None:
    assert [fault for path in list_fragments(ROOT / "changes") if (fault := find_fault(path))] == []


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("long-cookies.fetching.md", "Cookies of more than 4 KiB are kept.\n", None),
        ("long-cookies.md", "Cookies are kept.", "the name is NAME.AREA.md"),
        ("Long.fetching.md", "Cookies are kept.", "the name is NAME.AREA.md"),
        ("long.cookies.md", "Cookies are kept.", "no area cookies"),
        ("long.fetching.md", "- Cookies are kept.", "without a bullet"),
        ("long.fetching.md", "Cookies are kept", "sentences"),
        ("long.fetching.md", "", "one paragraph"),
        ("long.fetching.md", "Cookies are kept.\n\nSo are others.", "one paragraph"),
        ("long.fetching.md", "Cookies are kept. " * 40, "one paragraph"),
    ],
)
def test_a_fragment_of_a_wrong_form_is_named(tmp_path: Path, name: str, text: str, fault: str | None) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = find_fault(tmp_path / name)
    assert (found is None) if fault is None else (found is not None and fault in found)


def test_fragments_come_to_their_area_of_the_first_heading() -> None:
    unreleased = "# Changes\n\n## [Unreleased]\n\n### Crawling\n\n- One.\n\n### Security\n\n- Two.\n"
    before = f"{unreleased}\n## [1.0]\n\n### Added\n\n- Old.\n"
    after = insert_changes(before, [("Security", "Three."), ("Output", "Four.")])
    assert after == before.replace("- Two.", "- Two.\n- Three.").replace(
        "### Security", "### Output\n\n- Four.\n\n### Security"
    )
    assert insert_changes(CHANGELOG, []) == CHANGELOG


def test_the_changelog_of_the_next_release_is_short_and_by_area() -> None:
    first = CHANGELOG.split("\n## [")[1]
    headings = re.findall(r"^### (.+)$", first, re.MULTILINE)
    assert headings == [area for area in AREAS if area in headings]
    assert first.count("\n") <= LINES_MAX


def test_the_page_on_changes_names_all_areas() -> None:
    page = (ROOT / "changes/README.md").read_text(encoding="utf-8")
    assert [slug for slug in SLUGS if f"`{slug}`" not in page] == []
