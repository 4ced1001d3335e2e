"""Permits: builds the checks whether a URL may be fetched: lists, robots.txt, statements about use, forgotten pages,
and pages that earlier crawls have fetched (`--against`).
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from gossamer.assembly.home import homes
from gossamer.assembly.integrity import running_store
from gossamer.assembly.modules import filters_of
from gossamer.assembly.parts import traps_of, with_scope_in_force
from gossamer.assembly.revisits import scope_options
from gossamer.assembly.ring import CrawlScope
from gossamer.assembly.schemes import url_rules
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.config.lists import all_forgotten, scope_lists
from gossamer.engine.counters import CrawlCounters
from gossamer.engine.history import PageRecord, page_key, read_page_record
from gossamer.engine.traps import Trapping
from gossamer.model.errors import ConfigError
from gossamer.model.links import ANNOUNCING, Link
from gossamer.model.outcomes import WITH_CONTENT
from gossamer.model.words import shell_word
from gossamer.ports import Filter
from gossamer.stages.scope.chain import Chain, scope_chain
from gossamer.stages.scope.forgotten import Forgotten
from gossamer.stages.scope.lists import ExcludedHost
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.roots import Roots
from gossamer.stages.scope.traps import Trapped
from gossamer.stages.seen.content import sketch
from gossamer.state.epoch import Epochs
from gossamer.state.schema import URL_RULES
from gossamer.state.store import Store
from gossamer.world.clock import Clock


def forget_filter_of(config: Config, directory: Path, clock: Clock) -> Forgotten | None:
    """Return the filter of pages that were forgotten; None if there are none. Raises ConfigError: a list is bad."""
    entries = all_forgotten(config, directory)
    return Forgotten(entries, clock.now) if entries else None


def scope_of(config: Config, epochs: Epochs, counters: CrawlCounters, further: Iterable[Filter | None]) -> CrawlScope:
    """Return the filters of a crawl, including those of `further` that are not None."""
    in_force = with_scope_in_force(config)
    exclusions = ExcludedHost(only=in_force.scope.only_hosts)
    traps = traps_of(config, epochs)
    roots = Roots(in_force.scope.scope, in_force.scope.seed_redirects)
    lists = scope_lists(in_force)
    more = [*filters_of(config), Trapped(traps), *(one for one in further if one is not None)]
    exclusions.set_listed(lists.excluded_hosts)

    def chain_of(options: ScopeOptions) -> Chain:
        read = msgspec.structs.replace(lists, excluded_hosts=exclusions.hosts)  # The file may be read again later.
        return scope_chain(options, roots, exclusions, more, read)

    chain = chain_of(scope_options(config))
    chain.examples = counters.totals.rejected
    trapping = Trapping(traps, epochs, sketch, counters, config.url.split)
    return CrawlScope(chain, chain_of, roots, exclusions, traps, trapping)


REMEMBERED_MAX: Final = 65_536
"""Addresses whose result is cached: menus have the same links on every page."""
CACHE_BYTES: Final = 8 << 20
"""Block cache of each earlier store."""
_ALWAYS: Final = frozenset(("seed", *ANNOUNCING))
"""Types of links that are always followed, because they lead to new pages."""


class EarlierCrawls:
    """The filter `against`: rejects links to pages that earlier crawls have. About 0.2 µs for a cached address, 10 µs
    for others. Takes memory for the block cache of each store.
    """

    name = "against"

    def __init__(self, stores: Sequence[tuple[Path, Store]]) -> None:
        """`stores` are those of all shards of each crawl, with the crawl's directory."""
        self._stores = tuple(stores)
        self._remembered: dict[bytes, bool] = {}

    def rejects(self, link: Link) -> bool:
        if link.seed or link.link_type in _ALWAYS:  # What a seed redirects to is a seed, too.
            return False
        key = page_key(link.url.partition, link.url.fingerprint)
        has = self._remembered.get(key)
        if has is None:
            if len(self._remembered) >= REMEMBERED_MAX:
                self._remembered.clear()
            has = self._remembered[key] = self._find(key) is not None
        return has

    def detail(self, link: Link) -> str:
        found = self._find(page_key(link.url.partition, link.url.fingerprint))
        return f"{found[0]} has it" if found is not None else ""

    def _find(self, key: bytes) -> tuple[Path, PageRecord] | None:
        for directory, store in self._stores:
            value = store.get("page", key)
            if value is not None and (record := read_page_record(value)).outcome in WITH_CONTENT:
                return directory, record
        return None


def earlier_of(config: Config, undo: ExitStack) -> EarlierCrawls | None:
    """Return the filter of pages that earlier crawls have; None if none are named. `undo` closes their stores. Raises
    ConfigError: a directory holds no crawl, its addresses have other keys, or it cannot be read.
    """
    stores: list[tuple[Path, Store]] = []
    for name in config.scope.against:
        directory = Path(name)
        if not (directory / "crawl.toml").exists():
            raise ConfigError(f"scope.against: {directory} holds no crawl (it has no crawl.toml)")
        other = reopen(directory / "crawl.toml")
        if url_rules(other) != url_rules(config):
            raise ConfigError(f"scope.against: {directory} has other rules in the section [url]; use the same here")
        for home in homes(directory, other.cluster.workers):
            if not home.is_there:
                raise ConfigError(
                    f"scope.against: {home.store} is not there; `gossamer resume {shell_word(directory)}` brings it"
                )
            try:
                store = running_store(replace(other, state=replace(other.state, cache_bytes=CACHE_BYTES)), home)
            except OSError as error:
                raise ConfigError(f"scope.against: cannot read {home.store}: {error}") from error
            undo.callback(store.close)
            if store.get("meta", URL_RULES) is not None:  # Otherwise the crawl has not begun.
                stores.append((directory, store))
    return EarlierCrawls(stores) if stores else None
