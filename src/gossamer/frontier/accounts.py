"""Accounts: what hosts and sites have spent and been given, one small record each, kept with the epoch; and reputation,
what the links of fetched pages say of them.

Reputation by STAR (Lee, Leonard, Wang and Loguinov 2008): what counts is the number of *other registered domains* that
link in, for hosts and pages are free and domains are not. A set of them may be as large as the web, so only the
`SMALLEST_MAX` smallest hashes are kept (k minimum values, Bar-Yossef and others 2002): exact below that many, and from
there on the k-th smallest says how densely the hashes lie, with a standard error of 1/√(k-2), here 13 %.
"""

from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import Final, Protocol

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.frontier.remembered import Remembered, Spent
from gossamer.model.links import Link
from gossamer.state.epoch import Epochs
from gossamer.state.schema import LINKING_MAX, partition_range
from gossamer.url.site import site_partition
from gossamer.url.url import Url

HOST: Final = "h"
SITE: Final = "s"
ACCOUNT_BYTES: Final = 800
"""Memory of one, about; most have no list of sites that link to them and need half of it."""


class Account(msgspec.Struct, array_like=True):
    """One host's or site's account. A field is written by one part of the frontier alone."""

    round: int = 0
    """The budget round in which what follows was spent."""
    pages: int = 0
    wire_bytes: int = 0
    time_s: float = 0.0
    linking: list[int] = msgspec.field(default_factory=list)
    """Of a site: hashes of the other sites that link to it, the smallest ones in order (see `add_linking`)."""
    cash: float = 0.0
    """Of a host: see `Reputation`."""
    known: bool = False
    """Of a host: it was given its first cash."""


class AccountHolder:
    """An account in memory."""

    __slots__ = ("account", "dirty", "key", "lent", "name")

    def __init__(self, name: str, key: bytes, account: Account) -> None:
        self.name = name
        self.key = key
        self.account = account
        self.dirty = False
        self.lent = 0
        """Visits under way that will be charged to it."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Account).decode


class Accounts:
    """Kind and name to account. What is dirty or has visits under way stays in memory; of the rest the least recently
    used leaves when there are more than `cached_max`.
    """

    def __init__(
        self,
        epochs: Epochs,
        cached_max: int,
        remembered: Remembered | None = None,
        split: frozenset[str] = frozenset(),
    ) -> None:
        """`split` are sites whose hosts have a partition each: each shard has an account of its own for them."""
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
            _recall(account, self._remembered.spent(key))
        held = self._held[name_of_kind] = AccountHolder(name_of_kind, key, account)
        return held

    @property
    def dirty(self) -> int:
        """Accounts that wait for the next `cut`."""
        return len(self._dirty)

    def touch(self, held: AccountHolder) -> None:
        """Have the account written with this epoch."""
        if not held.dirty:
            held.dirty = True
            self._dirty.append(held)
            self._held[held.name] = held  # It may have left since it was asked for.

    def forget(self, first: int, end: int) -> None:
        """Drop the accounts of some partitions: another shard has them, or they are read again."""
        begin, stop = partition_range(first, end)
        for name in [name for name, held in self._held.items() if begin <= held.key < stop]:
            del self._held[name]

    def admit(self, first: int, end: int, number: int, own: int) -> None:
        """Have what was spent in budget round `number` of another shard count in ours, which is `own`."""
        accounts = {}
        for key, data in self._epochs.scan("account", *partition_range(first, end)):
            account = _decode(data)
            account.round = own if account.round == number else 0
            accounts[key] = _encode(account)
        self._epochs.put_many("account", accounts)

    def cut(self) -> None:
        """Give the open epoch the accounts that changed."""
        for held in self._dirty:
            account = held.account
            self._epochs.put("account", held.key, _encode(account))
            if self._remembered is not None:
                self._remembered.keep_spent(held.key, account.round, account.pages, account.wire_bytes, account.time_s)
            held.dirty = False
        self._dirty.clear()
        self._evict_at = self._cached_max

    def _evict(self) -> None:
        # A tenth at a time, so that the walk over those that must stay is paid rarely.
        tenth = max(1, self._cached_max // 10)
        idle = (name for name, held in self._held.items() if not (held.dirty or held.lent))
        for name in list(islice(idle, len(self._held) - self._cached_max + tenth)):
            del self._held[name]
        self._evict_at = max(self._cached_max, len(self._held) + tenth)


def _recall(account: Account, spent: Spent | None) -> None:
    """Bring an account to where other crawls left it."""
    if spent is not None and spent.round >= account.round:
        account.round = spent.round
        account.pages, account.wire_bytes, account.time_s = spent.pages, spent.wire_bytes, spent.time_s


def account_key(kind: str, partition: int, name: str, split: frozenset[str] = frozenset()) -> bytes:
    """Return where the disk keeps an account."""
    if kind == SITE:
        partition = site_partition(name, partition, split)
    return partition.to_bytes(2) + kind.encode() + name.encode()


def read_account(epochs: Epochs, key: bytes) -> Account:
    """Return an account as the disk has it, or a new one."""
    data = epochs.get("account", key)
    return Account() if data is None else _decode(data)


PAIRS_MAX = 100_000
"""Pairs of sites that are known to link, remembered to be quick: about 8 MB."""


class OtherShards(Protocol):
    """Knows which URLs are ours, and passes on the cash of others' hosts."""

    def has(self, url: Url) -> bool: ...

    def send_cash(self, host: str, partition: int, amount: float) -> None: ...


