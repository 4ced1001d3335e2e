"""The hosts store: what one crawl learned of a host, the next one knows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from rocksdict import AccessType, Rdict

import gossamer
from gossamer.assembly.kept import HostsKept
from gossamer.model.errors import ConfigError
from gossamer.state.schema import HOSTS_VERSION
from gossamer.state.store import HostsStore, store_options
from tests.ring.crawls import OWN, Crawled, crawl, until
from tests.ring.test_seeds import Site, website

pytestmark = pytest.mark.promise(
    "Politeness",
    "What a crawl learns of a host, the next crawl that uses the same hosts store knows, also after a crash.",
)

DELAY_S = 1.0
POLITE = (*OWN, f"politeness.delay_s_min={DELAY_S}", "politeness.per_host=1")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with website() as found:
        for host in ("a.test", "b.test"):
            found.pages |= {f"http://{host}/{number}": "page" for number in range(6)}
        (tmp_path / "hosts").write_text("127.0.0.1 a.test b.test\n127.0.0.9 gone.test\n")
        yield found


def crawled(site: Site, tmp_path: Path, name: str, *texts: str, sets: tuple[str, ...] = OWN) -> Crawled:
    """Fetch these pages and no others, with the hosts store of this test."""
    mode = "crawl.mode='offline'"
    return crawl(
        tuple(site.url(text) for text in texts), tmp_path / name, *sets, mode, hosts=str(tmp_path / "hosts"),
        hosts_store=str(tmp_path / "store"),
    )  # fmt: skip


def asked_for_robots(site: Site) -> int:
    return sum(url.endswith("/robots.txt") for url in site.asked)


def started_at(row: dict[str, object]) -> float:
    at = row["fetched_at"]
    assert isinstance(at, datetime)
    return at.timestamp()


def ended_at(row: dict[str, object]) -> float:
    took_s = row["fetch_s"]
    assert isinstance(took_s, float)
    return started_at(row) + took_s


def test_robots_txt_is_not_asked_for_again_before_its_time(site: Site, tmp_path: Path) -> None:
    site.pages["http://a.test/robots.txt"] = "User-agent: *\nDisallow: /1"
    crawled(site, tmp_path, "one", "http://a.test/0")
    second = crawled(site, tmp_path, "two", "http://a.test/1", "http://a.test/2")
    assert asked_for_robots(site) == 1
    assert second.outcomes == {site.url("http://a.test/1"): "robots_denied", site.url("http://a.test/2"): "fetched"}


def test_robots_txt_is_asked_for_again_when_it_is_too_old(site: Site, tmp_path: Path) -> None:
    """The age goes with it: 24 hours in earnest."""
    short = (*OWN, "robots.ttl_s=0.01", "robots.ttl_s_min=0.01", "robots.ttl_s_max=0.01")
    crawled(site, tmp_path, "one", "http://a.test/0", sets=short)
    before = asked_for_robots(site)  # By a busy machine more than once.
    site.pages["http://a.test/robots.txt"] = "User-agent: *\nDisallow: /"
    second = crawled(site, tmp_path, "two", "http://a.test/1")
    assert asked_for_robots(site) == before + 1
    assert list(second.outcomes.values()) == ["robots_denied"]


def test_a_crawl_that_begins_right_after_another_waits(site: Site, tmp_path: Path) -> None:
    delay_s = 4.0
    polite = (*OWN, f"politeness.delay_s_min={delay_s}", "politeness.per_host=1", "robots.obey=false")
    first = crawled(site, tmp_path, "one", "http://a.test/0", sets=polite)
    second = crawled(site, tmp_path, "two", "http://a.test/1", "http://b.test/1", sets=polite)
    rows = {str(row["host"]): row for row in second.rows}
    assert started_at(rows["a.test"]) - ended_at(first.rows[-1]) >= delay_s
    assert started_at(rows["b.test"]) < started_at(rows["a.test"]), "and no other host does"


def test_contacts_that_no_commit_holds_are_known_to_the_next_crawl(site: Site, tmp_path: Path) -> None:
    """The first crawl is killed before it has committed what it did; another one begins, somewhere else."""
    delay_s = 4.0
    lasting = (*OWN, f"politeness.delay_s_min={delay_s}", "politeness.per_host=1", "crawl.commit_s=600.0")
    sets = [part for text in lasting for part in ("--set", text)]
    arguments = ["crawl", site.url("http://a.test/0"), "--mode", "offline", "--no-robots", *sets]
    arguments += ["-o", str(tmp_path / "one"), "--hosts", str(tmp_path / "hosts"), "--allow-private"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gossamer", *arguments, "--hosts-store", str(tmp_path / "store"), "--quiet"],
        env={**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parents[1])}, stdout=subprocess.DEVNULL,
        process_group=0,
    )  # fmt: skip
    try:
        until(lambda: site.asked)
        asked_at = time.time()
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()  # The supervisor first, so that nobody starts it again.
        for child in listed:
            os.kill(int(child), signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    polite = (*OWN, f"politeness.delay_s_min={delay_s}", "politeness.per_host=1", "robots.obey=false")
    second = crawled(site, tmp_path, "two", "http://a.test/1", sets=polite)
    # It was killed a moment after its request: the rest counts from when that is known to be over.
    assert started_at(second.rows[0]) - asked_at >= delay_s - 0.1


def test_a_crawl_delay_is_obeyed_without_asking_again(site: Site, tmp_path: Path) -> None:
    site.pages["http://a.test/robots.txt"] = "User-agent: *\nCrawl-delay: 1"
    one_at_a_time = (*OWN, "politeness.per_host=1")
    crawled(site, tmp_path, "one", "http://a.test/0", sets=one_at_a_time)
    second = crawled(site, tmp_path, "two", "http://a.test/1", "http://a.test/2", sets=one_at_a_time)
    assert asked_for_robots(site) == 1
    earlier, later = sorted(second.rows, key=started_at)
    assert started_at(later) - ended_at(earlier) >= 1.0


def test_a_host_that_was_given_up_stays_so_for_a_day(site: Site, tmp_path: Path) -> None:
    failing = (
        *OWN, "frontier.unanswered_failures_max=1", "fetch.connect_s_max=0.2", "robots.obey=false",
        "frontier.attempts_max=1", "politeness.per_host=1",
    )  # fmt: skip
    url = "http://gone.test/"
    first = crawled(site, tmp_path, "one", url, url + "1", sets=failing)
    assert [row["outcome"] for row in first.rows] == ["connect_error", "host_closed"]
    assert first.status["terminal_outcomes"] == {"connect_error": 1, "host_closed": 1}
    second = crawled(site, tmp_path, "two", url, sets=failing)
    assert (second.end, second.status["terminal_outcomes"]) == ("finished", {"host_closed": 1})
    assert all(not row["ip"] for row in second.rows), "it is not contacted"
    third = crawled(site, tmp_path, "three", url, sets=(*failing, "frontier.errors_remembered_s=0"))
    assert len(third.rows) == 1, "an older closing is forgotten, and the host asked again"


def test_a_budget_that_was_spent_is_spent_for_the_next_crawl(site: Site, tmp_path: Path) -> None:
    budget = (*OWN, "budget.host_pages=2", "politeness.per_host=1", "crawl.concurrency=1")
    crawled(site, tmp_path, "one", "http://a.test/0", "http://a.test/1", sets=budget)
    second = crawled(
        site, tmp_path, "two", "http://a.test/2", "http://a.test/3", "http://b.test/0", "http://b.test/1", sets=budget
    )
    assert [row["host"] for row in second.rows] == ["b.test", "b.test", "a.test", "a.test"]
    assert second.status["budget_round"] == 2
    third = crawled(site, tmp_path, "three", "http://b.test/2", sets=budget)
    assert third.status["budget_round"] == 2, "the rounds go on with the hosts"


def test_one_crawl_at_a_time(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.assembly.kept.LOCK_S_MAX", 0.05)
    held = HostsKept(tmp_path / "store", 1 << 20)
    try:
        with pytest.raises(ConfigError, match="in use by another crawl") as refused:
            crawled(site, tmp_path, "one", "http://a.test/0")
        assert "\n" not in str(refused.value)
    finally:
        held.close()
    assert crawled(site, tmp_path, "one", "http://a.test/0").end == "finished"


def test_a_store_of_another_version_is_refused(site: Site, tmp_path: Path) -> None:
    HostsStore(tmp_path / "store").close()
    options = store_options(1 << 20, 1 << 20)
    raw = Rdict(str(tmp_path / "store/store"), options, access_type=AccessType.read_write())
    raw[HOSTS_VERSION] = b"7"
    raw.close()
    with pytest.raises(ConfigError, match="is of format 7"):
        crawled(site, tmp_path, "one", "http://a.test/0")


def test_a_store_whose_contacts_are_lost_makes_everybody_rest(site: Site, tmp_path: Path) -> None:
    polite = (*OWN, "politeness.delay_s_min=0.5", "politeness.per_host=1")
    crawled(site, tmp_path, "one", "http://a.test/0", sets=polite)
    (tmp_path / "store/contacts").unlink()
    began = time.time()
    second = crawled(site, tmp_path, "two", "http://b.test/0", sets=polite)
    assert started_at(second.rows[0]) - began >= 0.5


def test_a_crawl_that_had_no_store_brings_its_contacts_along(site: Site, tmp_path: Path) -> None:
    first = crawl(
        (site.url("http://a.test/0"), site.url("http://a.test/1")), tmp_path / "one", *POLITE, max_pages=1,
        hosts=str(tmp_path / "hosts"), mode="offline",
    )  # fmt: skip
    store = f"state.hosts_store='{tmp_path / 'store'}'"
    resumed = crawl((), tmp_path / "one", store, "limits.max_pages=none", resuming=True)
    assert not (tmp_path / "one/state/contacts").exists()
    assert (tmp_path / "store/contacts").exists()
    assert started_at(resumed.rows[-1]) - ended_at(first.rows[0]) >= DELAY_S


def test_it_serves_live_crawls_too(site: Site, tmp_path: Path) -> None:
    site.pages["http://a.test/0"] = '<a href="/1">x</a>'
    for name in ("one", "two"):
        found = crawl(
            (site.url("http://a.test/0"),), tmp_path / name, *OWN, hosts=str(tmp_path / "hosts"),
            hosts_store=str(tmp_path / "store"),
        )  # fmt: skip
        assert len(found.rows) == 2
    assert asked_for_robots(site) == 1


def test_a_hosts_store_that_cannot_be_made_is_the_operators_mistake(site: Site, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    with pytest.raises(ConfigError, match="name another with --hosts-store"):
        crawled(site, tmp_path, "one", "http://a.test/0")
