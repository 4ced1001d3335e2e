"""Forms: which frontier and which order the options name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gossamer.frontier.frontier import Frontier
from gossamer.frontier.host_priority import Combined, HostOpic, LargerSites
from gossamer.frontier.options import BudgetOptions, FrontierOptions, PolitenessOptions, WalkOptions
from gossamer.frontier.politeness import politeness
from gossamer.frontier.priority import BestFirst, BreadthFirst
from gossamer.frontier.walk import Walk
from gossamer.ports import PatternMatcher, Prioritizer
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.url import Url
from gossamer.world.dice import Dice

Form = Frontier | Walk


class FormOptions(Protocol):
    """The sections that a frontier is made by."""

    @property
    def politeness(self) -> PolitenessOptions: ...

    @property
    def frontier(self) -> FrontierOptions: ...

    @property
    def budget(self) -> BudgetOptions: ...

    @property
    def walk(self) -> WalkOptions: ...


def named_order(options: FrontierOptions, patterns: Callable[[tuple[str, ...]], PatternMatcher]) -> Prioritizer:
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
    options: FormOptions,
    prioritizer: Prioritizer,
    name_url: Callable[[str], Url | None],
    dice: Dice,
    now: float,
) -> Form:
    """Return the frontier of the form that is named."""
    own = options.frontier
    rules = politeness(options.politeness)
    sweep = Frontier(store, epochs, contacts, rules, own, name_url, dice, now, options.budget, prioritizer)
    return Walk(sweep, epochs, options.walk, name_url, dice) if own.form == "walk" else sweep
