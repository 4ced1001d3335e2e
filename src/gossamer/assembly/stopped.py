"""Stopped: opens the state of a crawl that does not run, for queries."""

from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import msgspec

from gossamer.assembly.home import Home, lock_directory
from gossamer.assembly.integrity import losses, manifest_of, open_store, require_sound
from gossamer.assembly.parts import budget_of, close, explainers_of, url_seen_of
from gossamer.assembly.permits import earlier_of, forget_filter_of, scope_of
from gossamer.assembly.schemes import namer_of
from gossamer.config import Config
from gossamer.engine.counters import CrawlCounters, Totals
from gossamer.engine.explain import Explainer, Lookups
from gossamer.engine.history import PageHistory, UrlMemory
from gossamer.engine.pending_scope import ScopeMemory
from gossamer.features.revisit.state import RevisitState, load_state
from gossamer.model.errors import Damage
from gossamer.ports import UrlSeen
from gossamer.stages.archive.uploads import UploadCounts, counts_of
from gossamer.stages.frontier.overview import facts_of
from gossamer.stages.robots.robots import record_of
from gossamer.stages.scope.traps import Traps
from gossamer.stages.seen.offers import FOLDER as SEEN_FOLDER
from gossamer.state.epoch import Epochs, load
from gossamer.state.schema import TOTALS
from gossamer.state.store import Store
from gossamer.world.clock import WallClock
from gossamer.world.process import DirectoryLock


class Opened(msgspec.Struct):
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
    """Open a shard's state for queries. Contacts are not touched, since the next run must find them unchanged. Raises
    ConfigError: another process holds the directory, or the configuration does not fit the crawl.
    """
    home = Home(directory, shard, shards)
    with ExitStack() as undo:
        lock = lock_directory(home.directory, state=home.state, reading=True)
        undo.callback(lock.release)
        home.require_state()
        store = undo.enter_context(closing(open_store(config, home, writable=lock.writable)))
        epochs = Epochs(store)
        namer = namer_of(config, epochs)
        forgotten = forget_filter_of(config, directory, WallClock())
        scope = scope_of(config, epochs, CrawlCounters(Totals(), config.crawl), (forgotten, earlier_of(config, undo)))
        ScopeMemory(epochs, scope.roots, scope.exclusions, scope.chain.counts, alone=True, grows=True)
        journals = home.journals()
        manifest = manifest_of(store)
        found = losses(config, home, manifest)
        require_sound(directory, [damage for damage in found if damage.kind == "seen"])  # These files are opened next.
        # Other files stay as they are.
        journals.recover(entry for entry in manifest if entry.name.startswith(SEEN_FOLDER))
        url_seen = url_seen_of(config, epochs, journals)
        undo.callback(close, url_seen)
        facts = partial(facts_of, epochs, budget=budget_of(config), split=config.url.split)
        urls = UrlMemory(namer, url_seen, PageHistory(epochs))
        robots = partial(record_of, epochs)
        explainer = Explainer(urls, scope.chain, Lookups(facts, lambda _: False, robots, explainers_of(config, epochs)))
        totals = load(store, TOTALS, Totals)
        undo.pop_all()
        uploads = counts_of(config.archive.store, manifest)
        return Opened(
            lock, store, totals, scope.chain.counts, explainer, url_seen, scope.traps, uploads, load_state(epochs),
            found,
        )  # fmt: skip
