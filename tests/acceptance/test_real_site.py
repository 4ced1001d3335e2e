"""A real site: Debian's documentation of Python behind nginx, crawled by the command, beside an independent walker."""

from __future__ import annotations

import gzip
import json
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
import trustme
from warcio.archiveiterator import ArchiveIterator

from tests.acceptance.conftest import Crawl
from tests.acceptance.nginx import Logged, Nginx
from tests.acceptance.walker import Walked, walk
from tests.stages.archive import strict

pytestmark = [pytest.mark.acceptance, pytest.mark.together]
FURTHER = [pytest.param(one, marks=pytest.mark.long) for one in ("gzip", "tls")]
"""The same site once more, on one day of a week."""

ROOT = Path("/usr/share/doc/python3-doc/html")
PAGES_MIN = 500
"""The package of Debian 12 has 527 that can be reached; far fewer would be another package, or none."""
SCRIPTS = Path(sysconfig.get_path("scripts"))

Row = dict[str, Any]


@dataclass(frozen=True)
class Crawled:
    """A finished crawl, and what the server saw of it."""

    way: str
    origin: str
    directory: Path
    log: list[Logged]
    pages: list[Row]

    @property
    def warcs(self) -> list[Path]:
        return sorted((self.directory / "warc").iterdir())

    def path(self, url: str) -> str:
        """Return an address of the site as a path, others as they are."""
        return url.removeprefix(self.origin) if url.startswith(self.origin + "/") else url

    def file(self, url: str) -> Path:
        """Return the file that the server sends for an address."""
        name = unquote(self.path(url)).lstrip("/")
        return ROOT / (name + "index.html" if name.endswith("/") or not name else name)


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    with Nginx(ROOT, tmp_path_factory.mktemp("walked") / "nginx") as nginx:
        found = walk(nginx.origin)
    assert len(found.html) >= PAGES_MIN
    return found


