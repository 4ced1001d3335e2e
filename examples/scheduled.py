"""A crawl as a task of Airflow or Prefect, or of cron: `python scheduled.py crawl`.

A retry of the task continues what the last attempt left; a crawl that has ended is not begun again, so give each run
its own directory, such as `crawl-{{ ds }}`.

Airflow: `task(retries=3)(crawl_site)` with `from airflow.sdk import task`. Prefect: `task(retries=3)(crawl_site)` with
`from prefect import task`. Both run it in a separate process, or in a thread.
"""

import asyncio
import sys

import gossamer


async def crawl(seed: str, directory: str) -> dict[str, int]:
    counts = {"fetched": 0, "failed": 0}
    async with gossamer.Crawler(
        [seed], output=directory, contact="you@example.org", max_time="30m", memory="1GiB", or_resume=True, quiet=True
    ) as crawler:
        async for page in crawler:  # After the commit that holds it: a retry does not see it again.
            counts["fetched" if page.outcome == "fetched" else "failed"] += 1
    return counts


def crawl_site(seed: str, directory: str) -> dict[str, int]:
    """Crawl a site, and return what a scheduler keeps of it: the pages are in the directory."""
    return asyncio.run(crawl(seed, directory))


if __name__ == "__main__":
    print(crawl_site("https://docs.example.org/", sys.argv[1]))
