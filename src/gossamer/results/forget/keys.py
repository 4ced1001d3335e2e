"""Keys: what a shard's store knows of forgotten pages: records, queued URLs, digests, memories of visits, robots.txt.

Numbers of hosts stay (delays, failures, budgets): they are promises to servers. Links in the outbox are mentions.
"""

from typing import Final

import msgspec
from xxhash import xxh3_64_digest

from gossamer.config import Config
from gossamer.engine.counters import Totals
from gossamer.engine.history import page_key, read_page_record, write_page_record
from gossamer.engine.pending_scope import PendingLink, count_pending
from gossamer.features.logins.sessions import BOUNCE, cookies_without
from gossamer.features.mentions.mentions import decode_mention
from gossamer.features.revisit.rhythm import Rhythms
from gossamer.features.revisit.state import FAMILY as REVISIT
from gossamer.features.revisit.state import RevisitState, decode_memory, encode_memory, encode_state, load_state
from gossamer.features.revisit.websub import decode_subscription
from gossamer.results.forget.holdings import ForgottenPages, Holdings
from gossamer.results.forget.warcs import SavedPayloads
from gossamer.stages.frontier import record as host_record
from gossamer.stages.robots.documents import RECORDS as DOCUMENTS
from gossamer.stages.robots.robots import RECORDS
from gossamer.stages.seen.content import without
from gossamer.stages.seen.held import without as links_without
from gossamer.stages.seen.urls import url_seen_key
from gossamer.state import schema
from gossamer.state.epoch import Epochs, load
from gossamer.url.name import Namer

EPOCH_BYTES_MAX: Final = 32 << 20
"""Of changes that are held before they are committed."""
BLOCK_URLS_MAX: Final = 64
RHYTHMS_MAX: Final = 1_000
_STOPPED = b"\0hops:"
_WATCHED = b"\0watch:"
_GAINS = b"\0gains:"
_REQUEST = b"\0request:"


