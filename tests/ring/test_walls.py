"""Answers that are not pages: each ends with an outcome of its own, and nothing of them is content."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from tests.commands import run
from tests.ring.crawls import OWN, Crawled, crawl, rows
from tests.ring.hostile import Answer, HostileServer, whole

WALL = b"<title>Just a moment...</title><script>window._cf_chl_opt={}</script><a href=/never>x</a><p>Wall words"
LINKS = "".join(
    f'<a href="/{name}">x</a>' for name in ("price", "legal", "header", "hidden", "consent", "busy", "free", "staff")
)


def answers() -> dict[str, Answer]:
    wall = whole(WALL)
    packed = whole(
        gzip.compress(b"<p>Access Denied https&#58;&#47;&#47;errors&#46;edgesuite&#46;net&#47;18"), coding="gzip"
    )
    price = (("crawler-price", "USD 0.01"), ("crawler-error", "MissingCrawlerPrice"))
    return {
        "/": whole(f"<title>Home</title>{LINKS}".encode()),
        "/price": whole(b"<title>Pay</title><a href=/never>x</a>")._replace(status=402, headers=price),
        "/legal": whole(b"<title>No</title>")._replace(status=451),
        "/staff": whole(b"<title>401</title>")._replace(status=401, headers=(("WWW-Authenticate", "NTLM"),)),
        "/header": whole(b"<a href=/never>x</a>")._replace(status=403, headers=(("cf-mitigated", "challenge"),)),
        "/hidden": wall,
        "/busy": packed._replace(status=503),
        "/consent": whole(b"<title>Before you continue to Google</title><form action=https://consent.google.com/save>"),
        "/free": whole(b"<title>Free</title>How <pre>window._cf_chl_opt</pre> works"),
    }


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with HostileServer(answers()) as server:
        sets = ("process.text=true", "archive.links=true", "search.enabled=false", "politeness.backoff_s_first=0.2")
        yield crawl((server.root,), tmp_path_factory.mktemp("walls") / "crawl", *OWN, *sets)


def by_path(crawled: Crawled) -> dict[str, dict[str, object]]:
    return {"/" + str(row["url"]).rpartition("/")[2]: row for row in crawled.rows}


@pytest.mark.promise("What is fetched", "A page of bot protection is no content: no text, no links.")
def test_each_answer_has_its_outcome(crawled: Crawled) -> None:
    assert crawled.critical() == ""
    found = by_path(crawled)
    assert {path: row["outcome"] for path, row in found.items()} == {
        "/": "fetched", "/price": "payment_required", "/legal": "legally_blocked", "/header": "challenged",
        "/hidden": "challenged", "/busy": "challenged", "/consent": "fetched", "/free": "fetched",
        "/staff": "http_error",
    }  # fmt: skip
    assert len(crawled.rows) == len(found), "a wall is not tried again"
    walls = {path: row["wall"] for path, row in found.items() if row["wall"]}
    assert walls == {
        "/header": "cloudflare", "/hidden": "cloudflare", "/busy": "akamai", "/consent": "consent:google"
    }  # fmt: skip
    assert found["/hidden"]["title"] == ""
    assert found["/staff"]["error"] == "HTTP 401: it asks for a login with NTLM, which is not supported"
    assert not [row for row in rows(crawled.directory / "links") if str(row["to_url"]).endswith("/never")]


def test_the_exchange_is_archived_and_no_export_has_it_as_a_page(crawled: Crawled, tmp_path: Path) -> None:
    kept = set()
    for file in crawled.directory.glob("warc/*.warc.gz"):
        with file.open("rb") as warc:
            kept |= {
                str(record.headers["WARC-Target-URI"]).rpartition("/")[2]
                for record in ArchiveIterator(warc, record_types=WarcRecordType.response)
            }
    assert {"price", "legal", "header", "hidden", "busy"} <= kept
    status, _, err = run("export", str(crawled.directory), "--to", "markdown", "-o", str(tmp_path / "md"))
    assert status == 0, err
    assert not [path for path in (tmp_path / "md").rglob("*") if path.is_file() and b"Wall words" in path.read_bytes()]


def test_why_status_and_report_name_them(crawled: Crawled) -> None:
    found = by_path(crawled)
    directory = str(crawled.directory)
    why = json.loads(run("why", directory, str(found["/hidden"]["url"]), "--json")[1])
    assert why["state"] == "challenged"
    assert "bot protection (cloudflare)" in why["reason"]
    priced = json.loads(run("why", directory, str(found["/price"]["url"]), "--json")[1])
    assert priced["reason"] == "HTTP 402: crawler-price: USD 0.01; crawler-error: MissingCrawlerPrice"
    assert crawled.status["outcomes"]["challenged"] == 3  # type: ignore[index]
    report = run("report", directory)[1]
    for outcome in ("challenged", "payment_required", "legally_blocked"):
        assert outcome in report


@pytest.mark.promise("Politeness", "A price is recorded and never paid: no request offers a payment.")
def test_an_offer_is_kept_and_not_taken(crawled: Crawled) -> None:
    row = by_path(crawled)["/price"]
    assert row["offer"] == "crawler-price: USD 0.01; crawler-error: MissingCrawlerPrice"
    for file in crawled.directory.glob("warc/*.warc.gz"):
        with file.open("rb") as warc:
            for record in ArchiveIterator(warc, record_types=WarcRecordType.request):
                assert b"crawler-" not in record.reader.read().lower()


@pytest.mark.promise(
    "Politeness", "A host whose bot protection answers is left alone for longer each time, then closed."
)
def test_a_host_that_answers_with_walls_only_is_closed(tmp_path: Path) -> None:
    pages = {f"/{n}": whole(WALL) for n in range(20)}
    home = whole("".join(f'<a href="/{n}">x</a>' for n in range(20)).encode())
    with HostileServer({"/": home, **pages}) as server:
        sets = ("politeness.per_host=1", "politeness.backoff_s_first=0.01", "politeness.backoff_s_max=0.02")
        made = crawl((server.root,), tmp_path / "crawl", *OWN, *sets)
        assert server.counts.total() == 2 + 8, "robots.txt, the page, and as many walls as it takes"
        outcomes = [str(row["outcome"]) for row in made.rows]
        assert outcomes.count("challenged") == 8
        url = next(server.root + str(n) for n in range(20) if not server.counts[f"/{n}"])
        assert "answered 8 requests in a row" in run("why", str(made.directory), url)[1]
