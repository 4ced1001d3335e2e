"""Walks as whole crawls: fetched once, stopped and resumed, and a sample at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer.api import sample_of
from gossamer.api.status import status_of, why_of
from gossamer.assembly.stopped import open_stopped
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.stages.frontier.walked import all_pages
from gossamer.state.epoch import Epochs
from tests.ring.crawls import OWN, crawl, states
from tests.ring.test_seeds import Site, website

PAGES = 40
WALK = ("frontier.strategy=walk", "walk.steps_max=2000", "walk.walkers=4")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Forty pages, each linking to the next three; two of them are copies of one another, and one redirects."""
    with website() as found:
        for number in range(PAGES):
            links = "".join(f'<a href="/{(number + step) % PAGES}">x</a>' for step in (1, 2, 3))
            found.pages[f"http://a.test/{number}"] = f"{number} {links}"
        found.pages["http://a.test/7"] = found.pages["http://a.test/6"] = '<a href="/8">only way on</a>'
        found.pages["http://a.test/"] = (301, "http://a.test:PORT/0")
        (tmp_path / "hosts").write_text("127.0.0.1 a.test\n")
        yield found


def test_a_walk_stops_at_its_limit_is_resumed_and_ends_with_its_steps(site: Site, tmp_path: Path) -> None:
    directory, hosts = tmp_path / "crawl", str(tmp_path / "hosts")
    seeds = (site.url("http://a.test/"),)
    first = crawl(seeds, directory, *OWN, *WALK, hosts=hosts, max_pages=15)
    assert first.end == "limit"
    assert first.status["pages"] == 15
    resumed = crawl((), directory, "limits.max_pages=none", resuming=True)
    assert resumed.end == "finished"
    pages = [path for path in site.asked if not path.endswith("robots.txt")]
    assert len(set(pages)) == len(pages) == PAGES + 1, "all of so small a web, each page once"
    assert status_of(directory)["hosts_left"] == 0
    assert why_of(directory, site.url("http://a.test/8"))["state"] == "fetched"
    opened = open_stopped(reopen(directory / "crawl.toml"), directory)
    links = {page.url.rpartition("/")[2]: len(page.links) for _, page in all_pages(Epochs(opened.store))}
    opened.close()
    assert (links["5"], links["6"], links["7"]) == (3, 1, 1), "a copy is no dead end"
    drawn = sample_of(directory, 10, seed=1)
    assert len({str(page["url"]) for page in drawn}) == 10
    assert drawn == sample_of(directory, 10, seed=1)
    assert site.url("http://a.test/") not in {str(page["url"]) for page in sample_of(directory, 100)}


def test_a_url_that_no_walker_went_to_is_found_but_not_queued(site: Site, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    steps = ("frontier.strategy=walk", "walk.steps_max=3", "walk.walkers=1")
    crawl((site.url("http://a.test/0"),), directory, *OWN, *steps, hosts=str(tmp_path / "hosts"))
    named = {str(row["to_key"]) for row in rows_of_links(directory)}
    ends = set(states(directory, named).values())
    assert "found" in ends
    assert ends <= {"fetched", "found"}, (
        "where the dice has it, the walker begins anew each time and goes to none of them"
    )


def rows_of_links(directory: Path) -> list[dict[str, object]]:
    return [row for file in sorted((directory / "links").glob("*.parquet")) for row in pq.read_table(file).to_pylist()]


def test_a_crawl_that_swept_has_no_sample(site: Site, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    crawl((site.url("http://a.test/0"),), directory, *OWN, hosts=str(tmp_path / "hosts"), max_pages=2)
    with pytest.raises(ConfigError, match=r"frontier\.strategy=walk"):
        sample_of(directory, 5)


@pytest.mark.promise("What is fetched", "A walk does not continue a breadth-first crawl, nor the reverse.")
def test_neither_form_goes_on_with_what_the_other_began(site: Site, tmp_path: Path) -> None:
    """A sweep went on as a walk and fetched its pages again; a walk as a sweep, and ended where walkers had stood."""
    hosts, seeds = str(tmp_path / "hosts"), (site.url("http://a.test/0"),)
    for begun, other, sets in (("sweep", "walk", ()), ("walk", "sweep", WALK)):
        directory = tmp_path / begun
        crawl(seeds, directory, *OWN, *sets, hosts=hosts, max_pages=5)
        before = (directory / "crawl.toml").read_text()
        with pytest.raises(ConfigError, match=f"began with '{begun}' and keeps it"):
            crawl((), directory, f"frontier.strategy={other}", "limits.max_pages=none", resuming=True)
        assert (directory / "crawl.toml").read_text() == before
        assert crawl((), directory, "limits.max_pages=none", resuming=True).end == "finished"
