"""Kept: opens what a shard keeps on disk, recovers its last commit, and makes checkpoints of it."""

from contextlib import closing
from pathlib import Path

import msgspec

from gossamer.assembly.home import CHECKPOINTS, LOCK_S_MAX, OWNED, Home, Setup, remove_unfinished_checkpoints
from gossamer.assembly.integrity import losses, manifest_of, open_store, require_sound
from gossamer.assembly.parts import keep_mode
from gossamer.engine.commit import Committer, Storage
from gossamer.engine.counters import Telemetry
from gossamer.model.errors import ConfigError
from gossamer.model.product import FORGOTTEN
from gossamer.stages.archive.archive import Archives
from gossamer.state.contacts import FILE as CONTACTS
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.slots import ShardSlots
from gossamer.state.store import HostsStore, OtherVersionError
from gossamer.world.machine import ThisMachine
from gossamer.world.process import DirectoryLock, boot_id


class DurableState(msgspec.Struct, frozen=True):
    """The state of a shard on disk, and the commits that make it durable."""

    home: Home
    storage: Storage
    committer: Committer

    async def checkpoint(self) -> Path:
        """Make a consistent copy of the last commit by hard links, and return its directory.

        Files that still grow are shared with the crawl: copy the checkpoint (`cp -r`) before resuming it.
        """
        await self.committer.commit()
        return await self.committer.hold(self._link)

    def _link(self) -> Path:
        """Link the files of the commit that the store has: the journals themselves may be ahead of it."""
        home = self.home
        storage = self.storage
        folder = home.directory / CHECKPOINTS
        shard = f"shard-{home.shard}-" if home.shards > 1 else ""  # Each shard numbers its own epochs.
        name = f"{shard}{storage.store.epoch:08d}"
        remove_unfinished_checkpoints(home.directory, shard)
        if (folder / name).exists():
            return folder / name  # Another request made it, of the same commit.
        begun = folder / f".{name}"  # An incomplete checkpoint must not have the final name.
        copy = Home(begun, home.shard, home.shards)
        copy.state.mkdir(parents=True)
        copy.state.chmod(home.state.stat().st_mode & 0o777)  # The state may hold cookies.
        storage.store.checkpoint(copy.store)
        journals = copy.journals()
        lists = [FORGOTTEN] if (home.directory / FORGOTTEN).exists() else []
        for file in [*storage.journals.files(manifest_of(storage.store)), "crawl.toml", *lists]:
            journals.path(file).parent.mkdir(parents=True, exist_ok=True)
            journals.path(file).hardlink_to(storage.journals.path(file))
        if home.shards > 1:
            from gossamer.assembly.mapping import map_in  # noqa: PLC0415 - of several shards alone

            # As it is now: nothing moves while a checkpoint is made. A machine of a cluster may have none.
            if (partitions := map_in(home.directory)) is not None:
                partitions.save(begun)
        return begun.rename(folder / name)


def storage_of(setup: Setup) -> Storage:
    """Open a shard's state and recover its last commit. Raises ConfigError: the crawl has another mode, or another
    crawl holds the hosts store; DamagedError: files of the last commit are missing or cut short.
    """
    config = setup.config
    home = setup.home
    undo = setup.undo
    now = setup.clock.now()
    slots = undo.enter_context(closing(ShardSlots(home.state)))
    store = undo.enter_context(closing(open_store(config, home)))
    manifest = manifest_of(store)
    require_sound(home.directory, losses(config, home, manifest))
    name = config.state.hosts_store
    hosts = HostsKept(Path(name), config.state.hosts_store_cache_bytes) if name else None
    if hosts is not None:
        contacts = undo.enter_context(closing(hosts)).contacts(home.state, now)
    else:
        contacts = Contacts(home.state, boot_id(), now, ThisMachine().wall_offset_s(), epoch=store.epoch)
    undo.callback(contacts.close)
    journals = home.journals()
    undo.callback(journals.close_files)
    journals.recover(manifest, OWNED)
    epochs = Epochs(store)
    keep_mode(config, epochs)
    return Storage(store, epochs, journals, contacts, slots, hosts.store if hosts is not None else None)


def durable_state_of(setup: Setup, storage: Storage, telemetry: Telemetry, archives: Archives) -> DurableState:
    """Return the state with its committer, which other components join."""
    committer = Committer(storage, archives, telemetry)
    committer.on_epoch = storage.slots.note_epoch
    committer.on_durable = archives.add_epoch
    setup.closing.callback(committer.close)
    return DurableState(setup.home, storage, committer)


class HostsKept:
    """A hosts store with its lock and its journal of contacts, open during a crawl."""

    def __init__(self, directory: Path, cache_bytes: int) -> None:
        """Lock the directory and open the store. Blocks for some seconds if another crawl holds it. Raises ConfigError:
        another crawl keeps it, it is of another version, or it cannot be made.
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
        contacts = Contacts(self.directory, boot_id(), now, ThisMachine().wall_offset_s(), [state])
        (state / CONTACTS).unlink(missing_ok=True)  # It would be outdated from now on.
        if contacts.recovered.missing and not self.store.is_new:
            contacts.note_missing_file(now)
        return contacts

    def close(self) -> None:
        """Close the store and release the lock. All data is durable then."""
        try:
            self.store.close()
        finally:
            self._lock.release()
