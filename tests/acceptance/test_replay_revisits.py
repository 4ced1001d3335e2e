"""Pywb serves every version that a continuous crawl saw, also where the server only said that nothing had changed."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gossamer.api.reading import changes
from gossamer.results.export.changes import PageChange
from tests.acceptance.nginx import Nginx
from tests.acceptance.replay import Pywb, tool
from tests.ring.crawls import OWN, command_line, until
from tests.stages.archive import strict

pytestmark = pytest.mark.acceptance

FIRST, SECOND = (
    b"<!doctype html><title>p</title><p>words of the first version</p>",
    (b"<!doctype html><title>p</title><p>the second one says something else</p>"),
)
SETS = (
    *OWN, "revisit.interval_s_mean=1.5", "revisit.interval_s_min=1.2", "revisit.interval_s_max=2.0",
)  # fmt: skip


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A crawl of three pages behind nginx, which gives them tags and dates: one changes, one stays, one is a copy."""
    at = tmp_path_factory.mktemp("revisited")
    root = at / "root"
    root.mkdir()
    (root / "index.html").write_bytes(b'<!doctype html><a href="/changes.html">c</a> <a href="/stays.html">s</a>')
    (root / "changes.html").write_bytes(FIRST)
    (root / "stays.html").write_bytes(FIRST.replace(b"first", b"only"))
    with Nginx(root, at / "nginx") as nginx, command_line(at / "crawl") as running:
        running.crawl((f"{nginx.origin}/",), *SETS, mode="continuous")
        until(lambda: statuses(nginx, "/changes.html") >= Counter({200: 1, 304: 1}))
        until(lambda: statuses(nginx, "/stays.html")[304] > 1)
        (root / "new").write_bytes(SECOND)
        (root / "new").replace(root / "changes.html")  # Whole, for a visit at that moment.
        before = statuses(nginx, "/changes.html")[304]
        until(lambda: statuses(nginx, "/changes.html") >= Counter({200: 2, 304: before + 1}))
        assert running.process is not None
        running.process.terminate()
        assert running.wait() == 130, running.errors.read_text()
    return at, nginx.origin


def statuses(nginx: Nginx, path: str) -> Counter[int]:
    """Return how often a page was answered with each status."""
    return Counter(one.status for one in nginx.log() if one.path == path)


@pytest.mark.long
def test_every_visit_replays_with_the_version_that_stood(lived: tuple[Path, str]) -> None:
    at, origin = lived
    warcs = sorted((at / "crawl/warc").iterdir())
    pywb = Pywb(at / "pywb")
    pywb.indexed("ours", warcs, at / "crawl/index.cdxj")
    pywb.added("theirs", warcs)
    with pywb:
        for page in ("/changes.html", "/stays.html"):
            visits: list[PageChange] = list(changes(at / "crawl", url=origin + page))
            assert {"appeared", "same"} <= {one.change for one in visits}
            assert {one.status for one in visits} == {200, 304}
            stands = b""
            for one in visits:
                if one.change in ("appeared", "changed"):
                    stands = FIRST if one.change == "appeared" else SECOND
                    stands = stands.replace(b"first", b"only") if page == "/stays.html" else stands
                stamp = one.at[:19].translate({ord(mark): None for mark in "-:T"})
                replayed = pywb.get("ours", origin + page, at=stamp, gzip=False)
                assert (replayed.status, replayed.body) == (200, stands), one
                if one.status == 200:  # Of its own index pywb shows a 304 as what it is.
                    replayed = pywb.get("theirs", origin + page, at=stamp, gzip=False)
                    assert (replayed.status, replayed.body) == (200, stands), one


def test_the_files_are_sound(lived: tuple[Path, str]) -> None:
    at, _ = lived
    warcs = sorted((at / "crawl/warc").iterdir())
    assert strict.faults(warcs) == []
    check = subprocess.run([tool("warcio"), "check", *warcs], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr
    kinds = [(one.kind, urlsplit(one.target).path) for path in warcs for one in strict.read(path)]
    assert kinds.count(("response", "/changes.html")) == 2
    assert kinds.count(("response", "/stays.html")) == 1
    assert kinds.count(("revisit", "/stays.html")) >= 2


def test_exports_hold_the_last_version_whatever_the_last_visit_said(lived: tuple[Path, str]) -> None:
    at, _ = lived
    command = [sys.executable, "-m", "gossamer", "export", str(at / "crawl"), "--to", "markdown", "-o", str(at / "md")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    texts = "".join(path.read_text() for path in (at / "md").rglob("*.md"))
    assert "something else" in texts
    assert "only version" in texts
    assert "first version" not in texts


def test_each_line_of_a_wacz_has_the_date_of_its_record(lived: tuple[Path, str]) -> None:
    """As ReplayWeb.page demands: it shows no page for another one."""
    at, _ = lived
    command = [sys.executable, "-m", "gossamer", "export", str(at / "crawl"), "--to", "wacz", "-o", str(at / "x.wacz")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(at / "x.wacz") as package:
        lines = gzip.decompress(package.read("indexes/index.cdx.gz")).decode().splitlines()
        listed = []
        for line in lines:
            _, stamp, fields = line.split(" ", 2)
            place = json.loads(fields)
            begin = int(place["offset"])
            packed = package.read(f"archive/{place['filename']}")[begin : begin + int(place["length"])]
            date = re.search(rb"WARC-Date: (\S+)", gzip.decompress(packed))
            assert date is not None
            assert re.sub(r"\D", "", date[1].decode())[:14] == stamp, line
            listed.append(urlsplit(place["url"]).path)
    assert (listed.count("/changes.html"), listed.count("/stays.html")) == (2, 1)
