"""Names from outside, before a path is made of them."""

from __future__ import annotations

import pytest

from gossamer.model.paths import fold_name, is_file_name, is_of_crawl, is_of_table, is_plain, is_warc

OUTSIDE = (
    "", "/", "/etc/passwd", "..", "../x", "a/../../x", "state/../../x", "state/store/../../../x", ".", "./x",
    "a/./x", "a//x", "a/", "a\\..\\..\\x", "C:x", "C:/x", "a/b:stream", "a\0b", "a/b\n", "a/con", "a/NUL.txt", "a/com1",
    "a/x.", "a/x ",
    "a/" + "x" * 256, "a/" + "é" * 128, "a/b\x7f", "a/?", "\udc80/../x",
)  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_leads_elsewhere_is_not_plain(name: str) -> None:
    assert not is_plain(name)
    assert not is_file_name(name)
    assert not is_of_crawl(name)


@pytest.mark.parametrize(
    "name", ["crawl.toml", "forgotten.jsonl", "logs/x", "search/x", "checkpoints/1/x", ".git/x", "x"]
)
def test_a_file_of_a_commit_has_a_folder_that_commits_write(name: str) -> None:
    assert is_plain(name)
    assert not is_of_crawl(name)


@pytest.mark.parametrize(
    "name",
    [
        "warc/gossamer-000-0001-000001.warc.gz", "pages/pages-000-0001-000001.parquet", "items/offer/items-1.parquet",
        "state/store/000012.sst", "state/store/CURRENT", "state/store/MANIFEST-000005", "state/seen/3-12.run",
        "warc/.x", "state/slots", "warc/a b+c=1~(é).warc.gz", "warc/consent.warc", "state/contacts",
    ],
)  # fmt: skip
def test_names_of_a_crawls_own_files_are_taken(name: str) -> None:
    assert is_of_crawl(name)


def test_names_that_one_file_system_takes_for_another_are_equal() -> None:
    assert fold_name("warc/E\u0301.gz") == fold_name("warc/é.GZ")
    assert fold_name("warc/a") != fold_name("warc/b")


COPIES = (
    "{} (1)", "{} (copy)", "{} (another copy)", "{} (conflicted copy 2026-01-01 120000)", "Copy of {}", "{} - Copy",
    "{} - Copy (2)", "{} copy", "{} copy 2", "{} 2", "{} - Kopie", "Kopie von {}", "{}-LAPTOP-7", "{}_1", "{}-1",
    "{}.1", "{}.sync-conflict-20260101-120000-ABCDEFG", "{} [conflicted]", "._{}", ".{}", "#{}", "{}~", "~${}", " {}",
    "{} ", "x{}",
)  # fmt: skip
"""How file managers (Windows, macOS, GNOME, KDE), browsers, editors and sync programs name copies."""
ENDINGS = ("{}~", "{}.part", "{}.crdownload", "{}.swp", "{}#", "{}.bak", "{}.tmp", "{}.1", "{} (1)", "{}\n")


@pytest.mark.parametrize(
    ("stem", "ending", "table"),
    [
        ("pages-000-0001-000001", ".parquet", "pages"),
        ("items.book-1234-12345-1234567", ".parquet", "items/book"),
        ("gossamer-000-0001-000001", ".warc.gz", ""),
        ("gossamer-000-0001-000001", ".warc.zst.open", ""),
        ("linked-00000-a.b_c", ".wacz", ""),
    ],
)
def test_copies_beside_a_crawls_files_are_not_its_files(stem: str, ending: str, table: str) -> None:
    def is_own(name: str) -> bool:
        return is_of_table(table, name) if table else is_warc(name)

    assert is_own(stem + ending)
    linked = ("{}-LAPTOP-7", "{}_1", "{}-1", "{}.1", "{}.sync-conflict-20260101-120000-ABCDEFG")
    others = [copy.format(stem) + ending for copy in COPIES if not (stem.startswith("linked") and copy in linked)]
    others += [copy.format(stem + ending) for copy in ENDINGS]
    assert [name for name in others if is_own(name)] == []


def test_a_file_of_another_table_is_no_file_of_a_table() -> None:
    assert not is_of_table("pages", "links-000-0001-000001.parquet")
    assert is_of_table("items/book", "extracted.parquet")
