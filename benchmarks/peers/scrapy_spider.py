"""A Scrapy spider that follows the links of a site and stores nothing: what bench_peers.py measures Gossamer beside.

    python benchmarks/peers/scrapy_spider.py shipped|fastest SEED…

`shipped` is a CrawlSpider as the tutorial writes it. `fastest` is what we found quickest: uvloop, the aiohttp
handler, no middleware that a crawl of this kind can do without, links by selectolax.
"""

from __future__ import annotations

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

SEEDS = sys.argv[2:]
SHIPPED: dict[str, Any] = {"ROBOTSTXT_OBEY": True, "LOG_ENABLED": False}
HANDLER = "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"
FASTEST: dict[str, Any] = {
    **SHIPPED,
    "TWISTED_REACTOR_ENABLED": False,
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER},
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
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


class AsShipped(CrawlSpider):
    name = "shipped"
    start_urls = SEEDS
    allowed_domains = list({str(urlsplit(seed).hostname) for seed in SEEDS})  # noqa: RUF012 - as Scrapy has it
    rules = (Rule(LinkExtractor(), callback="parse_page", follow=True),)

    def parse_page(self, response: TextResponse) -> Iterator[dict[str, str | None]]:
        yield {"url": response.url, "title": response.css("title::text").get()}


class Fastest(Spider):
    name = "fastest"

    def __init__(self) -> None:
        super().__init__()
        self._known = set(SEEDS)

    async def start(self) -> AsyncIterator[Request]:
        for seed in SEEDS:
            yield Request(seed, dont_filter=True)

    def parse(self, response: Response, **_: Any) -> Iterator[Request]:
        if not response.headers.get("Content-Type", b"").startswith(b"text/html"):
            return
        base = response.url
        for anchor in LexborHTMLParser(response.body).css("a[href]"):
            url = urldefrag(urljoin(base, anchor.attributes["href"])).url
            if url not in self._known and url.startswith(tuple(SEEDS)):
                self._known.add(url)
                yield Request(url, dont_filter=True)


if __name__ == "__main__":
    fastest = sys.argv[1] == "fastest"
    process = AsyncCrawlerProcess(FASTEST) if fastest else CrawlerProcess(SHIPPED)
    process.crawl(Fastest if fastest else AsShipped)
    process.start()
