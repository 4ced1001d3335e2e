"""What hosts and retries wait for after a start with a clock that was set back."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.model.links import RevisitPlan
from gossamer.model.visits import Contact
from gossamer.stages.frontier import set_back
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import Lease
from gossamer.stages.frontier.options import PolitenessOptions
from gossamer.state.epoch import Epochs
from gossamer.state.schema import PARTITIONED
from gossamer.state.store import Store
from tests.stages.frontier.names import T0, Shard, linked, named

DELAY_S = 10.0
RETRY_S = 500.0
SET_BACK_S = 7_200.0
BOOTS = [b"b" * 16, b"c" * 16]


def begun(frontier: Frontier, now: float) -> Lease | None:
    """Begin a request, if one may begin now."""
    while (lease := frontier.select(now)) is not None:
        if lease.address:
            assert frontier.begin(lease, now)
            frontier.ended(lease, Contact(0.1, "answered"), now)
            return lease
        frontier.locate(lease, f"127.0.0.{ord(lease.host.name[0])}", 1e12, now)
    return None


def killed(tmp_path: Path) -> Shard:
    """Return a shard that was killed: `a.test` rests for `DELAY_S`, `b.test` has one URL, to be tried again."""
    shard = Shard(tmp_path, PolitenessOptions(delay_s_min=DELAY_S, delay_s_max=60.0), sleep_s_min=1.0)
    frontier = shard.open(T0)
    for url in ("http://a.test/1", "http://a.test/2", "http://b.test/"):
        frontier.add(linked(url), 0, T0)
    for _ in range(2):
        lease = begun(frontier, T0)
        assert lease is not None
        if lease.host.name == "a.test":
            frontier.finish(lease, "fetched", T0)
        else:
            frontier.retry(lease, RevisitPlan(named("http://b.test/"), T0 + RETRY_S, 2, 0), T0)
    shard.commit_all(T0)
    shard.crash()
    return shard


def next_requests(frontier: Frontier, now: float) -> dict[str, float]:
    """Return when each host gets its next request."""
    found = {}
    while (wake_at := frontier.wake_at()) is not None:
        now = max(now, wake_at)
        while (lease := begun(frontier, now)) is not None:
            found[lease.host.name] = now
            frontier.finish(lease, "fetched", now)
    return found


@pytest.mark.promise("Politeness", "A clock that is set, during a crawl or between two runs, makes no request early.")
@pytest.mark.parametrize("boot", BOOTS, ids=["the same boot", "another boot"])
def test_hosts_and_retries_wait_for_what_was_left_to_wait_for(tmp_path: Path, boot: bytes) -> None:
    shard = killed(tmp_path)
    now = T0 - SET_BACK_S
    longest_s = DELAY_S if boot == BOOTS[0] else 60.0  # After another boot contacts may be missing.
    shard.open(now, boot)
    shard.crash()  # Before it commits: what was set back is not set back again.
    waits_s = {host: at - now for host, at in next_requests(shard.open(now, boot), now).items()}
    assert waits_s == pytest.approx({"a.test": longest_s, "b.test": RETRY_S})
    shard.crash()


def test_a_start_that_is_killed_in_between_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at its second, third and fourth commit, it has set each host back once, by a clock set back twice."""
    monkeypatch.setattr(set_back, "HOSTS_A_COMMIT", 1)
    shard = killed(tmp_path)
    now = T0 - SET_BACK_S
    for commits, behind_s in ((1, 3_600.0), (1, 0.0), (0, 0.0)):
        store = Store(tmp_path / "store", 1 << 20, 1 << 20)
        with pytest.raises(KeyboardInterrupt):
            set_back.follow_clock(_Killed(Epochs(store), commits), now + behind_s)  # type: ignore[arg-type]
        store.close()
    frontier = shard.open(now)
    assert {host: at - now for host, at in next_requests(frontier, now).items()} == pytest.approx(
        {"a.test": DELAY_S, "b.test": RETRY_S}
    )
    shard.crash()


@pytest.mark.promise("Several shards", "A running crawl goes on with another number of shards, and loses nothing.")
def test_hosts_on_their_way_from_another_shard_stay_as_they_came(tmp_path: Path) -> None:
    killed(tmp_path)
    store = Store(tmp_path / "store", 1 << 20, 1 << 20)
    before = {family: list(store.scan(family, *PARTITIONED)) for family in ("host", "due", "sleep")}
    partitions = [int.from_bytes(key[:2]) for key, _ in before["host"]]
    on_their_way = [(one, one + 1) for one in partitions[1:]]
    set_back.follow_clock(Epochs(store), T0 - SET_BACK_S, on_their_way)
    for family, pairs in before.items():
        now = dict(store.scan(family, *PARTITIONED))
        assert {pair for pair in pairs if int.from_bytes(pair[0][:2]) in partitions[1:]} <= set(now.items())
    assert dict(store.scan("host", *PARTITIONED)) != dict(before["host"]), "those that are here are set back"
    store.close()


class _Killed:
    """The epochs of a process that is killed at a commit."""

    def __init__(self, epochs: Epochs, commits: int) -> None:
        self._epochs, self._left = epochs, commits

    def __getattr__(self, name: str) -> object:
        return getattr(self._epochs, name)

    def close_at_once(self) -> None:
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        self._epochs.close_at_once()


def test_a_clock_that_went_on_changes_nothing(tmp_path: Path) -> None:
    shard = killed(tmp_path)
    now = T0 + 0.5
    assert next_requests(shard.open(now), now) == pytest.approx({"a.test": T0 + DELAY_S, "b.test": T0 + RETRY_S})
    shard.crash()


@pytest.mark.promise(
    "Politeness",
    "A host is not given up for the time in which the crawl was stopped, nor for one failure on each side.",
)
def test_the_time_without_a_process_gives_no_host_up(tmp_path: Path) -> None:
    shard = Shard(tmp_path, PolitenessOptions(delay_s_min=DELAY_S, delay_s_max=60.0), sleep_s_min=1.0)
    now = T0
    frontier = shard.open(now)
    frontier.add(linked("http://a.test/"), 0, now)

    def fail() -> str:  # At its next turn.
        nonlocal now
        while (lease := frontier.select(now)) is None or not lease.address:
            if lease is not None:
                frontier.locate(lease, "127.0.0.1", 1e12, now)
            now = max(now, frontier.wake_at() or now)
        assert frontier.begin(lease, now)
        frontier.ended(lease, Contact(0.1, "failed", error="refused"), now)
        frontier.retry(lease, RevisitPlan(named("http://a.test/"), now + 60.0, 2, 0), now)
        assert lease.host.record.origins is not None
        return lease.host.record.origins["http"].closed

    for _ in range(3):  # Each process but the first comes after a day, and each sees one failure.
        assert fail() == ""
        shard.commit_all(now)
        shard.crash()
        now += 86_400.0
        frontier = shard.open(now)
    assert fail() == ""
    now += 601.0
    assert fail() == "it never answered: refused (5 attempts)"
    shard.crash()
