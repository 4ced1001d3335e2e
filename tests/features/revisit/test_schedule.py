"""The schedule: when pages are due again, what it makes of news, and that its sums are those of its pages."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from gossamer.features.revisit.moving import renumber
from gossamer.features.revisit.options import DAY_S, RevisitOptions
from gossamer.features.revisit.policies import POLICIES
from gossamer.features.revisit.rhythm import KINDS_MAX, Rhythm, kind_of
from gossamer.features.revisit.schedule import Schedule
from gossamer.features.revisit.state import (
    Memory,
    decode_memory,
    encode_memory,
    load_state,
    memory_key,
    page_facts,
    recount,
    whole_facts,
)
from gossamer.lab.simweb.wire import http_date
from gossamer.model.links import Notice
from gossamer.model.pages import Original, Sight
from gossamer.model.words import iso_time
from gossamer.options import convert
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import Dice

T0 = 1_700_000_000.0
NAMER = Namer()
ALL = (b"\0\0", b"\xff\xff")


def named(text: str) -> Url:
    url = NAMER.name(text)
    assert url is not None
    return url


class Queue:
    """Stands for the frontier: one due time a page, which moves while nobody is under way."""

    def __init__(self) -> None:
        self.due: dict[str, float] = {}
        self.under_way: set[str] = set()

    def schedule_revisit(self, url: Url, depth: int, referrer: str, at: float, now: float) -> bool:
        self.due[url.text] = at
        return True

    def move_revisit(self, url: Url, at: float, to: float, now: float) -> bool:
        if url.text in self.under_way or self.due.get(url.text) != at:
            return False
        self.due[url.text] = to
        return True


class Kept:
    """A schedule on a store of its own, which can die."""

    def __init__(self, directory: Path, **options: object) -> None:
        self.directory, self.options = directory, convert(RevisitOptions, options)
        self.queue = Queue()
        self.store = Store(directory / "store")
        self.open()

    def open(self) -> None:
        self.epochs = Epochs(self.store)
        options = self.options
        policy = POLICIES[options.policy]()
        self.schedule = Schedule(self.epochs, self.queue, policy, options, Dice(3))

    def commit(self) -> None:
        self.schedule.cut(0.0)
        self.epochs.close_at_once()

    def visit(self, text: str, at: float, version: int = 1, **more: object) -> float | None:
        url = named(text)
        given: dict[str, object] = {"outcome": "fetched", "status": 200, "digest": version, "payload": bytes([version])}
        sight = Sight(url, at=at, **(given | more))  # type: ignore[arg-type]
        due_at = self.schedule.note_visit(sight)
        if due_at is None:
            self.queue.due.pop(text, None)
        else:
            self.queue.due[text] = due_at
        return due_at

    def memory(self, text: str) -> Memory:
        data = self.epochs.get("revisit", memory_key(named(text)))
        assert data is not None
        return decode_memory(data)

    def check_sums(self) -> None:
        """Assert that all sums are those of the pages on disk, and that each page is due when the queue says."""
        self.commit()
        memories = [decode_memory(data) for _, data in self.store.scan("revisit", *ALL)]
        rhythms = [msgspec.msgpack.decode(data, type=Rhythm) for _, data in self.store.scan("rhythm", *ALL)]
        state = self.schedule.state
        due = [memory for memory in memories if memory.due_at]
        counted = [memory for memory in memories if memory.counted]
        assert {memory.address: memory.due_at for memory in due} == self.queue.due
        assert state.pages == len(due) == sum(state.due.spans.values())
        assert state.retired == sum(memory.failures > 0 for memory in memories if not memory.due_at)
        assert state.there == len(counted)
        assert state.importance == pytest.approx(sum(memory.importance for memory in counted))
        assert state.fresh == pytest.approx(sum(one.importance * one.freshness for one in counted), abs=1e-6)
        free = [memory for memory in counted if memory.promise < 0]
        assert sum(rhythm.census.pages for rhythm in rhythms) == len(free)
        assert state.census.pages == sum(one.census.pages for one in rhythms if not one.is_capped)
        assert state.capped_hosts == sum(rhythm.is_capped for rhythm in rhythms)
        assert state.capped_per_s == pytest.approx(sum(rhythm.spent_per_s for rhythm in rhythms), abs=1e-9)
        assert state.promised_per_s == pytest.approx(sum(rhythm.promised_per_s for rhythm in rhythms), abs=1e-9)
        for number, promise in enumerate(state.promises):
            assert promise.pages == sum(memory.promise == number for memory in counted)
            assert promise.pages == sum(promise.deadlines.spans.values())
        again = recount(state, rhythms, memories)  # As where hosts move between shards.
        for sums in ("pages", "there", "retired", "capped_hosts", "promises", "due"):
            assert getattr(again, sums) == getattr(state, sums), sums
        for sums in ("importance", "fresh", "capped_per_s", "promised_per_s"):
            assert getattr(again, sums) == pytest.approx(getattr(state, sums), abs=1e-6), sums
        assert again.census.pages == state.census.pages


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    yield made
    made.store.close()


def test_a_page_that_changes_comes_back_sooner_than_one_that_does_not(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    now = T0
    for visit in range(12):
        changing = kept.visit("http://a.test/news/1.html", now, version=visit)
        still = kept.visit("http://a.test/about/1.html", now)
        now += DAY_S
    assert changing is not None
    assert still is not None
    memory = kept.memory("http://a.test/news/1.html")
    assert (memory.visits, memory.changes) == (12, 11)
    assert len(memory.recent) == 12
    assert memory.change_rate > 10 * kept.memory("http://a.test/about/1.html").change_rate
    assert changing - now < still - now
    kept.check_sums()
    kept.store.close()


def test_a_page_that_is_enrolled_is_due_as_said_unless_it_is_never_visited_again(kept: Kept) -> None:
    url = named("http://a.test/1")
    assert not kept.schedule.enrol(Sight(url, "excluded", T0, 0), T0 + 5)
    assert kept.schedule.enrol(Sight(url, "fetched", T0, 200, 1, payload=b"1"), T0 + 5)
    kept.queue.due[url.text] = T0 + 5
    kept.check_sums()


def test_without_a_price_a_page_is_seen_again_after_the_mean_interval(tmp_path: Path) -> None:
    kept = Kept(tmp_path, policy="adaptive", interval_s_mean=2 * DAY_S)
    due_at = kept.visit("http://a.test/1", T0)
    assert due_at is not None
    assert due_at - T0 == pytest.approx(2 * DAY_S, rel=0.06)
    kept.store.close()


def test_the_budget_is_one_visit_a_page_and_mean_interval(tmp_path: Path) -> None:
    kept = Kept(tmp_path, interval_s_mean=2 * DAY_S)
    draw, rates = random.Random(1), {}
    for page in range(300):
        rates[f"http://h{page % 9}.test/{page}"] = draw.lognormvariate(-12.0, 1.5)
    versions = dict.fromkeys(rates, 1)
    for text in rates:
        kept.visit(text, T0)
    due = dict(kept.queue.due)
    visits, now = 0, T0
    last = dict.fromkeys(rates, T0)
    while now < T0 + 40 * DAY_S:
        text = min(due, key=due.__getitem__)
        now = due[text]
        changed = draw.random() > 2.718281828 ** (-rates[text] * (now - last[text]))
        versions[text] = (versions[text] + changed) % 200
        last[text] = now
        due_at = kept.visit(text, now, versions[text])
        assert due_at is not None
        due[text] = due_at
        visits += now > T0 + 20 * DAY_S
    assert visits / (20 * 300 / 2) == pytest.approx(1.0, abs=0.1)
    kept.check_sums()
    kept.store.close()


def test_a_failing_page_is_asked_ever_less_and_at_last_given_up(kept: Kept) -> None:
    text = "http://a.test/1"
    kept.visit(text, T0)
    waits, now = [], T0 + DAY_S
    while (due_at := kept.visit(text, now, outcome="http_error", status=500, digest=0, payload=b"")) is not None:
        waits.append(due_at - now)
        now = due_at
    assert len(waits) == kept.options.failures_max
    assert all(later > 1.8 * earlier for earlier, later in pairwise(waits[:4]))
    assert max(waits) <= 1.06 * kept.options.interval_s_max
    assert kept.schedule.state.retired == 1
    kept.check_sums()


def test_a_page_that_is_gone_is_given_up_sooner_and_may_come_back(kept: Kept) -> None:
    text, now = "http://a.test/1", T0
    kept.visit(text, now)
    gone = Sight(named(text), "http_error", now, 404)
    assert kept.schedule.change(gone) == "vanished"
    due_at = kept.visit(text, now + 1, outcome="http_error", status=404, digest=0, payload=b"")
    assert kept.schedule.change(gone) == "", "it vanishes once"
    assert kept.schedule.change(Sight(named(text), "fetched", now + 2, 200, 9)) == "appeared"
    assert due_at is not None
    kept.visit(text, due_at, 2)
    assert kept.memory(text).failures == 0
    kept.check_sums()
    tries = 0
    while kept.visit(text, now, outcome="http_error", status=410, digest=0, payload=b"") is not None:
        tries += 1
    assert tries == kept.options.gone_max
    kept.check_sums()


@pytest.mark.parametrize("outcome", ["excluded", "trapped", "host_closed"])
def test_what_is_closed_to_us_is_given_up_at_once(kept: Kept, outcome: str) -> None:
    kept.visit("http://a.test/1", T0)
    assert kept.visit("http://a.test/1", T0 + 1, outcome=outcome, status=None, digest=0, payload=b"") is None
    kept.check_sums()


def test_changes_go_by_digest_and_304_says_none(kept: Kept) -> None:
    url, change = named("http://a.test/1"), kept.schedule.change
    assert change(Sight(url, "fetched", T0, 200, 5, payload=b"a")) == "appeared"
    kept.visit("http://a.test/1", T0, 5, payload=b"a", original=Original("http://a.test/1", T0, "urn:x"), etag='"e"')
    assert change(Sight(url, "not_modified", T0, 304)) == "same"
    assert change(Sight(url, "fetched", T0, 200, 5, payload=b"other bytes, same words")) == "same"
    assert change(Sight(url, "fetched", T0, 200, 6, payload=b"a")) == "same", "the very bytes"
    assert change(Sight(url, "fetched", T0, 200, 6, payload=b"b")) == "changed"
    assert change(Sight(url, "http_error", T0, 500)) == ""
    kept.visit("http://a.test/1", T0 + 5, outcome="not_modified", status=304, digest=0, payload=b"")
    held = kept.schedule.last_visit(url)
    assert held is not None
    assert (held.etag, held.held, held.payload) == ('"e"', Original("http://a.test/1", T0, "urn:x"), b"a")


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ((1, 1), (1, 1), "same"),
        ((1, 1), (1, 2), "changed"),
        ((1, 1), (2, 2), "same"),  # The rules have other fields now.
        ((0, 0), (1, 1), "same"),  # A release that did not compare items wrote the record, or there were no rules.
        ((1, 1), (0, 0), "same"),
    ],
)
def test_another_item_of_the_same_fields_is_a_change(
    kept: Kept, before: tuple[int, int], after: tuple[int, int], change: str
) -> None:
    text = "http://a.test/1"
    kept.visit(text, T0, 5, items=before)
    # Equal words, and for a page whose items come by script even equal bytes.
    for payload in (b"other bytes", bytes([5])):
        assert (
            kept.schedule.change(Sight(named(text), "fetched", T0 + 9, 200, 5, payload=payload, items=after)) == change
        )
    kept.visit(text, T0 + 9, 5, items=after)
    memory = kept.memory(text)
    assert (memory.changes, memory.recent[-1][1], memory.items) == (change == "changed", change, after)
    assert kept.schedule.state.changes == (change == "changed")
    assert kept.schedule.change(Sight(named(text), "not_modified", T0 + 20, 304)) == "same"
    kept.check_sums()


def test_what_was_fetched_under_another_address_is_no_condition(kept: Kept) -> None:
    kept.visit("http://a.test/%7Eu", T0, original=Original("http://a.test/%7Eu", T0, "urn:x"), etag='"e"')
    other = msgspec.structs.replace(named("http://a.test/%7Eu"), text="http://a.test/~u")
    assert kept.schedule.last_visit(other) is None


def test_a_promise_is_a_due_time_and_is_counted(tmp_path: Path) -> None:
    kept = Kept(tmp_path, max_age_s={"/news/": 3_600.0, "/news/now": 600.0}, interval_s_min=60.0)
    for page in range(20):
        kept.visit(f"http://a.test/news/{page}", T0)
        kept.visit(f"http://a.test/other/{page}", T0)
    kept.visit("http://a.test/news/now", T0)
    assert all(kept.queue.due[f"http://a.test/news/{page}"] <= T0 + 0.9 * 3_600 + 1 for page in range(20))
    assert kept.queue.due["http://a.test/news/now"] <= T0 + 541, "the strictest counts"
    kept.visit("http://a.test/news/1", T0 + 3_500)
    kept.visit("http://a.test/news/2", T0 + 4_600)
    kept.visit("http://a.test/news/3", T0 + 3_500, outcome="http_error", status=500, digest=0, payload=b"")
    kept.visit("http://a.test/news/3", T0 + 4_900)  # It was not there in time, and not we were late.
    facts = whole_facts(kept.schedule.state, T0 + 5_000)
    promises = facts["promises"]
    assert isinstance(promises, list)
    news = promises[0]
    assert (news["pages"], news["kept"], news["broken"], news["late_s_worst"]) == (20, 1, 1, 1_000.0)
    assert news["older_now"] >= 18 or kept.schedule.state.due.span_s > 1_000
    kept.check_sums()
    # Another run promises something else: what was counted under the old promise is counted out of it.
    kept.options = convert(RevisitOptions, {"max_age_s": {"/other/": 7_200.0}})
    kept.open()
    for page in range(20):
        kept.visit(f"http://a.test/news/{page}", T0 + 9_000)
        kept.visit(f"http://a.test/other/{page}", T0 + 9_000)
    kept.visit("http://a.test/news/now", T0 + 9_000)
    kept.check_sums()
    assert [promise.pages for promise in kept.schedule.state.promises] == [0, 0, 20]
    kept.store.close()


def test_what_is_due_within_an_hour_is_not_overdue(tmp_path: Path) -> None:
    kept = Kept(tmp_path, max_age_s={"/news/": 3_000.0}, interval_s_min=60.0, interval_s_max=100_000.0)
    for page in range(3):
        kept.visit(f"http://a.test/news/{page}", T0)
    kept.visit("http://a.test/news/late", T0 - 10_000)
    kept.visit("http://a.test/other", T0)
    facts = whole_facts(kept.schedule.state, T0)
    assert (facts["overdue"], facts["due_in_an_hour"], facts["pages"]) == (1, 3, 5)
    kept.store.close()


def test_a_page_that_failed_before_appears(kept: Kept) -> None:
    kept.visit("http://a.test/1", T0, outcome="http_error", status=500, digest=0, payload=b"")
    seen = Sight(named("http://a.test/1"), "fetched", T0 + 60, 200, digest=1, payload=b"1")
    assert kept.schedule.change(seen) == "appeared"


def test_what_was_seen_long_ago_counts_less_the_fewer_visits_are_remembered(tmp_path: Path) -> None:
    rates = []
    for number in (4, 1_000):
        kept = Kept(tmp_path / str(number), memory_visits=number)
        for day in range(40):
            kept.visit("http://a.test/1", T0 + day * DAY_S, version=min(day, 10))
        rates.append(kept.memory("http://a.test/1").change_rate)
        kept.store.close()
    assert rates[0] < 0.5 * rates[1], "it has not changed for thirty visits"


def test_the_expected_freshness_is_between_never_and_always_and_falls_with_changes(tmp_path: Path) -> None:
    kept = Kept(tmp_path, interval_s_mean=DAY_S)
    for day in range(10):
        kept.visit("http://a.test/quick", T0 + day * DAY_S, version=day)
        kept.visit("http://a.test/slow", T0 + day * DAY_S, version=day // 5)
    found = [page_facts(kept.epochs, named(f"http://a.test/{name}")) for name in ("quick", "slow")]
    quick, slow = [one["revisits"]["expected_freshness"] for one in found]
    assert 0.0 < quick < slow < 1.0
    kept.store.close()


def test_importance_by_pattern_depth_and_what_others_say(tmp_path: Path) -> None:
    kept = Kept(tmp_path, importance={"/good/": 10.0, "/good/best": 2.0})
    kept.visit("http://a.test/good/best", T0)
    kept.visit("http://a.test/good/deep", T0, depth=4)
    kept.visit("http://a.test/plain", T0)
    told = [kept.memory(f"http://a.test/{name}").importance for name in ("good/best", "good/deep", "plain")]
    assert told == pytest.approx([20.0, 2.0, 1.0])
    assert kept.schedule.note(Notice(named("http://a.test/plain"), "sitemap", importance=0.5), T0)
    assert kept.memory("http://a.test/plain").importance == pytest.approx(0.5)
    kept.check_sums()
    kept.store.close()


def test_a_host_gets_no_more_than_politeness_leaves(tmp_path: Path) -> None:
    kept = Kept(tmp_path, interval_s_mean=1_000.0, interval_s_min=1.0)
    permitted, draw, now = 0.01, random.Random(5), T0
    for round_ in range(30):
        for page in range(60):
            version = round_ if draw.random() < 0.5 else 1
            kept.visit(f"http://slow.test/{page}", now, version, permitted_per_s=permitted)
            kept.visit(f"http://quick.test/{page}", now, version, permitted_per_s=10.0)
        now += 700.0

    def per_s(host: str) -> float:
        return sum(1.0 / (at - now + 700.0) for text, at in kept.queue.due.items() if host in text)

    assert 0.5 * permitted <= per_s("slow") <= 1.1 * permitted
    assert per_s("quick") > 4 * permitted
    assert per_s("slow") + per_s("quick") <= 1.3 * 120 / 1_000.0
    assert kept.schedule.state.capped_hosts == 1
    kept.check_sums()
    kept.store.close()


def test_a_ping_makes_a_page_due_now_also_while_it_is_under_way(kept: Kept) -> None:
    url = named("http://a.test/1")
    kept.visit(url.text, T0)
    assert kept.schedule.note(Notice(url, "websub", due_now=True, complete=True), T0 + 100)
    assert kept.queue.due[url.text] == T0 + 100
    kept.check_sums()
    kept.queue.under_way.add(url.text)
    # It is being fetched since T0 + 110; the ping comes at T0 + 120, and the reply after it.
    assert kept.schedule.note(Notice(url, "websub", due_now=True), T0 + 120)
    kept.queue.under_way.clear()
    assert kept.visit(url.text, T0 + 110, 2) == T0 + 120
    assert not kept.schedule.note(Notice(named("http://a.test/unknown"), "websub", due_now=True), T0)
    kept.check_sums()


def test_a_visit_that_is_repeated_saw_no_change_and_teaches_nothing(kept: Kept) -> None:
    text = "http://a.test/1"
    url = named(text)
    kept.visit(text, T0, 1, outcome="redirected", status=302)
    kept.schedule.note(Notice(url, "repeat", due_now=True), T0)
    kept.queue.due[text] = kept.memory(text).due_at
    assert kept.memory(text).due_at == T0
    assert kept.schedule.change(Sight(url, "fetched", T0 + 1, 200, 2, payload=b"p")) == "unknown"
    due_at = kept.visit(text, T0 + 1, 2)
    memory = kept.memory(text)
    assert (memory.changes, memory.announced_at, kept.schedule.state.changes) == (0, 0.0, 0)
    assert [kind for _, kind in memory.recent] == ["first", "first"]
    assert due_at is not None
    assert due_at < T0 + 2 * kept.options.interval_s_mean, "not taken for one that changes each second"
    kept.check_sums()


def test_a_hint_for_later_leads_to_a_visit_that_begins_then_whatever_comes_before(kept: Kept) -> None:
    url = named("http://a.test/1")
    kept.visit(url.text, T0)
    for at, not_before in ((100.0, 100.0), (102.0, 105.0), (104.0, 105.0)):
        notice = Notice(url, "websub", changed_at=T0 + not_before, due_now=True, not_before=T0 + not_before)
        assert kept.schedule.note(notice, T0 + at)
        assert kept.queue.due[url.text] == T0 + 100
        kept.check_sums()
    assert kept.visit(url.text, T0 + 103, 2) == T0 + 105, "a visit before that covers the first hint alone"
    after = kept.visit(url.text, T0 + 105, 3)
    assert after is not None
    assert after > T0 + 106, "and this one covers all of them"
    kept.check_sums()


def test_news_of_a_change_brings_a_visit_forward_and_old_news_does_not(kept: Kept) -> None:
    url = named("http://a.test/1")
    due_at = kept.visit(url.text, T0)
    assert kept.schedule.note(Notice(url, "sitemap", changed_at=T0 - 500), T0 + 10)
    assert kept.queue.due[url.text] == due_at
    assert kept.schedule.note(Notice(url, "sitemap", changed_at=T0 + 50), T0 + 400)
    assert kept.queue.due[url.text] == T0 + 400
    kept.visit(url.text, T0 + 450, 2)
    memory = kept.memory(url.text)
    assert memory.history.dated > 0.9, "the change is dated by who told of it"
    assert memory.changed_at == T0 + 50
    kept.visit(url.text, T0 + 460, 2)
    assert kept.memory(url.text).changed_at == T0 + 50, "a visit without a change does not forget the last one"
    assert kept.schedule.note(Notice(url, "feed", changed_at=T0 + 9_999_999), T0 + 500), "news of the future is none"
    assert kept.memory(url.text).announced_at == T0 + 50
    kept.check_sums()


def test_hints_and_fixed_rhythms(kept: Kept) -> None:
    for page in ("plain", "hinted", "feed"):
        kept.visit(f"http://{page}.test/1", T0)
    kept.schedule.note(Notice(named("http://hinted.test/1"), "sitemap", interval_hint_s=3_600.0), T0)
    kept.schedule.note(Notice(named("http://feed.test/1"), "feed", interval_s=1_800.0), T0)
    assert kept.queue.due["http://feed.test/1"] == T0 + 1_800
    assert kept.schedule.state.there == 3, "what is said of a page leaves it in the sums"
    for page in ("plain", "hinted", "feed"):
        kept.visit(f"http://{page}.test/1", T0 + 1_000)
    assert kept.memory("http://hinted.test/1").change_rate > 3 * kept.memory("http://plain.test/1").change_rate
    assert kept.queue.due["http://feed.test/1"] - T0 - 1_000 == pytest.approx(1_800, rel=0.06)
    kept.schedule.note(Notice(named("http://feed.test/1"), "feed", interval_s=0.0), T0 + 1_000)
    kept.visit("http://feed.test/1", T0 + 2_000)
    assert kept.queue.due["http://feed.test/1"] > T0 + 9_000
    kept.check_sums()


def test_a_page_that_was_given_up_is_taken_back_by_news(kept: Kept) -> None:
    text = "http://a.test/1"
    kept.visit(text, T0)
    while kept.visit(text, T0 + 1, outcome="http_error", status=404, digest=0, payload=b"") is not None:
        pass
    assert text not in kept.queue.due
    assert kept.schedule.note(Notice(named(text), "sitemap", changed_at=T0 + 500), T0 + 600)
    assert kept.queue.due[text] == T0 + 600
    assert kept.schedule.state.there == 0, "nothing is there yet"
    kept.check_sums()


@pytest.mark.parametrize("lies", [False, True])
def test_dates_are_believed_of_servers_whose_dates_agree_with_what_is_seen(kept: Kept, lies: bool) -> None:
    draw, now, changed_at, version = random.Random(8), T0, T0, 1
    for _ in range(40):
        now += 10_000.0
        if draw.random() < 0.7:
            changed_at, version = now - draw.uniform(1.0, 9_000.0), version + 1
        said = http_date(now if lies else changed_at)
        kept.visit("http://a.test/1", now, version, last_modified=said)
    history = kept.memory("http://a.test/1").history
    assert (history.dated > 5) is not lies


def test_a_young_page_is_taken_for_one_of_its_kind(kept: Kept) -> None:
    now = T0
    for visit in range(8):
        for page in range(6):
            kept.visit(f"http://a.test/news/{page}.html", now, version=visit)
            kept.visit(f"http://a.test/old/{page}.html", now)
        now += 20_000.0
    kept.visit("http://a.test/news/77.html", now)
    kept.visit("http://a.test/old/77.html", now)
    young = [kept.memory(f"http://a.test/{kind}/77.html").change_rate for kind in ("news", "old")]
    assert young[0] > 20 * young[1]


def test_kinds_of_addresses() -> None:
    assert kind_of("/news/2024/17.html") == kind_of("/news/2025/18.html") != kind_of("/about/2024/17.html")
    assert kind_of("/a?page=1") == kind_of("/b?page=2") != kind_of("/a")
    assert kind_of("/") == "/2"
    rhythm = Rhythm("a.test")
    for number in range(100):
        rhythm.pools(f"kind {number}")
    assert len(rhythm.kinds) == KINDS_MAX


@pytest.mark.promise("Continuous crawls", "A page that is revisited has one due time, which no crash loses.")
def test_nothing_of_it_is_lost_by_a_death_after_the_commit(kept: Kept) -> None:
    for page in range(50):
        kept.visit(f"http://h{page % 3}.test/{page}", T0 + page, version=page)
    kept.commit()
    before = msgspec.msgpack.encode(kept.schedule.state)
    kept.visit("http://h0.test/0", T0 + 9_000, version=99)  # Not committed.
    kept.open()
    assert msgspec.msgpack.encode(kept.schedule.state) == before
    hosts = {named(f"http://h{number}.test/") for number in range(3)}
    kept_under = {key[:2] for key, _ in kept.store.scan("rhythm", *ALL)}
    assert kept_under == {host.partition.to_bytes(2) for host in hosts}, "it moves with its host"
    kept.queue.due = {
        one.address: one.due_at for one in map(decode_memory, dict(kept.store.scan("revisit", *ALL)).values())
    }
    kept.check_sums()
    state = load_state(kept.epochs)
    assert state is not None
    assert state.pages == 50


def test_memory_does_not_grow_with_pages_or_hosts(tmp_path: Path) -> None:
    kept = Kept(tmp_path, rhythms_cached_max=16)
    for page in range(3_000):
        kept.visit(f"http://h{page % 300}.test/{page}", T0 + page)
        if page % 200 == 0:
            kept.commit()
    kept.commit()
    assert len(kept.schedule._rhythms._cached) <= 16
    assert len(kept.schedule.state.due.spans) <= 1_001
    assert kept.schedule.memory_bytes == 0
    kept.check_sums()
    kept.store.close()


@pytest.mark.promise(
    "Continuous crawls", "The sums that divide the visits equal those of the pages after any sequence of events."
)
@pytest.mark.parametrize("seed", range(4))
def test_sums_are_those_of_the_pages_whatever_happens(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    policy = draw.choice(["optimal", "lambda", "uniform", "adaptive"])
    kept = Kept(tmp_path, max_age_s={"/3": 5_000.0}, interval_s_mean=10_000.0, policy=policy, gone_max=2)
    texts = [f"http://h{page % 5}.test/{page}" for page in range(40)]
    now = T0
    for step in range(1_500):
        now += draw.expovariate(1 / 50)
        text, what = draw.choice(texts), draw.random()
        if what < 0.6:
            kept.visit(
                text, now, draw.randrange(4), permitted_per_s=draw.choice([0.0, 0.001, 5.0]), depth=draw.randrange(3)
            )
        elif what < 0.7:
            kept.visit(text, now, outcome="http_error", status=draw.choice([404, 500]), digest=0, payload=b"")
        elif what < 0.72:
            kept.visit(text, now, outcome="excluded", status=None, digest=0, payload=b"")
        else:
            notice = Notice(
                named(text), "feed", changed_at=draw.choice([None, now, now - 5_000]), complete=draw.random() < 0.3,
                due_now=draw.random() < 0.3, interval_hint_s=draw.choice([None, 900.0]),
                interval_s=draw.choice([None, None, 0.0, 700.0]), importance=draw.choice([None, 0.0, 3.0]),
            )  # fmt: skip
            kept.queue.under_way = {text} if draw.random() < 0.2 else set()
            kept.schedule.note(notice, now)
        if step % 100 == 0:
            kept.check_sums()
    kept.check_sums()
    facts = page_facts(kept.epochs, named(texts[0]))
    due_at = kept.queue.due.get(texts[0])
    assert facts.get("next_due") == (iso_time(due_at, "milliseconds", "+00:00") if due_at is not None else None)
    kept.store.close()


@pytest.mark.parametrize(("numbers", "after"), [([0, 1], [0, 1, -1]), ([1, 0], [1, 0, -1]), ([0, 0], [0, 0, -1])])
def test_pages_that_move_keep_their_promises_under_the_numbers_of_the_other_shard(
    numbers: list[int], after: list[int]
) -> None:
    pages = [(bytes([n + 1]), encode_memory(Memory("http://a.test/", 0.0, 0.0, promise=n))) for n in (0, 1, -1)]
    moved = [(key, decode_memory(data).promise) for key, data in renumber(numbers, pages)]
    assert moved == [(bytes([n + 1]), number) for n, number in zip((0, 1, -1), after, strict=True)]
