"""Print which prices changed since the last run: `python price_watch.py`, for example from cron.

Each run is a crawl of its own, and `prices.json` keeps what the last one saw. For a process that keeps running see
`gossamer watch`.
"""

import asyncio
import json
import time
from pathlib import Path

from gossamer import Crawler

KNOWN = Path("prices.json")


async def prices():
    """Return the price on each offer's page, by URL."""
    found = {}
    output = f"prices-{time.strftime('%Y%m%d-%H%M%S')}"
    async with Crawler(
        "https://docs.example.org/", include=["/offers/"], contact="you@example.org", output=output
    ) as crawler:
        async for page in crawler:
            if page.outcome == "fetched" and (price := page.css(".price").text):
                found[page.url] = float(price)
    return found


before = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
now = asyncio.run(prices())
for url, price in sorted(now.items()):
    if before.get(url) != price:
        print(url, before.get(url, "new"), "->", price)
KNOWN.write_text(json.dumps(now, indent=1))
