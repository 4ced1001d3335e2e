"""Budgets in whole crawls: what people are told, and that nothing is lost over a limit, a resume and the rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.api.status import status_of, why_of
from gossamer.cli.main import status_of_command
from tests.ring.crawls import OWN, crawl
from tests.ring.test_seeds import Site, website

SMALL = [f"h{number}.test" for number in range(3)]
LARGE_PAGES, SMALL_PAGES, BUDGET = 24, 4, 5


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with website() as found:
        for host, pages in [("large.test", LARGE_PAGES), *((host, SMALL_PAGES) for host in SMALL)]:
            found.pages[f"http://{host}/"] = "".join(f'<a href="/{number}">x</a>' for number in range(1, pages))
            found.pages |= {f"http://{host}/{number}": "page" for number in range(1, pages)}
        (tmp_path / "hosts").write_text("127.0.0.1 large.test " + " ".join(SMALL) + "\n")
        yield found


@pytest.mark.heavy
def test_status_and_why_show_the_budgets_and_a_resumed_crawl_goes_on_with_its_round(site: Site, tmp_path: Path) -> None:
    seeds = tuple(site.url(f"http://{host}/") for host in ["large.test", *SMALL])
    directory = tmp_path / "crawl"
    budget = ("politeness.per_host=1", f"budget.host_pages={BUDGET}", "crawl.concurrency=1")
    first = len(SMALL) * SMALL_PAGES + BUDGET - 1
    stopped = crawl(seeds, directory, *OWN, *budget, hosts=str(tmp_path / "hosts"), max_pages=first)
    assert stopped.end == "limit"
    assert Counter(row["host"] for row in stopped.rows)["large.test"] <= BUDGET
    assert status_of(directory)["budget_round"] == 1
    finished = crawl((), directory, "limits.max_pages=none", resuming=True)
    assert finished.end == "finished"
    assert Counter(row["host"] for row in finished.rows) == {"large.test": LARGE_PAGES} | dict.fromkeys(SMALL, 4)
    assert len(set(site.asked)) == len(site.asked), "nothing is fetched twice"
    assert finished.status["budget_round"] == -(-LARGE_PAGES // BUDGET)
    assert finished.status["hosts_deferred"] == finished.status["hosts_left"] == 0


@pytest.mark.heavy
def test_why_status_and_report_tell_of_who_waits_for_the_next_round(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The large host alone has a budget of one page, so it is deferred while the others go on slowly."""
    seeds = tuple(site.url(f"http://{host}/") for host in ["large.test", *SMALL])
    directory = tmp_path / "crawl"
    sets = ("politeness.per_host=1", "budget.overrides={'large.test'={pages=1}}", "crawl.concurrency=1")
    crawl(seeds, directory, *OWN, *sets, hosts=str(tmp_path / "hosts"), max_pages=len(SMALL) * SMALL_PAGES)
    told = why_of(directory, site.url("http://large.test/3"))
    assert told["state"] == "deferred"
    assert told["rule"] == "budget"
    assert told["reason"] == "its host has used up its 1 page; it waits for the next budget round"
    status = status_of(directory)
    assert (status["budget_round"], status["hosts_deferred"]) == (1, 1)
    for command in ("status", "report"):
        capsys.readouterr()
        assert status_of_command([command, str(directory)]) == 0
        assert "round 1, 1 host waits for the next" in capsys.readouterr().out


@pytest.mark.heavy
@pytest.mark.promise("Order and fairness", "No URL is lost when budgets are used up, change or are removed.")
def test_who_waits_for_a_round_comes_when_the_budgets_are_taken_away(site: Site, tmp_path: Path) -> None:
    """It once did not: the resumed crawl stopped with its URLs in the queue, and so did every one after it."""
    seeds = tuple(site.url(f"http://{host}/") for host in ["large.test", *SMALL])
    directory = tmp_path / "crawl"
    sets = ("politeness.per_host=1", "budget.overrides={'large.test'={pages=1}}", "crawl.concurrency=1")
    crawl(seeds, directory, *OWN, *sets, hosts=str(tmp_path / "hosts"), max_pages=len(SMALL) * SMALL_PAGES)
    finished = crawl((), directory, "budget.overrides={}", "limits.max_pages=none", resuming=True)
    assert finished.end == "finished"
    assert Counter(row["host"] for row in finished.rows) == {"large.test": LARGE_PAGES} | dict.fromkeys(SMALL, 4)
