"""Archives: what keeps a shard's pages, and what makes tables and the search index of it. They need Arrow."""

from typing import cast

from gossamer.assembly.home import Home
from gossamer.config import Config, effective_toml
from gossamer.config.secret import redact
from gossamer.model.extras import require
from gossamer.model.product import __version__
from gossamer.plugins import fitting
from gossamer.ports import Archive
from gossamer.stages.archive.archive import Archives, Followers, Following
from gossamer.stages.archive.follower import Follower, Sealer
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.warc import WarcArchive, WarcInfo
from gossamer.stages.process.choice import Chosen
from gossamer.state.journals import Journals
from gossamer.world.clock import Clock


def archives_of(
    config: Config, home: Home, journals: Journals, incarnation: int, modules: Chosen, clock: Clock
) -> tuple[Archives, Followers]:
    """Return the archives, and the followers that make tables and the search index from their logs."""
    directory = home.directory
    shard = home.shard
    about = WarcInfo(
        software=f"gossamer/{__version__}",
        user_agent=config.operator.user_agent(__version__),
        robots="RFC 9309" if config.robots.obey else "ignore",
        operator=config.operator.contact,
        is_part_of=directory.resolve().name,
        configuration=effective_toml(config, shown=redact),
    )
    warc = WarcArchive(config.archive, journals, about, shard, incarnation)
    components = [
        (name, cast("Archive", fitting(name, "components.archives", Archive, journals=journals, directory=directory)))
        for name in config.components.archives
    ]
    tables = TableWriters(config.archive, journals, shard, incarnation, modules.columns, modules.tables)
    logs, followers = _followers(config, journals, clock, shard, incarnation)
    return Archives([warc, tables, *logs], components), followers


def _followers(
    config: Config, journals: Journals, clock: Clock, shard: int, incarnation: int
) -> tuple[list[Archive], Followers]:
    """Return archives whose logs are for a follower, and all followers; remove files left by a crash. Raises
    ConfigError: search is on and its library is not installed, or its index is one that we cannot read.
    """
    logs: list[Archive] = []
    tables = Follower(journals, config.archive.table_group_bytes_max)
    tables.sweep()
    # What is sealed takes effect with the commits that the others need.
    followers: list[Following] = [Sealer(journals), tables]
    if config.search.enabled:
        require("tantivy", "search.enabled")
        from gossamer.results.search import log  # noqa: PLC0415 - a crawl without an index has no use for it

        logs.append(log.SearchLog(config.search, journals, clock, shard, incarnation))
        followers.append(log.IndexFollower(config.search, journals))
    return logs, Followers(followers)
