"""Queues: a host's URLs on disk, first in first out within a level, read in small windows."""

from collections.abc import Callable
from typing import NamedTuple

from gossamer.model.links import Link
from gossamer.ports import Bias
from gossamer.stages.frontier.host import Host, Reading
from gossamer.stages.frontier.options import FrontierOptions
from gossamer.stages.frontier.origins import NEVER, all_free, free_at, gate, is_open, key_of, lane_at, on_trial, refusal
from gossamer.stages.frontier.record import (
    LEVELS,
    HostRecord,
    LevelQueue,
    QueueBlock,
    QueuedUrl,
    QueueEntry,
    block_key,
    decode_block,
    decode_entry,
    due_from,
    due_key,
    due_time,
    encode_block,
    encode_entry,
    lane,
    level_of,
    micros,
    range_end,
    shorten,
)
from gossamer.state.epoch import Epochs
from gossamer.url.url import NameUrl, Url

BLOCK_URLS_MAX = 64
"""Largest number of URLs in a block. A host's new URLs of one epoch are stored in blocks, with one put each."""
ITEM_BYTES = 320
"""Memory of a URL in a window beside its characters."""
ASIDE_URLS_MAX = 256
"""URLs of a host that are set aside at once, in about 2 ms; the others follow after `ASIDE_PAUSE_S`."""
ASIDE_PAUSE_S = 0.005
SAME_URL_S = 0.001
"""Seconds between two entries of one URL that are due at the same instant."""
PROBE_OUT_S = 1.0
"""A due URL is examined again after this time if a probe of its origin is in flight."""


class Next(NamedTuple):
    """The next URL of a host, and how to handle it."""

    item: QueuedUrl
    origin: str
    refusal: str = ""
    is_probe: bool = False


