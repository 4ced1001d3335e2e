"""A crawlee crawler that follows links: what the league table (benchmarks/league) measures Gossamer beside.

    python benchmarks/peers/crawlee_crawler.py JSON

The argument is what `_script` in league/peers.py writes. `shipped` parses with Parsel, finds links by `enqueue_links`
as its guide does, and keeps its queue and a row for each page in files. `fastest` keeps requests in memory and finds
links by selectolax, past crawlee's own parsing, and stores nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from typing import Any
from urllib.parse import urldefrag, urljoin

from crawlee import ConcurrencySettings, service_locator
from crawlee.configuration import Configuration
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext, ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient
from selectolax.lexbor import LexborHTMLParser

TASK: dict[str, Any] = json.loads(sys.argv[1])
AT_ONCE = 1 if TASK["delay_s"] else TASK["concurrency"]
WITHIN = re.compile(rf"https?://([^/]*\.)?({'|'.join(map(re.escape, TASK['domains']))})(:\d+)?/")
PACE = {"max_tasks_per_minute": 60 / TASK["delay_s"]} if TASK["delay_s"] else {}  # It has no delay by host.
COMMON: dict[str, Any] = {
    "configure_logging": False,
    "respect_robots_txt_file": True,
    "concurrency_settings": ConcurrencySettings(
        desired_concurrency=AT_ONCE, min_concurrency=AT_ONCE, max_concurrency=AT_ONCE, **PACE
    ),
}


async def shipped() -> None:
    service_locator.set_configuration(
        Configuration(storage_dir=TASK["output"], purge_on_start=not TASK["resumed"])  # type: ignore[call-arg]
    )
    crawler = ParselCrawler(**COMMON)

    @crawler.router.default_handler
    async def page(context: ParselCrawlingContext) -> None:
        title = context.selector.css("title::text").get()
        await context.push_data({"url": context.request.loaded_url, "title": title})
        await context.enqueue_links(strategy="all", include=[WITHIN])

    await crawler.run(TASK["seeds"])


async def fastest() -> None:
    crawler, known = HttpCrawler(storage_client=MemoryStorageClient(), **COMMON), set(TASK["seeds"])

    @crawler.router.default_handler
    async def page(context: HttpCrawlingContext) -> None:
        if not context.http_response.headers.get("content-type", "").startswith("text/html"):
            return
        base, new = context.request.url, []
        for anchor in LexborHTMLParser(await context.http_response.read()).css("a[href]"):
            url = urldefrag(urljoin(base, anchor.attributes["href"])).url
            if url not in known and WITHIN.match(url):
                known.add(url)
                new.append(url)
        if new:
            await context.add_requests(new)

    await crawler.run(TASK["seeds"])


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run({"shipped": shipped, "fastest": fastest}[TASK["mode"]]())
