"""Held links in the ring: work that is not done, judged again, and answered once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gossamer.engine.explain import Explainer
from gossamer.engine.history import UrlMemory
from gossamer.model.links import Link
from gossamer.ports import HELD, KNOWN, NEW
from gossamer.stages.seen import held
from gossamer.stages.seen.diskmerge import DiskMergeUrlSeen
from gossamer.stages.seen.options import SeenOptions
from gossamer.testing import page
from gossamer.testing.fakes import Answers
from gossamer.world.clock import WallClock
from tests.engine.ring import Ring, url_of
from tests.stages.seen.opened import numbered

OTHERS = [numbered(number) for number in range(3_000)]
OPTIONS = SeenOptions(popular_urls_max=0, front_urls_max=1_000, filter_bits=1, expected_urls=100, held_urls_max=1_000)
"""Filters so full that they may have nearly every URL."""
ROOT = "http://a.example/"
PATHS = [f"p{number}" for number in range(40)]


@pytest.fixture
def seen() -> Iterator[list[DiskMergeUrlSeen]]:
    """Eliminators to close in the end."""
    opened: list[DiskMergeUrlSeen] = []
    yield opened
    for one in opened:
        one.close()


def holding(ring: Ring, seen: list[DiskMergeUrlSeen], *, fill: bool = True) -> DiskMergeUrlSeen:
    """Give a ring an eliminator whose files have many URLs already."""
    made = DiskMergeUrlSeen(ring.epochs, ring.journals, OPTIONS)
    seen.append(made)
    ring.committer.join(made)
    zeros = [0] * len(OTHERS)
    if fill:
        made.offer(OTHERS, zeros, zeros)
        ring.run(commits(ring, made))
    ring.joined(url_seen=made)
    urls = UrlMemory(ring.namer, made, ring.history)
    ring.explainer = Explainer(urls, ring.chain, ring.lookups)
    return made


async def commits(ring: Ring, made: DiskMergeUrlSeen) -> None:
    for _ in range(2):
        await ring.committer.commit()
        if made._working is not None:
            made._working.result()
    await ring.committer.commit()
    assert not any(made._front)


def anchors(paths: Sequence[str]) -> list[Link]:
    return [Link(url_of(ROOT + path), "anchor", 1, 0, ROOT) for path in paths]


def star() -> dict[str, Answers]:
    return {ROOT: page(*(f"/{path}" for path in PATHS)), **{ROOT + path: page(title=path) for path in PATHS}}


@pytest.mark.promise("What is fetched", "A crawl does not end while links await the duplicate check.")
@pytest.mark.parametrize("reads_max", [held.READS_MAX, 3], ids=["reads", "compared"])
def test_a_crawl_does_not_end_while_links_are_held(
    tmp_path: Path, seen: list[DiskMergeUrlSeen], reads_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "READS_MAX", reads_max)
    with Ring(tmp_path, star(), clock=WallClock(), polite={"per_host": 64}, crawl={"commit_s": 0.05}) as ring:
        made = holding(ring, seen)
        ring.seed(ROOT)
        answers: list[int] = []
        offer = made.offer_or_hold
        made.offer_or_hold = lambda links: answers.extend(found := offer(links)) or found  # type: ignore[method-assign]
        assert asyncio.run(ring.shard().run()) == "finished"
        assert answers.count(HELD) > 10
        assert set(ring.outcomes) == {ROOT, *(ROOT + path for path in PATHS)}
        assert made.links_held == 0
        assert ring.adds_up()


def test_a_limit_leaves_them_to_the_next_run(tmp_path: Path, seen: list[DiskMergeUrlSeen]) -> None:
    with Ring(tmp_path, star(), clock=WallClock(), limits={"max_pages": 1}) as ring:
        made = holding(ring, seen)
        ring.seed(ROOT)
        assert asyncio.run(ring.shard().run()) == "limit"
        left = made.links_held
        assert left > 10
        assert not ring.shard().nothing_to_do
        seen.pop().close()
        again = holding(ring, seen, fill=False)
        assert again.links_held == left
        ring.pipeline.take_back(idle=True)
        ring.run(ring.turns())
        assert len(ring.outcomes) == 41


def test_what_a_page_links_to_is_explained_and_counted_while_it_is_held(
    tmp_path: Path, seen: list[DiskMergeUrlSeen]
) -> None:
    with Ring(tmp_path, star()) as ring:
        made = holding(ring, seen)
        ring.pipeline.discovery.discover(anchors(PATHS))
        waiting = [path for path in PATHS if ring.explainer.why(ROOT + path)["state"] == "held"]
        assert len(waiting) == made.links_held == ring.pipeline.discovery.links_held > 10
        assert ring.explainer.why(ROOT + waiting[0])["reason"] == "pages link to it; it is awaiting the duplicate check"
        assert ring.frontier.counts.discovered == len(PATHS) - len(waiting)
        assert ring.pipeline.take_back(idle=True) == len(waiting)
        assert {ring.explainer.why(ROOT + path)["state"] for path in PATHS} == {"queued"}
        assert ring.frontier.counts.discovered == len(PATHS)


def test_seeds_are_answered_at_once(tmp_path: Path, seen: list[DiskMergeUrlSeen]) -> None:
    with Ring(tmp_path, star()) as ring:
        made = holding(ring, seen)
        ring.seed(*(ROOT + path for path in PATHS))
        assert made.links_held == 0
        assert ring.frontier.counts.discovered == len(PATHS)
        ring.pipeline.discovery.take_in(anchors(["other", "p1"]), [1, 1])
        assert made.links_held == 0
        assert ring.frontier.counts.discovered == len(PATHS) + 1


def test_filters_that_changed_meanwhile_judge_them_again(tmp_path: Path, seen: list[DiskMergeUrlSeen]) -> None:
    with Ring(tmp_path, star()) as ring:
        made = holding(ring, seen)
        ring.pipeline.discovery.discover(anchors(PATHS))
        ring.run(ring.turns())
        fetched, waiting = set(ring.outcomes), made.links_held
        assert len(fetched) + waiting == len(PATHS)
        ring.exclusions.add("a.example")
        assert ring.pipeline.take_back(idle=True) == waiting
        assert ring.frontier.counts.pending == 0
        left = url_of(next(ROOT + path for path in PATHS if ROOT + path not in fetched))
        assert made.way(left) is None, "it was not offered"


def test_an_error_with_one_link_does_not_stop_the_others(tmp_path: Path, seen: list[DiskMergeUrlSeen]) -> None:
    with Ring(tmp_path, star()) as ring:
        made = holding(ring, seen)
        ring.pipeline.discovery.discover(anchors(PATHS))
        waiting = [path for path in PATHS if made.holds(url_of(ROOT + path))]
        offer = made.offer

        def fails(urls: Sequence[object], *ways: Sequence[int]) -> Sequence[int]:
            if url_of(ROOT + waiting[3]) in urls:
                raise ValueError("of one link")
            return offer(urls, *ways)  # type: ignore[arg-type]

        made.offer = fails  # type: ignore[assignment, method-assign]
        ring.pipeline.take_back(idle=True)
        assert ring.frontier.counts.discovered == len(PATHS) - 1
        assert [line["url"] for line in ring.log("critical.log")] == [ROOT + waiting[3]]


def test_the_links_of_a_page_whose_answers_are_counted_are_answered_at_once(
    tmp_path: Path, seen: list[DiskMergeUrlSeen], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ring(tmp_path, star()) as ring:
        made = holding(ring, seen)
        counted: list[int] = []
        monkeypatch.setattr(ring.traps, "counts", bool)
        monkeypatch.setattr(ring.traps, "note_links", lambda _, answers, page: counted.extend(answers))
        for _ in range(2):
            ring.pipeline.discovery.judge_again()
            ring.pipeline.discovery.follow(anchors(PATHS), url_of(ROOT), 0.0)
        assert counted == [NEW] * len(PATHS) + [KNOWN] * len(PATHS)
        assert made.links_held == 0
