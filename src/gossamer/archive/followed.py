"""Followed: whoever makes views of a crawl's logs while it goes on; search is imported only where it is wanted."""

from __future__ import annotations

from importlib import import_module

from gossamer.archive.archive import Closing, Followers, Following
from gossamer.archive.follower import Follower
from gossamer.archive.sealing import Sealer
from gossamer.archive.search.options import SearchOptions
from gossamer.model.extras import require
from gossamer.state.journals import Journals
from gossamer.world.clock import Clock


def followed(
    options: SearchOptions, journals: Journals, clock: Clock, shard: int, incarnation: int, group_bytes_max: int
) -> tuple[list[Closing], Followers]:
    """Return archives that only note things for a follower, and all followers; what a crash left is swept up.

    Raises:
        ConfigError: search is on and its library is not installed, or its index is one that we cannot read.
    """
    logs: list[Closing] = []
    tables = Follower(journals, group_bytes_max)
    tables.sweep()
    # What is sealed takes effect with the commits that the others need.
    followers: list[Following] = [Sealer(journals), tables]
    if options.enabled:
        require("tantivy", "search.enabled")
        log = import_module("gossamer.archive.search.log")
        follower = import_module("gossamer.archive.search.follower")
        logs.append(log.SearchLog(options, journals, clock, shard, incarnation))
        followers.append(follower.IndexFollower(options, journals))
    return logs, Followers(followers)
