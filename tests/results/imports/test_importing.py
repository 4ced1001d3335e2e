"""Imports: archives of other crawlers become a crawl's directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from gossamer import Crawler
from gossamer.api import archives
from gossamer.config import Config
from gossamer.config.live import save
from gossamer.model.errors import ConfigError
from gossamer.results.imports import conclude, listed
from tests.commands import run
from tests.results.imports.archives import HOST, Stored, do_import, packed, page, rows, site, write_wacz, write_warc

PAGES = 6


@pytest.fixture
def warc(tmp_path: Path) -> Path:
    robots = Stored(f"{HOST}/robots.txt", b"User-agent: *\nDisallow: /no\n", headers="Content-Type: text/plain\r\n")
    gone = Stored(f"{HOST}/p40", b"gone", status="404 Not Found")
    away = Stored(f"{HOST}/old", status="301 Moved", headers=f"Location: {HOST}/p1\r\n")
    return write_warc(tmp_path / "other.warc.gz", [robots, *site(PAGES), gone, away])


def test_import_gives_pages_links_and_queue(warc: Path, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    out = do_import(directory, warc)
    found = rows(directory, "url, outcome, status, title, depth, warc_type")
    assert (f"{HOST}/p3", "fetched", 200, "Page 3", 2, "response") in found
    assert (f"{HOST}/p40", "http_error", 404, "", 0, "response") in found
    assert (f"{HOST}/old", "redirected", 301, "", 0, "response") in found
    assert len(found) == PAGES + 2
    assert (f"{HOST}/p1", f"{HOST}/p4", "anchor", "to 4") in rows(
        directory, "from_url, to_url, link_type, anchor_text", "links"
    )
    # Pages 0 to 5 link to pages 1 to 12, of which 7 are not in the archive.
    assert "Imported 8 captures; left out: robots.txt 1" in out
    assert "Not in the archives: 7 URLs" in out
    status = json.loads(run("status", str(directory), "--json")[1])
    assert (status["queued"], status["pages"]) == (7, PAGES)
    assert (status["ended"], status["ended_says"]) == ("imported", "all archives imported")
    assert run("report", str(directory))[1].startswith("Ended: all archives imported")


@pytest.mark.parametrize("at_once", [1, 3, 5, 100])
def test_addresses_are_noted_before_links_are_judged_however_many_at_once(
    warc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(conclude, "FORESEEN_MAX", at_once)
    assert "Not in the archives: 7 URLs" in do_import(tmp_path / "crawl", warc)


@pytest.mark.parametrize("how", ["--link", "--copy"])
def test_bodies_are_found(warc: Path, tmp_path: Path, how: str) -> None:
    directory = tmp_path / "crawl"
    do_import(directory, warc, how)
    assert run("verify", str(directory), "--deep")[0] == 0
    assert run("export", str(directory), "--to", "markdown", "-o", str(tmp_path / "md"))[0] == 0
    assert "The river of page 3" in "".join(path.read_text() for path in (tmp_path / "md").rglob("*.md*"))
    names = {name for (name,) in rows(directory, "warc_file")}
    assert names == ({"linked-00000-other.warc.gz"} if how == "--link" else {"gossamer-000-0001-000001.warc.gz"})


def test_filters(warc: Path, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    do_import(directory, warc, "--status", "200", "--exclude", "p2", "--since", "2026-01-01T00:00:01")
    assert {url for (url,) in rows(directory, "url")} == {f"{HOST}/p{n}" for n in (1, 3, 4, 5)}


def test_a_record_is_imported_once(warc: Path, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    do_import(directory, warc)
    before = rows(directory, "*")
    again = warc.with_name("copy.warc.gz")
    again.write_bytes(warc.read_bytes())
    more = write_warc(tmp_path / "more.warc.gz", [Stored(f"{HOST}/p6", page(6, 13))])
    do_import(directory, warc, again)
    assert rows(directory, "*") == before
    assert f"Imported {len(before)} captures; left out: robots.txt 1\n" in do_import(tmp_path / "both", warc, again)
    do_import(directory, warc, more)
    assert len(rows(directory, "url")) == len(before) + 1


def test_an_import_that_ended_at_its_start_is_repeated(
    warc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(config: Config, directory: Path) -> None:
        save(config, directory)
        raise OSError("the machine lost its power")

    monkeypatch.setattr(archives, "save", end)
    assert run("import", str(warc), "-o", str(tmp_path / "crawl"))[0] != 0
    monkeypatch.undo()
    do_import(tmp_path / "crawl", warc)
    assert len(rows(tmp_path / "crawl", "url")) == PAGES + 2


def test_bad_input_is_one_line(warc: Path, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    for arguments, says in (
        (["nothing.warc"], "there is no archive"),
        ([str(warc), "--since", "yesterday"], "--since yesterday: expected a date"),
        ([str(warc), "--status", "ok"], "--status ok: expected a whole number"),
        ([str(warc), "--seed", "a.example"], "did you mean https://a.example/ ?"),
        ([str(warc), "--link", "--copy"], "--copy and --link"),
    ):
        status, _, err = run("import", *arguments, "-o", str(directory))
        assert status == 2
        assert says in err
        assert err.count("\n") == 1
        assert not directory.exists()


@pytest.mark.parametrize("change", ["gone", "longer", "other"])
def test_verify_names_an_archive_that_changed(warc: Path, tmp_path: Path, change: str) -> None:
    directory = tmp_path / "crawl"
    do_import(directory, warc)
    data = warc.read_bytes()
    if change == "gone":
        warc.unlink()
    else:
        warc.write_bytes(data[:-1] + (b"xx" if change == "longer" else b"x"))
    status, out, _ = run("verify", str(directory), *(["--deep"] if change == "other" else []))
    assert status == 1
    (line,) = [one for one in out.splitlines() if "linked-00000-other.warc.gz" in one]
    assert ("which is missing" if change == "gone" else "SHA-256 differs") in line


def test_forget_refuses_linked_archives_and_forgets_copies(warc: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    do_import(linked, warc)
    status, _, err = run("forget", str(linked), f"{HOST}/p2")
    assert (status, err.count("\n")) == (2, 1)
    assert "--copy" in err
    copied = tmp_path / "copied"
    do_import(copied, warc, "--copy")
    assert run("forget", str(copied), f"{HOST}/p2")[0] == 0
    status, out, _ = run("forget", str(copied), f"{HOST}/p0")  # The seed.
    assert (status, "not the crawl's" in out) == (0, False)
    files = [path for path in copied.rglob("*") if path.is_file() and path.name != "forgotten.jsonl"]
    left = b"".join(path.read_bytes() for path in files)
    assert b"The river of page 2" not in left
    assert f"{HOST}/p0".encode() not in left
    assert run("verify", str(copied), "--deep")[0] == 0


def test_resume_refuses_half_an_import(warc: Path, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    do_import(directory, warc)
    Crawler.resume(directory)
    table = directory / "imports.json"
    table.write_text(table.read_text().replace('"is_done": true', '"is_done": false'))
    with pytest.raises(ConfigError, match=r"interrupted; `gossamer import \S*other.warc.gz … -o \S*crawl`"):
        Crawler.resume(directory)
    do_import(directory, warc)
    Crawler.resume(directory)


def test_records_that_cannot_be_read_cost_themselves(tmp_path: Path) -> None:
    good = site(3)
    bad = write_warc(tmp_path / "part.gz", good[:1]).read_bytes()
    archive = write_warc(tmp_path / "bad.warc.gz", [good[0], bad[:60] + b"\0" * 40 + bad[100:], good[1], good[2]])
    directory = tmp_path / "crawl"
    status, out, err = run("import", str(archive), "-o", str(directory))
    assert status == 0
    assert "Imported 3 captures" in out
    offset = len(write_warc(tmp_path / "part.gz", good[:1]).read_bytes())
    assert f"could not read {archive}, offset {offset}: " in err
    assert err.count("\n") == 1
    assert "record_refused" in (directory / "logs" / "info.log").read_text()
    assert {url for (url,) in rows(directory, "url")} == {f"{HOST}/p{number}" for number in range(3)}


def test_given_seeds_and_scope_leave_out_other_hosts(warc: Path, tmp_path: Path) -> None:
    more = write_warc(tmp_path / "more.warc.gz", [Stored("http://b.example/", b"<a href=/x>x</a>")])
    do_import(tmp_path / "all", warc, more)
    assert len(rows(tmp_path / "all", "url")) == PAGES + 3
    out = do_import(tmp_path / "some", warc, more, "--seed", f"{HOST}/", "--scope", "host")
    assert len(rows(tmp_path / "some", "url")) == PAGES + 2
    assert "scope 1" in out
    # The pages of the archive that are missing, and the seed.
    assert "Not in the archives: 8 URLs" in out
    # The archive itself names the seed: its first page.
    out = do_import(tmp_path / "unnamed", warc, "--scope", "host")
    assert len(rows(tmp_path / "unnamed", "url")) == PAGES + 2


def test_what_gossamer_writes_gives_the_same_tables(warc: Path, tmp_path: Path) -> None:
    """The records of a copy are Gossamer's own. A page that has depth 0 in them counts as a seed (`link_type`)."""
    do_import(tmp_path / "one", warc, "--copy")
    do_import(tmp_path / "other", tmp_path / "one" / "warc")
    but = "* EXCLUDE (link_type, warc_file, warc_offset, warc_length)"
    assert rows(tmp_path / "other", but) == rows(tmp_path / "one", but)
    assert rows(tmp_path / "other", "*", "links") == rows(tmp_path / "one", "*", "links")


