"""URLs of partitions that move to another shard are known there, whatever backend remembers them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.ports import KNOWN, NEW, SHORTER, UrlSeen
from gossamer.stages.seen.moved import MovedUrls
from gossamer.stages.seen.options import SeenOptions
from gossamer.state.schema import LISTED, partition_range
from gossamer.url.url import Url
from tests.stages.seen.opened import FORMS, Opened, numbered

LISTING = tuple(form for form in FORMS if form != "rocksdb")
SMALL = SeenOptions(
    front_urls_max=40, held_urls_max=20, popular_urls_max=8, filter_bits=2, expected_urls=200, log_urls_max=50,
    false_positive_rate=1e-9,
)  # fmt: skip
URLS = [numbered(number) for number in range(400)]
FIRST = 1_000
END = 3_000
"""The partitions that move."""
MOVING = [url for url in URLS if FIRST <= url.partition < END]
STAYING = [url for url in URLS if not FIRST <= url.partition < END]
STEP = 50


def moved_of(seen: UrlSeen) -> MovedUrls:
    found = getattr(seen, "moved", None)
    assert isinstance(found, MovedUrls)
    return found


def key_of(url: Url) -> bytes:
    return url.partition.to_bytes(2) + url.fingerprint.to_bytes(8)


def urls_of(_: str, key: bytes, __: bytes) -> list[tuple[int, int]]:
    return [(int.from_bytes(key[:2]), int.from_bytes(key[-8:]))]


def visited(form: str, directory: Path) -> Opened:
    """Return a shard that knows all URLs by a path of three clicks, and visited them; most are in files."""
    opened = Opened(form, directory, SMALL)
    for start in range(0, len(URLS), 40):
        opened.offer(URLS[start : start + 40], depth=3)
        opened.commit()
        opened.wait()
    opened.epochs.put_many("page", {key_of(url): b"" for url in URLS})
    opened.commit()
    return opened


def list_all(giver: Opened) -> list[int]:
    """List the URLs of the partitions that move; return how many keys each commit had."""
    sizes = []
    cursor: tuple[int, bytes] | None = (0, b"")
    while cursor is not None:
        cursor = moved_of(giver.seen).list_known(FIRST, END, cursor, STEP, urls_of)
        sizes.append(giver.epochs.size)
        giver.epochs.close_at_once()
    return sizes


def give(giver: Opened, receiver: Opened) -> None:
    """Copy the listed keys, as moves do, and take the partitions in."""
    for key, value in giver.epochs.scan(LISTED.family, *partition_range(FIRST, END)):
        receiver.epochs.put(LISTED.family, key, value)
    moved_of(receiver.seen).partitions.update(range(FIRST, END))
    receiver.commit()


@pytest.mark.parametrize("form", LISTING)
def test_urls_of_moved_partitions_are_known_and_others_are_not(form: str, tmp_path: Path) -> None:
    giver = visited(form, tmp_path / "giver")
    receiver = Opened(form, tmp_path / "receiver", SMALL)
    assert max(list_all(giver)) <= STEP, "memory is bounded while a partition moves"
    give(giver, receiver)
    assert set(receiver.offer(MOVING, depth=3)) == {KNOWN}
    assert set(receiver.offer(STAYING, depth=3)) == {NEW}
    receiver.commit()
    receiver.crash()
    again = Opened(form, tmp_path / "receiver", SMALL)
    assert set(again.offer(URLS, depth=3)) == {KNOWN}, "also after a restart"
    if form != "bloom":
        assert set(again.offer(MOVING, depth=2)) == {SHORTER}
        assert {again.seen.way(url) for url in MOVING} == {(2, 0)}
        assert set(again.offer(MOVING, depth=3)) == {KNOWN}
    giver.crash()
    again.crash()


@pytest.mark.parametrize("form", LISTING)
def test_what_is_fetched_while_partitions_are_listed_is_known(form: str, tmp_path: Path) -> None:
    giver = Opened(form, tmp_path / "giver", SMALL)
    receiver = Opened(form, tmp_path / "receiver", SMALL)
    giver.offer(MOVING, depth=3)
    giver.epochs.put_many("queue", {key_of(url): b"" for url in MOVING})
    giver.commit()
    cursor: tuple[int, bytes] | None = (0, b"")
    queued = list(MOVING)
    while cursor is not None:
        cursor = moved_of(giver.seen).list_known(FIRST, END, cursor, STEP, urls_of)
        for key in [key_of(queued.pop()) for _ in range(min(STEP, len(queued)))]:
            giver.epochs.delete("queue", key)
            giver.epochs.put("page", key, b"")
        giver.epochs.close_at_once()
    give(giver, receiver)
    assert set(receiver.offer(MOVING, depth=3)) == {KNOWN}, "or they would be fetched twice"
    giver.crash()
    receiver.crash()


@pytest.mark.parametrize("form", LISTING)
def test_what_is_offered_while_partitions_leave_goes_with_them(form: str, tmp_path: Path) -> None:
    giver = visited(form, tmp_path / "giver")
    receiver = Opened(form, tmp_path / "receiver", SMALL)
    list_all(giver)
    later = [url for url in map(numbered, range(400, 600)) if FIRST <= url.partition < END]
    assert set(giver.offer(later, depth=3)) == {NEW}
    giver.offer(MOVING[:20], depth=1)
    giver.commit()
    give(giver, receiver)
    assert set(receiver.offer(later, depth=3)) == {KNOWN}
    if form != "bloom":
        assert [receiver.seen.way(url) for url in (*MOVING[:20], MOVING[20])] == [(1, 0)] * 20 + [(3, 0)]
    giver.crash()
    receiver.crash()


@pytest.mark.parametrize("form", LISTING)
def test_partitions_that_come_back_have_the_paths_of_the_other_shard(form: str, tmp_path: Path) -> None:
    giver = visited(form, tmp_path / "giver")
    other = Opened(form, tmp_path / "other", SMALL)
    list_all(giver)
    give(giver, other)
    other.offer(MOVING, depth=1)
    other.epochs.put_many("page", {key_of(url): b"" for url in MOVING})
    other.commit()
    list_all(other)
    give(other, giver)
    if (forget := getattr(giver.seen, "forget", None)) is not None:
        forget()
    assert set(giver.offer(MOVING, depth=1)) == {KNOWN}
    giver.crash()
    other.crash()
