"""Forms: which frontier and which order the options name."""

from __future__ import annotations

from collections.abc import Callable

from gossamer.frontier.frontier import Frontier
from gossamer.frontier.host_priority import Combined, HostOpic, LargerSites
from gossamer.frontier.options import BudgetOptions, FrontierOptions, WalkOptions
from gossamer.frontier.politeness import Politeness
from gossamer.frontier.priority import BestFirst, BreadthFirst
from gossamer.frontier.remembered import Remembered
from gossamer.frontier.walk import Walk
from gossamer.frontier.walked import has_walked
from gossamer.model.errors import ConfigError
from gossamer.ports import PatternMatcher, Prioritizer
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.url import Url
from gossamer.world.dice import Dice


def prioritizer_of(options: FrontierOptions, patterns: Callable[[tuple[str, ...]], PatternMatcher]) -> Prioritizer:
    """Return the prioritizer that `priority` names; `patterns` makes one matcher of several regular expressions."""
    scored = BestFirst(options.scores, patterns(tuple(options.scores))) if options.scores else None
    match options.priority:
        case "best_first":
            return scored or BestFirst({}, patterns(()))
        case "larger_sites":
            return LargerSites()
        case "opic":
            return HostOpic()
        case "combined":
            return Combined(scored)
        case _:
            return BreadthFirst()


def frontier_of(
    store: Store,
    epochs: Epochs,
    contacts: Contacts,
    politeness: Politeness,
    options: tuple[FrontierOptions, BudgetOptions, WalkOptions],
    prioritizer: Prioritizer,
    name_url: Callable[[str], Url | None],
    dice: Dice,
    now: float,
    share_new: float | None = None,
    remembered: Remembered | None = None,
) -> Frontier | Walk:
    """Return the frontier of the form that is named.

    Raises:
        ConfigError: the crawl began with the other form. Neither holds what the other needs to go on: a walk queues no
            links, and a sweep keeps none of its pages to walk among.
    """
    own, budget, walk = options
    begun = own.form if not store.epoch else "walk" if has_walked(epochs) else "sweep"
    if begun != own.form:
        raise ConfigError(f"frontier.form: this crawl began with {begun!r} and keeps it; set it back")
    sweep = Frontier(
        store, epochs, contacts, politeness, own, name_url, dice, now, budget, prioritizer, share_new, remembered
    )
    return Walk(sweep, epochs, walk, name_url, dice) if own.form == "walk" else sweep
