"""The four forms of the eliminator: one contract, the same crashes, and what each states beside."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from gossamer.ports import KNOWN, NEW, SHORTER
from gossamer.stages.seen import offers
from gossamer.stages.seen.options import SeenOptions
from gossamer.testing import check_url_seen
from gossamer.url.url import Url
from tests.stages.seen.opened import EXACT, FORMS, Opened, named, numbered

DEEP = "GOSSAMER_EXAMPLES" in os.environ
SMALL = SeenOptions(
    popular_urls_max=4, front_urls_max=4, filter_bits=2, expected_urls=32, false_positive_rate=1e-6, log_urls_max=1
)
"""Every commit merges or saves, every filter overflows."""


@pytest.fixture
def opens(tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    numbers, all_opened = count(), []

    def make(form: str, options: SeenOptions | None = None) -> Opened:
        all_opened.append(Opened(form, tmp_path / f"crawl{next(numbers)}", options))
        return all_opened[-1]

    yield make
    for opened in all_opened:
        opened.crash()


@pytest.mark.parametrize("options", [SeenOptions(), SMALL], ids=["default", "small"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_keeps_the_contract(opens: Callable[..., Opened], form: str, options: SeenOptions) -> None:
    rate = options.false_positive_rate if form == "bloom" else 0.0
    check_url_seen(lambda: opens(form, options).seen, ways=form in EXACT, false_positive_rate=rate)


@pytest.mark.parametrize("form", FORMS)
def test_what_was_committed_is_known_and_what_was_not_never_was(tmp_path: Path, form: str) -> None:
    urls = [numbered(number) for number in range(300)]
    opened = Opened(form, tmp_path, SMALL)
    for start in range(0, 200, 50):
        assert opened.offer(urls[start : start + 50]) == [NEW] * 50
        opened.commit()
        opened.wait()
    assert opened.offer(urls[200:]) == [NEW] * 100
    opened.crash()

    opened = Opened(form, tmp_path, SMALL)
    assert opened.offer(urls[:200]) == [KNOWN] * 200
    assert opened.offer(urls[200:]) == [NEW] * 100, "the queues that held them were lost with their epoch"
    opened.crash()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stage", ["cut", "committed", "applied"])
def test_a_crash_within_a_commit_gives_the_epoch_before_or_this_one(tmp_path: Path, form: str, stage: str) -> None:
    urls = [numbered(number) for number in range(90)]
    opened = Opened(form, tmp_path, SMALL)
    for start in (0, 30):  # The second commit begins what the third takes in.
        opened.offer(urls[start : start + 30])
        opened.commit()
        opened.wait()
    opened.offer(urls[60:])
    number, _ = opened.begin_commit()
    opened.journals.sync()
    if stage != "cut":
        opened.epochs.commit(number)
    if stage == "applied":
        opened.epochs.apply(number)
    opened.crash()

    opened = Opened(form, tmp_path, SMALL)
    assert opened.offer(urls[:60]) == [KNOWN] * 60
    assert set(opened.offer(urls[60:])) == {NEW if stage == "cut" else KNOWN}
    opened.commit()
    opened.crash()
    opened = Opened(form, tmp_path, SMALL)
    assert opened.offer(urls) == [KNOWN] * 90
    opened.crash()


@pytest.mark.parametrize("form", FORMS)
def test_an_epoch_of_any_size_is_known_after_a_crash(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it brings to a group is more than one value of the log holds."""
    monkeypatch.setattr(offers, "VALUE_URLS_MAX", 7)
    urls = [numbered(number) for number in range(1000)]
    opened = Opened(form, tmp_path)
    opened.offer(urls, 3, 1)
    opened.commit()
    opened.crash()
    opened = Opened(form, tmp_path)
    assert opened.offer(urls, 3, 1) == [KNOWN] * 1000
    if form in EXACT:
        assert {opened.seen.way(url) for url in urls} == {(3, 1)}
    opened.crash()


URLS = [named(f"https://{host}.example/{path}") for host in "abc" for path in "1234"]
ways = st.tuples(st.integers(0, 3), st.integers(0, 2))
offered_ways = st.lists(st.tuples(st.sampled_from(URLS), ways), max_size=6)


class FormMachine(RuleBasedStateMachine):
    """Against a dictionary: any offers, commits, merges and crashes."""

    form = ""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.ways: dict[str, tuple[int, int]] = {}
        self.durable: dict[str, tuple[int, int]] = {}
        self.offers = 0
        self.opened = Opened(self.form, self.directory, SMALL)

    def teardown(self) -> None:
        self.opened.crash()
        shutil.rmtree(self.directory)

    @rule(offered=offered_ways)
    def offer(self, offered: Sequence[tuple[Url, tuple[int, int]]]) -> None:
        expected = []
        for url, way in offered:
            known = self.ways.get(url.key)
            least = way if known is None else (min(way[0], known[0]), min(way[1], known[1]))
            expected.append(NEW if known is None else SHORTER if least != known else KNOWN)
            self.ways[url.key] = least
        if self.form not in EXACT:
            expected = [min(answer, NEW) if answer != SHORTER else KNOWN for answer in expected]
        urls, depths, hops = [url for url, _ in offered], [way[0] for _, way in offered], [way[1] for _, way in offered]
        assert list(self.opened.seen.offer(urls, depths, hops)) == expected
        self.offers += 1

    @rule(url=st.sampled_from(URLS))
    def way(self, url: Url) -> None:
        assert self.opened.seen.way(url) == (self.ways.get(url.key) if self.form in EXACT else None)

    @rule(wait=st.booleans())
    def commit(self, wait: bool) -> None:
        if wait:
            self.opened.wait()
        self.opened.commit()
        self.durable = dict(self.ways)

    @precondition(lambda self: self.offers > 3)
    @rule()
    def crash(self) -> None:
        self.opened.crash()
        self.opened = Opened(self.form, self.directory, SMALL)
        self.ways, self.offers = dict(self.durable), 0


def machine(form: str) -> type:
    case: type = type(form.capitalize(), (FormMachine,), {"form": form}).TestCase  # type: ignore[attr-defined]
    case.settings = settings(  # type: ignore[attr-defined]
        deadline=None,
        derandomize=not DEEP,
        max_examples=int(os.environ.get("GOSSAMER_EXAMPLES", "8")),
        stateful_step_count=40,
    )
    return case


TestMemory = machine("memory")
TestDiskMerge = machine("diskmerge")
TestBloom = machine("bloom")
