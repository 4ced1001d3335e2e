"""Live: passes a change of live keys on to the components of a running shard."""

from __future__ import annotations

from gossamer.assembly.discovery import scope_options
from gossamer.assembly.parts import budget_of, crawl_options_of, judges_again, politeness_of, retries_of
from gossamer.assembly.revisits import frontier_options_of, patient
from gossamer.assembly.values import CrawlRing
from gossamer.config import Config
from gossamer.crawl.counters import Telemetry
from gossamer.crawl.watchdogs import Watchdogs
from gossamer.state.epoch import Epochs
from gossamer.world.dice import Dice


def reconfigure(
    ring: CrawlRing,
    telemetry: Telemetry,
    watchdogs: Watchdogs,
    epochs: Epochs,
    dice: Dice,
    before: Config,
    config: Config,
) -> None:
    """Replace the configuration `before` by one that differs in live keys alone. Call it between two epochs."""
    scope = ring.scope
    if config.scope != before.scope:
        scope.chain.adopt(scope.chain_of(scope_options(config)))
        ring.pipeline.judges_again = judges_again(scope.chain, epochs)
    telemetry.counters.reconfigure(config.crawl)
    ring.pipeline.reconfigure(retries_of(config, dice), config.crawl)
    telemetry.logs.reconfigure(config.logs)
    watchdogs.reconfigure(config.watch)
    ring.loop.reconfigure(crawl_options_of(config), config.limits)
    ring.frontier.reconfigure(
        patient(politeness_of(config), config), frontier_options_of(config), budget_of(config), telemetry.clock.now()
    )
