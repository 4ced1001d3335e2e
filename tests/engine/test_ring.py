"""The ring's decisions, event by event, without an event loop: what is decided depends on the events alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.engine.middleware import Prerequisites
from gossamer.engine.ring import Ring, RingStep
from gossamer.model.links import Link
from gossamer.model.visits import Failure, Located, Reply
from gossamer.stages.frontier.host import Lease, PrerequisiteLease
from gossamer.testing.fakes import page
from tests.engine.ring import Ring as Shard
from tests.engine.ring import url_of

HOST = "http://a.test/"
LATER_S = 3_600.0


class Driven:
    """The ring of a shard whose driver is the test: the test takes each lease and carries out each step."""

    def __init__(self, shard: Shard) -> None:
        stages = shard.stages
        self.frontier = shard.frontier
        self.now = shard.clock.now()
        self.refused: list[tuple[str, str]] = []
        prerequisites = Prerequisites(
            stages.middlewares, stages.frontier.control, stages.excludes, lambda _: None, stages.exchange
        )
        self.rejected: set[str] = set()
        self.ring = Ring(
            stages.frontier, stages.middlewares, prerequisites, lambda _host: None, self._refuse, self._rejects
        )

    def _refuse(self, lease: Lease, failure: Failure, now: float) -> None:
        self.refused.append((lease.url.text, failure.outcome))
        self.frontier.finish(lease, failure.outcome, now)

    def _rejects(self, lease: Lease) -> str:
        return "by a new rule" if lease.url.text in self.rejected else ""

    def next(self) -> tuple[Lease, RingStep]:
        """Lease what may be leased next, as soon as it may be."""
        wake_at = self.frontier.wake_at()
        assert wake_at is not None, "nothing is left"
        self.now = max(self.now, wake_at)
        lease = self.frontier.select(self.now)
        assert lease is not None
        return lease, self.ring.decide(lease, self.now)

    def located(self) -> None:
        """Look up the one host that there is."""
        lease, step = self.next()
        assert step is RingStep.RESOLVE
        self.ring.on_resolved(lease, Located(("127.0.0.1",), self.now + 86_400.0), self.now)

    def fetched(self, status: int = 200, body: bytes = b"", lasted_s: float = 0.1, retry_after: str = "") -> Lease:
        """Carry out the next request, which is due, and answer it."""
        lease, step = self.next()
        assert step is RingStep.FETCH
        assert self.ring.begin(lease, self.now)
        started, self.now = self.now, self.now + lasted_s
        headers = (("Retry-After", retry_after),) if retry_after else ()
        reply = Reply(lease.url.text, status, headers, body, lease.address, started, lasted_s, wire_bytes=len(body))
        self.ring.on_fetched(lease, reply, started, self.now)
        if isinstance(lease, PrerequisiteLease):
            self.ring.answer(lease.prerequisite, body, reply, self.now)
        return lease


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[Driven]:
    with Shard(tmp_path, obey=True, polite={"delay_s_min": 1.0, "delay_factor": 0.0}) as shard:
        shard.seed(HOST + "1", HOST + "2")
        yield Driven(shard)


def test_an_address_then_robots_txt_then_one_page_after_the_other(driven: Driven) -> None:
    driven.located()
    _, step = driven.next()
    assert step is RingStep.DONE, "it waits for robots.txt"
    robots = driven.fetched(body=b"User-agent: *\nDisallow: /2\n")
    assert isinstance(robots, PrerequisiteLease)
    assert robots.url.text == HOST + "robots.txt"
    first = driven.fetched()
    driven.frontier.finish(first, "fetched", driven.now)
    assert first.url.text == HOST + "1"
    _, step = driven.next()
    assert step is RingStep.DONE
    assert driven.refused == [(HOST + "2", "robots_denied")]
    assert driven.frontier.wake_at() is None


def test_a_host_without_address_ends_its_pages(driven: Driven) -> None:
    lease, step = driven.next()
    assert step is RingStep.RESOLVE
    driven.ring.on_resolved(lease, Failure("dns_error", "no such name"), driven.now)
    assert driven.refused == [(lease.url.text, "dns_error")]
    assert lease.is_finished


def test_a_busy_server_is_distinguished_from_one_that_failed(driven: Driven) -> None:
    driven.located()
    driven.next()
    driven.fetched(404)
    busy = driven.fetched(503, retry_after=f"{LATER_S:.0f}")
    driven.frontier.finish(busy, "http_error", driven.now)
    wake_at = driven.frontier.wake_at()
    assert wake_at is not None
    assert wake_at >= driven.now + LATER_S


@pytest.mark.parametrize(
    ("failure", "answers"),
    [
        (Failure("connect_error", "the kept connection closed without an answer", retry=True, again=True), 0),
        (Failure("connect_error", "the kept connection closed with its last bytes", retry=True, wire_bytes=25), 0),
        (Failure("internal_error", "EMFILE on this machine", retry=True), 0),
        (Failure("internal_error", "the disk is full", wire_bytes=10), 1),
        (Failure("connect_error", "refused", host_level=True), 0),
        (Failure("protocol_error", "the reply ended early", wire_bytes=10), 1),
        (Failure("tls_error", "a certificate of another name"), 1),
    ],
)
def test_a_request_without_an_answer_counts_as_none(driven: Driven, failure: Failure, answers: int) -> None:
    driven.located()
    driven.next()
    lease, step = driven.next()
    assert step is RingStep.FETCH
    assert driven.ring.begin(lease, driven.now)
    driven.ring.on_fetched(lease, failure, driven.now, driven.now + 0.1)
    assert driven.frontier.counts.answers == answers


def test_a_queued_url_that_filters_reject_by_now_is_not_requested(driven: Driven) -> None:
    driven.located()
    driven.next()
    driven.fetched(404)
    driven.rejected.add(HOST + "1")
    steps = []
    while driven.frontier.wake_at() is not None:
        lease, step = driven.next()
        steps.append((lease.url.text, step))
        if step is RingStep.FETCH:
            driven.frontier.return_lease(lease, driven.now)
            break
    assert steps[-1] == (HOST + "2", RingStep.FETCH)
    assert driven.refused == [(HOST + "1", "excluded")]


def test_a_request_that_the_end_cuts_off_leaves_its_url_queued(driven: Driven) -> None:
    driven.located()
    driven.next()
    driven.fetched(404)
    lease, _ = driven.next()
    assert driven.ring.begin(lease, driven.now)
    driven.ring.abandon(lease, driven.now, driven.now + 3.0)
    assert lease.is_ended
    assert not lease.is_finished
    assert driven.frontier.counts.pending == 2
    assert driven.refused == []


def test_a_lookup_that_fails_does_not_count_as_time_of_the_host(tmp_path: Path) -> None:
    with Shard(tmp_path, polite={"delay_s_min": 1.0, "delay_factor": 100.0, "delay_s_max": 1_000.0}) as shard:
        shard.seed(HOST + "1", HOST + "2", HOST + "3")
        driven = Driven(shard)
        driven.located()
        driven.frontier.finish(driven.fetched(lasted_s=2.0), "fetched", driven.now)
        lease, _ = driven.next()
        driven.now += 200_000.0
        driven.ring.on_resolved(lease, Failure("dns_error", "no answer", retry=True), driven.now)
        wake_at = driven.frontier.wake_at()
        assert wake_at is not None
        assert wake_at == pytest.approx(driven.now + 200.0), "the delay follows the one request alone"


def test_what_a_page_out_of_scope_is_requested_for_outlives_the_process(tmp_path: Path) -> None:
    with Shard(tmp_path, {HOST: page(text="long")}) as shard:
        shard.frontier.add(Link(url_of(HOST), "outlink", 1), 0, shard.clock.now())
        shard.run(shard.committer.commit())
    with Shard(tmp_path, {HOST: page(text="long")}) as shard:
        shard.run(shard.turns())
        assert [(row.outcome, row.body_bytes) for row in shard.rows] == [("unsupported", 0)]
