"""Queues: a host's URLs on disk, first in first out within a level, read in small windows."""

from __future__ import annotations

from gossamer.frontier.bias import LevelBias
from gossamer.frontier.host import Host, Item
from gossamer.frontier.record import (
    Entry,
    LevelQueue,
    block_key,
    decode_block,
    decode_entry,
    due_key,
    due_time,
    encode_block,
    encode_entry,
    range_end,
)
from gossamer.state.epoch import Epochs

BLOCK_URLS_MAX = 64
"""A host's new URLs of one epoch go into blocks of at most so many: one put each."""
NEVER = float("inf")
"""Due time of a host whose due URLs are all lent or in its window."""


class Queues:
    """Order: within a level first in, first out; between levels by chance, biased to the more urgent."""

    def __init__(self, epochs: Epochs, bias: LevelBias, window_urls_max: int) -> None:
        self._epochs = epochs
        self._bias = bias
        self._window_urls_max = window_urls_max

    def append(self, host: Host, level: int, entry: Entry) -> None:
        """Put a URL at the end of a level. Memory only, until the epoch is cut."""
        queue = host.record.levels.get(level)
        if queue is None:
            queue = host.record.levels[level] = LevelQueue()
        number = queue.tail
        queue.tail += 1
        block = host.fresh.get((level, host.growing.get(level, -1)))
        if block is None or len(block) >= BLOCK_URLS_MAX:
            host.fresh[level, number] = [entry]
            host.growing[level] = number
        else:
            block.append(entry)

    def put_due(self, host: Host, entry: Entry, at: float, fingerprint: int) -> None:
        """Let a URL wait until `at`."""
        key = due_key(host.prefix, at, fingerprint)
        self._epochs.put("due", key, encode_entry(entry))
        host.due_next = min(host.due_next, at) if host.record.due else at
        host.record.due += 1

    def refill(self, host: Host, now: float) -> None:
        """Read on into the window: first what is due, then one level's run. One or two reads of 1 to 20 µs."""
        # Not for one free place in the window: each look passes over those that are out.
        if host.record.due and host.due_next <= now and 2 * len(host.window) <= self._window_urls_max:
            self._take_due(host, now)
        if not host.window:
            level = self._choose_level(host)
            while level is not None and not host.window:
                self._read_run(host, level)
                level = self._choose_level(host)

    def finish(self, host: Host, item: Item) -> None:
        """Take a URL off the disk with this epoch."""
        record = host.record
        if record.closed:
            record.due -= 1  # See `clear`.
            return
        if item.due_key:
            self._epochs.delete("due", item.due_key)
            host.due_out.discard(item.due_key)
            record.due -= 1
            return
        queue = record.levels[item.level]
        queue.finish(item.number)
        self._drop_passed(host, item.level, queue)

    def clear(self, host: Host) -> int:
        """Drop all URLs of a host, by two range deletes; return how many there were that are not lent.

        Those that are lent still end by themselves, so they go on being counted: as due, with nothing on disk. If
        the process dies before, nobody is left to end them, and clearing once more returns them.
        """
        dropped = host.record.queued - host.lent
        for family in ("queue", "due"):
            self._epochs.delete_range(family, host.prefix, range_end(host.prefix))
        record = host.record
        record.levels, record.due = {}, host.lent
        host.fresh.clear()
        host.growing.clear()
        self.forget_window(host)
        return dropped

    def has_unread(self, host: Host) -> bool:
        """Say whether a level holds URLs that are neither in the window nor lent."""
        for level, queue in host.record.levels.items():
            if queue.head < queue.tail and self._unread(host, level, queue):
                return True
        return False

    def forget_window(self, host: Host) -> None:
        """Let the window go; what was in it is read again later."""
        host.window.clear()
        host.cursors.clear()
        host.ends.clear()
        host.due_out.clear()
        host.due_next = 0.0

    def cut(self, host: Host) -> None:
        """Give the blocks of the open epoch to it."""
        for (level, start), entries in host.fresh.items():
            queue = host.record.levels[level]
            end = start + len(entries)
            if (level, start) in host.ends or queue.head >= end:
                host.ends[level, start] = end
            if queue.head < end:
                self._epochs.put("queue", block_key(host.prefix, level, start), encode_block(entries))
        levels = {level for level, _ in host.fresh}
        host.fresh.clear()
        host.growing.clear()
        for level in levels:
            self._drop_passed(host, level, host.record.levels[level])

    def _choose_level(self, host: Host) -> int | None:
        waiting = [level for level, queue in host.record.levels.items() if self._unread(host, level, queue)]
        return self._bias.choose(waiting) if waiting else None

    def _unread(self, host: Host, level: int, queue: LevelQueue) -> bool:
        cursor = host.cursors.get(level)
        return queue.head < queue.tail if cursor is None else cursor[0] + cursor[1] < queue.tail

    def _read_run(self, host: Host, level: int) -> None:
        queue = host.record.levels[level]
        block, index = host.cursors.get(level, (queue.block, queue.head - queue.block))
        entries = self._block(host, level, block)
        if index >= len(entries):
            block, index = block + len(entries), 0
            entries = self._block(host, level, block)
        run = entries[index : index + self._window_urls_max]
        check = bool(queue.done) or block + index < queue.head
        for offset, entry in enumerate(run, block + index):
            if not (check and queue.finished(offset)):
                host.window.append(Item(entry, level, offset))
        host.cursors[level] = (block, index + len(run))
        host.ends[level, block] = block + len(entries)

    def _block(self, host: Host, level: int, start: int) -> list[Entry]:
        fresh = host.fresh.get((level, start))
        if fresh is not None:
            return fresh
        data = self._epochs.get("queue", block_key(host.prefix, level, start))
        assert data is not None, f"{host.name} lacks the block {start} of level {level}"
        return decode_block(data)

    def _take_due(self, host: Host, now: float) -> None:
        host.due_next = NEVER
        for key, value in self._epochs.scan("due", host.prefix, range_end(host.prefix)):
            if due_time(key) > now:
                host.due_next = due_time(key)
                break
            if key not in host.due_out:
                if len(host.window) >= self._window_urls_max:
                    host.due_next = due_time(key)
                    break
                host.window.append(Item(decode_entry(value), due_key=key))
                host.due_out.add(key)

    def _drop_passed(self, host: Host, level: int, queue: LevelQueue) -> None:
        # A block that still grows is not dropped: more may come under its number.
        while (end := host.ends.get((level, queue.block))) is not None and end <= queue.head:
            if (level, queue.block) in host.fresh:
                return
            self._epochs.delete("queue", block_key(host.prefix, level, queue.block))
            del host.ends[level, queue.block]
            if host.cursors.get(level, (-1, 0))[0] == queue.block:
                host.cursors[level] = (end, 0)  # All of it was read, and there is nothing left to go on from.
            queue.block = end
