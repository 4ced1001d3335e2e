"""Frontiers: the operator's frontier around ours."""

from __future__ import annotations

from gossamer.config import Config
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.wrapping import WrappedFrontier
from gossamer.model.errors import ConfigError
from gossamer.plugins import build
from gossamer.state.epoch import Epochs
from gossamer.state.store import META_PARTITION
from gossamer.url.name import Namer
from gossamer.world.dice import Dice

FRONTIER = META_PARTITION + b"components.frontier"


def wrapped(
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
