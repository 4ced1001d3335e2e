"""The backend that the configuration names is the one that a crawl gets, keeps, and can be asked when it is stopped."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gossamer.assembly.building import assemble
from gossamer.assembly.stopped import open_stopped
from gossamer.config import Config
from gossamer.model.errors import ConfigError
from gossamer.options import convert
from gossamer.stages.seen.options import SeenOptions
from gossamer.stages.seen.urls import MemoryUrlSeen
from tests.stages.seen.opened import FORMS, numbered

NAMES = ("RocksUrlSeen", "MemoryUrlSeen", "DiskMergeUrlSeen", "BloomUrlSeen")
URLS = [numbered(number) for number in range(200)]
ZEROS = [0] * len(URLS)


def config_of(backend: str) -> Config:
    seen = convert(SeenOptions, {"backend": backend, "front_urls_max": 50, "log_urls_max": 1, "expected_urls": 1000})
    return Config(seen=seen)


async def crawled(backend: str, directory: Path) -> tuple[str, list[int]]:
    """Open a crawl, offer, commit as the shard does, and close; return the backend's class and its answers."""
    shard = assemble(config_of(backend), directory)
    try:
        answers = list(shard.ring.urls.url_seen.offer(URLS, ZEROS, ZEROS))
        for _ in range(4):
            await shard.kept.committer.commit()
        return type(shard.ring.urls.url_seen).__name__, answers
    finally:
        await shard.close()


@pytest.mark.parametrize(("backend", "name"), list(zip(FORMS, NAMES, strict=True)))
def test_a_crawl_gets_its_form_and_keeps_what_it_committed(tmp_path: Path, backend: str, name: str) -> None:
    assert asyncio.run(crawled(backend, tmp_path)) == (name, [1] * 200)
    stopped = open_stopped(config_of(backend), tmp_path)
    assert stopped.url_seen.way(URLS[0]) == (None if backend == "bloom" else (0, 0))
    stopped.close()
    assert asyncio.run(crawled(backend, tmp_path)) == (name, [0] * 200)


def test_a_crawl_keeps_the_form_that_it_began_with(tmp_path: Path) -> None:
    asyncio.run(crawled("memory", tmp_path))
    with pytest.raises(ConfigError, match=r"seen\.backend: this crawl began with 'memory'"):
        assemble(config_of("bloom"), tmp_path)
    with pytest.raises(ConfigError, match=r"seen\.backend"):
        open_stopped(config_of("rocksdb"), tmp_path)
    assert asyncio.run(crawled("memory", tmp_path))[1] == [0] * 200, "a refusal changes nothing and holds nothing"


class Own(MemoryUrlSeen):
    """One that a crawl brings with it."""


def test_a_crawl_keeps_a_component_of_its_own_and_takes_none_later(tmp_path: Path) -> None:
    """Either way the new one would know no URL, and all of them would be fetched again."""
    own = convert(Config, {"components": {"url_seen": f"{__name__}:Own"}})

    async def begin(config: Config, directory: Path) -> str:
        shard = assemble(config, directory)
        try:
            shard.ring.urls.url_seen.offer(URLS, ZEROS, ZEROS)
            await shard.kept.committer.commit()
            return type(shard.ring.urls.url_seen).__name__
        finally:
            await shard.close()

    for _ in range(2):
        assert asyncio.run(begin(own, tmp_path / "own")) == "Own"
        assert asyncio.run(begin(config_of("rocksdb"), tmp_path / "ours")) == "RocksUrlSeen"
    with pytest.raises(ConfigError, match=r"^components\.url_seen: this crawl began with a component of its own and "):
        assemble(config_of("rocksdb"), tmp_path / "own")
    with pytest.raises(
        ConfigError, match=r"^components\.url_seen: this crawl began with seen\.backend = 'rocksdb' and "
    ):
        assemble(own, tmp_path / "ours")
