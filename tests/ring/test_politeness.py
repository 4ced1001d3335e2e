"""The server's own log is the judge: no promise is broken, by any preset, and whatever dies."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from gossamer.lab.simweb.behaviors import ROBOTS
from gossamer.lab.simweb.judge import Promise, judge
from gossamer.lab.simweb.log import Logged
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from gossamer.options import convert
from tests.further import with_further
from tests.rates import rates
from tests.ring.crawls import BRIEF, PATIENT, command_line, crawl, rows

PROMISES = {
    "polite": Promise(delay_s_min=0.1, factor=10, delay_s_max=0.6, address_delay_s=0.01),
    "gentle": Promise(delay_s_min=0.2, factor=10, delay_s_max=0.6, address_delay_s=0.02),
    "broad": Promise(delay_s_min=0.15, factor=0, delay_s_max=0.15, address_delay_s=0.01),
    "weak": Promise(delay_s_min=0, factor=0, delay_s_max=0, address_delay_s=0),
    "own": Promise(delay_s_min=0, factor=0, delay_s_max=0, per_host=8, per_address=0),
}
SEVERAL_AT_ONCE = pytest.param("own", marks=(pytest.mark.acceptance, pytest.mark.paced))
"""Its requests tell a reply that is known from one that a machine at its limit has not read yet."""
COMMIT_S = 0.25
UTILISATION_MIN = 0.8
ATTEMPTS_MAX = 3
BACKOFF_S = 0.2


def keys(preset: str) -> tuple[str, ...]:
    """Return the configuration that makes a preset's promise as small as ours."""
    promise = PROMISES[preset]
    scaled = () if preset in ("weak", "own") else (
        f"politeness.delay_s_min={promise.delay_s_min}",
        f"politeness.delay_s_max={promise.delay_s_max}",
        f"politeness.address_delay_s={promise.address_delay_s}",
    )  # fmt: skip
    return (f"politeness.preset='{preset}'", *BRIEF, *PATIENT, *scaled)


def odd_web(**changes: object) -> SimwebOptions:
    some = {
        "behaviours": (*ROBOTS, "slow", "errors", "redirects"),
        "shares": {"robots_stall": 0, "slow": 0.2, "errors": 0.1, "redirects": 0.1},
        "zipf_exponent": 0.3, "links_per_page": 6, "latency_s": 0.002, "slow_s_median": 0.03,
        "crawl_delay_s": 0.4, "retry_after_s": 1,
    }  # fmt: skip
    return convert(SimwebOptions, {"seed": 7, "hosts": 20, "pages": 240, **some, **changes})


def early_after_backoff(log: Sequence[Logged], backoff_s: float) -> list[tuple[Logged, Logged]]:
    """Return pairs of a 429 or 503 without Retry-After, and a contact that came before the back-off was over."""
    by_host: defaultdict[str, list[Logged]] = defaultdict(list)
    for one in sorted(log, key=lambda one: one.contact_at):
        by_host[one.host].append(one)
    return [
        (busy, then)
        for mine in by_host.values()
        for busy, then in pairwise(mine)
        if busy.status in (429, 503) and not busy.retry_at and then.contact_at < busy.ended_at + backoff_s - 0.005
    ]


def robots_asked_again(log: Sequence[Logged], kills: Sequence[float], commits: Sequence[float] = ()) -> list[Logged]:
    """Return requests for a robots.txt that was known for longer than an epoch when the crawler was last killed: it
    was committed twice in between. An answer may be on its way to a crawler that is dead: its start counts.
    """
    found = []
    known: dict[tuple[str, str], float] = {}
    for one in sorted(log, key=lambda one: one.ended_at):
        if not one.path.startswith("/robots"):
            continue
        since = known.get((one.host, one.path))
        if since is not None and not any(
            since < kill and sum(since < at < kill for at in commits) < 2 for kill in kills
        ):
            found.append(one)
        if one.whole and one.status and one.status < 500 and one.status != 429 and not 300 <= one.status < 400:
            known.setdefault((one.host, one.path), one.started_at)
    return [one for one in found if one.path == "/robots.txt"]


def commits_of(directory: Path) -> list[float]:
    """Return when the commits of a crawl were."""
    return [row["committed_at"].timestamp() for row in rows(directory / "epochs")]


@pytest.mark.parametrize("preset", [*with_further(*(one for one in PROMISES if one != "own")), SEVERAL_AT_ONCE])
def test_no_promise_is_broken(tmp_path: Path, preset: str) -> None:
    """At least five names share an address."""
    utilisations(tmp_path, preset)


