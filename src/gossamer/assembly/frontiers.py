"""Frontiers: builds the configured frontier, with the operator's around it."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isfunction
from typing import cast

from gossamer.assembly.parts import budget_of
from gossamer.assembly.revisits import frontier_options_of, share_new_of
from gossamer.config import Config
from gossamer.crawl.commit import Storage
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.hosts import HostRecords
from gossamer.frontier.politeness import Politeness
from gossamer.frontier.priority import FrontierRules
from gossamer.frontier.remembered import Remembered
from gossamer.frontier.walk import frontier_of
from gossamer.frontier.wrapping import WrappedFrontier
from gossamer.model.errors import ConfigError
from gossamer.plugins import build, naming
from gossamer.ports import Prioritizer
from gossamer.state.epoch import Epochs
from gossamer.state.schema import FRONTIER_COMPONENT
from gossamer.state.store import HostsStore
from gossamer.url.name import Namer
from gossamer.world.dice import Dice


def frontier_for(
    config: Config,
    storage: Storage,
    rules: Politeness,
    prioritizer: Prioritizer,
    namer: Namer,
    dice: Dice,
    now: float,
    travelling: Sequence[tuple[int, int]] = (),
) -> Frontier | WrappedFrontier:
    """Return the frontier of a crawl; `travelling`: see `HostRecords`.

    Raises:
        ConfigError: the crawl began with another frontier, or the operator's does not fit.
    """
    options, budget, share_new = frontier_options_of(config), budget_of(config), share_new_of(config)
    remembered = remembered_of(config, storage.hosts, now)
    records = HostRecords(storage.store, storage.epochs, storage.contacts, remembered, travelling)
    chosen = FrontierRules(rules, options, budget, prioritizer, share_new, config.url.split)
    ours = frontier_of(records, chosen, config.walk, namer.name, dice, now)
    return _wrapped(config, ours, storage.epochs, namer, dice)


def _wrapped(
    config: Config, frontier: Frontier | WrappedFrontier, epochs: Epochs, namer: Namer, dice: Dice
) -> Frontier | WrappedFrontier:
    """Return the operator's frontier around ours, or ours if none is configured.

    Raises:
        ConfigError: it does not fit, or the crawl began with another frontier, which holds the queued URLs.
    """
    name, key = config.components.frontier, "components.frontier"
    begun = epochs.get("meta", FRONTIER_COMPONENT)
    if begun is None:
        begun = b"" if epochs.number > 1 else name.rpartition(":")[2].encode()
        epochs.put("meta", FRONTIER_COMPONENT, begun)
    if begun.decode() != name.rpartition(":")[2]:
        kept = begun.decode() or "none"
        raise ConfigError(f"{key}: this crawl began with {kept} and keeps it, for it holds what is queued; set it back")
    if not name:
        return frontier
    if not isinstance(frontier, Frontier):
        raise ConfigError(f"{key}: not with frontier.strategy = {config.frontier.strategy!r}; leave out one of them")
    made = build(name, key, gates=frontier, epochs=epochs, name_url=namer.name, dice=dice)
    if not isinstance(made, WrappedFrontier):
        raise ConfigError(f"{key}: {name} does not derive from gossamer.frontier.wrapping.WrappedFrontier")
    inherited = vars(WrappedFrontier).items()
    changed = [method for method, ours in inherited if isfunction(ours) and getattr(type(made), method) is not ours]
    return cast("WrappedFrontier", naming(made, name, key, *(one for one in changed if not one.startswith("_"))))


def remembered_of(config: Config, store: HostsStore | None, now: float) -> Remembered | None:
    """Return the state of hosts from earlier crawls; None without a hosts store."""
    if store is None:
        return None
    return Remembered(store, config.frontier.errors_remembered_s, now, crawl_delays=config.robots.obey)
