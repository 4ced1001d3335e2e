"""The whole command, with archives of all kinds wherever they are: folders, globs, lists, file: and s3: addresses."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gossamer
from gossamer.model.errors import ConfigError
from tests.commands import run
from tests.results.imports.archives import (
    HOST,
    Stored,
    do_import,
    packed,
    page,
    record,
    rows,
    site,
    write_wacz,
    write_warc,
)
from tests.results.imports.test_records import ARC, arc
from tests.stages.archive.bucket import KEYS, NAME, Bucket

PAGES = 10
WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.getuid() == 0 else []
NAMES = ["a.warc.gz", "deep/b.arc", "deep/c.wacz", "d.har"]


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with Bucket() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with ten pages in a WARC, an ARC, a WACZ (packed and plain) and a HAR file, and other files."""
    pages = site(PAGES)
    place = tmp_path / "all archives"
    (place / "deep").mkdir(parents=True)
    write_warc(place / NAMES[0], pages[:4])
    reply = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    (place / NAMES[1]).write_bytes(ARC + b"".join(arc(one.url, reply + one.body) for one in pages[4:6]))
    files = {"archive__x_warc_gz": packed(pages[6:7]), "archive__y_warc": record(pages[7])}
    write_wacz(place / NAMES[2], **files, pages__pages_jsonl=b'{"format": "json-pages-1.0"}\n')
    entries = [
        {
            "startedDateTime": one.date,
            "request": {"method": "GET", "url": one.url},
            "response": {"status": 200, "content": {
                "mimeType": "text/html", "text": b64encode(one.body).decode(), "encoding": "base64"
            }},
        }
        for one in pages[8:]
    ]  # fmt: skip
    (place / NAMES[3]).write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    (place / "notes.txt").write_text("read me")
    (place / "page.html").write_bytes(page(99))
    return place


def upload(bucket: Bucket, folder: Path) -> str:
    for path in folder.rglob("*"):
        if path.is_file():
            key = f"crawl-data/x/{path.relative_to(folder)}"
            bucket.client.put_object(Bucket=NAME, Key=key, Body=path.read_bytes())
    paths = gzip.compress("".join(f"crawl-data/x/{name}\n" for name in NAMES).encode())
    bucket.client.put_object(Bucket=NAME, Key="crawl-data/x/warc.paths.gz", Body=paths)
    return f"s3://{NAME}/crawl-data/x"


def write_list(folder: Path) -> Path:
    path = folder.parent / "my list"
    path.write_text("# mine\n" + "".join(f"{folder / name}\n" for name in NAMES))
    return path


PLACES: dict[str, Callable[[Path], list[str]]] = {
    "folder": lambda folder: [str(folder)],
    "names": lambda folder: [str(folder / name) for name in NAMES],
    "globs": lambda folder: [f"{folder}/*.[wh]ar*", f"{folder}/**/[bc].*"],
    "list": lambda folder: [str(write_list(folder))],
    "file:": lambda folder: [(folder / name).as_uri() for name in NAMES],
}
STORES: dict[str, Callable[[str], list[str]]] = {
    "prefix": lambda address: [f"{address}/"],
    "globs": lambda address: [f"{address}/*.warc.gz", f"{address}/deep/*", f"{address}/d.har"],
    "list": lambda address: [f"{address}/warc.paths.gz"],
}


def require_all(directory: Path, tmp_path: Path, *, linked: set[str]) -> None:
    """Require all pages, with texts, in tables and an export, and sound archives."""
    found = rows(directory, "url, outcome, title, warc_file")
    assert [row[:3] for row in found] == [(f"{HOST}/p{n}", "fetched", f"Page {n}") for n in range(PAGES)]
    files = {file for *_, file in found}
    assert {file.partition("-")[2].partition("-")[2] for file in files if file.startswith("linked-")} == linked
    assert run("verify", str(directory), "--deep")[0] == 0
    assert run("export", str(directory), "--to", "markdown", "-o", str(tmp_path / "md"))[0] == 0
    text = "".join(path.read_text() for path in (tmp_path / "md").rglob("*.md"))
    assert all(f"The river of page {number}" in text for number in range(PAGES))
    status, _, err = run("export", str(directory), "--to", "wacz", "-o", str(tmp_path / "out.wacz"))
    assert status == 0, err
    status = json.loads(run("status", str(directory), "--json")[1])
    assert (status["pages"], status["queued"]) == (PAGES, PAGES + 1)


