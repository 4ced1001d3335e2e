"""Hosts: what is learned of hosts, handed from crawl to crawl: a directory that one crawl at a time has."""

from __future__ import annotations

from pathlib import Path

from gossamer.assembly.parts import LOCK_S_MAX
from gossamer.config import Config
from gossamer.frontier.remembered import Remembered
from gossamer.model.errors import ConfigError
from gossamer.state.contacts import Contacts
from gossamer.state.hosts_store import HostsStore, OtherVersionError
from gossamer.world.machine import ThisMachine
from gossamer.world.process import DirectoryLock, boot_id


class HostsKept:
    """A hosts store with its lock and its journal of contacts, for the time of a crawl."""

    def __init__(self, directory: Path, cache_bytes: int) -> None:
        """Take the directory. Blocks for some seconds where another crawl has it.

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
        """Return the journal of contacts. It stands here and not with the crawl: contacts are the hosts', not its own.
        What the crawl's own journal in `state` knew is taken over.
        """
        contacts = Contacts(self.directory, boot_id(), now, ThisMachine().wall_offset_s(), heir_of=state)
        if contacts.recovered.missing and not self.store.is_new:
            contacts.lost(now)
        return contacts

    def close(self, contacts: Contacts | None = None) -> None:
        """Let go of the directory, `contacts` included; what was learned survives a power cut from then on."""
        try:
            self.store.close()
            if contacts is not None:
                contacts.close()
        finally:
            self._lock.release()


def hosts_kept(config: Config) -> HostsKept | None:
    """Return the hosts store that the configuration names. Raises ConfigError as `HostsKept`."""
    name = config.state.hosts_store
    return HostsKept(Path(name), config.state.hosts_store_cache_bytes) if name else None


def remembered_of(config: Config, store: HostsStore | None, now: float) -> Remembered | None:
    """Return what earlier crawls learned of hosts, where that is kept."""
    if store is None:
        return None
    return Remembered(store, config.frontier.errors_remembered_s, now, crawl_delays=config.robots.obey)
