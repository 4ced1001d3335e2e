"""Storage: the durable state of one shard, opened."""

from __future__ import annotations

import msgspec

from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals
from gossamer.state.slots import ShardSlots
from gossamer.state.store import HostsStore, Store


class Storage(msgspec.Struct, frozen=True):
    """The parts of a shard that survive the process. The opener of each part closes it."""

    store: Store
    epochs: Epochs
    """The work since the last commit, on top of `store`."""
    journals: Journals
    contacts: Contacts
    slots: ShardSlots
    hosts: HostsStore | None = None
    """Host data shared by successive crawls; None if the crawl keeps its own."""