def test_pages_that_a_package_lists_are_seeds(tmp_path: Path) -> None:
    """Of the other pages the first one would be."""
    pages = site(PAGES)
    lines = b"".join(b'{"url": "%b", "title": "x", "text": "y"}\n' % pages[number].url.encode() for number in (2, 4))
    path = write_wacz(tmp_path / "a.wacz", archive__a_warc_gz=packed(pages), pages__pages_jsonl=lines)
    do_import(tmp_path / "crawl", path)
    found = rows(tmp_path / "crawl", "url, depth, link_type")
    assert [row for row in found if row[2] == "seed"] == [(f"{HOST}/p2", 0, "seed"), (f"{HOST}/p4", 0, "seed")]
    assert (f"{HOST}/p5", 1, "anchor") in found


def test_lists_of_a_package_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each of its archives, and not once more when these are imported."""
    pages = site(PAGES)
    files = {f"archive__{number}_warc_gz": packed([one]) for number, one in enumerate(pages)}
    path = write_wacz(tmp_path / "a.wacz", **files, pages__pages_jsonl=b'{"url": "%b"}\n' % pages[4].url.encode())
    read: list[str] = []
    lines = listed._lines

    def note(package: ZipFile, name: str) -> Iterator[listed._Line]:
        read.append(name)
        return lines(package, name)

    monkeypatch.setattr(listed, "_lines", note)
    do_import(tmp_path / "crawl", path)
    assert read == ["pages/pages.jsonl"]
    assert (pages[4].url, 0, "seed") in rows(tmp_path / "crawl", "url, depth, link_type")


def test_lists_of_pages_title_pages_without_one(tmp_path: Path) -> None:
    """Scripts set the titles of some pages, and a browser wrote them into the list."""
    bare = Stored(f"{HOST}/app", b"<div id=root></div>")
    lines = [
        {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"},
        {"url": f"{HOST}/app", "title": "  The\n app "},
        {"url": f"{HOST}/p1", "title": "Another"},
        {"url": f"{HOST}/q", "title": f"{HOST}/q"},
    ]
    other = Stored(f"{HOST}/q", b"<p>q")
    path = write_wacz(
        tmp_path / "a.wacz",
        archive__a_warc_gz=packed([bare, Stored(f"{HOST}/p1", page(1)), other]),
        pages__extraPages_jsonl="\n".join(map(json.dumps, lines)).encode(),
    )
    do_import(tmp_path / "crawl", path)
    assert rows(tmp_path / "crawl", "url, title") == [
        (f"{HOST}/app", "The app"),
        (f"{HOST}/p1", "Page 1"),
        (f"{HOST}/q", ""),
    ]