class Queues:
    """The queues of all hosts. Within a level first in, first out; between levels random, biased to urgent ones."""

    def __init__(
        self, epochs: Epochs, bias: Bias, options: FrontierOptions, name: NameUrl, share_new: Callable[[], bool] = bool
    ) -> None:
        """`name` returns the `Url` of an address that was named before. `share_new` is called if a host has new
        URLs and revisits that are due, and decides at random whether new URLs come next.
        """
        self._epochs = epochs
        self._bias = bias
        self._window_urls_max = options.window_urls_max
        self._window_s_max = options.window_s_max
        self._remembered_s = options.errors_remembered_s
        self._name_url = name
        self._share_new = share_new
        self._referrer = self._referred = self._shortened = self._start = ""
        self.by_level = [0] * LEVELS
        """URLs that are not finished, by level, except due URLs."""
        self.fresh_bytes = 0
        """Approximate memory of the open epoch's blocks."""
        self.window_bytes = 0
        """Approximate memory of the URLs in windows."""

    def append(self, host: Host, level: int, link: Link) -> None:
        """Append a URL to a level. Only in memory until the epoch is cut."""
        record = host.record
        queue = record.levels.get(level)
        if queue is None:
            queue = record.levels[level] = LevelQueue()
        reading = host.readings.get(level)
        if reading is None:
            reading = host.readings[level] = Reading()
            host.site_name = link.url.site
        fresh = reading.fresh
        if fresh is None:
            fresh = reading.fresh = [QueueBlock(queue.tail)]
        block = fresh[-1]
        if block.count >= BLOCK_URLS_MAX:
            block = QueueBlock(queue.tail)
            fresh.append(block)
        queue.tail += 1
        self.by_level[level_of(level)] += 1
        # Links of one page come one after another: mostly to one host, and with the same string as referrer.
        name = record.name
        if name is not self._referred:
            self._referred = name
            self._start = f"https://{name}/"
            self._referrer = ""
        if link.referrer is not self._referrer:
            self._referrer = link.referrer
            self._shortened = shorten(link.referrer, name)
        text = link.url.text
        start = self._start
        if text.startswith(start):
            url = text[len(start) - 1 :]
        else:
            url = shorten(text, name)
            if level < LEVELS:
                _count(record, url, 1)
        self.fresh_bytes += block.add(url, link, self._shortened)

    def put_due(self, host: Host, entry: QueueEntry, at: float, fingerprint: int) -> None:
        """Store a URL that is due at `at`."""
        self._epochs.put("due", due_key(host.prefix, at, fingerprint), encode_entry(entry))
        record = host.record
        instant = micros(at)
        host.due_next = min(host.due_next, at) if record.due else at
        record.due_from = min(record.due_from, instant) if record.due else instant
        record.due += 1
        record.revisits += entry.revisit

    def move_due(self, host: Host, fingerprint: int, at: float, to: float) -> bool:
        """Move a due URL from `at` to `to`; False if it no longer waits."""
        key = due_key(host.prefix, at, fingerprint)
        value = self._epochs.get("due", key)
        if value is None or key in (host.due_out or ()):
            return False
        self._epochs.delete("due", key)
        host.record.due -= 1
        entry = decode_entry(value)
        host.record.revisits -= entry.revisit
        self.put_due(host, entry, to, fingerprint)
        return True

    def refill(self, host: Host, now: float) -> None:
        """Read more URLs into the window: first due ones, then some of one level. One or two reads of 1 to 20 µs."""
        # Not for a single free place in the window: each scan passes over the due URLs that are leased.
        is_room = host.window is None or 2 * len(host.window) <= self._window_urls_max
        if host.record.due and host.due_next <= now and is_room and not self._is_turn_of_others(host, now):
            self._take_due(host, now)
        while host.window is None and (level := self._choose_level(host, now)) is not None:
            self._read_run(host, level)

    def next(self, host: Host, now: float) -> Next | None:
        """Remove the next URL that may be requested, or that ends without a request, from the window and return it.
        URLs before it whose origins wait are set aside; None if there are only such URLs, or too many for one call.
        """
        for _ in range(ASIDE_URLS_MAX):
            if host.window is None or (host.record.due and host.due_next <= now):
                self.refill(host, now)
            if host.window is None:
                return None
            item = self.take(host)
            key = key_of(item.url)
            what = gate(host, key, now, self._remembered_s)
            if what == "open":
                return Next(item, key)
            if what == "refused":
                return Next(item, key, refusal(host.record, key))
            if what == "probe" and (now >= host.probe_from or item.level >= LEVELS or not self._has_others(host, now)):
                return Next(item, key, is_probe=True)
            self._set_aside(host, item, key, now)
        host.aside_again_at = now + ASIDE_PAUSE_S
        return None

    def _set_aside(self, host: Host, item: QueuedUrl, key: str, now: float) -> None:
        """Move a URL to the queue of its waiting origin, within this epoch; the order within the level stays."""
        assert host.record.origins is not None
        one = host.record.origins[key]
        if item.due_key:
            at = max(one.wait_until, now + PROBE_OUT_S)
            fingerprint = item.url.fingerprint
            while self._epochs.get("due", due_key(host.prefix, at, fingerprint)) is not None:
                at += SAME_URL_S  # It was queued twice, and each counts.
            entry = QueueEntry(
                item.url.text, item.depth, item.hops, item.link_type, item.referrer, item.attempt, item.seed,
                item.error, item.revisit,
            )  # fmt: skip
            self.finish(host, item)
            self.put_due(host, entry, at, fingerprint)
        else:
            self.finish(host, item)
            link = Link(item.url, item.link_type, item.depth, item.hops, item.referrer, item.seed)
            self.append(host, lane(one.slot, level_of(item.level)), link)

    def ready_at(self, host: Host) -> float | None:
        """Return when `next` may return a URL, by origins and due times; None: not before something changes. If origins
        fail, this passes over the host's queues and its window.
        """
        record = host.record
        if record.origins is None or all_free(host):
            if host.window is not None or self.has_unread(host):
                return 0.0
            at = NEVER
        else:
            at = min((free_at(host, key_of(item.url)) for item in host.window or ()), default=NEVER)
            for level, queue in record.levels.items():
                if queue.head < queue.tail and self._unread(host, level, queue):
                    at = min(at, lane_at(host, level))
        if record.due and not record.closed:
            at = min(at, max(host.due_next, record.due_from / 1e6))
        return at if at < NEVER else None

    def _has_others(self, host: Host, now: float) -> bool:
        """Return whether a host has URLs of answering origins that may be requested now."""
        if any(is_open(host, key_of(item.url)) for item in host.window or ()):
            return True
        return any(not on_trial(host.record, level) for level in self._readable(host, now))

    def take(self, host: Host) -> QueuedUrl:
        """Remove the next URL from the window and return it."""
        window = host.window
        assert window is not None
        item = window.pop(0)
        if not window:
            host.window = None
        self.window_bytes -= len(item.url.text) + ITEM_BYTES
        return item

    def put_back(self, host: Host, item: QueuedUrl) -> None:
        """Put a URL back to where `take` removed it."""
        host.window = [item, *(host.window or ())]
        self.window_bytes += len(item.url.text) + ITEM_BYTES

    def _url_of(self, text: str) -> Url:
        url = self._name_url(text)
        assert url is not None, f"{text} was named when it was put"
        return url

    def finish(self, host: Host, item: QueuedUrl) -> None:
        """Remove a URL from the disk with this epoch."""
        record = host.record
        if record.closed:
            record.due -= 1  # See `clear`.
            record.revisits -= item.revisit
            return
        if item.due_key:
            self._epochs.delete("due", item.due_key)
            if host.due_out is not None:
                host.due_out.discard(item.due_key)
            record.due -= 1
            record.revisits -= item.revisit
            return
        queue = record.levels[item.level]
        queue.finish(item.number)
        self.by_level[level_of(item.level)] -= 1
        if item.level < LEVELS:
            _count(record, shorten(item.url.text, record.name), -1)
        reading = host.readings.get(item.level)
        if reading is not None and reading.ends and reading.ends[0] <= queue.head:
            self._drop_passed(host, item.level, queue, reading)

    def clear(self, host: Host) -> int:
        """Drop all URLs of a host by two range deletes. Return how many of them were not leased and never visited.

        Leased URLs end with their visit. Until then they count as due, without an entry on disk. If the process dies
        first, the next call of `clear` drops them.
        """
        dropped = host.record.urls_queued - host.leased - (host.record.revisits - host.revisits_leased)
        for family in ("queue", "due"):
            self._epochs.delete_range(family, host.prefix, range_end(host.prefix))
        record = host.record
        for level, queue in record.levels.items():
            self.by_level[level_of(level)] -= queue.pending
        record.levels = {}
        record.due = host.leased
        record.revisits = host.revisits_leased
        record.plain = record.other = 0
        record.origins = None
        self.forget_window(host)
        host.readings.clear()
        return dropped

    def has_unread(self, host: Host) -> bool:
        """Return whether a level holds URLs that are neither in the window nor leased."""
        for level, queue in host.record.levels.items():
            if queue.head < queue.tail and self._unread(host, level, queue):
                return True
        return False

    def forget_window(self, host: Host) -> None:
        """Drop the window; its URLs are read again later."""
        if host.window is not None:
            self.window_bytes -= sum([len(item.url.text) + ITEM_BYTES for item in host.window])
            host.window = None
        host.readings = {level: Reading(one.fresh) for level, one in host.readings.items() if one.fresh is not None}
        host.due_out = None
        host.due_next = 0.0

    def cut(self, host: Host) -> None:
        """Put the new blocks of a host into the open epoch."""
        through = []
        for level, reading in host.readings.items():
            if reading.fresh is not None:
                self._cut_level(host, level, reading, reading.fresh)
            if reading.next < 0 or (not reading.ends and reading.next == host.record.levels[level].head):
                through.append(level)
        for level in through:
            del host.readings[level]

    def _cut_level(self, host: Host, level: int, reading: Reading, fresh: list[QueueBlock]) -> None:
        queue = host.record.levels[level]
        ends = reading.ends
        reading.fresh = None
        for block in fresh:
            end = block.first + block.count
            if ends and reading.block == block.first:
                ends[-1] = end  # The block has grown since it was read.
            elif queue.head >= end and (ends[-1] if ends else queue.block) == block.first:
                ends.append(end)  # The block was read and finished, but that state was dropped.
            if queue.head < end:
                self._epochs.put("queue", block_key(host.prefix, level, block.first), encode_block(block))
        self._drop_passed(host, level, queue, reading)

    def _is_turn_of_others(self, host: Host, now: float) -> bool:
        """Decide whether new URLs get the next window, although others are due: at random if revisits are. After a
        failed request they do: otherwise one URL would use up its attempts while its host does not answer.
        """
        if not host.record.revisits:
            return host.has_failed and (host.window is not None or bool(self._readable(host, now)))
        return host.window is not None or (self.has_unread(host) and self._share_new())

    def _choose_level(self, host: Host, now: float) -> int | None:
        """Choose a queue by its level; among queues of that level, one of URLs that were set aside, which are older."""
        waiting = self._readable(host, now)
        if host.record.origins is None:
            return self._bias.choose(waiting) if waiting else None
        if now < host.probe_from:
            waiting = [number for number in waiting if not on_trial(host.record, number)] or waiting
        by_level = {level_of(number): number for number in waiting}
        return by_level[self._bias.choose(list(by_level))] if by_level else None

    def _readable(self, host: Host, now: float) -> list[int]:
        """Return the queues of a host with unread URLs whose origins do not wait."""
        waiting = [level for level, queue in host.record.levels.items() if self._unread(host, level, queue)]
        if host.record.origins is None:
            return waiting
        return [level for level in sorted(waiting) if lane_at(host, level) <= now]

    def _unread(self, host: Host, level: int, queue: LevelQueue) -> bool:
        reading = host.readings.get(level)
        return (queue.head if reading is None or reading.next < 0 else reading.next) < queue.tail

    def _read_run(self, host: Host, level: int) -> None:
        queue = host.record.levels[level]
        reading = host.readings.get(level)
        if reading is None:
            reading = host.readings[level] = Reading()
        if reading.next < 0:
            reading.block = queue.block
            reading.next = queue.head
        block = self._block(host, level, reading)
        if reading.next >= block.first + block.count:
            reading.block += block.count
            block = self._block(host, level, reading)
        begin = reading.next - block.first
        # A single URL shows whether the origin answers; the others would be set aside again.
        most = 1 if level >= LEVELS and on_trial(host.record, level) else self._window_urls(host)
        stop = min(begin + most, block.count)
        items = block.items(host.record.name, level, begin, stop, self._url_of)
        if queue.done or reading.next < queue.head:
            items = [item for item in items if not queue.is_finished(item.number)]
        self.window_bytes += sum([len(item.url.text) + ITEM_BYTES for item in items])
        host.window = items or None
        reading.next = block.first + stop

    def _block(self, host: Host, level: int, reading: Reading) -> QueueBlock:
        """Return the block to read now, and note where it ends."""
        first = reading.block
        block = next((one for one in reading.fresh if one.first == first), None) if reading.fresh is not None else None
        if block is None:
            data = self._epochs.get("queue", block_key(host.prefix, level, first))
            assert data is not None, f"{host.name} lacks the block {first} of level {level}"
            block = decode_block(data)
        if reading.ends and reading.next > first:
            reading.ends[-1] = first + block.count  # It may have grown since it was read before.
        else:
            reading.ends.append(first + block.count)
        return block

    def _window_urls(self, host: Host) -> int:
        """Return how many URLs of a host to read: those that may be requested within `window_s_max`."""
        delay_s = host.rules.delay_s(host.record.fetches_s, host.record.crawl_delay_s)
        if delay_s * self._window_urls_max <= self._window_s_max:
            return self._window_urls_max
        return max(1, int(self._window_s_max / delay_s))

    def _take_due(self, host: Host, now: float) -> None:
        host.due_next = NEVER
        if host.due_out is None:
            host.due_out = set()
        out = host.due_out
        record = host.record
        window = host.window or []
        room = self._window_urls_max - len(window)
        first = True
        for key, value in self._epochs.scan("due", due_from(host.prefix, record.due_from), range_end(host.prefix)):
            if first:  # All earlier ones are deleted, or will be with this epoch.
                record.due_from = int.from_bytes(key[-16:-8])
                first = False
            if due_time(key) > now:
                host.due_next = due_time(key)
                break
            if key not in out:
                if room <= 0:
                    host.due_next = due_time(key)
                    break
                room -= 1
                entry = decode_entry(value)
                item = QueuedUrl(
                    self._url_of(entry.url), entry.depth, entry.hops, entry.link_type, entry.referrer, entry.attempt,
                    entry.seed, entry.revisit, entry.error, due_key=key,
                )  # fmt: skip
                window.append(item)
                self.window_bytes += len(item.url.text) + ITEM_BYTES
                out.add(key)
        host.window = window or None

    def _drop_passed(self, host: Host, level: int, queue: LevelQueue, reading: Reading) -> None:
        # A block that still grows is not dropped: more may come under its number.
        ends = reading.ends
        fresh = reading.fresh
        while ends and ends[0] <= queue.head and not (fresh is not None and fresh[0].first == queue.block):
            self._epochs.delete("queue", block_key(host.prefix, level, queue.block))
            queue.block = ends.pop(0)
            if not ends:
                reading.block = reading.next = queue.block  # Everything was read.
        if not ends and fresh is None and queue.block < queue.head == queue.tail:
            # An earlier process finished the last blocks out of order, so this process has not read them.
            begin, end = (block_key(host.prefix, level, number) for number in (queue.block, queue.tail))
            self._epochs.delete_range("queue", begin, end)
            queue.block = reading.block = reading.next = queue.tail


def _count(record: HostRecord, url: str, more: int) -> None:
    """Count a shortened URL by its origin, unless that is `https` without a port."""
    if url[:1] == ":":
        record.plain += more
    elif url[:1] != "/":
        record.other += more
