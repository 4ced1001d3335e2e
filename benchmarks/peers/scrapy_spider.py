"""A Scrapy spider that follows links: what the league table (benchmarks/league) measures Gossamer beside.

    python benchmarks/peers/scrapy_spider.py JSON

The argument is what `_script` in league/peers.py writes. `shipped` is a CrawlSpider as the tutorial writes it, with a
row for each page. `fastest` is what we found quickest: uvloop, the aiohttp handler, no middleware that a crawl of this
kind can do without, links by selectolax, nothing stored.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule
from selectolax.lexbor import LexborHTMLParser

TASK: dict[str, Any] = json.loads(sys.argv[1])
SHIPPED: dict[str, Any] = {
    "ROBOTSTXT_OBEY": True,
    "LOG_ENABLED": False,
    "CONCURRENT_REQUESTS": TASK["concurrency"],
    "CONCURRENT_REQUESTS_PER_DOMAIN": TASK["per_host"],
    "DOWNLOAD_DELAY": TASK["delay_s"],
    "RANDOMIZE_DOWNLOAD_DELAY": False,
    "FEEDS": {f"{TASK['output']}/items.jsonl": {"format": "jsonlines"}},
    **({"JOBDIR": f"{TASK['output']}/job"} if TASK["resumable"] else {}),
}
HANDLER = "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"
FASTEST: dict[str, Any] = {
    **SHIPPED,
    "TWISTED_REACTOR_ENABLED": False,
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER},
    "FEEDS": {},
    "COOKIES_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "MEMUSAGE_ENABLED": False,
    "DOWNLOADER_MIDDLEWARES": {
        f"scrapy.downloadermiddlewares.{name}": None
        for name in (
            "httpauth.HttpAuthMiddleware", "redirect.MetaRefreshMiddleware", "httpproxy.HttpProxyMiddleware",
            "offsite.OffsiteMiddleware", "downloadtimeout.DownloadTimeoutMiddleware",
        )
    },
    "SPIDER_MIDDLEWARES": {
        f"scrapy.spidermiddlewares.{name}": None
        for name in ("referer.RefererMiddleware", "urllength.UrlLengthMiddleware", "depth.DepthMiddleware")
    },
    "EXTENSIONS": {f"scrapy.extensions.{name}": None for name in ("logstats.LogStats", "corestats.CoreStats")},
}  # fmt: skip


WITHIN = tuple(f".{one}" for one in TASK["domains"])


class AsShipped(CrawlSpider):
    name = "shipped"
    start_urls = TASK["seeds"]
    allowed_domains = TASK["domains"]
    rules = (Rule(LinkExtractor(), callback="parse_page", follow=True),)

    def parse_page(self, response: Response) -> Iterator[dict[str, str | None]]:
        if isinstance(response, TextResponse):
            yield {"url": response.url, "title": response.css("title::text").get()}

    parse_start_url = parse_page


class Fastest(Spider):
    name = "fastest"

    def __init__(self) -> None:
        super().__init__()
        self._known = set(TASK["seeds"])

    async def start(self) -> AsyncIterator[Request]:
        for seed in TASK["seeds"]:
            yield Request(seed, dont_filter=True)

    def parse(self, response: Response, **_: Any) -> Iterator[Request]:
        if not response.headers.get("Content-Type", b"").startswith(b"text/html"):
            return
        base = response.url
        for anchor in LexborHTMLParser(response.body).css("a[href]"):
            url = urldefrag(urljoin(base, anchor.attributes["href"])).url
            if url not in self._known and f".{urlsplit(url).hostname}".endswith(WITHIN):
                self._known.add(url)
                yield Request(url, dont_filter=True)


if __name__ == "__main__":
    fastest = TASK["mode"] == "fastest"
    process = AsyncCrawlerProcess(FASTEST) if fastest else CrawlerProcess(SHIPPED)
    process.crawl(Fastest if fastest else AsShipped)
    process.start()
