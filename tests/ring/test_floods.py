"""Floods in whole crawls: their bytes are in the rows and in `limits.max_bytes`, and an interrupt ends them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.stages.fetch.transfer import FRAMING_BYTES_MIN
from tests.ring.crawls import OWN, command_line, crawl, until

INTERRUPT_S_MAX = 100
"""`crawl.stop_s` is 10: what is in flight then is left. Nothing else ends the floods."""


@pytest.fixture(scope="module")
def simweb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimwebProcess]:
    options = SimwebOptions(hosts=2, pages=20, behaviours=("floods",), shares={"floods": 1.0}, bytes_median=2_000)
    with SimwebProcess(options, tmp_path_factory.mktemp("web")) as running:
        yield running


def flood(simweb: SimwebProcess, name: str) -> str:
    host = next(host for host in simweb.web.hosts if "floods" in host.behaviors)
    return f"{simweb.web.front(host)}floods/flood_{name}"


def test_bytes_without_content_are_counted(simweb: SimwebProcess, tmp_path: Path) -> None:
    seeds = (flood(simweb, "extension"), flood(simweb, "folded"))
    crawled = crawl(seeds, tmp_path / "c", *OWN, hosts=str(simweb.hosts_file), scope="prefix")
    assert crawled.critical() == ""
    received = [int(str(row["wire_bytes"])) for row in crawled.rows]
    assert [row["outcome"] for row in crawled.rows] == ["too_large", "too_large"]
    assert all(wire_bytes > FRAMING_BYTES_MIN for wire_bytes in received)
    assert all("bytes received for" in str(row["error"]) for row in crawled.rows)
    assert int(str(crawled.status["wire_bytes"])) > sum(received), "robots.txt counts too"


@pytest.mark.promise("Bounds", "Every byte that a transfer receives is counted and bounded.")
def test_they_reach_the_limit_of_bytes(simweb: SimwebProcess, tmp_path: Path) -> None:
    seeds = (flood(simweb, "extension"), *simweb.web.fronts)
    crawled = crawl(
        seeds, tmp_path / "c", *OWN, f"limits.max_bytes={FRAMING_BYTES_MIN}", "politeness.per_host=1",
        hosts=str(simweb.hosts_file), scope="any",
    )  # fmt: skip
    assert crawled.end == "limit"
    assert int(str(crawled.status["wire_bytes"])) >= FRAMING_BYTES_MIN


def test_robots_txt_is_bounded_and_counted(tmp_path: Path) -> None:
    options = SimwebOptions(hosts=2, pages=4, behaviours=("robots_endless",), shares={"robots_endless": 1.0})
    with SimwebProcess(options, tmp_path / "web") as simweb:
        crawled = crawl(simweb.seeds, tmp_path / "c", *OWN, hosts=str(simweb.hosts_file), scope="any")
    pages = sum(int(str(row["wire_bytes"])) for row in crawled.rows)
    assert int(str(crawled.status["wire_bytes"])) > pages + (5 << 20), "what robots.txt took"


@pytest.mark.heavy
@pytest.mark.long
def test_an_interrupt_ends_a_crawl_beside_floods(simweb: SimwebProcess, tmp_path: Path) -> None:
    host = next(host for host in simweb.web.hosts if "floods" in host.behaviors)
    with command_line(tmp_path / "c") as running:
        running.crawl(
            (flood(simweb, "bytes"), simweb.web.front(host)), "politeness.preset='own'",
            "fetch.body_bytes_max=1000000000", hosts=str(simweb.hosts_file), scope="any",
        )  # fmt: skip
        # Seeds go out together: where the corner was asked for, the flood has begun.
        until(lambda: any(one.path == "/floods/" for one in simweb.requests()))
        assert running.process is not None
        running.process.send_signal(signal.SIGINT)
        assert running.wait(INTERRUPT_S_MAX) == 130
    assert (tmp_path / "c/logs/critical.log").read_text() == ""
