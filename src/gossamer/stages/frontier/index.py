"""Index: the hosts with work, on disk, so that finding one takes a seek for any number of hosts.

Each host with work has exactly one entry: `ready` under its level and a random number; `sleep` under the time at which
it wakes; `deferred` under the budget round in which it used up its budget; `waiting` under its site while the site has
enough hosts in memory; or `ready` under the level `ON_WORKBENCH` while the host is in memory, so a restart finds it.

Deferred hosts are in a separate index with keys `partition | round | host`, one entry per host with any number of URLs.
A host that was deferred in an earlier round may be drawn.
"""

import heapq
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import islice
from math import inf

from gossamer.ports import Bias
from gossamer.stages.frontier.budgets import DeferredHosts
from gossamer.stages.frontier.host import Host
from gossamer.stages.frontier.record import LEVELS, host_prefix, micros, range_end
from gossamer.state.epoch import Epochs
from gossamer.state.schema import PARTITIONED, partition_range
from gossamer.state.store import Store
from gossamer.url.site import PARTITIONS
from gossamer.world.dice import Dice

ON_WORKBENCH = 0xFF

_FIRST, _END = PARTITIONED


class LevelBias:
    """Draws a level among those with URLs: each is `bias` times as likely as the next less urgent one.

    Every level with URLs has a chance in every draw, so none starves (Heydon and Najork 1999, section 3.1, draw their
    front queues the same way). With `bias` 1 all levels are equally likely.
    """

    __slots__ = ("_dice", "_weights")

    def __init__(self, bias: float, dice: Dice) -> None:
        self._dice = dice
        self._weights = tuple(bias ** (LEVELS - 1 - level) for level in range(LEVELS))

    def choose(self, levels: Sequence[int]) -> int:
        """Return one of `levels`, which are not empty."""
        if len(levels) == 1:
            return levels[0]
        weights = self._weights
        throw = self._dice.uniform(0.0, sum([weights[level] for level in levels]))
        for level in levels:
            throw -= weights[level]
            if throw <= 0:
                return level
        return levels[-1]


class _Partitions:
    """A set of partitions from which one can be drawn by its index."""

    __slots__ = ("_known", "listed")

    def __init__(self) -> None:
        self.listed: list[int] = []
        self._known: set[int] = set()

    def add(self, partition: int) -> None:
        if partition not in self._known:
            self._known.add(partition)
            self.listed.append(partition)

    def remove(self, at: int) -> None:
        self._known.discard(self.listed[at])
        self.listed[at] = self.listed[-1]
        self.listed.pop()

    def forget(self, first: int, end: int) -> None:
        self.listed = [partition for partition in self.listed if not first <= partition < end]
        self._known = set(self.listed)


