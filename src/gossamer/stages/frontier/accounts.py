"""Accounts: what hosts and sites have spent and received, one small record each, stored with the epoch; and their
reputation, computed from the links of fetched pages.

Reputation by STAR (Lee, Leonard, Wang and Loguinov 2008): it counts the *other registered domains* that link to a site,
because hosts and pages are free and domains are not. A set of them may be as large as the web, so only the
`SMALLEST_MAX` smallest hashes are kept (k minimum values, Bar-Yossef and others 2002): the count is exact below that
number; above it, it is estimated from the k-th smallest hash, with a standard error of 1/√(k-2), here 13 %.
"""

from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import Final, Protocol

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.model.links import Link, TravellingWalker
from gossamer.stages.frontier.remembered import Remembered, Spent
from gossamer.state.epoch import Epochs, load
from gossamer.state.schema import LINKING_MAX, partition_range
from gossamer.url.site import site_partition
from gossamer.url.url import Url

HOST: Final = "h"
SITE: Final = "s"
ACCOUNT_BYTES: Final = 800
"""Approximate memory of an account; most accounts have no list of linking sites and need half of it."""


class Account(msgspec.Struct, array_like=True):
    """The account of a host or a site. Each field is written by only one part of the frontier."""

    round: int = 0
    """The budget round in which pages, bytes and time were spent."""
    pages: int = 0
    wire_bytes: int = 0
    time_s: float = 0.0
    linking: list[int] = msgspec.field(default_factory=list)
    """For a site: hashes of the other sites that link to it, the smallest ones, sorted (see `add_linking`)."""
    cash: float = 0.0
    """For a host: see `Reputation`."""
    known: bool = False
    """For a host: whether it has received its first cash."""


class AccountHolder(msgspec.Struct, eq=False):
    """An account in memory."""

    name: str
    key: bytes
    account: Account
    dirty: bool = False
    leased: int = 0
    """Visits in flight that will be charged to the account."""


_decode = msgspec.msgpack.Decoder(Account).decode


