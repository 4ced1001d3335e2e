"""Frames: messages between shards, and their encoding. The transport sees bytes.

A frame may be lost, duplicated, late or out of order, so its arrival alone means nothing. Batches have numbers and
carry what must not be lost; the rest is requested again.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from gossamer.model.links import Link, TravellingWalker
from gossamer.url.url import Url

BATCH_ITEMS_MAX: Final = 2_000
"""Links in a batch: it is taken whole, between two steps of the receiver's loop."""
BATCH_BYTES_MAX: Final = 256 << 10
FRAME_BYTES_MAX: Final = 1 << 20
"""Batches of a frame: one more is not begun beyond it."""


class LinkRun(msgspec.Struct, array_like=True, gc=False):
    """Links that one page names in the same way."""

    link_type: str
    depth: int
    hops: int
    seed: int
    referrer: str
    urls: list[str]


class Root(msgspec.Struct, array_like=True, frozen=True):
    """A redirect of a seed that widened the scope."""

    seed: str
    target: str
    kind: int


class Linking(msgspec.Struct, array_like=True, frozen=True):
    """A site that links to another one. Noting it twice is noting it once."""

    source: int
    """A hash of the site's name."""
    site: str
    partition: int


class Cash(msgspec.Struct, array_like=True):
    """A host's share of the cash of other hosts (OPIC)."""

    host: str
    partition: int
    amount: float


class MoveEnd(msgspec.Struct, array_like=True, frozen=True):
    """The last part of a move."""

    round: int
    """The giver's budget round: what hosts spent counts in it."""
    linking_max: float
    """Most sites that link to any one, as the giver knows."""
    revisits: bytes = b""
    """In a continuous crawl: the sums over the pages and hosts that moved (`revisit.state`)."""
    delays: dict[int, float] = msgspec.field(default_factory=dict)
    """Seconds that hosts must still wait by what the giver found at its start, by fingerprint."""


class MovePart(msgspec.Struct, array_like=True, frozen=True):
    """Keys of partitions that move from the sender to the receiver (`places`)."""

    version: int
    first: int
    end: int
    number: int
    """From 0. At part 0 the receiver deletes the keys of these partitions that it has."""
    family: int
    pairs: list[tuple[bytes, bytes]]
    last: MoveEnd | None = None
    gone: list[bytes] = msgspec.field(default_factory=list)
    """Keys that an earlier part may have had, and that were deleted since."""
    cleared: list[tuple[bytes, bytes]] = msgspec.field(default_factory=list)
    """Ranges of keys that were deleted since. The receiver deletes them before it writes `pairs`."""
    promises: list[tuple[str, float]] = msgspec.field(default_factory=list)
    """Pattern and maximum age by the numbers that pages have in `pairs`; empty for other families."""


class Welcome(msgspec.Struct, array_like=True, frozen=True):
    """Facts learned before a new shard began, for that shard."""

    roots: bytes
    excluded: bytes


class WalkedHosts(msgspec.Struct, array_like=True, frozen=True):
    """At how many hosts of the sender walkers may restart."""

    sender: int
    hosts: int


class Batch(msgspec.Struct, array_like=True):
    """Unit of sending, numbered by its place in the outbox."""

    runs: list[LinkRun] = msgspec.field(default_factory=list)
    roots: list[Root] = msgspec.field(default_factory=list)
    linking: list[Linking] = msgspec.field(default_factory=list)
    cash: list[Cash] = msgspec.field(default_factory=list)
    parts: list[MovePart] = msgspec.field(default_factory=list)
    welcomes: list[Welcome] = msgspec.field(default_factory=list)
    walkers: list[TravellingWalker] = msgspec.field(default_factory=list)
    walked_hosts: list[WalkedHosts] = msgspec.field(default_factory=list)


Item = Root | Linking | MovePart | Welcome | TravellingWalker | WalkedHosts
_LISTS: Final = {
    Root: "roots", Linking: "linking", MovePart: "parts", Welcome: "welcomes", TravellingWalker: "walkers",
    WalkedHosts: "walked_hosts",
}  # fmt: skip
"""The lists of a `Batch` by their items."""


class Position(msgspec.Struct, array_like=True, frozen=True):
    """Position of a receiver in the batches of one incarnation of a sender."""

    incarnation: int
    arrived: int
    """Last batch that came, in order."""
    committed: int
    """Last batch that a commit includes."""
    safe: int
    """Last batch that the sender can delete: the receiver's restore point includes it."""


