"""Frontiers: builds the configured frontier, with the operator's around it, and opens the hosts store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gossamer.assembly.home import LOCK_S_MAX
from gossamer.assembly.parts import budget_of
from gossamer.assembly.revisits import frontier_options_of, share_new_of
from gossamer.config import Config
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.hosts import HostRecords
from gossamer.frontier.politeness import Politeness
from gossamer.frontier.priority import FrontierRules
from gossamer.frontier.remembered import Remembered
from gossamer.frontier.walk import frontier_of
from gossamer.frontier.wrapping import WrappedFrontier
from gossamer.model.errors import ConfigError
from gossamer.plugins import build
from gossamer.ports import Prioritizer
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.schema import FRONTIER_COMPONENT
from gossamer.state.storage import Storage
from gossamer.state.store import HostsStore, OtherVersionError
from gossamer.url.name import Namer
from gossamer.world.dice import Dice
from gossamer.world.machine import ThisMachine
from gossamer.world.process import DirectoryLock, boot_id


def frontier_for(
    config: Config,
    storage: Storage,
    rules: Politeness,
    prioritizer: Prioritizer,
    namer: Namer,
    dice: Dice,
    now: float,
    travelling: Sequence[tuple[int, int]] = (),
) -> Frontier | WrappedFrontier:
    """Return the frontier of a crawl; `travelling`: see `HostRecords`.

    Raises:
        ConfigError: the crawl began with another frontier, or the operator's does not fit.
    """
    options, budget, share_new = frontier_options_of(config), budget_of(config), share_new_of(config)
    remembered = remembered_of(config, storage.hosts, now)
    records = HostRecords(storage.store, storage.epochs, storage.contacts, remembered, travelling)
    chosen = FrontierRules(rules, options, budget, prioritizer, share_new, config.url.split)
    ours = frontier_of(records, chosen, config.walk, namer.name, dice, now)
    return _wrapped(config, ours, storage.epochs, namer, dice)


def _wrapped(
    config: Config, frontier: Frontier | WrappedFrontier, epochs: Epochs, namer: Namer, dice: Dice
) -> Frontier | WrappedFrontier:
    """Return the operator's frontier around ours, or ours if none is configured.

    Raises:
        ConfigError: it does not fit, or the crawl began with another frontier, which holds the queued URLs.
    """
    name, key = config.components.frontier, "components.frontier"
    begun = epochs.get("meta", FRONTIER_COMPONENT)
    if begun is None:
        begun = b"" if epochs.number > 1 else name.rpartition(":")[2].encode()
        epochs.put("meta", FRONTIER_COMPONENT, begun)
    if begun.decode() != name.rpartition(":")[2]:
        kept = begun.decode() or "none"
        raise ConfigError(f"{key}: this crawl began with {kept} and keeps it, for it holds what is queued; set it back")
    if not name:
        return frontier
    if not isinstance(frontier, Frontier):
        raise ConfigError(f"{key}: not with frontier.strategy = {config.frontier.strategy!r}; leave out one of them")
    made = build(name, key, gates=frontier, epochs=epochs, name_url=namer.name, dice=dice)
    if not isinstance(made, WrappedFrontier):
        raise ConfigError(f"{key}: {name} does not derive from gossamer.frontier.wrapping.WrappedFrontier")
    return made


class HostsKept:
    """A hosts store with its lock and its journal of contacts, open during a crawl."""

    def __init__(self, directory: Path, cache_bytes: int) -> None:
        """Lock the directory and open the store. Blocks for some seconds if another crawl holds it.

        Raises:
            ConfigError: another crawl keeps it, it is of another version, or it cannot be made.
        """
        self.directory = directory
        try:
            self._lock = DirectoryLock(directory / "lock")
        except OSError as error:
            raise ConfigError(f"cannot make {directory}: {error.strerror}; name another with --hosts-store") from error
        try:
            if not self._lock.acquire(LOCK_S_MAX):
                raise ConfigError(
                    f"the hosts store {directory} is in use by another crawl; wait for its end, or name another"
                )
            self.store = HostsStore(directory, cache_bytes)
        except OtherVersionError as error:
            self._lock.release()
            raise ConfigError(
                f"the hosts store {directory} is of format {error}, which this version does not read; name another"
            ) from error
        except BaseException:
            self._lock.release()
            raise

    def contacts(self, state: Path, now: float) -> Contacts:
        """Return the journal of contacts, which is here and not in the crawl's directory because contacts belong to
        hosts. Contacts in the crawl's own journal in `state` are moved here.
        """
        contacts = Contacts(self.directory, boot_id(), now, ThisMachine().wall_offset_s(), heir_of=state)
        if contacts.recovered.missing and not self.store.is_new:
            contacts.lost(now)
        return contacts

    def close(self) -> None:
        """Close the store and release the lock. All data is durable then."""
        try:
            self.store.close()
        finally:
            self._lock.release()


def hosts_kept(config: Config) -> HostsKept | None:
    """Return the hosts store that the configuration names. Raises ConfigError as `HostsKept`."""
    name = config.state.hosts_store
    return HostsKept(Path(name), config.state.hosts_store_cache_bytes) if name else None


def remembered_of(config: Config, store: HostsStore | None, now: float) -> Remembered | None:
    """Return the state of hosts from earlier crawls; None without a hosts store."""
    if store is None:
        return None
    return Remembered(store, config.frontier.errors_remembered_s, now, crawl_delays=config.robots.obey)
