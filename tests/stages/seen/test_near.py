"""Near-duplicates: all within three bits are found, within their scope, over restarts, in bounded room."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.model.pages import Sketch
from gossamer.stages.seen.content import ENTRIES_MAX, SHINGLES_MIN, NearContentSeen
from gossamer.stages.seen.shingles import sketch
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url

DICE = random.Random(4)


def named(text: str) -> Url:
    url = Namer().name(text)
    assert url is not None
    return url


def of(simhash: int, shingles: int = 100) -> Sketch:
    return Sketch(1, simhash, shingles)


FIRST = named("https://www.example.org/first")
SAME_HOST = named("https://www.example.org/second")
SAME_SITE = named("https://docs.example.org/")
ELSEWHERE = named("https://example.net/")
HOLDER = (FIRST.partition, FIRST.fingerprint)


@pytest.fixture
def epochs(tmp_path: Path) -> Iterator[Epochs]:
    store = Store(tmp_path / "store")
    yield Epochs(store)
    store.close()


@pytest.mark.parametrize("bits", range(8))
def test_what_differs_in_three_bits_at_most_is_found_and_nothing_else(epochs: Epochs, bits: int) -> None:
    near = NearContentSeen(epochs, "host")
    for _ in range(50):
        simhash = DICE.getrandbits(64)
        near.remember(of(simhash), FIRST)
        flipped = simhash
        for bit in DICE.sample(range(64), bits):
            flipped ^= 1 << bit
        assert near.find(of(flipped), SAME_HOST) == (HOLDER if bits <= 3 else None)


def test_the_nearest_is_named_and_a_page_is_not_its_own_copy(epochs: Epochs) -> None:
    near = NearContentSeen(epochs, "shard")
    near.remember(of(0b11), FIRST)
    near.remember(of(0b1), ELSEWHERE)
    assert near.find(of(0), SAME_HOST) == (ELSEWHERE.partition, ELSEWHERE.fingerprint)
    assert near.find(of(0), ELSEWHERE) == HOLDER


def test_fewer_bits_can_be_asked_for(epochs: Epochs) -> None:
    near = NearContentSeen(epochs, "host", 1)
    near.remember(of(0), FIRST)
    assert near.find(of(1), SAME_HOST) == HOLDER
    assert near.find(of(3), SAME_HOST) is None


@pytest.mark.parametrize(
    ("scope", "within"),
    [("host", [SAME_HOST]), ("site", [SAME_HOST, SAME_SITE]), ("shard", [SAME_HOST, SAME_SITE, ELSEWHERE])],
)
def test_a_content_is_near_within_its_scope_alone(epochs: Epochs, scope: str, within: list[Url]) -> None:
    near = NearContentSeen(epochs, scope)
    near.remember(of(7), FIRST)
    assert [url for url in (SAME_HOST, SAME_SITE, ELSEWHERE) if near.find(of(7), url) == HOLDER] == within


def test_pages_of_a_few_words_are_near_nothing(epochs: Epochs) -> None:
    near = NearContentSeen(epochs, "host")
    near.remember(of(7, SHINGLES_MIN - 1), FIRST)
    assert near.find(of(7), SAME_HOST) is None
    near.remember(of(7), FIRST)
    assert near.find(of(7, SHINGLES_MIN - 1), SAME_HOST) is None


def test_it_is_remembered_over_a_restart_if_it_was_committed(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    epochs = Epochs(store)
    NearContentSeen(epochs, "host").remember(of(7), FIRST)
    epochs.close_at_once()
    NearContentSeen(epochs, "host").remember(of(7 << 20), FIRST)
    store.close()
    store = Store(tmp_path / "store")
    near = NearContentSeen(Epochs(store), "host")
    assert near.find(of(7), SAME_HOST) == HOLDER
    assert near.find(of(7 << 20), SAME_HOST) is None
    store.close()


def test_a_block_that_all_pages_share_does_not_grow_without_end(epochs: Epochs) -> None:
    near = NearContentSeen(epochs, "host")
    for number in range(3 * ENTRIES_MAX):
        near.remember(of(number << 16 | DICE.getrandbits(40) << 24), FIRST)  # Their lowest block is the same.
    values = [epochs.get("content", key) or b"" for key in near._keys(0, FIRST)]
    assert len(values[0]) == ENTRIES_MAX * 18
    assert max(map(len, values)) == ENTRIES_MAX * 18


def test_a_page_is_found_among_more_than_share_a_block(epochs: Epochs) -> None:
    near = NearContentSeen(epochs, "shard")
    near.remember(of(0x0123_4567_89AB_CDEF), FIRST)
    for number in range(ENTRIES_MAX):
        near.remember(of(DICE.getrandbits(64)), named(f"https://h{number}.example.net/"))
    assert near.find(of(0x0123_4567_89AB_CDEF ^ 0b111), SAME_HOST) == HOLDER


def test_a_shingle_more_or_less_is_a_near_duplicate(epochs: Epochs) -> None:
    dice = random.Random(4)  # Its own: one word in 900 is too much for one page in twenty.
    words = [
        f"word{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n % 7)}" for n in dice.choices(range(600), k=900)
    ]
    page = sketch(" ".join(words).encode())
    near = NearContentSeen(epochs, "host")
    near.remember(page, FIRST)
    for at in (3, 200, 500):
        assert near.find(sketch(" ".join([*words[:at], "another", *words[at + 1 :]]).encode()), SAME_HOST) == HOLDER
    dice.shuffle(words)
    assert near.find(sketch(" ".join(words).encode()), SAME_HOST) is None
