"""Live: a running shard goes by another configuration. Each room takes what concerns it."""

from __future__ import annotations

from gossamer.assembly.parts import budget_of, crawl_options_of, judges_again, politeness_of, retries_of
from gossamer.assembly.revisits import frontier_options_of, patient
from gossamer.assembly.shard import Assembled
from gossamer.assembly.told import scope_options
from gossamer.config import Config


def reconfigure(shard: Assembled, config: Config) -> None:
    """Have a shard go by a configuration that differs from its own in live keys alone. To be called between epochs."""
    before, shard.config = shard.config, config
    if config.scope != before.scope:
        shard.chain.adopt(shard.chain_of(scope_options(config)))
        shard.pipeline.judges_again = judges_again(shard.chain, shard.epochs)
    shard.tally.reconfigure(config.crawl)
    shard.pipeline.reconfigure(retries_of(config, shard.dice), config.crawl)
    shard.logs.reconfigure(config.logs)
    shard.watchdogs.reconfigure(config.watch)
    shard.shard.reconfigure(crawl_options_of(config), config.limits)
    shard.frontier.reconfigure(
        patient(politeness_of(config), config), frontier_options_of(config), budget_of(config), shard.clock.now()
    )
