"""The Bloom form: its rate is what was asked for, however the URLs fall, and its files are what was committed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.ports import KNOWN, NEW
from gossamer.stages.seen.bloom import BloomUrlSeen
from gossamer.stages.seen.offers import FOLDER, GROUPS
from gossamer.stages.seen.options import SeenOptions
from gossamer.url.url import Url, fingerprint
from tests.stages.seen.opened import Opened, numbered


def of_one_site(number: int) -> Url:
    return Url("", "", fingerprint(f"http://one.example/{number}"), "one.example", "one.example", 77)


def bloom_of(opened: Opened) -> BloomUrlSeen:
    assert isinstance(opened.seen, BloomUrlSeen)
    return opened.seen


@pytest.mark.heavy
@pytest.mark.parametrize("rate", [0.05, 0.001])
@pytest.mark.parametrize("expected", [20_000, 2_000], ids=["as expected", "ten times as many"])
@pytest.mark.parametrize("url", [numbered, of_one_site])
def test_no_more_new_urls_are_lost_than_was_stated(tmp_path: Path, rate: float, expected: int, url: object) -> None:
    opened = Opened("bloom", tmp_path, SeenOptions(expected_urls=expected, false_positive_rate=rate))
    count = 20_000
    lost = 0
    for start in range(0, count, 1000):
        lost += opened.offer([url(number) for number in range(start, start + 1000)]).count(KNOWN)  # type: ignore[operator]
    asked = [url(number) for number in range(count, 2 * count)]  # type: ignore[operator]
    wrong = sum(
        any(one.fingerprint in each.bits for each in bloom_of(opened)._chains[one.fingerprint >> 60]) for one in asked
    )
    chance = 5 * (count * rate) ** 0.5
    assert lost <= count * rate + chance
    assert wrong <= count * rate + chance, "the rate holds for a filter that holds them all"
    assert opened.offer([url(number) for number in range(count)]).count(NEW) == 0  # type: ignore[operator]
    opened.crash()


@pytest.mark.parametrize("url", [numbered, of_one_site])
def test_memory_is_what_the_expected_urls_need(tmp_path: Path, url: Callable[[int], Url]) -> None:
    options = SeenOptions(backend="bloom", expected_urls=100_000, false_positive_rate=1e-4)
    opened = Opened("bloom", tmp_path, options)
    for start in range(0, 100_000, 1000):
        opened.offer([url(number) for number in range(start, start + 1000)])
    filters = [one for chain in bloom_of(opened)._chains for one in chain]
    assert len(filters) == GROUPS
    assert options.filter_bytes <= sum(one.bits.size_in_bits // 8 for one in filters) < 1.06 * options.filter_bytes
    opened.crash()


def test_files_take_over_from_the_log_and_other_files_go(tmp_path: Path) -> None:
    options = SeenOptions(expected_urls=1000, false_positive_rate=1e-6, log_urls_max=1600)
    opened = Opened("bloom", tmp_path, options)
    for start in range(0, 6000, 100):
        opened.offer([numbered(number) for number in range(start, start + 100)])
        opened.commit()
        opened.wait()
        assert max(bloom_of(opened)._logged) <= 1600 // GROUPS + 100
    while bloom_of(opened)._saving is not None:
        opened.wait()
        opened.commit()
    names = {entry.name for entry in opened.journals.finals(FOLDER)}
    assert len(names) > GROUPS
    assert {f"{FOLDER}/{path.name}" for path in (tmp_path / FOLDER).iterdir()} == names
    opened.crash()
    (tmp_path / FOLDER / "03-00-00000999.bloom").write_bytes(b"of an epoch that never was")
    opened = Opened("bloom", tmp_path, options)
    assert {f"{FOLDER}/{path.name}" for path in (tmp_path / FOLDER).iterdir()} == names
    assert set(opened.offer([numbered(number) for number in range(6000)])) == {KNOWN}
    assert sum(one.urls for chain in bloom_of(opened)._chains for one in chain) == 6000
    opened.crash()


def of_one_group(group: int, begin: int, end: int) -> list[Url]:
    return [url for url in map(numbered, range(begin, end)) if url.fingerprint >> 60 == group]


@pytest.mark.heavy
def test_what_restarts_leave_in_the_log_counts(tmp_path: Path) -> None:
    """A crawl that is begun again and again reads no longer log than one that runs on."""
    options = SeenOptions(expected_urls=1000, false_positive_rate=1e-6, log_urls_max=1600)
    for start in range(0, 4000, 200):
        opened = Opened("bloom", tmp_path, options)
        opened.offer([numbered(number) for number in range(start, start + 200)])
        for _ in range(2 * GROUPS):
            opened.commit()
            opened.wait()
        logged = sum(len(fingerprints) for _, fingerprints, _ in bloom_of(opened)._offers.replay())
        assert logged <= 1600
        opened.crash()
    opened = Opened("bloom", tmp_path, options)
    assert set(opened.offer([numbered(number) for number in range(4000)])) == {KNOWN}
    opened.crash()


def test_a_file_that_never_counted_takes_no_name_of_one_that_does(tmp_path: Path) -> None:
    """Else a crash would leave what the lost epoch had found in a filter: known, and in nobody's queue."""
    options = SeenOptions(expected_urls=10_000, false_positive_rate=1e-6, log_urls_max=1)
    known, lost = of_one_group(5, 0, 400), of_one_group(5, 400, 800)
    opened = Opened("bloom", tmp_path, options)
    opened.offer(known)
    for _ in range(2):
        opened.commit()
        opened.wait()
    opened.crash()
    opened = Opened("bloom", tmp_path, options)
    opened.offer(lost)
    opened.begin_commit()
    opened.wait()
    opened.crash()
    opened = Opened("bloom", tmp_path, options)
    assert opened.offer(known) == [KNOWN] * len(known)
    assert opened.offer(lost) == [NEW] * len(lost)
    opened.crash()


def test_filters_that_are_full_are_not_written_again(tmp_path: Path) -> None:
    options = SeenOptions(expected_urls=16, false_positive_rate=1e-6, log_urls_max=1)
    for start in (0, 2000, 4000):
        opened = Opened("bloom", tmp_path, options)
        before = {path.name for path in (tmp_path / FOLDER).glob("05-*")}
        opened.offer(of_one_group(5, start, start + 2000))
        for _ in range(3):
            opened.commit()
            opened.wait()
        opened.commit()
        after = {path.name for path in (tmp_path / FOLDER).glob("05-*")}
        assert after != before
        assert len(before - after) <= 1, "the last one, which had room"
        opened.crash()


def test_it_tells_what_was_offered_and_what_was_not(tmp_path: Path) -> None:
    opened = Opened("bloom", tmp_path, SeenOptions(expected_urls=100, false_positive_rate=1e-6))
    opened.offer([numbered(number) for number in range(2000)])
    known = [bloom_of(opened).knows(numbered(number)) for number in range(4000)]
    assert known == [True] * 2000 + [False] * 2000
    opened.crash()


def test_a_damaged_file_does_not_open(tmp_path: Path) -> None:
    options = SeenOptions(expected_urls=1000, log_urls_max=1)
    opened = Opened("bloom", tmp_path, options)
    opened.offer([numbered(1)])
    opened.commit()
    opened.wait()
    opened.commit()
    opened.crash()
    path = next((tmp_path / FOLDER).iterdir())
    data = path.read_bytes()
    path.write_bytes(data[:30] + bytes([data[30] ^ 1]) + data[31:])
    with pytest.raises(OSError, match="damaged"):
        Opened("bloom", tmp_path, options)