@pytest.mark.acceptance
@pytest.mark.paced
@pytest.mark.parametrize("preset", [name for name, one in PROMISES.items() if one.delay_s_min])
def test_hosts_with_a_backlog_get_most_of_the_visits_that_they_permit(tmp_path: Path, preset: str) -> None:
    """A machine that does other things as well only takes from that."""
    reached: list[float] = []
    while len(reached) < ATTEMPTS_MAX and max(reached, default=0.0) <= UTILISATION_MIN:
        reached.append(median(utilisations(tmp_path / str(len(reached)), preset)))
    assert max(reached) > UTILISATION_MIN, reached


def utilisations(folder: Path, preset: str) -> list[float]:
    """Crawl, see that every promise is kept, and return which share of its visits each busy host got."""
    promise = PROMISES[preset]
    patient = {"pages": 60, "behaviours": (*ROBOTS, "slow"), "shares": {"robots_stall": 0, "slow": 0.2}}
    busy = {"pages": 400, "shares": {"robots_stall": 0, "slow": 0.2, "errors": 0.4, "redirects": 0.1}}
    web = odd_web(**(patient if promise.delay_s_min > 0.1 else busy if preset == "own" else {"pages": 120}))
    with SimwebProcess(web, folder / "web") as simweb:
        crawled = crawl(simweb.seeds, folder / "crawl", *keys(preset), hosts=str(simweb.hosts_file), scope="any")
    log = simweb.requests()
    walked = Truth(simweb.web).walk(simweb.seeds)
    assert walked.differences(crawled.ends(walked), simweb.web) == []
    assert judge(log, promise, simweb.web) == []
    if preset != "own":
        assert early_after_backoff(log, BACKOFF_S) == []
    assert robots_asked_again(log, ()) == []
    return [host.utilisation for host in rates(log, promise, simweb.web).values() if host.requests >= 8]


@pytest.mark.heavy
@pytest.mark.long
def test_no_promise_is_broken_by_a_crawler_that_is_killed(tmp_path: Path) -> None:
    """Killed five times, by the real command line, which starts it again: nobody is contacted sooner for that."""
    promise = PROMISES["polite"]
    kills: list[float] = []
    with SimwebProcess(odd_web(pages=140), tmp_path / "web") as simweb, command_line(tmp_path / "crawl") as running:
        running.crawl(simweb.seeds, *keys("polite"), hosts=str(simweb.hosts_file), scope="any")
        for pause_s in (0.7, 0.3, 1.1, 0.1, 1.5):
            running.until_commit()
            time.sleep(pause_s)  # Moments spread over the run, not a wait for something.
            kills.append(running.kill_child())
        assert running.wait() == 0, running.errors.read_text()
    log = simweb.requests()
    walked = Truth(simweb.web).walk(simweb.seeds)
    outcomes = {str(row["key"]): str(row["outcome"]) for row in rows(tmp_path / "crawl/pages")}
    assert [line for line in walked.differences(outcomes, simweb.web) if not line.startswith("missing")] == []
    broken = [one for one in judge(log, promise, simweb.web, restarts=kills) if one.kind != "repeated"]
    assert broken == []
    assert early_after_backoff(log, BACKOFF_S) == []
    assert robots_asked_again(log, kills, commits_of(tmp_path / "crawl")) == []


@pytest.mark.heavy
def test_a_crawl_in_several_runs_keeps_what_it_knows_of_hosts(tmp_path: Path) -> None:
    """Stopped and resumed: fetch times, rests, Crawl-delay, Retry-After and robots.txt are as if it had gone on."""
    promise = PROMISES["polite"]
    directory = tmp_path / "crawl"
    with SimwebProcess(odd_web(pages=60), tmp_path / "web") as simweb:
        # On a busy machine a run begins seconds after the one before: no robots.txt is given up for that.
        patient = (*keys("polite"), "robots.robots_wait_max_s=10.0")
        first = crawl(simweb.seeds, directory, *patient, hosts=str(simweb.hosts_file), scope="any", max_pages=20)
        second = crawl((), directory, "limits.max_pages=60", resuming=True)
        assert (first.end, second.end) == ("limit", "limit")
        third = crawl((), directory, "limits.max_pages=none", resuming=True)
    assert third.end == "finished"
    log = simweb.requests()
    assert judge(log, promise, simweb.web) == []
    assert early_after_backoff(log, BACKOFF_S) == []
    assert robots_asked_again(log, ()) == []
    walked = Truth(simweb.web).walk(simweb.seeds)
    differences = walked.differences(third.ends(walked), simweb.web)
    assert differences == [], differences
