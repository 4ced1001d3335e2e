"""Rounds of fetching and building, to exhaustion, end with what a live crawl of the same web ends with."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.config.gather import reopen
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.results.offline.build import SegmentOrder, build
from tests.ring.crawls import OWN, Crawled, crawl

pytestmark = pytest.mark.promise(
    "Offline crawls", "Rounds of fetching and building end with the pages and links of a live crawl, also after kills."
)

ROUNDS_MAX = 40
PLAIN = SimwebOptions.plain(seed=5, hosts=4, pages=60, links_per_page=8)
ODD = SimwebOptions(
    seed=5, hosts=8, pages=60, retry_after_s=1, oversized_bytes=1_500_000, bomb_bytes=2_000_000, links_per_page=12,
    behaviours=(
        "robots_404", "robots_part", "robots_named", "robots_redirect_host", "redirects", "errors", "copies",
        "nofollow", "frames", "distinct",
    ),
)  # fmt: skip


def rounds(seeds: tuple[str, ...], directory: Path, *sets: str, **options: object) -> list[Crawled]:
    """Fetch and build until there is nothing new, in directories of their own, and return the crawls."""
    directory.mkdir()
    (directory / "seeds.txt").write_text("".join(f"{seed}\n" for seed in seeds))
    first = {"seeds": str(directory / "seeds.txt"), "scope": options["scope"]}
    order = SegmentOrder((), directory / "0.parquet", directory / "known", options=first)
    crawls: list[Crawled] = []
    while build(order).urls:
        number = len(crawls)
        assert number < ROUNDS_MAX
        crawled = crawl(
            (str(order.target),), directory / str(number), *sets, mode="offline", hosts_store=str(directory / "hosts"),
            **options,
        )  # fmt: skip
        assert crawled.end == "finished"
        crawls.append(crawled)
        order = SegmentOrder((crawled.directory,), directory / f"{number + 1}.parquet", directory / "known")
    return crawls


@pytest.mark.heavy
@pytest.mark.parametrize("web", [PLAIN, pytest.param(ODD, marks=pytest.mark.acceptance)], ids=["plain", "odd"])
@pytest.mark.long
def test_rounds_to_exhaustion_fetch_what_a_live_crawl_does(web: SimwebOptions, tmp_path: Path) -> None:
    with SimwebProcess(web, tmp_path / "web") as simweb:
        given = {"hosts": str(simweb.hosts_file), "scope": "any"}
        live = crawl(simweb.seeds, tmp_path / "live", *OWN, **given)
        crawls = rounds(simweb.seeds, tmp_path / "rounds", *OWN, **given)
        robots = [one for one in simweb.requests() if one.path == "/robots.txt"]
    assert len(crawls) > 2
    found: dict[str, str] = {}
    for crawled in crawls:
        assert not found.keys() & crawled.outcomes.keys(), "no page is fetched in two rounds"
        found |= crawled.outcomes
    assert found == live.outcomes
    assert set.union(*(crawled.links for crawled in crawls)) == live.links
    if web is PLAIN:
        assert len(robots) == 2 * web.hosts, "robots.txt is asked for once in all rounds"
    depths = {str(row["key"]): row["depth"] for crawled in crawls for row in crawled.rows}
    assert all(depths[str(row["key"])] <= row["depth"] for row in live.rows), "breadth first finds the shortest way"
    assert reopen(crawls[-1].directory / "crawl.toml").crawl.mode == "offline"