class AskPrerequisite(msgspec.Struct, array_like=True, frozen=True):
    """A prerequisite fetch that another shard must make."""

    number: int
    origin: str
    url: str
    hops: int
    resource: str = ""
    """Of a resource of a rendered page at `origin`: what it is about. Empty for a document about an origin."""


class PrerequisiteAnswer(msgspec.Struct, array_like=True, frozen=True):
    """Result of a prerequisite fetch: its failure, or the parts of its reply that robots rules and browsers need."""

    number: int
    url: str
    failure: tuple[str, str, bool, bool] | None
    """Outcome, error, retry, host_level."""
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    ip: str = ""
    at: float = 0.0
    truncated: str = ""


class Frame(msgspec.Struct, array_like=True):
    """One message. `opening` is the start of the sender; messages of older starts are ignored."""

    sender: int
    opening: int
    incarnation: int = 0
    base: int = 1
    """The oldest batch that the sender still has for this receiver."""
    first: int = 0
    """Number of the first of `batches`."""
    batches: list[bytes] = msgspec.field(default_factory=list)
    asks: bool = False
    """The sender wants to know the receiver's position."""
    position: Position | None = None
    """The sender's position in what the receiver sends."""
    gap: bool = False
    """Batches are missing after `position.arrived`."""
    addresses: bytes = b""
    """See `addresses`."""
    prerequisites: list[AskPrerequisite] = msgspec.field(default_factory=list)
    answers: list[PrerequisiteAnswer] = msgspec.field(default_factory=list)


encode = msgspec.msgpack.Encoder().encode
decode_frame = msgspec.msgpack.Decoder(Frame).decode
decode_batch = msgspec.msgpack.Decoder(Batch).decode


class FramePacker:
    """A batch that grows. About 0.4 µs a link."""

    __slots__ = ("_cash", "batch", "bytes", "items", "seeds")

    def __init__(self) -> None:
        self.batch = Batch()
        self._cash: dict[str, Cash] = {}
        self.items = 0
        self.bytes = 0
        self.seeds = False
        """It has a seed or a root in it."""

    @property
    def full(self) -> bool:
        return self.items >= BATCH_ITEMS_MAX or self.bytes >= BATCH_BYTES_MAX

    def add(self, link: Link) -> None:
        """Put a link at the end."""
        runs = self.batch.runs
        text = link.url.text
        if runs:
            run = runs[-1]
            if (
                run.referrer == link.referrer
                and run.link_type == link.link_type
                and run.depth == link.depth
                and run.hops == link.hops
                and run.seed == link.seed
            ):
                run.urls.append(text)
                self.items += 1
                self.bytes += len(text) + 60
                return
        runs.append(LinkRun(link.link_type, link.depth, link.hops, link.seed, link.referrer, [text]))
        self.items += 1
        self.bytes += len(text) + len(link.referrer) + 400
        self.seeds |= bool(link.seed)

    def put(self, item: Item) -> None:
        """Put anything else at the end of its list. Roots are taken before all links of their batch."""
        data = encode(item)
        items: list[msgspec.Raw] = getattr(self.batch, _LISTS[type(item)])
        items.append(msgspec.Raw(data))  # Keys that move are large: they are encoded once.
        self.items += len(item.pairs) + len(item.gone) + 1 if isinstance(item, MovePart) else 1
        self.bytes += len(data) + 4  # The list's own length may take as many.
        # A seed whose redirect may widen the scope may be among the keys of a part.
        self.seeds |= isinstance(item, Root | MovePart | Welcome)

    def add_cash(self, host: str, partition: int, amount: float) -> None:
        """Add to what a host gets: one item a host and batch, for any number of links."""
        cash = self._cash.get(host)
        if cash is not None:
            cash.amount += amount
            return
        cash = self._cash[host] = Cash(host, partition, amount)
        self.batch.cash.append(cash)
        self.items += 1
        self.bytes += len(host) + 100


def links_of(batch: Batch, names: Sequence[Url | None]) -> list[Link]:
    """Return a batch's links; `names` are those of its addresses, in order."""
    links: list[Link] = []
    at = 0
    for run in batch.runs:
        links += [
            Link(url, run.link_type, run.depth, run.hops, run.referrer, run.seed)
            for url in names[at : at + len(run.urls)]
            if url is not None
        ]
        at += len(run.urls)
    return links