@pytest.mark.heavy
@pytest.mark.parametrize("place", PLACES)
def test_on_disk(folder: Path, tmp_path: Path, place: str) -> None:
    directory = tmp_path / "crawl"
    status, out, err = run("import", *PLACES[place](folder), "-o", str(directory))
    assert (status, err) == (0, "")
    assert f"Imported {PAGES} captures" in out
    require_all(directory, tmp_path, linked={"a.warc.gz", "c.wacz"})


@pytest.mark.heavy
@pytest.mark.parametrize("place", STORES)
def test_in_a_store(bucket: Bucket, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    directory = tmp_path / "crawl"
    options = next(one for one in bucket.sets if one.startswith("archive.store_options"))
    sources = STORES[place](upload(bucket, folder))
    status, out, err = run("import", *sources, "-o", str(directory), "--set", options)
    assert (status, err) == (0, "")
    assert f"Imported {PAGES} captures" in out
    require_all(directory, tmp_path, linked=set())
    again, out, err = run("import", *sources, "-o", str(directory), "--set", options)
    assert (again, len(rows(directory, "url"))) == (0, PAGES), err


@pytest.mark.heavy
def test_a_store_that_fails_meanwhile_costs_one_line(
    bucket: Bucket, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    address = upload(bucket, folder)
    settings = {"archive.store_options": bucket.options}
    directory = tmp_path / "crawl"
    with pytest.raises(ConfigError, match=r"^an archive cannot be read: .*repeat the import") as raised:
        gossamer.import_archives(
            f"{address}/", output=directory, settings=settings, on_progress=lambda _: bucket.wire.cut()
        )
    assert "\n" not in str(raised.value)
    bucket.wire.mend()
    done = gossamer.import_archives(f"{address}/", output=directory, settings=settings)
    assert done.status.captures == PAGES
    require_all(directory, tmp_path, linked=set())


@pytest.mark.parametrize(
    "name", ["broken.warc.gz", "empty.warc other.bin", "wrong.txt", "texts.wet", "broken.warc.gz --quiet"]
)
def test_archives_without_a_capture_end_with_a_status(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.warc.gz").write_bytes(b"hello")
    (tmp_path / "empty.warc").touch()
    (tmp_path / "other.bin").write_bytes(b"other")
    (tmp_path / "wrong.txt").write_text("a.warc.gz\n")
    (tmp_path / "texts.wet").write_bytes(record(Stored(HOST, b"text", kind="conversion")))
    words = [one if one.startswith("-") else str(tmp_path / one) for one in name.split()]
    status, _, err = run("import", *words, "-o", str(tmp_path / "crawl"))
    assert (status, err.count("\n")) == (3, 1)
    write_warc(tmp_path / "a.warc.gz", site(2))
    assert run("import", str(tmp_path / "a.warc.gz"), *words, "-o", str(tmp_path / "crawl"))[0] == 0


def test_the_directory_is_not_imported_into_itself(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    do_import(directory, write_warc(tmp_path / "a.warc.gz", site(2)), "--copy")
    for source in (directory, directory / "warc"):
        status, _, err = run("import", str(source), "-o", str(directory))
        assert (status, err.count("\n")) == (2, 1)
        assert "is of" in err


def test_what_may_not_be_read_is_named(tmp_path: Path) -> None:
    """Folders say it, too. The rights of root do not count in the process."""
    write_warc(tmp_path / "a.warc.gz", site(2))
    locked = tmp_path / "locked"
    locked.mkdir()
    write_warc(locked / "b.warc.gz", site(4))
    locked.chmod(0)
    try:
        for name, status in (("locked", 2), ("locked/b.warc.gz", 2), ("", 0)):
            command = [*WITHOUT_RIGHTS, sys.executable, "-m", "gossamer", "import", str(tmp_path / name), "-o"]
            done = subprocess.run(
                [*command, str(tmp_path / "crawl")], capture_output=True, text=True, check=False, timeout=60
            )
            assert done.returncode == status
            assert "cannot be read: Permission denied" in done.stderr
    finally:
        locked.chmod(0o700)


def test_an_archive_that_vanishes_costs_one_line(tmp_path: Path) -> None:
    write_warc(tmp_path / "a.warc.gz", site(4))
    gone = write_warc(tmp_path / "b.warc.gz", site(PAGES)[4:])

    def remove(_: object) -> None:
        gone.unlink(missing_ok=True)

    with pytest.raises(ConfigError, match=r"^an archive cannot be read: .*b\.warc\.gz.*; repeat the import"):
        gossamer.import_archives(tmp_path, output=tmp_path / "crawl", on_progress=remove)
    assert gossamer.import_archives(tmp_path, output=tmp_path / "crawl").status.captures == 4