class Accounts:
    """Accounts by kind and name. Dirty accounts, and those with visits in flight, stay in memory; of the others the
    least recently used are dropped when there are more than `cached_max`.
    """

    def __init__(
        self, epochs: Epochs, cached_max: int, remembered: Remembered | None = None, split: frozenset[str] = frozenset()
    ) -> None:
        """`split` are sites whose hosts have a partition each: each shard has a separate account for them."""
        self._epochs = epochs
        self._remembered = remembered
        self._split = split
        self._cached_max = cached_max
        self._evict_at = cached_max
        self._held: OrderedDict[str, AccountHolder] = OrderedDict()
        self._dirty: list[AccountHolder] = []

    def get(self, kind: str, partition: int, name: str) -> AccountHolder:
        """Return an account, from memory, from disk (about 3 µs) or new."""
        name_of_kind = kind + name
        held = self._held.get(name_of_kind)
        if held is not None:
            self._held.move_to_end(name_of_kind)
            return held
        if len(self._held) >= self._evict_at:
            self._evict()
        key = account_key(kind, partition, name, self._split)
        account = read_account(self._epochs, key)
        if self._remembered is not None:
            _recall(account, self._remembered.read_spent(key))
        held = self._held[name_of_kind] = AccountHolder(name_of_kind, key, account)
        return held

    @property
    def dirty(self) -> int:
        """Accounts that wait for the next `cut`."""
        return len(self._dirty)

    def touch(self, held: AccountHolder) -> None:
        """Mark an account as dirty, so that the next `cut` writes it."""
        if not held.dirty:
            held.dirty = True
            self._dirty.append(held)
            self._held[held.name] = held  # It may have been evicted since `get`.

    def forget(self, first: int, end: int) -> None:
        """Drop the accounts of some partitions from memory: another shard has them, or they are read again."""
        begin, stop = partition_range(first, end)
        for name in [name for name, held in self._held.items() if begin <= held.key < stop]:
            del self._held[name]

    def admit(self, first: int, end: int, number: int, own: int) -> None:
        """Count what was spent in budget round `number` of another shard in our round `own`."""
        accounts = {}
        for key, data in self._epochs.scan("account", *partition_range(first, end)):
            account = _decode(data)
            account.round = own if account.round == number else 0
            accounts[key] = msgspec.msgpack.encode(account)
        self._epochs.put_many("account", accounts)

    def cut(self) -> None:
        """Put the dirty accounts into the open epoch."""
        for held in self._dirty:
            account = held.account
            self._epochs.put("account", held.key, msgspec.msgpack.encode(account))
            if self._remembered is not None:
                self._remembered.keep_spent(held.key, account.round, account.pages, account.wire_bytes, account.time_s)
            held.dirty = False
        self._dirty.clear()
        self._evict_at = self._cached_max

    def _evict(self) -> None:
        # A tenth at a time, so that the pass over accounts that must stay is rare.
        tenth = max(1, self._cached_max // 10)
        idle = (name for name, held in self._held.items() if not (held.dirty or held.leased))
        for name in list(islice(idle, len(self._held) - self._cached_max + tenth)):
            del self._held[name]
        self._evict_at = max(self._cached_max, len(self._held) + tenth)


def _recall(account: Account, spent: Spent | None) -> None:
    """Set an account to the state in which the last crawl left it."""
    if spent is not None and spent.round >= account.round:
        account.round = spent.round
        account.pages = spent.pages
        account.wire_bytes = spent.wire_bytes
        account.time_s = spent.time_s


def account_key(kind: str, partition: int, name: str, split: frozenset[str] = frozenset()) -> bytes:
    """Return the key of an account in the store."""
    if kind == SITE:
        partition = site_partition(name, partition, split)
    return partition.to_bytes(2) + kind.encode() + name.encode()


def read_account(epochs: Epochs, key: bytes) -> Account:
    """Return an account from the store, or a new one."""
    data = epochs.get("account", key)
    return Account() if data is None else _decode(data)


PAIRS_MAX = 100_000
"""Cached pairs of linking sites: about 8 MB."""


class OtherShards(Protocol):
    """Knows which shard owns a URL, and sends the others cash and walkers, exactly once if the epoch is committed."""

    @property
    def shard(self) -> int: ...

    def has(self, url: Url) -> bool: ...

    def owner_of(self, url: Url) -> int: ...

    def send_cash(self, host: str, partition: int, amount: float) -> None: ...

    def send_walker(self, to: int, walker: TravellingWalker) -> None: ...

    def send_walked_hosts(self, hosts: int) -> None: ...


class Reputation:
    """Counts, per site, the other sites that link to it, and moves cash between hosts (OPIC, by host).

    Cash: each host gets 1 when it is discovered, so the mean is 1. A fetched page distributes its share of its host's
    cash, which is the cash divided by the host's unfinished URLs, equally among the hosts of its links. A page without
    links gives nothing. Pages of a host are not distinguished, so there is only one account per host (Abiteboul, Preda
    and Cobena 2003 have one per page), and a link farm within one host earns it nothing.

    For a page of 60 links counting costs 3 µs and moving cash 9 µs, if the accounts are in memory.
    """

    def __init__(self, epochs: Epochs, accounts: Accounts, *, linking: bool, cash: bool) -> None:
        self._epochs = epochs
        self._accounts = accounts
        self._counts_linking = linking
        self._moves_cash = cash
        self._pairs: set[int] = set()
        self.others: OtherShards | None = None
        """The other shards; None in a crawl of one shard."""
        self.linking_max = load(epochs, LINKING_MAX, float)
        """Largest number of other sites that link to any site."""

    def count_links(self, page: Url, links: Sequence[Link], queued: int) -> None:
        """Process a fetched page's links, those to other shards too; `queued` counts its host's unfinished URLs."""
        if self._counts_linking:
            self._count(page, links if self.others is None else [one for one in links if self.others.has(one.url)])
        if self._moves_cash:
            self._give(page, links, queued)

    def note_remote_link(self, source: int, site: str, partition: int) -> None:
        """Note that a site of another shard, given by a hash of its name, links to one of ours. Idempotent."""
        if self._counts_linking:
            self._note(source, site, partition)

    def receive_cash(self, host: str, partition: int, amount: float) -> None:
        """Add cash that a host of ours gets from another shard's hosts. Call this exactly once per transfer."""
        if self._moves_cash:
            taker = self._fund(partition, host)
            taker.account.cash += amount
            self._accounts.touch(taker)

    def linking(self, site: Account) -> float:
        """Return how many other sites link to a site."""
        return linking_sites(site.linking)

    def cash(self, partition: int, host: str) -> float:
        """Return a host's cash, as a multiple of the mean."""
        return self._fund(partition, host).account.cash if self._moves_cash else 0.0

    def cut(self) -> None:
        """Put changes into the open epoch, except the accounts, which their owner cuts."""
        if self._counts_linking:
            self._epochs.put("meta", LINKING_MAX, msgspec.msgpack.encode(self.linking_max))

    def _count(self, page: Url, links: Sequence[Link]) -> None:
        source = xxh3_64_intdigest(page.site.encode())
        for site, partition in {(link.url.site, link.url.partition) for link in links if link.url.site != page.site}:
            pair = xxh3_64_intdigest(site.encode(), seed=source & 0xFFFFFFFF)
            if pair in self._pairs:
                continue
            if len(self._pairs) >= PAIRS_MAX:
                self._pairs.clear()  # It fills again with pairs that are popular now.
            self._pairs.add(pair)
            self._note(source, site, partition)

    def _note(self, source: int, site: str, partition: int) -> None:
        held = self._accounts.get(SITE, partition, site)
        if add_linking(held.account.linking, source):
            self._accounts.touch(held)
            self.linking_max = max(self.linking_max, linking_sites(held.account.linking))

    def _give(self, page: Url, links: Sequence[Link], queued: int) -> None:
        giver = self._fund(page.partition, page.host)
        if not links:
            return
        share = giver.account.cash / (queued + 1)
        giver.account.cash -= share
        self._accounts.touch(giver)  # Now, so that it stays in memory while the accounts of many receivers are loaded.
        each = share / len(links)
        ours = links if self.others is None else self._send_cash(links, each, self.others)
        for (host, partition), count in Counter((link.url.host, link.url.partition) for link in ours).items():
            taker = self._fund(partition, host)
            taker.account.cash += each * count
            self._accounts.touch(taker)

    def _send_cash(self, links: Sequence[Link], each: float, others: OtherShards) -> list[Link]:
        """Send other shards the cash for their hosts; return the links to this shard's hosts."""
        ours = []
        for link in links:
            if others.has(link.url):
                ours.append(link)
            else:
                others.send_cash(link.url.host, link.url.partition, each)
        return ours

    def _fund(self, partition: int, host: str) -> AccountHolder:
        held = self._accounts.get(HOST, partition, host)
        if not held.account.known:
            held.account.known = True
            held.account.cash += 1.0
            self._accounts.touch(held)
        return held


SMALLEST_MAX = 64
"""Hashes per site: about 600 bytes."""
SPACE = 1 << 64


def add_linking(smallest: list[int], site: int) -> bool:
    """Add a site, by a 64-bit hash of its name, to a sorted list; return whether the list changed. 0.3 µs."""
    if len(smallest) >= SMALLEST_MAX and site >= smallest[-1]:
        return False
    at = bisect_left(smallest, site)
    if at < len(smallest) and smallest[at] == site:
        return False
    smallest.insert(at, site)
    del smallest[SMALLEST_MAX:]
    return True


def linking_sites(smallest: list[int]) -> float:
    """Return how many different sites were added: exact below `SMALLEST_MAX`, an estimate from there on."""
    if len(smallest) < SMALLEST_MAX:
        return float(len(smallest))
    return (SMALLEST_MAX - 1) * SPACE / smallest[-1]
