"""Queued URLs that are forgotten leave their host's queue; the others keep their place, and all is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.api import forget_of, status_of, verify_of
from gossamer.assembly.home import Home
from gossamer.assembly.integrity import open_store
from gossamer.config.gather import reopen
from gossamer.stages.frontier.record import decode_block, decode_entry, decode_record
from gossamer.state.schema import PARTITIONED
from tests.crash.site import Site, linked
from tests.further import with_further
from tests.ring.crawls import OWN, crawl, rows

PAGES = 400
EVEN = r"page-\d*[02468]\.html"


def queued(directory: Path) -> list[str]:
    """Return the addresses in all queues."""
    store = open_store(reopen(directory / "crawl.toml"), Home(directory))
    try:
        [record] = [decode_record(data) for _, data in store.scan("host", *PARTITIONED)]
        blocks = [(key[-9], decode_block(data)) for key, data in store.scan("queue", *PARTITIONED)]
        texts = [
            text
            for level, block in blocks
            for number, text in enumerate((text for run in block.runs for text in run.urls), block.first)
            if not record.levels[level].is_finished(number)
        ]
        assert sum(queue.pending for queue in record.levels.values()) == len(texts)
        assert record.other == len(texts), "all name a port"
        texts += [decode_entry(data).url for _, data in store.scan("due", *PARTITIONED)]
        assert record.urls_queued == len(texts)
    finally:
        store.close()
    return texts


@pytest.mark.heavy
@pytest.mark.parametrize("form", with_further("rocksdb", "memory"))
def test_a_queue_is_thinned_and_the_rest_is_fetched_once(tmp_path: Path, form: str) -> None:
    site = Site(linked({}, PAGES))
    directory = tmp_path / "crawl"
    with site.serving():
        crawl((site.url("/"),), directory, *OWN, f"seen.backend='{form}'", max_pages=30)
        before, fetched = queued(directory), set(site.asked)
        assert len(before) > 300
        status = status_of(directory)
        forget_of(directory, EVEN)
        odd = [text for text in before if int(text.rpartition("-")[2].removesuffix(".html")) % 2]
        assert sorted(queued(directory)) == sorted(odd)
        now = status_of(directory)
        for name in ("queued", "discovered"):
            assert int(str(status[name])) - int(str(now[name])) == len(before) - len(odd)
        assert crawl((), directory, "limits.max_pages=none", resuming=True).end == "finished"
    later = {path for path in site.asked if path not in fetched}
    assert later == {text.removeprefix(site.root) for text in odd}
    assert {count for path, count in site.asked.items() if path.startswith("/page")} == {1}
    assert {
        int(str(row["url"]).rpartition("-")[2].removesuffix(".html")) % 2 for row in rows(directory / "pages")[1:]
    } == {1}
    assert status_of(directory)["queued"] == 0
    assert verify_of(directory, deep=True).damages == 0


def test_a_host_with_nothing_left_has_no_work(tmp_path: Path) -> None:
    site = Site(linked({}, 100))
    with site.serving():
        crawl((site.url("/"),), tmp_path / "crawl", *OWN, max_pages=10)
        forget_of(tmp_path / "crawl", "/page-", reason="all but the front page")
        assert queued(tmp_path / "crawl") == []
        site.asked.clear()
        assert crawl((), tmp_path / "crawl", "limits.max_pages=none", resuming=True).end == "finished"
    assert not site.asked
    assert len(rows(tmp_path / "crawl/pages")) == 1
