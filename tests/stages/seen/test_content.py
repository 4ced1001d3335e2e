"""The content-seen test: who had it first, within the scope that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.model.pages import Original
from gossamer.stages.seen.content import ExactContentSeen
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url

DIGEST, OTHER = b"d" * 20, b"e" * 20


def named(text: str) -> Url:
    url = Namer().name(text)
    assert url is not None
    return url


FIRST = named("https://www.example.org/first")
SAME_HOST = named("https://www.example.org/second")
SAME_SITE = named("https://docs.example.org/")
ELSEWHERE = named("https://example.net/")
ORIGINAL = Original(FIRST.text, 1_700_000_000.25, "<urn:uuid:1>")


@pytest.fixture
def epochs(tmp_path: Path) -> Iterator[Epochs]:
    store = Store(tmp_path / "store")
    yield Epochs(store)
    store.close()


@pytest.mark.parametrize(
    ("scope", "within"),
    [("host", [SAME_HOST]), ("site", [SAME_HOST, SAME_SITE]), ("shard", [SAME_HOST, SAME_SITE, ELSEWHERE])],
)
def test_a_content_is_known_within_its_scope_alone(epochs: Epochs, scope: str, within: list[Url]) -> None:
    content = ExactContentSeen(epochs, scope)
    content.remember(DIGEST, FIRST, ORIGINAL)

    known = [url for url in (SAME_HOST, SAME_SITE, ELSEWHERE) if content.find(DIGEST, url) is not None]
    assert known == within
    assert content.find(DIGEST, SAME_HOST) == ORIGINAL
    assert content.find(OTHER, SAME_HOST) is None


def test_contents_of_a_split_site_are_compared_with_those_of_all_its_hosts_that_are_here(epochs: Epochs) -> None:
    namer = Namer(split=["example.org"])
    one, two = (namer.name(f"https://{host}.example.org/") for host in ("www", "docs"))
    assert one is not None
    assert two is not None
    assert one.partition != two.partition
    content = ExactContentSeen(epochs, "site", frozenset(namer.split))
    content.remember(DIGEST, one, ORIGINAL)
    assert content.find(DIGEST, two) == ORIGINAL
    assert content.find(DIGEST, ELSEWHERE) is None


@pytest.mark.parametrize("scope", ["host", "site", "shard"])
def test_it_is_remembered_over_a_restart_if_it_was_committed(tmp_path: Path, scope: str) -> None:
    store = Store(tmp_path / "store")
    epochs = Epochs(store)
    ExactContentSeen(epochs, scope).remember(DIGEST, FIRST, ORIGINAL)
    epochs.close_at_once()
    ExactContentSeen(epochs, scope).remember(OTHER, FIRST, ORIGINAL)
    store.close()
    store = Store(tmp_path / "store")
    content = ExactContentSeen(Epochs(store), scope)

    assert content.find(DIGEST, SAME_HOST) == ORIGINAL
    assert content.find(OTHER, SAME_HOST) is None
    store.close()