class Keys:
    """Deletes the keys. A killed deletion can resume: the records of pages, which lead to the others, go last."""

    def __init__(
        self, config: Config, holdings: Holdings, pages: ForgottenPages, namer: Namer, saved: SavedPayloads
    ) -> None:
        """`saved` says where records and payloads of kept pages are now."""
        self._heirs = saved.heirs
        self._places = saved.places
        self._store = holdings.store
        self._epochs = Epochs(holdings.store)
        self._pages = pages
        self._namer = namer
        self._has_seen_keys = config.seen.backend == "rocksdb" and not config.components.url_seen
        self._gone: set[bytes] = set()
        """Partition and fingerprint of each page."""
        self._hosts_gone: set[bytes] = set()
        """Partition and digest of each host of which nothing stays."""

    def delete(self) -> None:
        """Delete all, in commits. Costs about 3 µs a URL of the crawl."""
        for key, value in self._store.scan("page", *schema.PARTITIONED):
            record = read_page_record(value)
            if self._pages.has(record.url):
                self._note(key[:2], record.url)
            elif moved := self._places.get((record.warc_file, record.warc_offset or 0)):
                self._epochs.put("page", key, write_page_record(record, moved.warc_file, moved.warc_offset))
                self._relieve()
        self._delete_queued()
        parts = (self._delete_content, self._delete_visits, self._delete_scope, self._delete_held, self._delete_robots)
        for one in (*parts, self._delete_rest, self._delete_named):
            one()
            self._epochs.close_at_once()
        for key in sorted(self._gone):
            self._epochs.delete("page", key)
            self._relieve()
        self._epochs.close_at_once()

    def _note(self, partition: bytes, address: str) -> None:
        if (url := self._namer.name(address)) is not None:
            self._gone.add(partition + url.fingerprint.to_bytes(8))
            if self._has_seen_keys:
                self._epochs.delete("seen", url_seen_key(url))
                self._relieve()

    def _relieve(self) -> None:
        if self._epochs.memory_bytes > EPOCH_BYTES_MAX:
            self._epochs.close_at_once()

    def _replace(self, family: str, key: bytes, value: bytes, left: bytes) -> None:
        """Put what is left of a value; delete the key if nothing is."""
        if not left:
            self._epochs.delete(family, key)
        elif left != value:
            self._epochs.put(family, key, left)

    # ---- the frontier

    def _delete_queued(self) -> None:
        """Take URLs out of all hosts' queues. One commit for each host: its record and its queues change together."""
        for prefix, data in self._store.scan("host", *schema.PARTITIONED):
            record = host_record.decode_record(data)
            if self._pages.has_host(record.name):
                self._hosts_gone.add(prefix[:2] + xxh3_64_digest(record.name.encode()))
            counts = load(self._epochs, schema.FRONTIER_COUNTS, host_record.QueueCounts)
            before = record.urls_queued
            removed = self._thin_levels(prefix, record, counts) + self._thin_due(prefix, record)
            if before == record.urls_queued:
                continue
            counts.pending -= removed
            counts.discovered -= removed
            if not record.urls_queued:
                counts.working -= 1
                if record.index_key:
                    counts.deferred -= record.index_family == "deferred"
                    self._epochs.delete(record.index_family, record.index_key)
                    record.index_family = ""
                    record.index_key = b""
            self._epochs.put("host", prefix, host_record.encode_record(record))
            self._epochs.put("meta", schema.FRONTIER_COUNTS, msgspec.msgpack.encode(counts))
            self._epochs.close_at_once()

    def _thin_levels(self, prefix: bytes, record: host_record.HostRecord, counts: host_record.QueueCounts) -> int:
        """Rewrite the queues of a host without forgotten URLs; return how many these are."""
        removed = 0
        for level, queue in list(record.levels.items()):
            span = (host_record.block_key(prefix, level, 0), host_record.block_key(prefix, level, 2**64 - 1))
            blocks = [(key, host_record.decode_block(data)) for key, data in self._store.scan("queue", *span)]
            texts = [
                host_record.lengthen(text, record.name)
                for _, block in blocks
                for run in block.runs
                for text in run.urls
            ]
            if not any(map(self._pages.has, texts)):
                continue
            for text in filter(self._pages.has, texts):
                self._note(prefix[:2], text)
            left, gone = _divide(queue, [block for _, block in blocks], record.name, self._pages)
            for key, _ in blocks:
                self._epochs.delete("queue", key)
            first = queue.tail
            record.levels[level] = host_record.LevelQueue(first, first, first)
            for block in _blocks(left, first):
                self._epochs.put(
                    "queue", host_record.block_key(prefix, level, block.first), host_record.encode_block(block)
                )
                record.levels[level].tail += block.count
            removed += len(gone)
            if counts.levels:
                counts.levels[host_record.level_of(level)] -= len(gone)
            if level < host_record.LEVELS:  # The counts of a host's origins.
                record.plain -= sum(text.startswith(":") for text in gone)
                record.other -= sum(not text.startswith((":", "/")) for text in gone)
        return removed

    def _thin_due(self, prefix: bytes, record: host_record.HostRecord) -> int:
        """Delete forgotten URLs that wait for their time; return how many of them were never visited."""
        removed = 0
        for key, data in list(self._store.scan("due", prefix, host_record.range_end(prefix))):
            entry = host_record.decode_entry(data)
            if self._pages.has(entry.url):
                self._note(prefix[:2], entry.url)
                self._epochs.delete("due", key)
                record.due -= 1
                record.revisits -= entry.revisit
                removed += not entry.revisit
        return removed

    # ---- what is known of pages

    def _delete_content(self) -> None:
        """Delete digests and sketches: a copy of a forgotten page would be archived as a reference to it."""

        def has(partition: int, fingerprint: int) -> bool:
            return page_key(partition, fingerprint) in self._gone

        for key, value in self._store.scan("content", b"", schema.LAST):
            kind = key[2:9]
            if kind[:6] == _STOPPED:
                left = b"" if key[:2] + key[8:] in self._gone else value
            elif kind[:7] in (_WATCHED, _GAINS):
                left = b"" if key[:2] + key[9:] in self._hosts_gone else value
            else:
                left = without(key, value, self._pages.has, has, self._heirs)
            self._replace("content", key, value, left)
            self._relieve()

    def _delete_visits(self) -> None:
        """Delete memories of pages that are visited again, and take them out of the sums."""
        state = load_state(self._epochs)
        rhythms = Rhythms(self._epochs, RHYTHMS_MAX)
        for key, value in self._store.scan(REVISIT, *schema.PARTITIONED):
            memory = decode_memory(value)
            if key not in self._gone and memory.held is not None and self._pages.has(memory.held.url):
                heir = self._heirs.get(memory.held.record_id)
                memory.original = (heir.url, heir.fetched_at, heir.record_id) if heir is not None else None
                self._epochs.put(REVISIT, key, encode_memory(memory))
                self._relieve()
        for key in sorted(self._gone):
            data = self._store.get(REVISIT, key)
            if data is None:
                continue
            memory = decode_memory(data)
            url = self._namer.name(memory.address)
            if state is not None and url is not None:
                rhythm = rhythms.get(url.partition, url.host)
                state.withdraw(memory, rhythm)
                rhythms.touch(url.partition, rhythm)
            self._epochs.delete(REVISIT, key)
            if self._epochs.memory_bytes > EPOCH_BYTES_MAX:
                self._save_sums(state, rhythms)
                self._epochs.close_at_once()
        self._save_sums(state, rhythms)

    def _save_sums(self, state: RevisitState | None, rhythms: Rhythms) -> None:
        """Give the sums to the epoch that deletes the pages which left them."""
        rhythms.cut()
        if state is not None:
            self._epochs.put("meta", schema.REVISIT_STATE, encode_state(state))

    def _delete_scope(self) -> None:
        changed = False
        for key, value in self._store.scan("scope", *schema.PARTITIONED):
            of_page = key[:2] + key[3:] in self._gone
            if of_page or (key[2:3] == b"l" and self._pages.has(msgspec.msgpack.decode(value, type=PendingLink).url)):
                self._epochs.delete("scope", key)
                changed = True
        if changed:
            counts = count_pending(self._epochs.scan("scope", *schema.PARTITIONED))
            self._epochs.put("meta", schema.PENDING_SCOPE, msgspec.msgpack.encode(counts))

    def _delete_held(self) -> None:
        """Delete links that await the duplicate check."""
        for key, value in self._store.scan("seen", *schema.under(schema.HELD_LINKS)):
            self._replace("seen", key, value, links_without(value, self._pages.has))

    def _delete_robots(self) -> None:
        """Delete what was read of robots.txt files and of documents about the use of a site."""
        for key, _ in self._store.scan("meta", *schema.PARTITIONED):
            name = key[2:]
            if name.startswith(RECORDS):
                address = name.removeprefix(RECORDS).decode() + "/robots.txt"
            elif name.startswith(DOCUMENTS):
                address = name.removeprefix(DOCUMENTS).decode()
            else:
                continue
            if self._pages.has(address):
                self._epochs.delete("meta", key)

    def _delete_named(self) -> None:
        """Remove addresses from the totals: seeds, links that filters rejected, pages at which modules failed."""
        totals = load(self._store, schema.TOTALS, Totals)
        has = self._pages.has
        totals.seeds.first = [url for url in totals.seeds.first if not has(url)]
        totals.rejected = {name: url for name, url in totals.rejected.items() if not has(url)}
        for module in totals.modules.values():
            if has(module.url):
                module.url = ""
                module.error = ""
        self._epochs.put("meta", schema.TOTALS, msgspec.msgpack.encode(totals))

    def _delete_rest(self) -> None:
        """Delete sitemaps, feeds, subscriptions, listed requests, cookies and traps of hosts without pages."""
        for key, _ in self._store.scan("hints", *schema.PARTITIONED):
            if key[2:3] == b"\1" and key[:2] + key[3:] in self._gone:
                self._epochs.delete("hints", key)
        for key, value in self._store.scan("websub", *schema.PARTITIONED):
            if key[2:3] == schema.MENTIONED.marks:
                mention = decode_mention(value)
                is_gone = self._pages.has(mention.source) or self._pages.has(mention.target)
            else:
                is_gone = self._pages.has(decode_subscription(value).page)
            if is_gone:
                self._epochs.delete("websub", key)
        for key, value in self._store.scan("cookie", *schema.PARTITIONED):
            left = value
            if key[2:3] != b"\0":
                left = cookies_without(value, self._pages.has_host)
            elif key[2:].startswith((_REQUEST, BOUNCE)) and key[:2] + key[-8:] in self._gone:
                left = b""
            self._replace("cookie", key, value, left)
        for key, _ in self._store.scan("trap", *schema.PARTITIONED):
            if key[:10] in self._hosts_gone:
                self._epochs.delete("trap", key)


def _divide(
    queue: host_record.LevelQueue, blocks: list[host_record.QueueBlock], host: str, pages: ForgottenPages
) -> tuple[list[tuple[host_record.QueueRun, str]], list[str]]:
    """Return the URLs of a queue that are not finished: those that stay, each with its run, and the forgotten ones."""
    left = []
    gone = []
    for block in blocks:
        number = block.first
        for run in block.runs:
            for text in run.urls:
                if number < queue.tail and not queue.is_finished(number):
                    if pages.has(host_record.lengthen(text, host)):
                        gone.append(text)
                    else:
                        left.append((run, text))
                number += 1
    return left, gone


def _blocks(left: list[tuple[host_record.QueueRun, str]], first: int) -> list[host_record.QueueBlock]:
    """Return blocks of the URLs, under new numbers."""
    found = []
    for begin in range(0, len(left), BLOCK_URLS_MAX):
        block = host_record.QueueBlock(first + begin)
        last: host_record.QueueRun | None = None
        for run, text in left[begin : begin + BLOCK_URLS_MAX]:
            if run is not last:
                block.runs.append(msgspec.structs.replace(run, urls=[]))
                last = run
            block.runs[-1].urls.append(text)
            block.count += 1
        found.append(block)
    return found
