"""A documentation site, archived in part by another crawler, is imported and completed; no page is fetched twice."""

from __future__ import annotations

import base64
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord

from tests.acceptance.conftest import Crawl
from tests.acceptance.nginx import Nginx
from tests.acceptance.replay import Pywb
from tests.acceptance.test_real_site import ROOT
from tests.results.imports.archives import Stored, packed, record, rows, site, write_wacz

pytestmark = pytest.mark.acceptance

OWN = ("--allow-private", "--politeness", "own")
PAGES_MIN = 50
"""In the archive; the site has 527."""


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    with Nginx(ROOT, tmp_path_factory.mktemp("site") / "nginx") as server:
        yield server


@pytest.fixture(scope="module")
def alone(nginx: Nginx, command: Crawl, tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """Return the paths that a crawl by Gossamer alone requests."""
    before = len(nginx.log())
    end = command("crawl", f"{nginx.origin}/", "-o", tmp_path_factory.mktemp("alone") / "crawl", *OWN)
    assert end.returncode == 0, end.stderr
    return frozenset(request.path for request in nginx.log()[before:])


def archive(by: str, origin: str, folder: Path, command: Crawl) -> Path:
    """Archive a part of a site; return the file."""
    if by == "gossamer":
        end = command("archive", f"{origin}/", "-o", folder / "own", "--max-pages", "150", *OWN)
        assert end.returncode == 0, end.stderr
        return folder / "own.wacz"
    options = ["--mirror", "--page-requisites", "--compression=none", "--quota=15m", "--warc-file=site"]
    subprocess.run(["wget", "-q", *options, "--delete-after", f"{origin}/"], cwd=folder, check=True, timeout=120)
    return AS_WRITTEN.get(by, as_it_is)(folder / "site.warc.gz", f"{origin}/")


def as_it_is(path: Path, seed: str) -> Path:
    return path


def replies(path: Path) -> Iterator[ArcWarcRecord]:
    """Yield what a browser would record: no robots.txt."""
    with path.open("rb") as file:
        for one in ArchiveIterator(file):
            if one.rec_type == "response" and not url_of(one).endswith("/robots.txt"):
                yield one


def url_of(one: ArcWarcRecord) -> str:
    return str(one.rec_headers.get_header("WARC-Target-URI")).strip("<>")


def as_wacz(path: Path, seed: str) -> Path:
    """Return a package as Browsertrix Crawler makes it: pages are listed, and have records with addresses of URNs."""
    records = []
    pages: list[dict[str, object]] = [{"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}]
    for one in replies(path):
        url = url_of(one)
        date = one.rec_headers.get_header("WARC-Date")
        head = one.http_headers.to_str().partition("\r\n")[2]
        records.append(Stored(url, one.raw_stream.read(), date, headers=head, status=one.http_headers.statusline))
        if "text/html" in head:
            records.append(Stored(f"urn:pageinfo:{url}", b"{}", date, kind="resource"))
            pages.append({"url": url, "ts": date, "depth": int(url != seed), "seed": url == seed})
    listed = "\n".join(map(json.dumps, pages)).encode()
    return write_wacz(path.with_name("a.wacz"), archive__rec_warc_gz=packed(records), pages__pages_jsonl=listed)


def as_har(path: Path, seed: str) -> Path:
    """Return a file as browsers save it."""
    entries = []
    for one in replies(path):
        headers = [{"name": name, "value": value} for name, value in one.http_headers.headers]
        content = {"encoding": "base64", "text": base64.b64encode(one.content_stream().read()).decode()}
        response = {"status": int(one.http_headers.get_statuscode()), "headers": headers, "content": content}
        request = {"method": "GET", "url": url_of(one)}
        date = one.rec_headers.get_header("WARC-Date")
        entries.append({"startedDateTime": date, "request": request, "response": response})
    har = path.with_name("a.har")
    har.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    return har


AS_WRITTEN = {"browsertrix": as_wacz, "har": as_har}
"""By what writes the archive, how it is made of one of wget."""


@pytest.mark.promise("Files and exports", "An import is completed by a resume: nothing it holds is fetched again.")
@pytest.mark.parametrize("by", ["wget", "gossamer", "browsertrix", "har"])
@pytest.mark.long
def test_an_import_is_completed(nginx: Nginx, alone: frozenset[str], command: Crawl, tmp_path: Path, by: str) -> None:
    start = len(nginx.log())
    source = archive(by, nginx.origin, tmp_path, command)
    middle = len(nginx.log())
    before = {request.path for request in nginx.log()[start:middle]}
    if by in AS_WRITTEN:
        before.discard("/robots.txt")  # It is not in the archive, and is fetched first.
    assert len(before & alone) >= PAGES_MIN
    assert alone - before
    directory = tmp_path / "crawl"
    end = command("import", source, "-o", directory, "--allow-private")
    assert end.returncode == 0, end.stderr
    assert "gossamer resume" in end.stdout
    assert command("search", directory, "--build").returncode == 0
    assert "tutorial" in command("search", directory, "tutorial").stdout
    assert f"{nginx.origin}/" in command("report", directory).stdout
    markdown = command(
        "export", directory, "--to", "markdown", "-o", tmp_path / "md", "--where", f"url = '{nginx.origin}/'"
    )
    assert markdown.returncode == 0, markdown.stderr
    assert "Python" in "".join(path.read_text() for path in (tmp_path / "md").rglob("*.md"))
    assert nginx.log()[middle:] == []
    end = command("resume", directory, "--politeness", "own")
    assert end.returncode == 0, end.stderr
    after = Counter(request.path for request in nginx.log()[middle:])
    assert alone <= before | set(after)
    assert not [path for path, times in after.items() if times > 1 or path in before]
    assert set(after) <= alone
    pages = Counter(url for (url,) in rows(directory, "url"))
    assert [url for url, times in pages.items() if times > 1] == []
    verified = command("verify", directory, "--deep")
    assert verified.returncode == 0, verified.stdout
    pending = command("status", directory)
    assert "queued       0" in pending.stdout


@pytest.mark.parametrize("by", ["wget", "browsertrix", "har"])
def test_validators_of_captures_are_used(command: Crawl, tmp_path: Path, by: str) -> None:
    """With revisits, a page that was imported is requested with its ETag, and the server has nothing new."""
    site = tmp_path / "site"
    site.mkdir()
    for number in range(4):
        (site / f"{number}.html").write_text(f"<title>{number}</title><a href={number + 1}.html>next</a>")
    with Nginx(site, tmp_path / "nginx") as nginx:
        options = ["--mirror", "--level=2", "--warc-file=site", "--delete-after"]
        subprocess.run(["wget", "-q", *options, f"{nginx.origin}/0.html"], cwd=tmp_path, check=True, timeout=60)
        start = len(nginx.log())
        intervals = ("revisit.interval_s_mean=1.0", "revisit.interval_s_min=0.5", "revisit.interval_s_max=2.0")
        sets = [word for one in intervals for word in ("--set", one)]
        warc = AS_WRITTEN.get(by, as_it_is)(tmp_path / "site.warc.gz", f"{nginx.origin}/0.html")
        crawl = tmp_path / "crawl"
        end = command("import", warc, "-o", crawl, "--allow-private", "--mode", "continuous", *sets)
        assert end.returncode == 0, end.stderr
        end = command("resume", crawl, "--politeness", "own", "--max-time", "6")
        assert end.returncode == 0, end.stderr
        answers = Counter((request.path, request.status) for request in nginx.log()[start:])
    assert {path for path, status in answers if status == 200} == {"/3.html"}
    assert {path for path, status in answers if status == 304} >= {"/0.html", "/1.html", "/2.html"}


@pytest.mark.promise("Files and exports", "Other tools read and replay the WARC files.")
def test_pywb_replays_archives_where_they_are(command: Crawl, tmp_path: Path) -> None:
    """By the index of the crawl, from a WACZ (a packed archive and a plain one) and a plain WARC file."""
    records = site(8)
    files = {"archive__x_warc_gz": packed(records[:3]), "archive__y_warc": b"".join(map(record, records[3:5]))}
    package = write_wacz(tmp_path / "a.wacz", **files)
    plain = tmp_path / "b.warc"
    plain.write_bytes(b"".join(map(record, records[5:])))
    directory = tmp_path / "crawl"
    end = command("import", package, plain, "-o", directory)
    assert end.returncode == 0, end.stderr
    (tmp_path / "pywb").mkdir()
    pywb = Pywb(tmp_path / "pywb")
    pywb.indexed("linked", sorted((directory / "warc").iterdir()), directory / "index.cdxj")
    with pywb:
        for one in records:
            replayed = pywb.get("linked", one.url)
            assert (replayed.status, replayed.body) == (200, one.body), one.url
