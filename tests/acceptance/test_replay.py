"""Pywb serves what was crawled: pages as the server sent them, redirects, copies; with our index and with its own."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest
import trustme

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.conftest import Crawl
from tests.acceptance.nginx import Nginx
from tests.acceptance.replay import Pywb, Replayed, tool
from tests.ring.crawls import OWN, crawl
from tests.stages.archive import strict

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.promise("Files and exports", "Other tools read and replay the WARC files."),
]

DOCS = Path("/usr/share/doc/python3-doc/html/library")
PAGES = 40
SERVER = """
    location = /moved { return 302 /page-3.html?from=moved; }
    location = /gone { return 410; }
"""
COLLECTIONS = ("ours", "theirs")


@dataclass(frozen=True)
class Site:
    """A crawl of a site that speaks HTTP/1.1 and one that speaks HTTP/2, and pywb, which serves both."""

    root: Path
    plain: str
    secure: str
    rows: list[dict[str, Any]]
    pywb: Pywb

    @property
    def origins(self) -> tuple[str, str]:
        return self.plain, self.secure

    def row(self, url: str) -> dict[str, Any]:
        (found,) = [row for row in self.rows if row["url"] == url]
        return found

    def file(self, url: str) -> bytes:
        return (self.root / (urlsplit(url).path.lstrip("/") or "index.html")).read_bytes()


def make_site(root: Path) -> None:
    """Real pages under names of their own, a front page that names them all, and copies."""
    root.mkdir()
    pages = sorted(path for path in DOCS.glob("*.html") if path.stat().st_size < 100_000)[:PAGES]
    assert len(pages) == PAGES
    for number, page in enumerate(pages):
        (root / f"page-{number}.html").write_bytes(page.read_bytes())
    (root / "copy.html").write_bytes(pages[5].read_bytes())
    (root / "picture.png").write_bytes(bytes(range(256)) * 20)
    names = [*(f"page-{number}.html" for number in range(PAGES)), "picture.png", "moved", "gone"]
    links = "".join(f'<li><a href="/{name}">{name}</a></li>' for name in [*names, "copy.html"])
    (root / "index.html").write_text(f"<!doctype html><title>Front</title><ul>{links}</ul>")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, command: Crawl) -> Iterator[Site]:
    at = tmp_path_factory.mktemp("replay")
    make_site(at / "root")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(at / "authority.pem"))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(at / "server.pem"))
    with (
        Nginx(at / "root", at / "plain", gzip=True, server=SERVER) as plain,
        Nginx(at / "root", at / "secure", certificate=at / "server.pem", server=SERVER) as secure,
    ):
        origins = plain.origin, secure.origin
        settings = (f"fetch.ca_bundle={at / 'authority.pem'}", "archive.warc_segment_bytes_max=200_000")
        end = command(
            "crawl", *(f"{origin}/" for origin in origins), "-o", at / "crawl", "--politeness", "own",
            "--allow-private", "--max-depth", "1", *(word for one in settings for word in ("--set", one)),
        )  # fmt: skip
    assert (end.returncode, end.stderr) == (0, "")
    rows = [row for file in (at / "crawl/pages").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    warcs = sorted((at / "crawl/warc").iterdir())
    assert len(warcs) > 1
    pywb = Pywb(at / "pywb")
    pywb.indexed("ours", warcs, at / "crawl/index.cdxj")
    pywb.added("theirs", warcs)
    with pywb:
        yield Site(at / "root", *origins, rows, pywb)


def plain_body(replayed: Replayed) -> bytes:
    return gzip.decompress(replayed.body) if replayed.headers.get("content-encoding") == "gzip" else replayed.body


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_every_page_replays_as_the_server_sent_it(site: Site, collection: str) -> None:
    fetched = [row["url"] for row in site.rows if row["outcome"] == "fetched"]
    assert len(fetched) >= 2 * (PAGES + 3)
    for url in fetched:
        replayed = site.pywb.get(collection, url)
        assert replayed.status == 200, url
        assert plain_body(replayed) == site.file(url), url


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_what_was_gzipped_comes_gzipped_or_plain_as_the_reader_likes(site: Site, collection: str) -> None:
    url = f"{site.plain}/page-1.html"
    as_sent = site.pywb.get(collection, url)
    assert as_sent.headers["content-encoding"] == "gzip"
    assert gzip.decompress(as_sent.body) == site.file(url)
    rewritten = site.pywb.get(collection, url, rewritten=True, gzip=False)
    assert "content-encoding" not in rewritten.headers
    assert b"/page-1" in rewritten.body or b"<title>" in rewritten.body


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_redirect_replays_and_leads_to_the_page_that_replays(site: Site, collection: str) -> None:
    for origin in site.origins:
        as_sent = site.pywb.get(collection, f"{origin}/moved")
        assert (as_sent.status, as_sent.headers["location"]) == (302, f"{origin}/page-3.html?from=moved")
        browsed = site.pywb.get(collection, f"{origin}/moved", rewritten=True)
        pywb = f"http://127.0.0.1:{site.pywb.port}/{collection}/mp_/"
        assert (browsed.status, browsed.headers["location"]) == (302, f"{pywb}{origin}/page-3.html?from=moved")
        target = site.pywb.get(collection, as_sent.headers["location"])
        assert plain_body(target) == site.file(f"{origin}/page-3.html")


@pytest.mark.promise("Continuous crawls", "A revisit record refers to the response that holds the content.")
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_revisit_replays_with_its_originals_payload(site: Site, collection: str) -> None:
    revisits = [row["url"] for row in site.rows if row["warc_type"] == "revisit"]
    assert {urlsplit(url).path for url in revisits} & {"/copy.html", "/page-5.html"}
    for url in revisits:
        replayed = site.pywb.get(collection, url)
        assert (replayed.status, plain_body(replayed)) == (200, site.file(url)), url


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_http_2_replays(site: Site, collection: str) -> None:
    url = f"{site.secure}/page-7.html"
    (record,) = [one for one in _records(site) if one.target == url and one.kind == "response"]
    assert record.fields["WARC-Protocol"] == "h2"
    replayed = site.pywb.get(collection, url)
    assert (replayed.status, replayed.body) == (200, site.file(url))
    assert replayed.headers["content-type"] == "text/html"


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_errors_replay_and_what_is_not_there_does_not(site: Site, collection: str) -> None:
    assert site.pywb.get(collection, f"{site.plain}/gone").status == 410
    assert b"not" in site.pywb.get(collection, f"{site.plain}/never-named").body.lower()
    assert site.pywb.get(collection, f"{site.plain}/never-named").status == 404


def test_pages_are_rewritten_for_browsing(site: Site) -> None:
    body = site.pywb.get("ours", f"{site.plain}/", rewritten=True, gzip=False).body.decode()
    assert f"/ours/mp_/{site.plain}/page-4.html" in body


def test_robots_txt_is_in_the_files_though_not_in_the_table(site: Site) -> None:
    """Pywb's own index has it; ours has what the table `pages` has."""
    assert site.pywb.get("theirs", f"{site.plain}/robots.txt").headers["memento-datetime"]
    assert site.pywb.get("ours", f"{site.plain}/robots.txt").status == 404


def test_the_files_are_sound(site: Site) -> None:
    assert strict.faults(_warcs(site)) == []
    check = subprocess.run([tool("warcio"), "check", *_warcs(site)], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr


def test_warcio_finds_every_coding_sound(tmp_path: Path) -> None:
    """Brotli included, which warcio reads in this environment alone."""
    options = SimwebOptions(seed=2, hosts=6, pages=30, behaviours=("bodies",), shares={"bodies": 0.7})
    with SimwebProcess(options, tmp_path / "web") as simweb:
        crawl(simweb.seeds, tmp_path / "crawl", *OWN, hosts=str(simweb.hosts_file), scope="any")
    (path,) = (tmp_path / "crawl/warc").iterdir()
    assert any(b"\r\nContent-Encoding: br\r\n" in one.head for one in strict.read(path) if one.kind == "response")
    check = subprocess.run([tool("warcio"), "check", "-v", path], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr
    assert "digest pass" in check.stdout


def _warcs(site: Site) -> list[Path]:
    return sorted((site.pywb.at.parent / "crawl/warc").iterdir())


def _records(site: Site) -> list[strict.Read]:
    return [record for path in _warcs(site) for record in strict.read(path)]
