"""Segments: what a builder of segments needs of the rooms, made of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gossamer.assembly.parts import chosen_modules, filters_of, prioritizer_of
from gossamer.assembly.schemes import namer_for
from gossamer.config import Config
from gossamer.config.lists import scope_lists
from gossamer.fetch.decoding import BoundedDecoder
from gossamer.model.visits import Findings, Page
from gossamer.ports import Prioritizer
from gossamer.process.links import redirect_target
from gossamer.scope.chain import Chain, scope_chain
from gossamer.scope.roots import Roots
from gossamer.url.name import Namer


@dataclass(frozen=True, slots=True)
class Judge:
    """Names addresses and judges links, as a crawl with this configuration does."""

    namer: Namer
    roots: Roots
    """Empty: whoever builds adds the seeds and where they redirect."""
    chain: Chain
    prioritizer: Prioritizer


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads what a page names."""

    decoder: BoundedDecoder
    find: Callable[[Page], Findings]
    redirect_target: Callable[[str, Sequence[tuple[str, str]]], str | None]
    """Of an address and its headers."""


def judge_of(config: Config) -> Judge:
    """Return who judges links.

    Raises:
        ConfigError: a list or a component cannot be had.
    """
    roots = Roots(config.scope.scope)
    chain = scope_chain(config.scope, roots, None, filters_of(config), scope_lists(config))
    return Judge(namer_for(config), roots, chain, prioritizer_of(config))


def reader_of(config: Config) -> Reader:
    """Return who reads pages, with the processing modules that the configuration names."""
    modules = chosen_modules(config).inside
    return Reader(BoundedDecoder(config.fetch), lambda page: modules.process(page).findings, redirect_target)