@pytest.fixture(scope="module", params=["plain", *FURTHER])
def crawled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, command: Crawl) -> Crawled:
    at = tmp_path_factory.mktemp(request.param)
    directory, certificate, options = at / "crawl", None, []
    if request.param == "tls":
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(at / "authority.pem"))
        certificate = at / "server.pem"
        authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(certificate))
        options = ["--set", f"fetch.ca_bundle={at / 'authority.pem'}"]
    with Nginx(ROOT, at / "nginx", gzip=request.param == "gzip", certificate=certificate) as nginx:
        arguments = ["crawl", nginx.origin + "/", "-o", directory, "--politeness", "own", "--allow-private"]
        end = command(*arguments, *options)
        log = nginx.log()
    assert (end.returncode, end.stderr) == (0, "")
    pages = [row for file in (directory / "pages").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    return Crawled(request.param, nginx.origin, directory, log, pages)


def records_of(crawled: Crawled) -> Iterator[tuple[str, int, int, Any]]:
    """Yield (file, offset, length, record with its payload read) of every record, by warcio."""
    for path in crawled.warcs:
        with path.open("rb") as file:
            iterator = ArchiveIterator(file)
            for record in iterator:
                record.payload = record.raw_stream.read()
                yield path.name, iterator.get_record_offset(), iterator.get_record_length(), record


@pytest.mark.promise(
    "What is fetched", "A crawl fetches exactly what the web and the scope define, in any order of replies."
)
def test_the_pages_fetched_are_those_that_the_walker_finds(crawled: Crawled, walked: Walked) -> None:
    fetched = [row for row in crawled.pages if row["outcome"] == "fetched"]
    html = Counter(crawled.path(row["url"]) for row in fetched if row["media_type"] == "text/html")
    others = Counter(crawled.path(row["url"]) for row in fetched if row["media_type"] != "text/html")
    broken = Counter(crawled.path(row["url"]) for row in crawled.pages if row["outcome"] != "fetched")
    assert html == Counter(walked.html)
    assert others == Counter(walked.others)
    assert broken == Counter(walked.broken)
    assert {row["status"] for row in crawled.pages if row["outcome"] == "http_error"} <= {404}


def test_the_server_was_asked_once_for_each(crawled: Crawled, walked: Walked) -> None:
    asked = Counter(request.path for request in crawled.log)
    assert asked == Counter(walked.html | walked.others | walked.broken | {"/robots.txt"})
    assert crawled.log[0].path == "/robots.txt"
    assert {request.method for request in crawled.log} == {"GET"}
    assert all(request.agent.startswith("gossamer/") for request in crawled.log)
    assert {request.protocol for request in crawled.log} == {"HTTP/2.0" if crawled.way == "tls" else "HTTP/1.1"}
    if crawled.way == "gzip":
        assert sum(request.coding == "gzip" for request in crawled.log) >= PAGES_MIN


def test_connections_are_used_again(crawled: Crawled) -> None:
    assert len({request.connection for request in crawled.log}) <= 20  # 8 at once, and one for robots.txt.


@pytest.mark.promise("Files and exports", "Other tools read and replay the WARC files.")
@pytest.mark.parametrize("tool", ["warcio", "fastwarc"])
def test_the_tools_of_others_find_the_archive_sound(crawled: Crawled, tool: str) -> None:
    assert crawled.warcs
    for path in crawled.warcs:
        assert path.name.endswith(".warc.gz")
        check = subprocess.run([SCRIPTS / tool, "check", path], capture_output=True, text=True, timeout=120)
        assert check.returncode == 0, check.stdout + check.stderr


def test_the_strict_reader_finds_nothing(crawled: Crawled) -> None:
    assert strict.faults(crawled.warcs) == []


def test_what_is_archived_is_what_the_server_has_on_disk(crawled: Crawled, walked: Walked) -> None:
    responses, revisits = Counter[str](), []
    for _, _, _, record in records_of(crawled):
        url = record.rec_headers.get_header("WARC-Target-URI")
        if record.rec_type == "revisit":
            revisits.append((url, record.rec_headers.get_header("WARC-Refers-To-Target-URI")))
        elif record.rec_type == "response":
            responses[crawled.path(url)] += 1
            if record.http_headers.get_statuscode() == "200":
                coded = record.http_headers.get_header("Content-Encoding") == "gzip"
                assert coded == (crawled.way == "gzip")
                body = gzip.decompress(record.payload) if coded else record.payload
                assert body == crawled.file(url).read_bytes(), url
    for url, original in revisits:
        assert crawled.file(url).read_bytes() == crawled.file(original).read_bytes()
        responses[crawled.path(url)] += 1
    assert responses == Counter(walked.html | walked.others | walked.broken | {"/robots.txt"})


def test_every_response_has_its_request_and_its_metadata(crawled: Crawled) -> None:
    kinds = Counter(record.rec_type for _, _, _, record in records_of(crawled))
    replies = kinds["response"] + kinds["revisit"]
    assert kinds == {**kinds, "request": replies, "metadata": replies, "warcinfo": len(crawled.warcs)}
    assert replies == len(crawled.pages) + 1  # That of robots.txt has no row.


@pytest.mark.promise(
    "Files and exports",
    "WARC files hold what the servers sent, and each offset in `pages` and the index is one record.",
)
def test_tables_and_index_point_at_the_records(crawled: Crawled) -> None:
    places = {
        (name, offset, length, record.rec_headers.get_header("WARC-Target-URI"))
        for name, offset, length, record in records_of(crawled)
        if record.rec_type in ("response", "revisit")
        and not record.rec_headers.get_header("WARC-Target-URI").endswith("/robots.txt")
    }
    rows = {(row["warc_file"], row["warc_offset"], row["warc_length"], row["url"]) for row in crawled.pages}
    assert rows == places
    lines = (crawled.directory / "index.cdxj").read_bytes().splitlines()
    assert lines == sorted(lines)
    entries = [json.loads(line.split(b" ", 2)[2]) for line in lines]
    assert {(one["filename"], int(one["offset"]), int(one["length"]), one["url"]) for one in entries} == places
    assert len(entries) == len(places) == len(crawled.pages)
    for name, offset, length, url in places:
        with (crawled.directory / "warc" / name).open("rb") as file:
            file.seek(offset)
            member = gzip.decompress(file.read(length))
        assert f"WARC-Target-URI: {url}\r\n".encode() in member.partition(b"\r\n\r\n")[0] + b"\r\n"


def test_sizes_and_digests_in_the_table_are_those_of_the_files(crawled: Crawled) -> None:
    fetched = [row for row in crawled.pages if row["outcome"] == "fetched"]
    assert {row["url"]: row["body_bytes"] for row in fetched} == {
        row["url"]: crawled.file(row["url"]).stat().st_size for row in fetched
    }
    for _, _, _, record in records_of(crawled):
        url = record.rec_headers.get_header("WARC-Target-URI")
        if record.rec_type == "response" and not url.endswith("/robots.txt"):
            (digest,) = {row["digest"] for row in crawled.pages if row["url"] == url}
            assert digest == record.rec_headers.get_header("WARC-Payload-Digest")


def test_the_links_are_those_that_the_walker_sees(crawled: Crawled, walked: Walked) -> None:
    rows = [row for file in (crawled.directory / "links").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    anchors = Counter(
        (crawled.path(row["from_url"]), crawled.path(row["to_url"])) for row in rows if row["link_type"] == "anchor"
    )
    assert set(anchors) == set(walked.anchors), "the walker names each link once, the table each time"
    assert sum(1 for row in rows if row["link_type"] == "anchor" and row["anchor_text"]) > 0.9 * len(walked.anchors)


@pytest.mark.long
def test_another_site_by_other_tools(tmp_path: Path, command: Crawl) -> None:
    """PostgreSQL's documentation: DocBook, 1,170 pages in Debian 12."""
    (root,) = Path("/usr/share/doc").glob("postgresql-doc-*/html")
    with Nginx(root, tmp_path / "nginx") as nginx:
        walked = walk(nginx.origin)
        end = command("crawl", nginx.origin + "/", "-o", tmp_path / "crawl", "--politeness", "own", "--allow-private")
        asked = Counter(one.path for one in nginx.log() if one.agent.startswith("gossamer/"))
    assert (end.returncode, end.stderr) == (0, "")
    assert len(walked.html) > 1000
    assert asked == Counter(walked.html | walked.others | walked.broken | {"/robots.txt"})
    links = [row for file in (tmp_path / "crawl/links").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    anchors = Counter(
        (row["from_url"].removeprefix(nginx.origin), row["to_url"].removeprefix(nginx.origin))
        for row in links
        if row["link_type"] == "anchor"
    )
    assert set(anchors) == set(walked.anchors), "the walker names each link once, the table each time"


def test_the_report_counts_the_same(crawled: Crawled, command: Crawl) -> None:
    told = command("report", crawled.directory)
    assert (told.returncode, told.stderr) == (0, "")
    fetched = sum(row["outcome"] == "fetched" for row in crawled.pages)
    assert f"{fetched} pages fetched in {len(crawled.pages)} attempts" in told.stdout
