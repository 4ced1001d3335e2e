"""Pywb serves what is left of a crawl after `gossamer forget`, kept copies too, and nothing of a forgotten page."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.api import forget_of
from tests.acceptance.replay import Pywb
from tests.results.forget.crawls import BATCH, crawled
from tests.results.forget.site import GONE, KEPT, SHARED, Site

pytestmark = pytest.mark.acceptance


@pytest.mark.long
def test_kept_copies_replay_and_forgotten_pages_do_not(tmp_path: Path) -> None:
    site = Site()
    with site.serving():
        crawled(site, tmp_path, *BATCH)
    crawl = tmp_path / "crawl"
    forget_of(crawl, GONE)
    warcs = sorted((crawl / "warc").iterdir())
    pywb = Pywb(tmp_path / "pywb")
    (tmp_path / "pywb").mkdir()
    pywb.indexed("ours", warcs, crawl / "index.cdxj")
    pywb.added("theirs", warcs)
    with pywb:
        for collection in ("ours", "theirs"):
            for name in ("shared.html", "shared-too.html"):
                replayed = pywb.get(collection, site.url(f"{KEPT}/{name}"), gzip=False)
                assert (replayed.status, replayed.body) == (200, SHARED.encode())
            large = pywb.get(collection, site.url(f"{KEPT}/large.bin"), gzip=False)
            assert large.body == site.pages[f"{KEPT}/large.bin"]
            for name in ("", "shared.html", "secret-1.html", "robots.txt"):
                assert pywb.get(collection, site.url(f"{GONE}/{name}"), gzip=False).status == 404
