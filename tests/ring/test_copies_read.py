"""Copies as readers of a crawl see them: the payload is the original's, all else is the copy's own (WARC 1.1, 6.7)."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest

from gossamer.api.reading import PageChange, changes, page_of
from gossamer.api.search import build_index_of, search_of
from gossamer.model.archived import PageVersions
from gossamer.results.isolated.reads import ReadReplay, Reads, ReadVersions, Replayed, unseal
from tests import commands
from tests.answering import Answering, serving
from tests.ring.crawls import OWN, Crawled, crawl

Header = tuple[str, str]
SECRET = b"secret"
TEXT = (
    "<!doctype html><title>Größe</title><article><h1>Die Größe</h1><p>Die Größe des Ofens ist für die Töpferei "
    "wichtig, weil er täglich %s wärmt. <a href=next.html>weiter</a></p></article>"
)
PACKED = gzip.compress((TEXT % "gepackte Hände").encode(), mtime=0)
RECODED = gzip.compress((TEXT % "neue Hände").encode(), mtime=0)
ANSWERS: dict[str, tuple[bytes, str, tuple[Header, ...]]] = {
    "/charset/wrong": ((TEXT % "müde Hände").encode(), "text/html; charset=iso-8859-1", ()),
    "/charset/right": ((TEXT % "müde Hände").encode(), "text/html; charset=utf-8", ()),
    "/twice/wrong": ((TEXT % "kalte Hände").encode(), "text/html; charset=iso-8859-1", ()),
    "/twice/right": ((TEXT % "kalte Hände").encode(), "text/html;charset='utf-8'", (("Content-Type", "text/plain"),)),
    "/type/wrong": ((TEXT % "rohe Hände").encode(), "application/octet-stream", ()),
    "/type/right": ((TEXT % "rohe Hände").encode(), "text/html; charset=utf-8", ()),
    "/plain/wrong": ((TEXT % "schlichte Hände").encode(), "text/plain; charset=utf-8", ()),
    "/plain/right": ((TEXT % "schlichte Hände").encode(), "application/xhtml+xml; charset=utf-8", ()),
    "/none/wrong": ((TEXT % "leere Hände").encode(), "text/css", ()),
    "/none/right": ((TEXT % "leere Hände").encode(), "", ()),
    "/address/wrong/p.html": ((TEXT % "ferne Hände").encode(), "text/html; charset=utf-8", ()),
    "/address/right/p.html": ((TEXT % "ferne Hände").encode(), "text/html; charset=utf-8", ()),
    "/coding/wrong": (PACKED, "application/gzip", ()),
    "/coding/right": (PACKED, "text/html; charset=utf-8", (("Content-Encoding", "gzip"),)),
    "/text/first": ((TEXT % "reine Hände").encode("cp1252"), "text/plain; charset=koi8-r", ()),
    "/text/second": ((TEXT % "reine Hände").encode("cp1252"), "text/plain; charset=x-cp1252", ()),
    "/usage/wrong": (
        (TEXT % "eigene Hände").encode(), "text/html; charset=iso-8859-1", (("Content-Usage", "train-ai=n"),)
    ),
    "/usage/right": ((TEXT % "eigene Hände").encode(), "text/html; charset=utf-8", ()),
    "/recoded/plain": ((TEXT % "neue Hände").encode(), "text/html; charset=utf-8", ()),
    "/recoded/wrong": (RECODED, "application/gzip", ()),
    "/recoded/right": (RECODED, "text/html; charset=utf-8", (("Content-Encoding", "gzip"),)),
    "/language/wrong": ((TEXT % "fremde Hände").encode(), "text/html; charset=utf-8", (("Content-Language", "en"),)),
    "/language/right": ((TEXT % "fremde Hände").encode(), "text/html; charset=utf-8", (("Content-Language", "de"),)),
    **{
        f"/{path}next.html": (f"<title>N</title><h1>Seite von {path}</h1>".encode(), "text/html", ())
        for path in ("charset/", "twice/", "type/", "plain/", "none/", "address/wrong/", "address/right/", "coding/",
                     "language/", "usage/", "recoded/")
    },
}  # fmt: skip
COPIES = {path: path.replace("right", "wrong") for path in ANSWERS if "/right" in path and "next" not in path}
"""Each copy, with the address of its original."""
RULES = '[extract.page.fields]\nheading = "h1"\nlink = { css = "a", attribute = "href", type = "url" }\n'


class _Server(Answering):
    def get(self) -> None:
        if self.path in ("/", "/copies"):  # Originals come first: copies are a click further.
            links = [path for path in (*ANSWERS, "/copies") if (self.path == "/copies") == (path in COPIES)]
            return self.answer(200, "".join(f"<p><a href={path}>{path}</a>" for path in links).encode())
        body, media_type, headers = ANSWERS.get(self.path, (b"", "text/plain", ()))
        self.send_response(200 if self.path in ANSWERS else 404)
        for name, value in (*headers, ("Content-Type", media_type), ("Content-Length", str(len(body)))):
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        return None


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    with serving(server):
        directory = tmp_path_factory.mktemp("copies") / "crawl"
        yield crawl((f"http://127.0.0.1:{server.server_port}/",), directory, *OWN)


Reader = Callable[[Crawled, Path], dict[str, str]]
"""Returns what a reader has of each page, by its path."""


def _exported(crawled: Crawled, to: str, target: Path, *options: str) -> Path:
    status, _, err = commands.run("export", str(crawled.directory), "--to", to, "-o", str(target), "--quiet", *options)
    assert status == 0, err
    return target


def _path(url: object) -> str:
    return urlsplit(str(url)).path


def _markdown(crawled: Crawled, folder: Path, *options: str) -> dict[str, str]:
    texts = [path.read_text() for path in _exported(crawled, "markdown", folder / "m", *options).glob("*/*.md")]
    return {_path(json.loads(text.partition("url: ")[2].partition("\n")[0])): text for text in texts}


def _permitted(crawled: Crawled, folder: Path) -> dict[str, str]:
    found = _markdown(crawled, folder, "--permitted", "ai-train", "--unknown")
    assert "/usage/wrong" not in found
    return found


def _without_copies(crawled: Crawled, folder: Path) -> dict[str, str]:
    return _markdown(crawled, folder, "--dedupe", "exact", "--where", "url LIKE '%/right%'")


def _datasets(crawled: Crawled, folder: Path) -> dict[str, str]:
    rows = pq.read_table(_exported(crawled, "datasets", folder / "d") / "data").to_pylist()
    return {_path(row["url"]): row["markdown"] for row in rows}


def _bulk(crawled: Crawled, folder: Path) -> dict[str, str]:
    [file] = _exported(crawled, "bulk", folder / "b").glob("*.ndjson")
    rows = [json.loads(line) for line in file.read_text().splitlines()[1::2]]
    return {_path(row["url"]): row["text"] for row in rows}


def _mirror(crawled: Crawled, folder: Path) -> dict[str, str]:
    found = {}
    for path in _exported(crawled, "mirror", folder / "s").glob("127*/**/*.html"):
        at = "/" + "/".join(path.relative_to(folder / "s").parts[1:])
        found[at if at in ANSWERS else at.removesuffix(".html")] = path.read_text()
    return found


def _pagefiles(crawled: Crawled, folder: Path) -> dict[str, str]:
    out = _exported(crawled, "pagefiles", folder / "p")
    rows = [line.split("\t") for line in (out / "store.log").read_text().split("\n")[:-1]]
    stored = (out / "pagefile_1.pfl").read_bytes()
    return {_path(row[1]): stored[int(row[9]) : int(row[9]) + int(row[6])].decode("utf-8", "replace") for row in rows}


def _extracted(crawled: Crawled, folder: Path) -> dict[str, str]:
    rules = folder / "rules.toml"
    rules.write_text(RULES)
    status, _, err = commands.run("extract", str(crawled.directory), "-c", str(rules), "-o", str(folder), "--quiet")
    assert status == 0, err
    rows = pq.read_table(folder / "items/page/extracted.parquet").to_pylist()
    return {_path(row["url"]): f"{row['heading']} {row['link']}" for row in rows}


def _read(crawled: Crawled, folder: Path) -> dict[str, str]:
    urls = {_path(row["url"]): str(row["url"]) for row in crawled.rows if row["outcome"] == "fetched"}
    return {path: page_of(crawled.directory, urls[path]).markdown for path in COPIES}


def _replayed(crawled: Crawled, folder: Path) -> dict[str, str]:
    return _shown(crawled, COPIES)


def _shown(crawled: Crawled, paths: Iterable[str]) -> dict[str, str]:
    urls = {_path(row["url"]): str(row["url"]) for row in crawled.rows}

    async def replay() -> dict[str, str]:
        reads, found = Reads(), {}
        try:
            for path in paths:
                asked = ReadVersions("c", urls[path], SECRET)
                [version] = (await reads.read(crawled.directory, asked, PageVersions)).versions
                place = unseal(SECRET, version.replay)
                assert place is not None
                shown = await reads.read(crawled.directory, ReadReplay(place, SECRET), Replayed)
                led = unseal(SECRET, shown.body.decode().partition('<a href="')[2].partition('"')[0])
                found[path] = shown.body.decode() + (led.url if led is not None else "")
        finally:
            await reads.close()
        return found

    return asyncio.run(replay())


READERS: dict[str, Reader] = {
    "markdown": _markdown, "permitted": _permitted, "deduped": _without_copies, "datasets": _datasets, "bulk": _bulk,
    "mirror": _mirror, "pagefiles": _pagefiles, "extract": _extracted, "read": _read, "replay": _replayed,
}  # fmt: skip
LINKS = frozenset(("markdown", "permitted", "deduped", "datasets", "mirror", "extract", "read", "replay"))
"""Readers that give the links of a page."""


def test_each_copy_is_archived_as_a_revisit_of_its_original(crawled: Crawled) -> None:
    found = {_path(row["url"]): (row["warc_type"], _path(row["duplicate_of"])) for row in crawled.rows}
    # The last one has the payload of one page, and the decoded content of another.
    expected = COPIES | {"/recoded/right": "/recoded/plain"}
    assert {path: found[path] for path in COPIES} == {path: ("revisit", first) for path, first in expected.items()}


@pytest.mark.promise(
    "Files and exports", "A copy is read as its server sent it: charset, media type, address, headers."
)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.heavy
def test_a_reader_sees_a_copy_as_its_server_sent_it(crawled: Crawled, reader: str, tmp_path: Path) -> None:
    found = READERS[reader](crawled, tmp_path)
    assert {path for path in COPIES if "Die Größe" not in found.get(path, "")} == set()
    if reader in LINKS:
        led = {path: "next.html" if reader == "mirror" else path.rpartition("/")[0] + "/next.html" for path in COPIES}
        assert {path for path in COPIES if led[path] not in found[path]} == set()


def test_changes_list_a_copy_under_its_own_address_and_type_of_record(crawled: Crawled) -> None:
    for row in crawled.rows:
        if _path(row["url"]) in COPIES:
            [one] = changes(crawled.directory, url=str(row["url"]))
            assert isinstance(one, PageChange)
            assert (one.url, one.warc_type, one.digest) == (row["url"], "revisit", row["digest"])


def test_plain_text_is_shown_in_the_encoding_that_its_label_has_on_the_web(crawled: Crawled) -> None:
    assert "Die Größe" in _shown(crawled, ["/text/second"])["/text/second"]


def test_a_search_finds_copies_by_their_own_words_and_language(crawled: Crawled) -> None:
    build_index_of(crawled.directory)
    found = {_path(hit.url): hit.language for hit in search_of(crawled.directory, "Töpferei", limit=50).hits}
    assert {path for path in COPIES if path not in found} == set()
    assert (found["/language/right"], found["/language/wrong"]) == ("de", "en")
