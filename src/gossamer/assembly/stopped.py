"""Stopped: the state of a crawl that does not run, opened for questions."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gossamer.archive.uploads import UploadCounts, counts_of
from gossamer.assembly.discovery import scope_options
from gossamer.assembly.earlier import earlier_of
from gossamer.assembly.home import Home
from gossamer.assembly.integrity import lost, manifest_of, opened_store, require_sound
from gossamer.assembly.parts import (
    budget_of,
    close,
    filters_of,
    held,
    locked,
    namer_of,
    scoped,
    stored,
    traps_of,
    url_seen_of,
)
from gossamer.assembly.permits import forgotten_of
from gossamer.config import Config
from gossamer.config.lists import scope_lists
from gossamer.crawl.explain import Explainer
from gossamer.crawl.history import PageHistory, UrlMemory
from gossamer.crawl.memory import ScopeMemory
from gossamer.crawl.tally import Tally, Totals
from gossamer.crawl.trapping import Trapping
from gossamer.frontier.overview import facts_of
from gossamer.model.damage import Damage
from gossamer.ports import (
    UrlSeen,
)
from gossamer.revisit.state import RevisitState, page_facts, stored_state
from gossamer.scope.chain import scope_chain
from gossamer.scope.lists import ExcludedHost
from gossamer.scope.roots import Roots
from gossamer.scope.traps import Trapped, Traps
from gossamer.seen.offers import FOLDER as SEEN_FOLDER
from gossamer.seen.shingles import sketch
from gossamer.state.epoch import Epochs
from gossamer.state.schema import TALLY
from gossamer.state.store import Store
from gossamer.world.clock import WallClock
from gossamer.world.process import DirectoryLock


@dataclass(slots=True)
class Opened:
    """The state of a crawl that does not run, to be read and closed."""

    lock: DirectoryLock
    store: Store
    totals: Totals
    rejected: dict[str, int]
    explainer: Explainer
    url_seen: UrlSeen
    traps: Traps
    uploads: UploadCounts | None
    revisits: RevisitState | None
    lost: list[Damage]
    """Files that are missing or have another length than was committed."""

    def close(self) -> None:
        close(self.url_seen)
        self.store.close()
        self.lock.release()


def open_stopped(config: Config, directory: Path, shard: int = 0, shards: int = 1) -> Opened:
    """Open a shard's state for questions. Contacts are left alone: the next run must find them as they are.

    Raises:
        ConfigError: another process holds the directory, or the configuration does not fit the crawl.
    """
    home = Home(directory, shard, shards)
    with ExitStack() as undo:
        lock = locked(home.directory, state=home.state, reading=True)
        undo.callback(lock.release)
        home.require_state()
        store = held(opened_store(config, home, writable=lock.writable), undo)
        epochs = Epochs(store)
        namer = namer_of(config, epochs)
        asked = scoped(config)
        roots, exclusions, traps = (
            Roots(asked.scope.scope),
            ExcludedHost(only=asked.scope.only_hosts),
            traps_of(config, epochs),
        )
        followed, more = scope_options(config), [*filters_of(config), Trapped(traps)]
        further = forgotten_of(config, directory, WallClock()), earlier_of(config, undo)
        more += [one for one in further if one is not None]
        chain = scope_chain(followed, roots, exclusions, more, scope_lists(asked))
        Trapping(traps, epochs, sketch, Tally(Totals(), config.crawl))
        ScopeMemory(epochs, roots, exclusions, chain.counts)
        journals = home.journals()
        manifest = manifest_of(store)
        found = lost(config, home, manifest)
        require_sound(directory, [damage for damage in found if damage.kind == "seen"])  # It is opened next.
        journals.recover(
            entry for entry in manifest if entry.name.startswith(SEEN_FOLDER)
        )  # The others stay as they are.
        url_seen = url_seen_of(config, epochs, journals)
        undo.callback(close, url_seen)
        facts = partial(facts_of, epochs, budget=budget_of(config))
        urls = UrlMemory(namer, url_seen, PageHistory(epochs))
        explainer = Explainer(urls, chain, facts, lambda _: False, partial(page_facts, epochs))
        totals = stored(store, TALLY, Totals, Totals())
        undo.pop_all()
        uploads = counts_of(config.archive.store, manifest)
        return Opened(
            lock, store, totals, chain.counts, explainer, url_seen, traps, uploads, stored_state(epochs),
            found,
        )  # fmt: skip
