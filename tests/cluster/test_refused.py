"""The guide lists all that a crawl of several shards refuses, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gossamer.api.shards import REFUSED, check_several
from gossamer.config import Config, configure
from gossamer.model.errors import ConfigError

GUIDE = Path(__file__).parents[2] / "docs/how-to/cluster.md"
HEADING = "## What several shards do not do"
SETS = {
    "frontier.hosts_min": ("frontier.hosts_min=2", "crawl.mode=offline", "state.checkpoint_uri=file:///tmp/none"),
    "frontier.more_seeds_command": ("frontier.more_seeds_command=['seeds']", "crawl.mode=offline"),
    "state.hosts_store": ("state.hosts_store=hosts",),
    "webmention": ("webmention.enabled=true",),
    "websub": ("crawl.mode=continuous", "websub.callback_url=https://crawler.example.org/", "console.port=0"),
}
ELSEWHERE = {"url.split_sites", "state.checkpoint_uri", "crawl.mode"}
"""Keys of the table whose combination is refused where it is read (tests/cluster/test_split_sites.py and others)."""


def config_of(*sets: str) -> Config:
    seeds = () if "crawl.mode=offline" in sets else ("https://docs.example.org/",)
    return configure(options={"contact": "me@example.org"}, sets=("cluster.workers=2", *sets), seeds=seeds)


@pytest.mark.promise(
    "Several shards", "What a crawl of several shards refuses is listed in one table, with the reason."
)
def test_the_table_lists_what_is_refused() -> None:
    table = GUIDE.read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")][2:]
    named = {key for cell in first for key in re.findall(r"`([a-z_.]+)", cell)}
    assert named - ELSEWHERE == set(REFUSED)


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_each_is_refused_in_one_line_that_names_the_key(key: str) -> None:
    check_several(config_of())
    with pytest.raises(ConfigError, match=re.escape(key)) as refused:
        check_several(config_of(*SETS[key]))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "sets",
    [("frontier.hosts_min=2", "crawl.mode=offline"), ("components.frontier=own.py:Own",), ("frontier.strategy=walk",)],
)
def test_others_are_not(sets: tuple[str, ...]) -> None:
    check_several(config_of(*sets))
