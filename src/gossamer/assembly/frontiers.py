"""Frontiers: builds the frontier with the configured strategy, ours or the operator's."""

from collections.abc import Sequence
from inspect import isfunction
from typing import cast

from gossamer.assembly.home import Setup
from gossamer.assembly.parts import budget_of, politeness_of
from gossamer.assembly.revisits import frontier_options_of, is_continuous, politeness_for_mode
from gossamer.config import Config
from gossamer.engine.commit import Storage
from gossamer.model.errors import ConfigError
from gossamer.plugins import build, fitting, naming, require_shapes
from gossamer.ports import Bias, Prioritizer
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.hosts import HostRecords
from gossamer.stages.frontier.priority import FrontierRules
from gossamer.stages.frontier.remembered import Remembered
from gossamer.stages.frontier.strategy import Strategy
from gossamer.stages.frontier.walk import RandomWalk
from gossamer.stages.frontier.walked import has_walked
from gossamer.stages.frontier.wrapping import WrappedFrontier
from gossamer.state.epoch import Epochs, begun_with
from gossamer.state.schema import FRONTIER_COMPONENT
from gossamer.url.name import Namer
from gossamer.world.dice import Dice

BIAS = "components.bias"


def frontier_for(
    setup: Setup, storage: Storage, prioritizer: Prioritizer, namer: Namer, travelling: Sequence[tuple[int, int]] = ()
) -> Frontier:
    """Return the frontier of a crawl; `travelling`: see `HostRecords`. Raises ConfigError: the crawl began with another
    frontier, or the operator's does not fit.
    """
    config = setup.config
    dice = setup.dice
    now = setup.clock.now()
    rules = politeness_for_mode(politeness_of(config), config)
    options = frontier_options_of(config)
    budget = budget_of(config)
    share_new = config.revisit.share_new if is_continuous(config) else None
    remembered = None
    if storage.hosts is not None:
        remembered_s = config.frontier.errors_remembered_s
        remembered = Remembered(storage.hosts, remembered_s, now, crawl_delays=config.robots.obey)
    records = HostRecords(storage.store, storage.epochs, storage.contacts, remembered, travelling)
    chosen = FrontierRules(rules, options, budget, prioritizer, share_new, config.url.split, bias_of(config, dice))
    epochs = storage.epochs
    _check_beginning(config, epochs)
    frontier = Frontier(records, chosen, namer.name, dice, now)
    if config.components.frontier:
        return _with_component(config, frontier, epochs, namer, dice)
    if config.frontier.strategy == "walk":
        frontier.strategy = RandomWalk(frontier, epochs, config.walk, namer.name, dice, begins=not setup.home.shard)
    return frontier


def _check_beginning(config: Config, epochs: Epochs) -> None:
    """Check that a resumed crawl keeps its strategy. Raises ConfigError: the crawl began with another one, whose state
    is of no use: a walk queues no links, a sweep does not keep the links of its pages, and a component holds the queued
    URLs.
    """
    strategy = config.frontier.strategy
    is_resumed = epochs.number > 1
    begun = strategy
    if is_resumed:
        begun = "walk" if has_walked(epochs) else "sweep"
    if begun != strategy:
        raise ConfigError(f"frontier.strategy: this crawl began with {begun!r} and keeps it; set it back")
    component = config.components.frontier.rpartition(":")[2].encode()
    stored = begun_with(epochs, FRONTIER_COMPONENT, b"" if is_resumed else component)
    if stored != component:
        kept = stored.decode() or "none"
        raise ConfigError(
            f"components.frontier: this crawl began with {kept} and keeps it, for it holds what is queued; set it back"
        )


def _with_component(config: Config, frontier: Frontier, epochs: Epochs, namer: Namer, dice: Dice) -> Frontier:
    """Return the frontier with the operator's strategy. Raises ConfigError: the strategy does not fit."""
    name = config.components.frontier
    key = "components.frontier"
    if config.frontier.strategy != "sweep":
        raise ConfigError(f"{key}: not with frontier.strategy = {config.frontier.strategy!r}; leave out one of them")
    component = build(name, key, gates=frontier, epochs=epochs, name_url=namer.name, dice=dice)
    if not isinstance(component, Strategy | WrappedFrontier):
        raise ConfigError(f"{key}: {name} does not derive from gossamer.stages.frontier.strategy.Strategy")
    base = Strategy if isinstance(component, Strategy) else WrappedFrontier
    inherited = vars(base).items()
    changed = [method for method, own in inherited if isfunction(own) and getattr(type(component), method) is not own]
    methods = [one for one in changed if not one.startswith("_")]
    require_shapes(component, name, key, base, methods)
    naming(component, name, key, *methods)
    if isinstance(component, WrappedFrontier):
        return component
    frontier.strategy = component
    return frontier


def bias_of(config: Config, dice: Dice) -> Bias | None:
    """Return the operator's choice among levels; None: ours. Raises ConfigError: it does not fit."""
    name = config.components.bias
    if not name:
        return None
    made = fitting(name, BIAS, Bias, bias=config.frontier.level_bias, dice=dice)
    return cast("Bias", naming(_OneOf(cast("Bias", made)), name, BIAS, "choose"))


class _OneOf:
    """The operator's bias, which must return one of the levels that it gets: no other has URLs."""

    def __init__(self, inner: Bias) -> None:
        self._inner = inner

    def choose(self, levels: Sequence[int]) -> int:
        level = self._inner.choose(levels)
        if level not in levels:
            raise ValueError(f"it returned {level!r}, not one of {sorted(levels)}")
        return level
