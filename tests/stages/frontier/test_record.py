"""Records: a level's queue against a set, and the formats of keys."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.stages.frontier.record import (
    RECORD_VERSION,
    HostRecord,
    LevelQueue,
    Origin,
    QueueBlock,
    QueuedUrl,
    QueueEntry,
    block_key,
    decode_block,
    decode_entry,
    decode_record,
    due_key,
    due_time,
    encode_block,
    encode_entry,
    encode_record,
    host_prefix,
    lengthen,
    micros,
    range_end,
    shorten,
)
from tests.stages.frontier.names import named


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.integers(0, 12).flatmap(lambda n: st.tuples(st.just(n), st.permutations(range(n)), st.integers(0, n))))
def test_urls_finish_in_any_order(case: tuple[int, list[int], int]) -> None:
    count, order, finished = case
    queue = LevelQueue(tail=count)
    left = set(range(count))
    for number in order[:finished]:
        queue.finish(number)
        left.discard(number)

        assert queue.pending == len(left)
        assert queue.head == min(left, default=count)
        assert [queue.is_finished(n) for n in range(count)] == [n not in left for n in range(count)]
        ranges = queue.done
        assert all(begin < end for begin, end in ranges)
        assert all(before[1] < after[0] for before, after in itertools.pairwise(ranges)), "no two that touch"
        assert all(begin > queue.head for begin, _ in ranges)


def test_what_is_finished_in_order_leaves_no_ranges() -> None:
    queue = LevelQueue(tail=1000)
    for number in range(1000):
        queue.finish(number)
        assert not queue.done
    assert queue.pending == 0


def test_a_record_comes_back_as_it_was() -> None:
    record = HostRecord(
        RECORD_VERSION, "a.example", {3: LevelQueue(1, 0, 9, ((2, 3),))}, 2, 1e9, [0.5], 3.0, 3, "closed",
        "ready", b"\0\1", 7, "why", 1, 5, 3, 4, 1,
        {"http:8080": Origin(1, True, 2, 1, 1e9, 2e9, "", "refused", "why", 5.0)},
    )  # fmt: skip

    assert decode_record(encode_record(record)) == record
    assert record.urls_queued == 2 + 7


def test_a_record_of_another_version_is_refused() -> None:
    data = msgspec.msgpack.encode(HostRecord(RECORD_VERSION + 1, "a.example"))

    with pytest.raises(ConfigError, match=f"format {RECORD_VERSION + 1}, .* reads format {RECORD_VERSION}; "):
        decode_record(data)


def test_a_due_url_comes_back_as_it_was() -> None:
    entry = QueueEntry("https://a.example/ü", 1, 2, "anchor", "https://b.example/", 3, 1, "timeout")

    assert decode_entry(encode_entry(entry)) == entry


ADDRESSES = st.sampled_from(
    [
        "https://a.example/", "https://a.example/1?q=ü", "http://a.example/", "http://a.example/2", "https://a.example:8443/",
        "http://a.example.evil/", "https://u@a.example/", "ftp://a.example/f", "gopher://a.example", "https://a.example",
    ]
)  # fmt: skip


@settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(ADDRESSES, st.integers(0, 1), st.integers(0, 1), ADDRESSES | st.just(""), st.integers(0, 1))))
def test_a_blocks_urls_come_back_as_they_were_put(put: list[tuple[str, int, int, str, int]]) -> None:
    block = QueueBlock(7)
    for text, depth, hops, referrer, seed in put:
        link = Link(named(text), "anchor", depth, hops, referrer, seed)
        url = shorten(named(text).text, "a.example")
        assert block.add(url, link, shorten(referrer, "a.example")) >= len(url)
    back = decode_block(encode_block(block))

    entries = [QueueEntry(named(text).text, d, h, "anchor", referrer, 1, seed) for text, d, h, referrer, seed in put]
    assert back.count == len(put)
    assert back.entries("a.example") == entries
    items = [
        QueuedUrl(named(text), d, h, "anchor", referrer, 1, seed, False, "", 3, 7 + number)
        for number, (text, d, h, referrer, seed) in enumerate(put)
    ]
    for begin in range(len(put) + 1):
        for end in range(begin, len(put) + 1):
            assert back.items("a.example", 3, begin, end, named) == items[begin:end]


@settings(deadline=None, derandomize=True)
@given(ADDRESSES)
def test_an_address_without_its_host_comes_back_whole(text: str) -> None:
    assert lengthen(shorten(text, "a.example"), "a.example") == text


def test_urls_of_one_page_share_all_but_their_paths() -> None:
    block = QueueBlock(0)
    for number in range(50):
        block.add(f"/{number}", Link(named(f"https://a.example/{number}"), "anchor", 1), "/page")

    assert len(block.runs) == 1
    assert len(encode_block(block)) < 50 * 5 + 30


@settings(deadline=None, derandomize=True)
@given(st.floats(0, 4e9))
def test_instants_on_disk_are_never_early_and_hardly_late(at: float) -> None:
    stored = due_time(due_key(b"\0\1a\0", at, 7))

    assert at <= stored <= at + 2e-6
    assert stored == micros(at) / 1e6


def test_keys_sort_as_what_they_stand_for() -> None:
    prefix = host_prefix(7, "a.example")
    blocks = [block_key(prefix, level, number) for level in (0, 7) for number in (0, 255, 256, 2**40)]
    assert blocks == sorted(blocks)
    dues = [due_key(prefix, at, fingerprint) for at in (0.0, 1.5, 1e9, 3e9) for fingerprint in (0, 2**64 - 1)]
    assert dues == sorted(dues)


@settings(deadline=None, derandomize=True)
@given(*[st.from_regex(r"[a-z0-9.\-\[\]:]{1,20}", fullmatch=True)] * 2)
def test_a_hosts_range_holds_its_own_keys_and_nobody_elses(one: str, other: str) -> None:
    prefix = host_prefix(7, one)
    begin, end = prefix, range_end(prefix)
    for key in (block_key(prefix, 255, 2**64 - 1), due_key(prefix, 4e9, 2**64 - 1), prefix):
        assert begin <= key < end
    if one != other:
        assert not begin <= block_key(host_prefix(7, other), 3, 5) < end
