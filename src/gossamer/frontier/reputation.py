"""Reputation: what the links of fetched pages say of hosts and sites. Fed by pages, told to priorities and budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.frontier.accounts import HOST, SITE, Account, Accounts, Holder
from gossamer.frontier.linking import add_linking, linking_sites
from gossamer.model.links import Link
from gossamer.state.epoch import Epochs
from gossamer.state.schema import LINKING_MAX
from gossamer.url.url import Url

PAIRS_MAX = 100_000
"""Pairs of sites that are known to link, remembered to be quick: about 8 MB."""


class Reputation:
    """Counts, per site, the other sites that link to it; and moves cash between hosts (OPIC, by host).

    Cash: each host is given 1 when it is first heard of, so the mean is 1. A page that is fetched gives on its part of
    its host's cash, one of as many parts as the host has URLs to come, in equal shares to the hosts of its links. A
    page without links gives nothing. A host's pages are told apart by nobody, which makes this cheap: one account a
    host (Abiteboul, Preda and Cobena 2003 keep one a page), and a link farm within one host earns it nothing.

    A page of 60 links costs 3 µs to count and 9 µs to move cash for, when the accounts are in memory.
    """

    def __init__(self, epochs: Epochs, accounts: Accounts, *, linking: bool, cash: bool) -> None:
        self._epochs = epochs
        self._accounts = accounts
        self._counts_linking = linking
        self._moves_cash = cash
        self._pairs: set[int] = set()
        stored = epochs.get("meta", LINKING_MAX)
        self.linking_max = msgspec.msgpack.decode(stored, type=float) if stored is not None else 0.0
        """Most sites that link to any one."""

    def linked(self, page: Url, links: Sequence[Link], queued: int) -> None:
        """Take in a fetched page's links; `queued` are its host's URLs that are not finished."""
        if self._counts_linking:
            self._count(page, links)
        if self._moves_cash:
            self._give(page, links, queued)

    def linked_from_afar(self, source: int, site: str, partition: int) -> None:
        """Note that a site, known by a hash of its name, links to one of ours. Noting it twice is noting it once."""
        if self._counts_linking:
            self._note(source, site, partition)

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
        for (host, partition), count in Counter((link.url.host, link.url.partition) for link in links).items():
            taker = self._funded(partition, host)
            taker.account.cash += each * count
            self._accounts.touch(taker)

    def _funded(self, partition: int, host: str) -> Holder:
        held = self._accounts.get(HOST, partition, host)
        if not held.account.known:
            held.account.known = True
            held.account.cash += 1.0
            self._accounts.touch(held)
        return held
