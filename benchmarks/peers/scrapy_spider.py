"""What bench_real_site.py measures Gossamer beside: a Scrapy spider as its users write it, that stores nothing.

python benchmarks/scrapy_spider.py SEED…
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

from scrapy.crawler import CrawlerProcess
from scrapy.http import TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Documentation(CrawlSpider):
    name = "documentation"
    start_urls = sys.argv[1:]
    allowed_domains = list({str(urlsplit(seed).hostname) for seed in start_urls})  # noqa: RUF012 - as Scrapy has it
    rules = (Rule(LinkExtractor(), callback="parse_page", follow=True),)

    def parse_page(self, response: TextResponse) -> Iterator[dict[str, str | None]]:
        yield {"url": response.url, "title": response.css("title::text").get()}


if __name__ == "__main__":
    process = CrawlerProcess({"ROBOTSTXT_OBEY": True, "LOG_ENABLED": False})
    process.crawl(Documentation)
    process.start()
