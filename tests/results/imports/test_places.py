"""The whole command, with archives of all kinds wherever they are: folders, globs, lists, file: and s3: addresses."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gossamer
from gossamer.model.errors import ConfigError
from tests.commands import run
from tests.results.imports.archives import HOST, packed, page, record, rows, site, write_wacz, write_warc
from tests.results.imports.test_records import ARC, arc
from tests.stages.archive.bucket import KEYS, NAME, Bucket

PAGES = 10
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
