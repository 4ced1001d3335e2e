"""Texts that crawlers with browsers archive beside pages whose scripts make them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gossamer.results.imports import texts
from gossamer.results.imports.capture import Source
from gossamer.results.imports.texts import PageTexts
from gossamer.world.spill import Spills
from tests.commands import run
from tests.results.imports.archives import HOST, Stored, do_import, packed, page, rows, write_wacz, write_warc

SHELL = b"<title>App</title><noscript>Please enable JavaScript</noscript><div id=root></div><script src=/a.js></script>"
SHOWN = "Rivers of the north\nThe Alta flows to the sea, and so do others.\n"


def shown(url: str, text: str, name: str = "text") -> Stored:
    """Return a record as Browsertrix Crawler writes it with `--text to-warc`."""
    return Stored(f"urn:{name}:{url}", text.encode(), kind="resource", fields={"Content-Type": "text/plain"})


def found(directory: Path) -> dict[str, tuple[str, str]]:
    return {url: (method, text or "") for url, method, text in rows(directory, "url, text_method, main_text")}


def test_a_page_without_text_has_the_one_that_a_browser_showed(tmp_path: Path) -> None:
    """As Browsertrix Crawler packs it: pages and texts are in two archives, and a list has texts, too."""
    written = page(3, text="And it has a text of its own. " * 10)
    captures = [
        Stored(f"{HOST}/app", SHELL),
        Stored(f"{HOST}/listed", SHELL),
        Stored(f"{HOST}/written", written),
        Stored(f"{HOST}/short", b"<p>Hello"),
        Stored(f"{HOST}/a.js", b"x()", headers="Content-Type: text/javascript\r\n"),
    ]
    said = [
        shown(f"{HOST}/app", "Loading"),
        shown(f"{HOST}/app", SHOWN, "textFinal"),
        shown(f"{HOST}/written", SHOWN * 50),
        shown(f"{HOST}/short", "Hello"),
        shown(f"{HOST}/a.js", SHOWN),
    ]
    lines = [{"format": "json-pages-1.0"}, {"url": f"{HOST}/listed", "text": f"listed\n \n{SHOWN}"}]
    package = write_wacz(
        tmp_path / "a.wacz",
        archive__data_warc_gz=packed(captures),
        archive__text_warc_gz=packed(said),
        pages__pages_jsonl="\n".join(map(json.dumps, lines)).encode(),
    )
    directory = tmp_path / "crawl"
    assert "resource urn records 5" in do_import(directory, package)
    assert found(directory) == {
        f"{HOST}/app": ("document", SHOWN.strip()),
        f"{HOST}/listed": ("document", f"listed\n{SHOWN}".strip()),
        f"{HOST}/written": ("", ""),
        f"{HOST}/short": ("", ""),
        f"{HOST}/a.js": ("", ""),
    }
    assert run("search", str(directory), "--build")[0] == 0
    assert f"{HOST}/app" in run("search", str(directory), "Alta flows")[1]
    assert run("export", str(directory), "--to", "markdown", "-o", str(tmp_path / "md"))[0] == 0
    assert any("The Alta flows" in path.read_text() for path in (tmp_path / "md").rglob("*.md"))
    assert run("export", str(directory), "--to", "wacz", "-o", str(tmp_path / "b.wacz"))[0] == 0
    do_import(tmp_path / "again", tmp_path / "b.wacz")
    assert found(tmp_path / "again") == found(directory)


def test_texts_of_an_archive_that_was_imported_before_count(tmp_path: Path) -> None:
    """An interrupted import goes on with the archive of the pages, and that of their texts is done."""
    first = write_warc(tmp_path / "text.warc.gz", [shown(f"{HOST}/app", SHOWN), Stored(f"{HOST}/", page(0))])
    last = write_warc(tmp_path / "data.warc.gz", [Stored(f"{HOST}/app", SHELL)])
    do_import(tmp_path / "crawl", first)
    do_import(tmp_path / "crawl", first, last)
    assert found(tmp_path / "crawl")[f"{HOST}/app"] == ("document", SHOWN.strip())


def test_what_is_kept_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "TEXTS_MAX", 2)
    kept = PageTexts(Spills(tmp_path, "sha1"), 10)
    source = Source(0, "a", str(tmp_path / "a.warc"), 1, "warc")
    for number in range(4):
        kept.add(source, f"{HOST}/{number}#x", "ä" * 20)
    assert [kept.find(source, f"{HOST}/{number}") for number in range(4)] == ["ä" * 5, "ä" * 5, "", ""]
    kept.add(source, f"{HOST}/0", "short")
    assert kept.find(source, f"{HOST}/0") == "ä" * 5
    assert kept.find(Source(1, "b", "/other/a.warc", 1, "warc"), f"{HOST}/0") == ""
    monkeypatch.setattr(texts, "TEXTS_BYTES_MAX", 1)
    kept.add(source, f"{HOST}/1", "another text")
    assert kept.find(source, f"{HOST}/1") == "ä" * 5
