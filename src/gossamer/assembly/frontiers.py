"""Frontiers: ours in the form that the configuration names, and the operator's around it."""

from __future__ import annotations

from gossamer.assembly.hosts import remembered_of
from gossamer.assembly.parts import budget_of
from gossamer.assembly.revisits import frontier_options_of, share_new_of
from gossamer.config import Config
from gossamer.frontier.forms import frontier_of
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.politeness import Politeness
from gossamer.frontier.wrapping import WrappedFrontier
from gossamer.model.errors import ConfigError
from gossamer.plugins import build
from gossamer.ports import Prioritizer
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.hosts_store import HostsStore
from gossamer.state.store import META_PARTITION, Store
from gossamer.url.name import Namer
from gossamer.world.dice import Dice

FRONTIER = META_PARTITION + b"components.frontier"


def frontier_for(
    config: Config,
    states: tuple[Store, Epochs, Contacts, HostsStore | None],
    rules: Politeness,
    prioritizer: Prioritizer,
    namer: Namer,
    dice: Dice,
    now: float,
) -> Frontier | WrappedFrontier:
    """Return the frontier of a crawl; the last of `states` is what is remembered of hosts from crawl to crawl.

    Raises:
        ConfigError: the crawl began with another one, or the operator's does not fit.
    """
    store, epochs, contacts, hosts = states
    forms = (frontier_options_of(config), budget_of(config), config.walk)
    ours = frontier_of(
        store, epochs, contacts, rules, forms, prioritizer, namer.name, dice, now, share_new_of(config),
        remembered_of(config, hosts, now),
    )  # fmt: skip
    return _wrapped(config, ours, epochs, namer, dice)


def _wrapped(
    config: Config, frontier: Frontier | WrappedFrontier, epochs: Epochs, namer: Namer, dice: Dice
) -> Frontier | WrappedFrontier:
    """Return the operator's frontier around ours; ours where none is named.

    Raises:
        ConfigError: it does not fit, or the crawl began with another one, which holds what is queued.
    """
    name, key = config.components.frontier, "components.frontier"
    begun = epochs.get("meta", FRONTIER)
    if begun is None:
        begun = b"" if epochs.number > 1 else name.rpartition(":")[2].encode()
        epochs.put("meta", FRONTIER, begun)
    if begun.decode() != name.rpartition(":")[2]:
        kept = begun.decode() or "none"
        raise ConfigError(f"{key}: this crawl began with {kept} and keeps it, for it holds what is queued; set it back")
    if not name:
        return frontier
    if not isinstance(frontier, Frontier):
        raise ConfigError(f"{key}: not with frontier.form = {config.frontier.form!r}; leave out one of them")
    made = build(name, key, gates=frontier, epochs=epochs, name_url=namer.name, dice=dice)
    if not isinstance(made, WrappedFrontier):
        raise ConfigError(f"{key}: {name} does not derive from gossamer.frontier.wrapping.WrappedFrontier")
    return made
