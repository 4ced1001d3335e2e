"""One crawl of four processes: `python cluster_crawl.py`. Sites are divided among them."""

import asyncio

from gossamer.api import ClusterCrawler

WORKERS = 4

crawler = ClusterCrawler(
    ["https://docs.example.org/", "https://www.example.net/"],
    scope="domain",
    contact="you@example.org",
    output="cluster",
    workers=WORKERS,
    max_pages=1000,
)
print("The crawl ended:", asyncio.run(crawler.run()))
status = crawler.status()
print(status["pages"], "pages,", *(f"shard {one['shard']}: {one['pages']}" for one in status["shards"]))