class HostIndex:
    """Finds a host to activate. Memory holds which partitions have entries, never the hosts."""

    def __init__(self, epochs: Epochs, dice: Dice, bias: Bias) -> None:
        self._epochs = epochs
        self._dice = dice
        self._bias = bias
        self._ready: dict[int, _Partitions] = {}
        """By level: partitions that may hold ready hosts; only levels that have any."""
        self._wakes: dict[int, int] = {}
        """By partition: earliest time at which its next host may wake, in microseconds as in the keys."""
        self._alarms: list[tuple[int, int]] = []
        """Heap of the same; entries that differ from `_wakes` are outdated."""
        self.deferred = DeferredHosts(epochs, dice)
        """The part of `hosts` that has used up its budget."""
        self.hosts = 0
        """Hosts with an entry, that is, with work."""
        self.hosts_most = 0
        """Maximum of `hosts` since it was reset."""

    def load(self, store: Store, travelling: Sequence[tuple[int, int]] = ()) -> list[tuple[int, str]]:
        """Read the index at the start; return partition and name of the hosts that were on the workbench, except those
        of `travelling` partitions (`HostRecords`).

        A seek (about 10 µs) for each partition and level with entries, for any number of hosts.
        """
        active = []
        begin = _FIRST
        while (key := _first(store, "ready", begin)) is not None:
            partition = key[:2]
            level = key[2]
            if level == ON_WORKBENCH:
                begin = (int.from_bytes(partition) + 1).to_bytes(2)
                names = [key[7:].decode() for key, _ in store.scan("ready", key, begin)]
                active += [(int.from_bytes(partition), name) for name in names]
            else:
                begin = partition + bytes((level + 1,))
                self._list_ready(level, int.from_bytes(partition))
        begin = _FIRST
        while (key := _first(store, "sleep", begin)) is not None:
            self._set_alarm(int.from_bytes(key[:2]), _instant(key))
            begin = (int.from_bytes(key[:2]) + 1).to_bytes(2)
        self.deferred.load(store)
        return [one for one in active if not any(first <= one[0] < end for first, end in travelling)]

    def forget(self, first: int, end: int) -> None:
        """Drop some partitions from memory: another shard has them, or they are listed again."""
        for level, partitions in list(self._ready.items()):
            partitions.forget(first, end)
            if not partitions.listed:
                del self._ready[level]
        for partition in range(first, end):
            self._wakes.pop(partition, None)
        self.deferred.forget(first, end)

    def admit(self, first: int, end: int) -> list[tuple[int, str]]:
        """Add partitions from another shard; return partition and name of the hosts on its workbench. One pass."""
        active = []
        begin, stop = partition_range(first, end)
        for key, _ in self._epochs.scan("ready", begin, stop):
            if key[2] == ON_WORKBENCH:
                active.append((int.from_bytes(key[:2]), key[7:].decode()))
            else:
                self._list_ready(key[2], int.from_bytes(key[:2]))
        for key, _ in self._epochs.scan("sleep", begin, stop):
            self._set_alarm(int.from_bytes(key[:2]), _instant(key))
        return active

    def count(self, hosts: int, deferred: int) -> None:
        """Add to the number of hosts with an entry, and of deferred hosts; negative to subtract."""
        self.hosts += hosts
        self.deferred.hosts += deferred
        self.hosts_most = max(self.hosts_most, self.hosts)

    def enter_workbench(self, host: Host) -> None:
        self._move(host, "ready", self._ready_key(host, ON_WORKBENCH))

    def enter_ready(self, host: Host, level: int) -> None:
        self._move(host, "ready", self._ready_key(host, level))
        self._list_ready(level, host.partition)

    def enter_sleep(self, host: Host, wake_at: float) -> None:
        instant = micros(wake_at)
        self._move(host, "sleep", host.partition.to_bytes(2) + instant.to_bytes(8) + host.name.encode())
        self._set_alarm(host.partition, instant)

    def enter_deferred(self, host: Host, number: int) -> None:
        """Let a host wait for the next budget round."""
        self._move(host, "deferred", self.deferred.key(host, number))
        self.deferred.hosts += 1

    def enter_waiting(self, host: Host, site: str, level: int) -> None:
        """Move a host to the index of hosts that wait for a place of their site in memory."""
        chance = self._dice.bits(32)
        prefix = host_prefix(host.partition, site)
        self._move(host, "waiting", prefix + bytes((level,)) + chance.to_bytes(4) + host.name.encode())

    def next_waiting(self, partition: int, site: str) -> tuple[int, str] | None:
        """Return a random host that waits for its site, biased to urgent levels: a seek for each level with entries,
        and two more. Move the host before the next call.
        """
        prefix = host_prefix(partition, site)
        end = range_end(prefix)
        levels = []
        begin = prefix
        while (key := next((key for key, _ in self._epochs.scan("waiting", begin, end)), None)) is not None:
            levels.append(level_waiting(key))
            begin = prefix + bytes((levels[-1] + 1,))
        if not levels:
            return None
        start = prefix + bytes((self._bias.choose(levels),))
        chance = start + self._dice.bits(32).to_bytes(4)
        for low, high in ((chance, prefix + bytes((start[-1] + 1,))), (start, chance)):
            for key, _ in self._epochs.scan("waiting", low, high):
                return partition, key[len(start) + 4 :].decode()
        return None

    def sites_waiting(
        self, store: Store | Epochs, begin: bytes = _FIRST, stop: bytes = _END
    ) -> Iterator[tuple[int, str]]:
        """Yield partition and name of one host of each site with waiting hosts: a seek each. For use at the start."""
        while (key := _first(store, "waiting", begin, stop)) is not None:
            end = key.index(b"\0", 2)
            yield int.from_bytes(key[:2]), key[end + 6 :].decode()
            begin = range_end(key[: end + 1])

    def sleeps_past(self, host: Host, at: float) -> bool:
        """Return whether a host sleeps beyond `at`."""
        return host.record.index_family == "sleep" and _instant(host.record.index_key) > micros(at)

    def leave(self, host: Host) -> None:
        """Remove the entry of a host, which has no more work."""
        if host.record.index_key:
            self._epochs.delete(host.record.index_family, host.record.index_key)
            self.hosts -= 1
            self.deferred.hosts -= host.record.index_family == "deferred"
            host.record.index_family = ""
            host.record.index_key = b""

    def wake(self, now: float) -> tuple[int, str] | None:
        """Return partition and name of a host whose sleep is over, or None. Move it before the next call."""
        alarms = self._alarms
        while alarms and alarms[0][0] / 1e6 <= now:
            instant, partition = heapq.heappop(alarms)
            if self._wakes.get(partition) != instant:
                continue
            del self._wakes[partition]
            # No host of the partition wakes earlier, so the seek skips deleted entries.
            begin = partition.to_bytes(2) + instant.to_bytes(8)
            for key, _ in self._epochs.scan("sleep", begin, (partition + 1).to_bytes(2)):
                self._set_alarm(partition, _instant(key))
                if _instant(key) / 1e6 <= now:
                    return partition, key[10:].decode()
                break
        return None

    def next_wake_at(self) -> float | None:
        """Return a lower bound of the time at which the next host wakes; None if none sleeps."""
        alarms = self._alarms
        while alarms and self._wakes.get(alarms[0][1]) != alarms[0][0]:
            heapq.heappop(alarms)
        return alarms[0][0] / 1e6 if alarms else None

    def next_sleeper(self) -> tuple[int, str] | None:
        """Return partition and name of the host that wakes first. Costs one seek."""
        if self.next_wake_at() is None:
            return None
        instant, partition = self._alarms[0]
        begin = partition.to_bytes(2) + instant.to_bytes(8)
        end = (partition + 1).to_bytes(2)
        return next(((partition, key[10:].decode()) for key, _ in self._epochs.scan("sleep", begin, end)), None)

    def sleepers(self, most: int) -> list[tuple[float, int, str]]:
        """Return time, partition and name of those that wake first: scans up to `most` entries in `most` partitions."""
        found = []
        for instant, partition in nsmallest(most, ((instant, number) for number, instant in self._wakes.items())):
            begin = partition.to_bytes(2) + instant.to_bytes(8)
            for key, _ in islice(self._epochs.scan("sleep", begin, (partition + 1).to_bytes(2)), most):
                found.append((_instant(key) / 1e6, partition, key[10:].decode()))
        return nsmallest(most, found)

    def may_have(self, now: float) -> bool:
        """Return whether there may be a host to activate; call `draw`, `wake` and `deferred` to find it."""
        alarms = self._alarms
        return bool(self._ready or self.deferred.hosts or (alarms and alarms[0][0] / 1e6 <= now))

    @property
    def has_ready(self) -> bool:
        """Whether there may be ready hosts; call `draw` to find one."""
        return bool(self._ready)

    def partitions_ready(self) -> set[int]:
        """Return the partitions that may have ready hosts on disk."""
        return {partition for partitions in self._ready.values() for partition in partitions.listed}

    def ready_in(self, partition: int) -> Iterator[bytes]:
        """Yield the entries of a partition's hosts that are ready, or wait for their site, off the workbench."""
        begin, end = partition_range(partition, partition + 1)
        yield from (key for key, _ in self._epochs.scan("ready", begin, begin + bytes((ON_WORKBENCH,))))
        yield from (key for key, _ in self._epochs.scan("waiting", begin, end))

    def draw(self) -> tuple[int, str] | None:
        """Return a random ready host, biased to urgent levels: a seek. Move it before the next call."""
        while self._ready:
            chosen = self._bias.choose(list(self._ready))
            partitions = self._ready[chosen]
            at = self._dice.below(len(partitions.listed))
            if (found := self._seek(partitions.listed[at], chosen)) is not None:
                return found
            partitions.remove(at)
            if not partitions.listed:
                del self._ready[chosen]
        return None

    def _list_ready(self, level: int, partition: int) -> None:
        partitions = self._ready.get(level)
        if partitions is None:
            partitions = self._ready[level] = _Partitions()
        partitions.add(partition)

    def _seek(self, partition: int, level: int) -> tuple[int, str] | None:
        begin = partition.to_bytes(2) + bytes((level,))
        start = begin + self._dice.bits(32).to_bytes(4)
        end = partition.to_bytes(2) + bytes((level + 1,))
        for low, high in ((start, end), (begin, start)):
            for key, _ in self._epochs.scan("ready", low, high):
                return partition, key[7:].decode()
        return None

    def _set_alarm(self, partition: int, instant: int) -> None:
        if instant >= self._wakes.get(partition, inf):
            return
        self._wakes[partition] = instant
        if len(self._alarms) > 2 * PARTITIONS:
            # Most entries are outdated.
            self._alarms = [(wakes_at, number) for number, wakes_at in self._wakes.items()]
            heapq.heapify(self._alarms)
        else:
            heapq.heappush(self._alarms, (instant, partition))

    def _ready_key(self, host: Host, level: int) -> bytes:
        chance = self._dice.bits(32)
        return host.partition.to_bytes(2) + bytes((level,)) + chance.to_bytes(4) + host.name.encode()

    def _move(self, host: Host, family: str, key: bytes) -> None:
        record = host.record
        if record.index_key:
            self._epochs.delete(record.index_family, record.index_key)
            self.deferred.hosts -= record.index_family == "deferred"
        else:
            self.hosts += 1
            self.hosts_most = max(self.hosts_most, self.hosts)
        self._epochs.put(family, key, b"")
        record.index_family = family
        record.index_key = key


def level_waiting(key: bytes) -> int:
    """Return the level at which a host waits for its site, from its entry."""
    return key[key.index(b"\0", 2) + 1]


def _instant(key: bytes) -> int:
    return int.from_bytes(key[2:10])


def _first(store: Store | Epochs, family: str, begin: bytes, stop: bytes = _END) -> bytes | None:
    return next((key for key, _ in store.scan(family, begin, stop)), None)
