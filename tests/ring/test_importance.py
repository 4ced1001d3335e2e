"""Pages to which many link are fetched first: the curve of importance against pages fetched (Cho and others 1998)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.ring.crawls import OWN, crawl
from tests.ring.test_seeds import Site, website

PAGES, HOSTS, LINKS = 600, 6, 8
HOT = PAGES // 10
TENTHS = (0.1, 0.2, 0.3, 0.5)


def web(seed: int) -> list[list[int]]:
    """Return a random web: a tree that reaches every page, and links by popularity, which depth says nothing of.

    Half of a page's links go to pages drawn by Zipf's law, the others to any page.
    """
    dice = random.Random(seed)
    popular = list(range(1, PAGES))
    dice.shuffle(popular)
    weights = [1 / rank for rank in range(1, PAGES)]
    links = [[] for _ in range(PAGES)]
    for page in range(1, PAGES):
        links[dice.randrange(max(0, page - 60), page)].append(page)
    for page in range(PAGES):
        links[page] += dice.choices(popular, weights, k=LINKS // 2) + dice.choices(popular, k=LINKS // 2)
    return links


def ranks(links: list[list[int]]) -> np.ndarray:
    """Return the PageRank of each page by solving for it."""
    matrix = np.zeros((len(links), len(links)))
    for page, targets in enumerate(links):
        for target in set(targets):
            matrix[target, page] = 1 / len(set(targets))
    solved = np.linalg.solve(np.eye(len(links)) - 0.85 * matrix, np.full(len(links), 0.15 / len(links)))
    return np.asarray(solved / solved.sum())


def name(page: int) -> str:
    return f"http://h{page % HOSTS}.test/{page}" if page else "http://h0.test/"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with website() as found:
        (tmp_path / "hosts").write_text("".join(f"127.0.0.1 h{number}.test\n" for number in range(HOSTS)))
        yield found


def fetched(site: Site, links: list[list[int]], directory: Path, *sets: str) -> tuple[list[int], dict[str, object]]:
    """Crawl the web and return its pages in the order in which they were requested, and the status at the end."""
    for page, targets in enumerate(links):
        site.pages[name(page)] = "".join(f'<a href="{site.url(name(target))}">x</a>' for target in targets)
    site.asked.clear()
    hosts = str(directory.parent / "hosts")
    limits = ("crawl.concurrency=1", "politeness.per_host=1", "frontier.level_bias=1000", "frontier.window_urls_max=1")
    done = crawl((site.url(name(0)),), directory, *OWN, *limits, *sets, hosts=hosts, scope="any")
    assert done.end == "finished"
    assert done.critical() == ""
    asked = [path.rpartition("/")[2] for path in site.asked if not path.endswith("robots.txt")]
    return [int(number or 0) for number in asked], done.status


def curve(order: list[int], hot: set[int]) -> list[int]:
    """Return how many of the important pages are among the first tenth, fifth, … of the fetched ones."""
    return [len(hot & set(order[: round(share * PAGES)])) for share in TENTHS]


@pytest.mark.heavy
@pytest.mark.promise(
    "Order and fairness", "Ordered by in-links, a crawl finds important pages earlier than breadth-first."
)
@pytest.mark.long
def test_important_pages_come_earlier_than_breadth_first_finds_them(site: Site, tmp_path: Path) -> None:
    links = web(1)
    hot = set(np.argsort(ranks(links))[-HOT:].tolist())
    breadth, _ = fetched(site, links, tmp_path / "breadth")
    ordered, status = fetched(site, links, tmp_path / "ordered", "frontier.priority=in_links")
    assert sorted(breadth) == sorted(ordered) == list(range(PAGES)), "each page once, raised or not"
    assert (status["discovered"], status["queued"], status["pages"]) == (PAGES, 0, PAGES)
    of_breadth, of_ordered = curve(breadth, hot), curve(ordered, hot)
    print("of", HOT, "important pages:", of_breadth, of_ordered)
    assert all(later <= earlier for later, earlier in zip(of_breadth, of_ordered, strict=True))
    assert of_ordered[0] >= 1.5 * of_breadth[0]
    assert of_ordered[1] >= 1.3 * of_breadth[1]