class Reputation:
    """Counts, per site, the other sites that link to it; and moves cash between hosts (OPIC, by host).

    Cash: each host is given 1 when it is first heard of, so the mean is 1. A page that is fetched gives on its part of
    its host's cash, one of as many parts as the host has URLs to come, in equal shares to the hosts of its links. A
    page without links gives nothing. A host's pages are not told apart, which makes this cheap: one account a
    host (Abiteboul, Preda and Cobena 2003 keep one a page), and a link farm within one host earns it nothing.

    A page of 60 links costs 3 µs to count and 9 µs to move cash for, when the accounts are in memory.
    """

    def __init__(self, epochs: Epochs, accounts: Accounts, *, linking: bool, cash: bool) -> None:
        self._epochs = epochs
        self._accounts = accounts
        self._counts_linking = linking
        self._moves_cash = cash
        self._pairs: set[int] = set()
        self.others: OtherShards | None = None
        """The other shards, where there are any."""
        stored = epochs.get("meta", LINKING_MAX)
        self.linking_max = msgspec.msgpack.decode(stored, type=float) if stored is not None else 0.0
        """Most sites that link to any one."""

    def linked(self, page: Url, links: Sequence[Link], queued: int) -> None:
        """Take in a fetched page's links, those to other shards too; `queued` are its host's URLs that are not
        finished.
        """
        if self._counts_linking:
            self._count(page, links if self.others is None else [one for one in links if self.others.has(one.url)])
        if self._moves_cash:
            self._give(page, links, queued)

    def linked_from_afar(self, source: int, site: str, partition: int) -> None:
        """Note that a site, known by a hash of its name, links to one of ours. Noting it twice is noting it once."""
        if self._counts_linking:
            self._note(source, site, partition)

    def cash_from_afar(self, host: str, partition: int, amount: float) -> None:
        """Add what a host of ours gets of another shard's hosts. Call it once for each part: cash is never made."""
        if self._moves_cash:
            taker = self._funded(partition, host)
            taker.account.cash += amount
            self._accounts.touch(taker)

    def linking(self, site: Account) -> float:
        """Return how many other sites link to one."""
        return linking_sites(site.linking)

    def cash(self, partition: int, host: str) -> float:
        """Return what a host holds, as a multiple of the mean."""
        return self._funded(partition, host).account.cash if self._moves_cash else 0.0

    def cut(self) -> None:
        """Give the open epoch what changed; the accounts are their owner's to cut."""
        if self._counts_linking:
            self._epochs.put("meta", LINKING_MAX, msgspec.msgpack.encode(self.linking_max))

    def _count(self, page: Url, links: Sequence[Link]) -> None:
        source = xxh3_64_intdigest(page.site.encode())
        for site, partition in {(link.url.site, link.url.partition) for link in links if link.url.site != page.site}:
            pair = xxh3_64_intdigest(site.encode(), seed=source & 0xFFFFFFFF)
            if pair in self._pairs:
                continue
            if len(self._pairs) >= PAIRS_MAX:
                self._pairs.clear()  # It fills again with what is popular now.
            self._pairs.add(pair)
            self._note(source, site, partition)

    def _note(self, source: int, site: str, partition: int) -> None:
        held = self._accounts.get(SITE, partition, site)
        if add_linking(held.account.linking, source):
            self._accounts.touch(held)
            self.linking_max = max(self.linking_max, linking_sites(held.account.linking))

    def _give(self, page: Url, links: Sequence[Link], queued: int) -> None:
        giver = self._funded(page.partition, page.host)
        if not links:
            return
        share = giver.account.cash / (queued + 1)
        giver.account.cash -= share
        self._accounts.touch(giver)  # At once: it stays in memory, also while many takers come.
        each = share / len(links)
        ours = links if self.others is None else self._sent(links, each, self.others)
        for (host, partition), count in Counter((link.url.host, link.url.partition) for link in ours).items():
            taker = self._funded(partition, host)
            taker.account.cash += each * count
            self._accounts.touch(taker)

    def _sent(self, links: Sequence[Link], each: float, others: OtherShards) -> list[Link]:
        """Send other shards what their hosts get; return our links."""
        ours = []
        for link in links:
            if others.has(link.url):
                ours.append(link)
            else:
                others.send_cash(link.url.host, link.url.partition, each)
        return ours

    def _funded(self, partition: int, host: str) -> AccountHolder:
        held = self._accounts.get(HOST, partition, host)
        if not held.account.known:
            held.account.known = True
            held.account.cash += 1.0
            self._accounts.touch(held)
        return held


SMALLEST_MAX = 64
"""About 600 bytes a site."""
SPACE = 1 << 64


def add_linking(smallest: list[int], site: int) -> bool:
    """Note a site, by a 64-bit hash of its name, in a list that is sorted; say whether the list changed. 0.3 µs."""
    if len(smallest) >= SMALLEST_MAX and site >= smallest[-1]:
        return False
    at = bisect_left(smallest, site)
    if at < len(smallest) and smallest[at] == site:
        return False
    smallest.insert(at, site)
    del smallest[SMALLEST_MAX:]
    return True


def linking_sites(smallest: list[int]) -> float:
    """Return how many different sites were noted, exact below `SMALLEST_MAX` and an estimate from there on."""
    if len(smallest) < SMALLEST_MAX:
        return float(len(smallest))
    return (SMALLEST_MAX - 1) * SPACE / smallest[-1]
