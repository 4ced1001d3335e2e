"""Segments: builds from a configuration what a builder of segments needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gossamer.assembly.parts import chosen_modules, filters_of, prioritizer_of
from gossamer.assembly.schemes import namer_for
from gossamer.config import Config
from gossamer.config.lists import forgotten_in, scope_lists
from gossamer.fetch.decoding import BoundedDecoder
from gossamer.model.visits import Findings, Page
from gossamer.ports import Prioritizer
from gossamer.process.links import redirect_target
from gossamer.scope.chain import Chain, scope_chain
from gossamer.scope.forgotten import Forgotten
from gossamer.scope.roots import Roots
from gossamer.url.name import Namer
from gossamer.world.clock import WallClock


@dataclass(frozen=True, slots=True)
class Judge:
    """Names addresses and judges links, as a crawl with this configuration does."""

    namer: Namer
    roots: Roots
    """Empty at first: the builder adds the seeds and the targets of their redirects."""
    chain: Chain
    prioritizer: Prioritizer


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads what a page names."""

    decoder: BoundedDecoder
    find: Callable[[Page], Findings]
    redirect_target: Callable[[str, Sequence[tuple[str, str]]], str | None]
    """Of an address and its headers."""


def judge_of(config: Config, places: Iterable[Path] = ()) -> Judge:
    """Return the judge of links. It rejects pages that were removed with `forget` from the crawls in `places`.

    Raises:
        ConfigError: a list or a component cannot be loaded.
    """
    roots = Roots(config.scope.scope)
    entries = {entry.at + entry.pattern: entry for place in places for entry in forgotten_in(config, place)}
    forgotten = [Forgotten(tuple(entries.values()), WallClock().now)] if entries else []
    chain = scope_chain(config.scope, roots, None, [*filters_of(config), *forgotten], scope_lists(config))
    return Judge(namer_for(config), roots, chain, prioritizer_of(config))


def reader_of(config: Config) -> Reader:
    """Return the reader of pages, with the processing modules that the configuration names."""
    modules = chosen_modules(config).inside
    return Reader(BoundedDecoder(config.fetch), lambda page: modules.process(page).findings, redirect_target)
