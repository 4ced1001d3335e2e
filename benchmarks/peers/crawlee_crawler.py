"""A crawlee crawler that follows the links of a site and stores nothing: what bench_peers.py measures Gossamer beside.

    python benchmarks/peers/crawlee_crawler.py shipped|fastest SEED…

`shipped` parses with Parsel and finds links by `enqueue_links`, as its guide does. `fastest` keeps requests in memory
and finds links by selectolax, past crawlee's own parsing.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any
from urllib.parse import urldefrag, urljoin

from crawlee import ConcurrencySettings
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext, ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient
from selectolax.lexbor import LexborHTMLParser

SEEDS = sys.argv[2:]
COMMON: dict[str, Any] = {
    "configure_logging": False,
    "concurrency_settings": ConcurrencySettings(desired_concurrency=32, min_concurrency=32, max_concurrency=64),
    "storage_client": MemoryStorageClient(),
}


async def shipped() -> None:
    crawler = ParselCrawler(**COMMON)

    @crawler.router.default_handler
    async def page(context: ParselCrawlingContext) -> None:
        await context.enqueue_links(strategy="same-hostname")

    await crawler.run(SEEDS)


async def fastest() -> None:
    crawler, known = HttpCrawler(**COMMON), set(SEEDS)

    @crawler.router.default_handler
    async def page(context: HttpCrawlingContext) -> None:
        if not context.http_response.headers.get("content-type", "").startswith("text/html"):
            return
        base, new = context.request.url, []
        for anchor in LexborHTMLParser(await context.http_response.read()).css("a[href]"):
            url = urldefrag(urljoin(base, anchor.attributes["href"])).url
            if url not in known and url.startswith(tuple(SEEDS)):
                known.add(url)
                new.append(url)
        if new:
            await context.add_requests(new)

    await crawler.run(SEEDS)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run({"shipped": shipped, "fastest": fastest}[sys.argv[1]]())
