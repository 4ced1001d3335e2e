"""A stopped crawl goes on with more shards, or fewer: all that is known of a site moves with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.api import scale_crawl
from gossamer.config import Config, effective_toml
from gossamer.config.gather import reopen
from gossamer.lab.shards import ends_of
from gossamer.lab.simweb.judge import repeats
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from gossamer.model.errors import ConfigError
from tests.cluster.crawls import begun, config_of, ended

WEB = SimwebOptions(
    seed=5, hosts=30, pages=900, links_per_page=10, same_host_share=0.4, bytes_median=2_000, latency_s=0.03,
    behaviours=("robots_404", "robots_part", "redirects", "copies", "nofollow", "distinct"),
)  # fmt: skip


def opened(directory: Path) -> Config:
    return reopen(directory / "crawl.toml")


def asked_twice(simweb: SimwebProcess) -> dict[str, int]:
    return repeats(simweb.requests(), simweb.web)


@pytest.mark.promise("Several shards", "A change of the number of shards keeps everything that is known of each site.")
def test_a_crawl_goes_on_with_another_number_of_shards(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 3)
        begun(config, directory, 3, pages=150)
        for shards, pages in ((5, 300), (2, 450)):
            scaled = scale_crawl(directory, shards)
            assert scaled.after == shards
            assert scaled.partitions[0] - scaled.partitions[1] < 1.0, "a shard has more than its share"
            assert (scaled.keys_moved, scaled.partitions_moved) > (100, 1000)
            config = opened(directory)
            assert config.cluster.workers == shards
            begun(config, directory, shards, pages=pages)
        ends = ended(config, directory, 2)
        walked = Truth(simweb.web).walk(simweb.seeds)
        assert walked.differences(ends, simweb.web) == []
        assert asked_twice(simweb) == {}


def test_a_crawl_of_one_shard_becomes_one_of_several_and_one_again(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 2)
        begun(config, directory, 2, pages=150)
        assert scale_crawl(directory, 1).after == 1
        assert (directory / "state/store/CURRENT").exists()
        assert not list(directory.glob("state/shard-*"))
        assert scale_crawl(directory, 3).after == 3
        ends = ended(opened(directory), directory, 3)
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        assert asked_twice(simweb) == {}


def test_what_cannot_be_scaled_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no crawl"):
        scale_crawl(tmp_path, 2)
    directory = tmp_path / "crawl"
    with SimwebProcess(SimwebOptions.plain(hosts=4, pages=20), tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 2, "seen.backend='bloom'")
        assert set(ended(config, directory, 2).values()) == {"fetched"}
        with pytest.raises(ConfigError, match=r"seen.backend = 'bloom' cannot be divided"):
            scale_crawl(directory, 3)
        other = reopen(directory / "crawl.toml", sets=["seen.backend='rocksdb'"])
        (directory / "crawl.toml").write_text(effective_toml(other))
        with pytest.raises(ConfigError, match="1 to 1024 shards"):
            scale_crawl(directory, 0)
        assert ends_of(config, directory, 2), "nothing was touched"
