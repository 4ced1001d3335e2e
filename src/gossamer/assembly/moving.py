"""Moving: carries partitions from this shard to others, and takes in those that arrive, while the crawl runs.

While a partition is still crawled here, each commit copies some of its keys to the outbox, and its changes to keys that
were copied before. Once the receiver has all of them, the partition is frozen: none of its URLs is leased. When its
leases have ended, one commit hands it over: the last changes go to the outbox, the keys are deleted here, and from then
on links go to the receiver, which crawls the partition as soon as it has the last part. So the pause depends on what
one commit changes, not on the size of the partition. A process that dies copies from the beginning: at the first part
the receiver drops what came before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from gossamer.cluster.exchange import Exchange
from gossamer.cluster.frames import BATCH_BYTES_MAX, MoveEnd, MovePart
from gossamer.cluster.places import Move
from gossamer.engine.pending_scope import PendingScope, open_seeds
from gossamer.features.revisit.moving import COUNTED, MEMORIES, CopiedSums
from gossamer.model.links import Prerequisite
from gossamer.model.visits import Failure
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.moving import FrontierMoves
from gossamer.stages.frontier.record import decode_block, lengthen
from gossamer.stages.seen.moved import Cursor, MovedUrls, UrlsOf
from gossamer.state.epoch import Epochs
from gossamer.state.schema import FAMILIES, partition_range
from gossamer.url.url import NameUrl

if TYPE_CHECKING:
    from gossamer.assembly.ring import CrawlRing

STEP_KEYS_MAX: Final = 5_000
"""Keys that one commit copies at the most, beside those that it changed: about 15 ms, and 20 ms more for the sums of
pages that are visited again."""
PART_KEYS_MAX: Final = 1_000


class Copy(msgspec.Struct):
    """Progress of a move until it is handed over. A process that is restarted copies again."""

    move: Move
    sums: CopiedSums | None
    """Sums over the copied pages; None in a batch crawl."""
    unlisted: Cursor | None = None
    """Where listing the seen URLs continues, which comes before copying; None: all are listed."""
    has_begun: bool = False
    part: int = 0
    """Number of the next part."""
    family: int = 0
    """Number of the family that is copied next."""
    begin: bytes = b""
    """Keys of it before this one are copied."""
    keys: int = 0
    """Copied so far."""
    through: int | None = None
    """The batch that all copied keys are in, where the receiver must have it before the partitions are paused."""
    is_frozen: bool = False
    """No URL of the partitions is leased."""

    @property
    def is_complete(self) -> bool:
        """All keys are copied, as they were when it was their turn."""
        return self.family == len(FAMILIES)


class PartitionMoves:
    """A shard's side of the moves that the coordinator orders."""

    def __init__(
        self, exchange: Exchange, ring: CrawlRing, frontier: Frontier, epochs: Epochs, pending_scope: PendingScope
    ) -> None:
        self._exchange = exchange
        self._places = exchange.places
        self._ring = ring
        self._loop = ring.loop
        self.frontier = FrontierMoves(frontier, epochs)
        self._reputation = frontier.ledger.reputation
        self._epochs = epochs
        self._pending_scope = pending_scope
        self._revisits = ring.features.recrawl.schedule.moves if ring.features.recrawl is not None else None
        self._listing: MovedUrls | None = getattr(ring.urls.url_seen, "moved", None)
        self._urls_of = urls_in(ring.urls.namer.name)
        self._copies: dict[int, Copy] = {}
        """Moves that are ours to give and not given, by version."""
        self.step_keys_max = STEP_KEYS_MAX

    def order(self, moves: Sequence[Move]) -> None:
        """Begin those moves that are ours to give. They may be ordered again, or late."""
        for move in moves:
            if move.sender == self._exchange.shard and self._places.is_new(move) and move.version not in self._copies:
                sums = self._revisits.copying() if self._revisits is not None else None
                self._copies[move.version] = Copy(move, sums, unlisted=None if self._listing is None else (0, b""))
        for copy in [copy for copy in self._copies.values() if copy.is_complete and not copy.is_frozen]:
            taken, last = self._exchange.progress(copy.move.to)
            copy.through = last if copy.through is None else copy.through
            if taken >= copy.through:
                self._freeze(copy)
        if self.is_copying or any(self._is_drained(copy) for copy in self._copies.values()):
            self._loop.commit_soon()

    @property
    def is_copying(self) -> bool:
        """Some keys are not copied yet."""
        return not all(copy.is_complete for copy in self._copies.values())

    def cut(self, now: float) -> None:
        """Copy keys with the closing epoch, and hand over what is ready. Only the exchange is cut later."""
        left = self.step_keys_max
        for copy in [copy for copy in self._copies.values() if self._places.is_new(copy.move)]:
            if copy.unlisted is not None:
                self._list(copy, copy.unlisted)
                continue
            had_begun = copy.has_begun
            if copy.sums is not None:
                self._count_changes(copy, copy.sums)
            if left > 0:
                left -= self._copy(copy, left, now)
            is_given = self._is_drained(copy)
            if is_given:
                self._release(copy.move, now)
            if had_begun or is_given:
                self._send_changes(copy, now)
            if is_given:
                self._give(copy, now)

    def take(self, part: MovePart, now: float) -> None:
        """Take a part of what another shard gives."""
        if not self._places.awaits(part):
            return
        self._places.takes(part)
        if part.number == 0:  # An earlier try of the giver, which was restored since, may have left some.
            for family in FAMILIES:
                for begin, end in self._ranges(family, part.first, part.end):
                    self._epochs.delete_range(family, begin, end)
        family = FAMILIES[part.family]
        for begin, end in part.cleared:
            self._epochs.delete_range(family, begin, end)
        for key in part.gone:
            self._epochs.delete(family, key)
        pairs: Iterable[tuple[bytes, bytes]] = part.pairs
        if self._revisits is not None and family == MEMORIES:
            pairs = self._revisits.renumber(part.promises, part.pairs)
        for key, value in pairs:
            self._epochs.put(family, key, value)
        if part.last is not None:
            self._admit(part, part.last, now)

    # ---- inside

    def _freeze(self, copy: Copy) -> None:
        self.frontier.freeze(copy.move.first, copy.move.end)
        copy.is_frozen = True

    def _is_drained(self, copy: Copy) -> bool:
        """Return whether nothing of a move's partitions is in flight, or will be."""
        move = copy.move
        busy = not copy.is_frozen or any(move.first <= one.host.partition < move.end for one, _ in self._loop.under_way)
        return not busy and self.frontier.is_drained(move.first, move.end)

    def _release(self, move: Move, now: float) -> None:
        """Drop a move's partitions from memory; their keys stay until `_give`."""
        self._exchange.activity += 1
        names = self._names(move.first, move.end)
        waiting = self.frontier.release(move.first, move.end)
        self._ring.scope.trapping.forget(names)
        self._pending_scope.move_partitions(move.first, move.end, -1)
        self._places.give(move)
        self._exchange.readdress()
        for prerequisite in waiting:
            self._redirect(prerequisite, now)

    def _redirect(self, prerequisite: Prerequisite, now: float) -> None:
        """Pass a fetch that waited for its turn here to the new owner of its host."""
        if not self._exchange.has(prerequisite.origin):
            self._exchange.prerequisites.drop(prerequisite)  # Other shards ask its new owner.
        elif not self._exchange.run_prerequisite(prerequisite):
            refused = Failure("host_closed", "its host moved to another shard", retry=True)
            self._ring.pipeline.prerequisites.answer(prerequisite, b"", refused, now)

    def _list(self, copy: Copy, cursor: Cursor) -> None:
        assert self._listing is not None
        move = copy.move
        copy.unlisted = self._listing.list_known(move.first, move.end, cursor, self.step_keys_max, self._urls_of)

    def _copy(self, copy: Copy, keys_max: int, now: float) -> int:
        """Put up to `keys_max` further keys into the outbox; return how many."""
        move = copy.move
        keys = 0
        copy.has_begun = True
        while not copy.is_complete:
            family = FAMILIES[copy.family]
            for begin, end in self._ranges(family, move.first, move.end):
                if end <= copy.begin:
                    continue
                pairs = list(islice(self._epochs.scan(family, max(begin, copy.begin), end), keys_max - keys))
                self._send(copy, copy.family, self._travelling(family, pairs, now))
                if copy.sums is not None and family in COUNTED:
                    for _, data in pairs:
                        copy.sums.count(family, data)
                keys += len(pairs)
                copy.keys += len(pairs)
                if keys >= keys_max:
                    copy.begin = pairs[-1][0] + b"\0"
                    return keys  # There may be more in this family.
            copy.family = copy.family + 1
            copy.begin = b""
        if not copy.is_frozen and copy.keys < self.step_keys_max:
            self._freeze(copy)  # So few do not keep the last part waiting.
        return keys

    def _count_changes(self, copy: Copy, sums: CopiedSums) -> None:
        """Adjust the sums of pages that earlier commits copied to the changes of the open epoch."""
        for family in COUNTED:
            begin, end = partition_range(copy.move.first, copy.move.end)
            number = FAMILIES.index(family)
            if number == copy.family:
                end = max(begin, copy.begin)
            if number <= copy.family:
                for before, now in self._epochs.replacements(family, begin, end):
                    sums.count(family, before, -1)
                    sums.count(family, now)

    def _send_changes(self, copy: Copy, now: float) -> None:
        """Put the open epoch's changes into the outbox, also those of keys that are copied later: that does no harm."""
        for number, family in enumerate(FAMILIES):
            for begin, end in self._ranges(family, copy.move.first, copy.move.end):
                cleared, changed = self._epochs.changes(family, begin, end)
                gone = [key for key, value in changed if value is None]
                if gone or cleared:
                    self._send_part(copy, number, gone=gone, cleared=cleared)
                pairs = [(key, value) for key, value in changed if value is not None]
                self._send(copy, number, self._travelling(family, pairs, now))

    def _give(self, copy: Copy, now: float) -> None:
        move = copy.move
        revisits = b""
        if self._revisits is not None and copy.sums is not None:
            revisits = self._revisits.release(move.first, move.end, copy.sums)
        for family in FAMILIES:
            for begin, end in self._ranges(family, move.first, move.end):
                self._epochs.delete_range(family, begin, end)
        for moved in self._ring.features.middlewares.moved:
            moved(move.first, move.end)
        if self._listing is not None:
            self._listing.leaving.difference_update(range(move.first, move.end))
        linking = self._reputation
        moves = self.frontier
        linking_max = linking.linking_max if linking is not None else 0.0
        self._send_part(copy, 0, last=MoveEnd(moves.round, linking_max, revisits, moves.remaining_delays(now)))
        del self._copies[move.version]

    def _send(self, copy: Copy, family: int, pairs: list[tuple[bytes, bytes]]) -> None:
        at = 0
        while at < len(pairs):
            some = at
            size = 0
            while at < len(pairs) and at - some < PART_KEYS_MAX and size < BATCH_BYTES_MAX:
                size += len(pairs[at][0]) + len(pairs[at][1])
                at += 1
            self._send_part(copy, family, pairs[some:at])

    def _send_part(
        self, copy: Copy, family: int, pairs: Sequence[tuple[bytes, bytes]] = (), last: MoveEnd | None = None,
        gone: Sequence[bytes] = (), cleared: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:  # fmt: skip
        move = copy.move
        is_numbered = pairs and FAMILIES[family] == MEMORIES
        part = MovePart(
            move.version, move.first, move.end, copy.part, family, list(pairs), last, list(gone), list(cleared),
            self._revisits.promises if self._revisits is not None and is_numbered else [],
        )  # fmt: skip
        self._exchange.send(move.to, part)
        copy.part += 1

    def _travelling(self, family: str, pairs: list[tuple[bytes, bytes]], now: float) -> list[tuple[bytes, bytes]]:
        if family != "host":
            return pairs
        return [(key, self.frontier.record_to_move(data, now)) for key, data in pairs]

    def _admit(self, part: MovePart, last: MoveEnd, now: float) -> None:
        first = part.first
        end = part.end
        self._exchange.activity += 1
        for moved in self._ring.features.middlewares.moved:
            moved(first, end)
        if (forget := getattr(self._ring.urls.url_seen, "forget", None)) is not None:
            forget()
        if self._listing is not None:
            self._listing.partitions.update(range(first, end))
        self._ring.scope.trapping.admit(self._names(first, end), first, end)
        self._pending_scope.move_partitions(first, end, 1)
        if (reputation := self._reputation) is not None:
            reputation.linking_max = max(reputation.linking_max, last.linking_max)
        self.frontier.admit(first, end, last.round, last.delays, now)
        if self._ring.features.recrawl is not None and not last.revisits:
            self._ring.features.recrawl.enrolment.begin_again(first)  # Given while the crawl was a batch crawl.
        elif self._revisits is not None:
            self._revisits.admit(first, end, last.revisits)
        self._places.took(part)
        self._exchange.readdress()
        self._loop.stir()

    def _names(self, first: int, end: int) -> list[str]:
        return [key[2:-1].decode() for key, _ in self._epochs.scan("host", *partition_range(first, end))]

    def _ranges(self, family: str, first: int, end: int) -> list[tuple[bytes, bytes]]:
        return moving_ranges(family, first, end, lists=self._listing is not None)


def moving_ranges(family: str, first: int, end: int, *, lists: bool) -> list[tuple[bytes, bytes]]:
    """Return the ranges of keys that move with partitions: all of them, except for links that wait for the scope to
    grow, which stay where they were found, and, with a backend that `lists` URLs before they move, its own.
    """
    if family == "scope":
        return [open_seeds(number) for number in range(first, end)]
    return [] if family == "seen" and lists else [partition_range(first, end)]


def urls_in(name: NameUrl) -> UrlsOf:
    """Return a function that reads the URLs of the families that are listed before partitions move."""

    def read(family: str, key: bytes, value: bytes) -> list[tuple[int, int]]:
        partition = int.from_bytes(key[:2])
        if family != "queue":
            return [(partition, int.from_bytes(key[-8:]))]
        host = key[2 : key.index(0, 2)].decode()
        texts = [lengthen(text, host) for run in decode_block(value).runs for text in run.urls]
        return [(partition, url.fingerprint) for url in map(name, texts) if url is not None]

    return read
