"""Exchange: links and messages between this shard and the others. Nothing here waits or opens a socket: `outgoing`
returns frames for the transport, `take` processes arrived frames.

A link is an offer, and offers are idempotent: the receiver's duplicate test turns at-least-once delivery into exactly
once. A batch stays in the sender's outbox from the commit that found its links until the receiver confirms that its
restore point includes it. A receiver that was restored from a checkpoint reports its position, and gets the batches
after it. A sender that was restored has a new incarnation, whose numbers are independent of the old ones.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from xxhash import xxh3_64_intdigest

from gossamer.cluster.addresses import Addresses
from gossamer.cluster.channels import Outbox, Peer, RecentlySent, Sending
from gossamer.cluster.frames import (
    AskPrerequisite,
    Batch,
    Frame,
    Linking,
    MovePart,
    Root,
    WalkedHosts,
    Welcome,
    decode_batch,
    decode_frame,
    encode,
    links_of,
)
from gossamer.cluster.inbox import Arrivals, Inbox
from gossamer.cluster.options import ClusterOptions
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.places import Places
from gossamer.cluster.prerequisites import RemotePrerequisites, result_of
from gossamer.model.links import SITEMAP_FILE, Link, Prerequisite, TravellingWalker
from gossamer.model.visits import Failure, Reply
from gossamer.state.epoch import Epochs
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.clock import Clock

PAIRS_MAX: Final = 100_000
"""Pairs of sites that were recently reported to other shards, so that each is reported once: about 8 MB."""


class LinkReceiver(Protocol):
    """The part of the ring that receives links and messages of other shards."""

    def discover(self, links: Sequence[Link]) -> None: ...

    def widen_by_remote_seed(self, seed: Url, target: Url, kind: int) -> None: ...

    def note_remote_link(self, source: int, site: str, partition: int) -> None: ...

    def receive_cash(self, host: str, partition: int, amount: float) -> None: ...

    def take_walker(self, walker: TravellingWalker) -> None: ...

    def note_walked_hosts(self, shard: int, hosts: int) -> None: ...

    def run_for_another(self, prerequisite: Prerequisite) -> bool: ...

    def prerequisite_answered(self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes) -> None: ...

    def take_part(self, part: MovePart) -> None: ...

    def on_welcome(self, welcome: Welcome) -> None: ...

    def on_failure(self, what: str, error: Exception) -> None: ...

    def on_loss(self, what: str) -> None: ...


class ShardRun(NamedTuple):
    """One start of a shard."""

    shard: int
    opening: int
    """Number of this start of the shard; grows with each start."""
    rolled_back: bool = False
    """Whether its state is older than its last one, from an earlier checkpoint."""
    needs_cover: bool = False
    """Whether received data is safe only in a checkpoint, not in a commit."""


class Exchange:
    """The shard's links, roots and prerequisite fetches from and to the other shards. Only for the loop."""

    is_alone = False

    def __init__(
        self, run: ShardRun, partitions: PartitionMap, epochs: Epochs, rules: ClusterOptions, namer: Namer, clock: Clock
    ) -> None:
        self.shard = run.shard
        self.partitions = partitions
        """The partition map at the start of the crawl, or after it was scaled while stopped."""
        self.opening = run.opening
        self.places = Places(run.shard, partitions, epochs, needs_cover=run.needs_cover, fresh=run.rolled_back)
        self._owners = self.places.owners
        self._namer = namer
        self._clock = clock
        self._outbox = Outbox(epochs, clock.now() if run.rolled_back else None)
        self._inbox = Inbox(epochs, needs_cover=run.needs_cover)
        self.addresses: Addresses | None = None
        """Leases of addresses, if other shards may use them too."""
        self.prerequisites = RemotePrerequisites(rules.resend_s)
        self._sending = Sending(self._outbox, rules.resend_s, self.places.held)
        self._is_durable = False
        """Whether a commit has our opening, so that the next process gets another."""
        self._cut: dict[int, int] = {}
        self._committed_seeds = {to: channel.seeds for to, channel in self._outbox.channels.items()}
        self._cut_seeds: dict[int, int] = {}
        self._arrivals = Arrivals(self._inbox, self._sending, rules.arrived_bytes_max)
        self._known = RecentlySent(rules.known_urls_max)
        self._pairs: set[int] = set()
        self._ring: LinkReceiver | None = None
        self._relieve: Callable[[], Awaitable[None]] | None = None
        self.on_outgoing: Callable[[], None] = lambda: None
        """Called when there is something to send."""
        self.activity = 0
        """Grows with each input from other shards that can create work."""

    def attach(self, ring: LinkReceiver, relieve: Callable[[], Awaitable[None]]) -> None:
        """Connect the ring that gets the links; `relieve` commits an epoch that is full."""
        self._ring = ring
        self._relieve = relieve

    # ---- the ring's side

    def has(self, url: Url) -> bool:
        return self._owners[url.partition] == self.shard

    def seeds_here(self, url: Url) -> bool:
        """Return whether this shard accepts a URL as a seed. The partition map at the start decides, because partitions
        that move while seeds are added would have no owner. The seed is passed on to the current owner like a link.
        """
        return self.partitions.owner(url.partition) == self.shard

    def own(self, links: Sequence[Link]) -> list[Link]:
        """Return this shard's links; put the others into the outbox. 60 ns for our link, 1 µs for another's."""
        owners = self._owners
        me = self.shard
        ours = [link for link in links if owners[link.url.partition] == me]
        if len(ours) < len(links):
            known = self._known
            for link in links:
                # Each host that names a sitemap gives it authority over itself.
                always = link.seed or link.link_type == SITEMAP_FILE
                if owners[link.url.partition] != me and (always or known.adds(link)):
                    self._send(link)
        return ours

    def _send(self, link: Link) -> None:
        packing = self._outbox.packing(self._owners[link.url.partition])
        before = packing.bytes
        packing.add(link)
        self._outbox.memory_bytes += packing.bytes - before

    def send_root(self, seed: Url, target: Url, kind: int) -> None:
        root = Root(seed.text, target.text, kind)
        for to in self._others():
            self._outbox.packing(to).put(root)

    def send_linking(self, page: Url, links: Sequence[Link]) -> None:
        source = xxh3_64_intdigest(page.site.encode())
        for site, partition in {(link.url.site, link.url.partition) for link in links if not self.has(link.url)}:
            # Each shard that has hosts of a split site counts for itself.
            to = self._owners[partition]
            pair = xxh3_64_intdigest(f"{site} {to}".encode(), seed=source & 0xFFFFFFFF)
            if site != page.site and pair not in self._pairs:
                if len(self._pairs) >= PAIRS_MAX:
                    self._pairs.clear()
                self._pairs.add(pair)
                self._outbox.packing(to).put(Linking(source, site, partition))

    def send_cash(self, host: str, partition: int, amount: float) -> None:
        """Send cash to a host of another shard. It arrives exactly once if the open epoch is committed."""
        self._outbox.packing(self._owners[partition]).add_cash(host, partition, amount)

    def owner_of(self, url: Url) -> int:
        """Return the shard that has the partition of a URL."""
        return self._owners[url.partition]

    def send_walker(self, to: int, walker: TravellingWalker) -> None:
        """Send a shard a walker. It arrives exactly once if the open epoch is committed."""
        self._outbox.packing(to).put(walker)

    def send_walked_hosts(self, hosts: int) -> None:
        """Send all others the number of hosts of this shard at which walkers may restart."""
        for to in self._others():
            self._outbox.packing(to).put(WalkedHosts(self.shard, hosts))

    def _others(self) -> list[int]:
        return [shard for shard in range(self.places.shards) if shard != self.shard]

    def send(self, to: int, item: MovePart | Welcome) -> None:
        """Send a shard keys that move there, or the state that it needs from before its start, with the open epoch."""
        self._outbox.packing(to).put(item)

    def progress(self, to: int) -> tuple[int, int]:
        """Return the numbers of the last batch that a shard has in a commit, and of the last batch for it."""
        return self._sending.peer(to).acked, self._outbox.channel(to).last

    def readdress(self) -> None:
        """Ask the current owners of partitions for prerequisite fetches."""
        for prerequisite in self.prerequisites.readdress(self.shard, lambda url: self._owners[url.partition]):
            if self._ring is None or not self._ring.run_for_another(prerequisite):
                self._answer(prerequisite, Failure("host_closed", "its host is closed"))

    def run_prerequisite(self, prerequisite: Prerequisite) -> bool:
        is_accepted = self.prerequisites.ask(prerequisite, self._owners[prerequisite.url.partition], self._clock.now())
        self.on_outgoing()
        return is_accepted

    def answer_prerequisite(self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes) -> None:
        self.prerequisites.note_result(prerequisite, result, body)
        self.on_outgoing()

    # ---- the epoch

    @property
    def memory_bytes(self) -> int:
        """Approximate memory of data that waits for the next `cut`."""
        return self._outbox.memory_bytes

    def cut(self, now: float) -> None:
        """Put the outbox and the positions into the open epoch."""
        self._cut = self._outbox.cut()
        self._cut_seeds = {to: channel.seeds for to, channel in self._outbox.channels.items()}
        self._inbox.cut()
        self.places.cut()

    def on_commit(self, epoch: int) -> None:
        """Note that an epoch is durable: its batches may be sent, and received ones confirmed."""
        self._is_durable = True
        self.places.on_commit(epoch)
        self._sending.commit(self._cut, self.places.held)
        self._committed_seeds = self._cut_seeds
        for sender in self._inbox.on_commit(epoch):
            self._sending.peer(sender).owed = True
        self.on_outgoing()

    def on_checkpoint(self, epoch: int) -> None:
        """Note that a checkpoint with an epoch is the one that this shard would be restored from."""
        self._inbox.on_checkpoint(epoch)
        self.places.on_checkpoint(epoch)
        self._sending.free(self.places.held)
        for peer in self._sending.peers.values():
            peer.owed = True
        self.on_outgoing()

    # ---- frames

    def outgoing(self, now: float) -> Iterator[tuple[int, bytes]]:
        """Yield the frames to send now, with their receivers. Call this on `on_outgoing`, and several times a second.

        There are none before the first commit: a process that died before it would have the same opening as the next.
        """
        if not self._is_durable:
            return
        for one in self.prerequisites.pop_expired(now):
            self._answer(one, Failure("robots_unreachable", "the shard that was to ask did not answer", retry=True))
        if self.addresses is not None:
            self.addresses.tick(now)
        for to in self._others():
            for frame in self._frames(to, now):
                yield to, encode(frame)

    def take(self, data: bytes, now: float) -> None:
        """Process a frame. Batches without room, duplicates and late ones are dropped; the sender repeats them."""
        frame = decode_frame(data)
        if frame.sender == self.shard or frame.sender < 0:
            return
        peer = self._sending.peer(frame.sender)
        if frame.opening < peer.opening:
            return  # From a process that has ended.
        if frame.opening > peer.opening:
            peer.opening = frame.opening
            peer.fresh = True
            peer.owed = True
            if self.addresses is not None:
                self.addresses.on_restart(frame.sender, frame.opening, now)
        peer.incarnation = frame.incarnation
        peer.silent = False
        self._sending.take_position(frame.sender, frame.position, gap=frame.gap)
        self._note_lost(frame)
        self.activity += self._arrivals.add(frame, peer)
        peer.owed |= frame.asks
        if frame.addresses and self.addresses is not None:
            self.addresses.take(frame.sender, frame.addresses, now, self.opening)
        for ask in frame.prerequisites:
            self._run_for(frame.sender, frame.opening, ask)
        for answer in frame.answers:
            prerequisite = self.prerequisites.take_answer(answer)
            if prerequisite is not None:
                self._answer(prerequisite, result_of(answer), answer.body)
        if peer.owed:
            self.on_outgoing()

    def on_peer_lost(self, to: int) -> None:
        """Note that a shard may be gone: frames in flight to it are sent again when it is back."""
        self._sending.peer(to).fresh = True

    async def run(self) -> None:
        """Pass arrived batches to the ring, and let the loop run between batches, until cancelled."""
        assert self._ring is not None
        assert self._relieve is not None
        self._take_own(self._ring)
        while True:
            while self._take_next(self._ring):
                await self._relieve()
                await asyncio.sleep(0)
            self._arrivals.stirred.clear()
            await self._arrivals.stirred.wait()

    # ---- reports

    @property
    def idle(self) -> bool:
        """Whether no frame waits to be taken, nothing waits for a commit, and no answer is awaited."""
        return not (self._arrivals or self.prerequisites.waits) and self._outbox.is_empty

    @property
    def has_seeds(self) -> bool:
        """Whether a seed or a root has arrived and was not taken, or waits for the commit."""
        return bool(self._arrivals) or self._outbox.has_seeds

    @property
    def incarnation(self) -> int:
        return self._outbox.incarnation

    def last_sent(self) -> dict[int, int]:
        """Return, per receiver, the number of the last batch in a commit; 0 if the receiver has all of them safely."""
        channels = self._outbox.channels
        return {to: last if last >= channels[to].first else 0 for to, last in self._sending.sendable.items() if last}

    def seeds_sent(self) -> dict[int, int]:
        """Return the same for the last batch with a seed or a root."""
        channels = self._outbox.channels
        return {to: last if last >= channels[to].first else 0 for to, last in self._committed_seeds.items() if last}

    def last_taken(self) -> dict[int, tuple[int, int]]:
        """Return, per sender, incarnation and number of the last batch in a commit."""
        return self._inbox.newest()

    # ---- inside: sending

    def _frames(self, to: int, now: float) -> Iterator[Frame]:
        peer = self._sending.peer(to)
        for first, batches, asks in self._sending.batches(to, now):
            frame = self._frame(to, peer)
            frame.first = first
            frame.batches = batches
            frame.asks = asks
            yield frame
        probes = self._sending.probes(to, now)
        requests = self.prerequisites.to_ask(to, now)
        answers = self.prerequisites.answers(to)
        addresses = self.addresses.outgoing(to, now) if self.addresses is not None else b""
        if peer.owed or probes or requests or answers or addresses:
            frame = self._frame(to, peer)
            frame.asks = probes
            frame.prerequisites = requests
            frame.answers = answers
            frame.addresses = addresses
            yield frame

    def _frame(self, to: int, peer: Peer) -> Frame:
        frame = Frame(self.shard, self.opening, self._outbox.incarnation, self._outbox.channel(to).first)
        frame.position = self._inbox.position(to, peer.incarnation)
        frame.gap = peer.gap
        peer.owed = peer.gap = False
        return frame

    # ---- inside: receiving

    def _take_next(self, ring: LinkReceiver) -> bool:
        taken = self._arrivals.take_next(lambda batch: self._take_batch(batch, ring))
        if taken and self._arrivals.ask_for_more():
            self.on_outgoing()
        return taken

    def _note_lost(self, frame: Frame) -> None:
        """Skip batches that the sender dropped because this shard confirmed them: its state is older than that."""
        expected = self._inbox.next_number(frame.sender, frame.incarnation, frame.base)
        if expected < frame.base:
            self._inbox.note_arrival(frame.sender, frame.incarnation, frame.base - 1)
            if self._ring is not None:
                self._ring.on_loss(
                    f"batches {expected} to {frame.base - 1} of shard {frame.sender} are gone: this shard's state is "
                    "older than what it said to be safe"
                )

    def _take_batch(self, batch: Batch, ring: LinkReceiver) -> None:
        name = self._namer.name
        for root in batch.roots:
            seed = name(root.seed)
            target = name(root.target)
            if seed is not None and target is not None:
                ring.widen_by_remote_seed(seed, target, root.kind)
        for part in batch.parts:
            ring.take_part(part)
        for welcome in batch.welcomes:
            ring.on_welcome(welcome)
        self._take_counts(batch, ring)
        self._take_links(batch, ring)
        for walked in batch.walked_hosts:
            ring.note_walked_hosts(walked.sender, walked.hosts)
        for walker in batch.walkers:
            ring.take_walker(walker)

    def _take_counts(self, batch: Batch, ring: LinkReceiver) -> None:
        for linking in batch.linking:
            if self.places.has(linking.partition):
                ring.note_remote_link(linking.source, linking.site, linking.partition)
            else:
                self._outbox.packing(self._owners[linking.partition]).put(linking)
        for cash in batch.cash:
            if self.places.has(cash.partition):
                ring.receive_cash(cash.host, cash.partition, cash.amount)
            else:
                self.send_cash(cash.host, cash.partition, cash.amount)

    def _take_links(self, batch: Batch, ring: LinkReceiver) -> None:
        """Discover links. Those to partitions that have moved away, or not arrived yet, are sent on, perhaps again."""
        links = links_of(batch, self._namer.names([url for run in batch.runs for url in run.urls]))
        for link in links:
            if not self.has(link.url):
                self._send(link)
        links = [link for link in links if self.has(link.url)]
        try:
            ring.discover(links)
        except Exception as error:  # noqa: BLE001 - an internal error with one link must not stop the others
            ring.on_failure("a batch from another shard", error)
            for link in links:
                try:
                    ring.discover([link])
                except Exception as again:  # noqa: BLE001 - the same
                    ring.on_failure(link.url.text, again)

    def _take_own(self, ring: LinkReceiver) -> None:
        """Take links from the outbox that were for a shard whose partitions have become ours."""
        channel = self._outbox.channels.get(self.shard)
        if channel is None or channel.first > channel.last:
            return
        for number in range(channel.first, channel.last + 1):
            self._take_batch(decode_batch(self._outbox.read(self.shard, number, number)[0]), ring)
        self._outbox.drop(self.shard, channel.last)

    def _run_for(self, sender: int, opening: int, ask: AskPrerequisite) -> None:
        named = self._namer.name(ask.origin)
        target = self._namer.name(ask.url)
        if named is None or target is None or self._ring is None or not self.has(target):
            return
        self.activity += 1
        prerequisite = Prerequisite(named, target, ask.hops, subject=ask.resource, is_about_origin=not ask.resource)
        if self.prerequisites.note_request(sender, opening, ask) and not self._ring.run_for_another(prerequisite):
            self.prerequisites.note_result(prerequisite, Failure("host_closed", "its host is closed"), b"")

    def _answer(self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes = b"") -> None:
        self.activity += 1
        if self._ring is not None and self.has(prerequisite.origin):  # Else its site moved, and asks where it is now.
            self._ring.prerequisite_answered(prerequisite, result, body)
