"""Crawl towards a topic: `python focused_crawl.py`.

What a page links to is as urgent as the page is close to the topic, so that a crawl of limited length sees the pages
that matter first. The pages are then in the table `items/topic` with their score.
"""

import asyncio

from gossamer import Crawler, Follow, extractor

WORDS = ("archive", "warc", "replay")
PAGES_MAX = 500


@extractor("topic", columns={"title": "text", "score": "float"})
def topic(page):
    text = page.text.lower()
    score = sum(text.count(word) for word in WORDS) / (1 + len(text.split()))
    if score > 0.01:
        yield {"title": page.css("title").text, "score": score}
    for url in page.css("a").urls:
        yield Follow(url, priority=0 if score > 0.01 else 4)


async def main():
    settings = {
        "process.types": {"text/html": ["title_and_text"]},  # Without the module `links`: `topic` follows them.
        "process.modules": [f"{__file__}:topic"],
        "frontier.level_bias": 8.0,  # How much more often an urgent URL is taken.
    }
    async with Crawler(
        "https://docs.example.org/",
        scope="domain",
        contact="you@example.org",
        output="topic",
        max_pages=PAGES_MAX,
        settings=settings,
    ) as crawler:
        async for page in crawler:
            print(page.url, page.title)


if __name__ == "__main__":
    asyncio.run(main())
