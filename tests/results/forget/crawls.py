"""The crawl that tests of `forget` are about: continuous, with copies, versions, spilled bodies and a search index."""

from __future__ import annotations

import io
import json
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from tests.results.forget.site import Site
from tests.ring.crawls import OWN, Crawled
from tests.ring.crawls import crawl as crawl_of

BATCH = (
    *OWN,
    "search.enabled=true",
    "operator.purpose=['ai-train']",
    "cookies.enabled=true",
    "seen.content_scope='shard'",
    "seen.near_scope='shard'",
    "fetch.body_memory_bytes_max=100_000",
    "logs.level='debug'",
)
AGAIN = (
    *BATCH,
    "crawl.mode='continuous'",
    "revisit.interval_s_mean=0.5",
    "revisit.interval_s_min=0.2",
    "revisit.interval_s_max=1.0",
)


def crawled(site: Site, folder: Path, *sets: str, **options: object) -> Crawled:
    """Crawl the site into `folder/crawl`; forgotten originals are fetched before their copies."""
    seeds = tuple(site.url(name) for name in ("gone.test/", "third.test/", "kept.test/"))
    hosts = str(site.hosts_file(folder))
    return crawl_of(seeds, folder / "crawl", *(sets or BATCH), hosts=hosts, scope="any", **options)


def resumed(directory: Path, *sets: str) -> Crawled:
    """Continue a crawl."""
    return crawl_of((), directory, *sets, resuming=True)


def payloads(directory: Path) -> dict[tuple[str, str], bytes]:
    """Return the payload of each record that the index leads to, by URL and digest."""
    found = {}
    for line in (directory / "index.cdxj").read_bytes().splitlines():
        entry = json.loads(line[line.index(b"{") :])
        data = (directory / "warc" / entry["filename"]).read_bytes()
        record = next(iter(ArchiveIterator(io.BytesIO(data[int(entry["offset"]) :][: int(entry["length"])]))))
        assert record.rec_headers.get_header("WARC-Target-URI") == entry["url"]
        if record.rec_type == "response":
            found[entry["url"], entry["digest"]] = record.content_stream().read()
    return found
