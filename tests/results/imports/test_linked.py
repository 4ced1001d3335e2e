"""Archives that stay where they are: not packed, packed, and stored in a WACZ; every reader finds their records."""

from __future__ import annotations

import gzip
import json
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.commands import run
from tests.results.imports.archives import HOST, Stored, do_import, packed, record, rows, site, write_wacz

ROBOTS = Stored(f"{HOST}/robots.txt", b"User-agent: *\nDisallow: /no\n", headers="Content-Type: text/plain\r\n")
PAGES = 6


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a crawl whose pages lie in a WACZ (a packed archive and a plain one) and in a plain file."""
    pages = site(PAGES)
    files = {"archive__x_warc_gz": packed([ROBOTS, *pages[:2]]), "archive__y_warc": b"".join(map(record, pages[2:4]))}
    package = write_wacz(tmp_path / "my files.wacz", **files)
    plain = tmp_path / "z.warc"
    plain.write_bytes(b"".join(map(record, pages[4:])))
    do_import(tmp_path / "crawl", package, plain)
    return tmp_path / "crawl"


def test_records_of_a_package_stay_in_it(directory: Path) -> None:
    package = directory.with_name("my files.wacz").read_bytes()
    for url, file, offset, length in rows(directory, "url, warc_file, warc_offset, warc_length"):
        path = directory / "warc" / file
        assert path.is_symlink()
        data = path.read_bytes()[offset : offset + length]
        assert (data in package) == (file == "linked-00000-my_files.wacz")
        (found,) = ArchiveIterator(BytesIO(data))
        assert found.rec_headers["WARC-Target-URI"] == url
    assert [path for path in (directory / "warc").iterdir() if not path.is_symlink()] == []
    assert run("verify", str(directory), "--deep")[0] == 0


def test_packages_in_a_package_stay_in_it(directory: Path, tmp_path: Path) -> None:
    outer = tmp_path / "collection.wacz"
    more = write_wacz(tmp_path / "more.wacz", archive__x_warc_gz=packed(site(PAGES)[4:]))
    with zipfile.ZipFile(outer, "w") as file:
        for path in (directory.with_name("my files.wacz"), more):
            file.write(path, path.name)
    nested = tmp_path / "nested"
    do_import(nested, outer)
    columns = "url, digest, title"
    assert rows(nested, columns) == rows(directory, columns)
    assert [path.name for path in (nested / "warc").iterdir()] == ["linked-00000-collection.wacz"]
    assert run("verify", str(nested), "--deep")[0] == 0
    target = tmp_path / "again.wacz"
    assert run("export", str(nested), "--to", "wacz", "-o", str(target))[0] == 0
    do_import(tmp_path / "again", target)
    assert rows(tmp_path / "again", columns) == rows(directory, columns)


def test_texts_robots_and_forgetting(directory: Path, tmp_path: Path) -> None:
    assert run("export", str(directory), "--to", "markdown", "-o", str(tmp_path / "md"))[0] == 0
    text = "".join(path.read_text() for path in (tmp_path / "md").rglob("*.md"))
    assert all(f"The river of page {number}" in text for number in range(PAGES))
    assert f"{HOST}/robots.txt" in run("robots", str(directory), "a.example")[1]
    status, _, err = run("forget", str(directory), f"{HOST}/p2")
    assert (status, err.count("\n")) == (2, 1)
    assert "my files.wacz" in err


@pytest.mark.parametrize("options", [(), ("--permitted", "train-ai", "--unknown")], ids=["all", "permitted"])
def test_a_wacz_holds_the_archives_of_packages(directory: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    target = tmp_path / "out.wacz"
    status, _, err = run("export", str(directory), "--to", "wacz", "-o", str(target), *options)
    assert status == 0, err
    with zipfile.ZipFile(target) as package:
        lines = gzip.decompress(package.read("indexes/index.cdx.gz")).splitlines()
        found = set()
        for line in lines:
            place = json.loads(line[line.index(b"{") :])
            data = package.read(f"archive/{place['filename']}")[int(place["offset"]) :][: int(place["length"])]
            (one,) = ArchiveIterator(BytesIO(data))
            assert one.rec_headers["WARC-Target-URI"] == place["url"]
            found.add(place["url"])
        pages = package.read("pages/pages.jsonl").splitlines()
    assert found == {f"{HOST}/p{number}" for number in range(PAGES)}
    assert all("The river" in json.loads(line)["text"] for line in pages[1:])
    assert len(pages) == PAGES + 1
    do_import(tmp_path / "again", target)
    assert len(rows(tmp_path / "again", "url")) == PAGES


@pytest.mark.parametrize("change", ["gone", "longer", "cut"])
def test_a_package_that_changed_is_named(directory: Path, change: str) -> None:
    package = directory.with_name("my files.wacz")
    data = package.read_bytes()
    package.write_bytes(data[:-30] if change == "cut" else data + b"x")
    if change == "gone":
        package.unlink()
    status, out, _ = run("verify", str(directory))
    assert status == 1
    assert "linked-00000-my_files.wacz" in out
    for to in ("wacz", "markdown", "jsonl"):
        status, _, err = run("export", str(directory), "--to", to, "-o", str(directory.with_name(to)))
        needs_it = (to == "wacz" and change != "longer") or (to == "markdown" and change == "gone")
        assert (status != 0) == needs_it
        if needs_it:
            assert err.count("\n") == 1
            assert "my_files.wacz" in err


LINKED = (
    "verify",
    "robots a.example",
    "search --build",
    *(f"export --to {to} -o OUT" for to in ("markdown", "wacz", "datasets")),
)


def test_an_archive_that_moved_is_named_and_found_again(tmp_path: Path) -> None:
    place = tmp_path / "z.warc"
    place.write_bytes(b"".join(map(record, [ROBOTS, *site(PAGES)])))
    crawl = str(tmp_path / "crawl")
    do_import(tmp_path / "crawl", place)
    moved = place.rename(tmp_path / "moved.warc")
    for command in LINKED:
        words = command.replace("OUT", str(tmp_path / "out")).split()
        status, out, err = run(words[0], crawl, *words[1:])
        assert status in (1, 2), command
        assert f"{place}, which is missing; " in (out + err).replace("missing; affected", "missing; "), command
        assert "import it from its new place into this directory" in out + err, command
    do_import(tmp_path / "crawl", moved)
    assert len(rows(tmp_path / "crawl", "url")) == PAGES
    for command in LINKED:
        words = command.replace("OUT", str(tmp_path / command.replace(" ", "-"))).split()
        assert run(words[0], crawl, *words[1:])[0] == 0, command


def test_an_archive_is_imported_as_it_grows(tmp_path: Path) -> None:
    """Recorders append to their archives: each import reads what is there when it begins."""
    pages = packed(one._replace(fields={"WARC-Record-ID": f"<urn:uuid:{one.url}>"}) for one in site(PAGES))
    place = tmp_path / "z.warc.gz"
    place.write_bytes(pages[:-100])
    status, _, err = run("import", str(place), "-o", str(tmp_path / "crawl"))
    assert (status, "ends early" in err) == (0, True)
    place.write_bytes(pages)
    assert run("verify", str(tmp_path / "crawl"), "--deep")[0] == 0
    do_import(tmp_path / "crawl", place)
    assert [url for (url,) in rows(tmp_path / "crawl", "url")] == [one.url for one in site(PAGES)]
    assert run("verify", str(tmp_path / "crawl"), "--deep")[0] == 0
    place.write_bytes(b"x" + pages)
    assert run("verify", str(tmp_path / "crawl"), "--deep")[0] == 1
