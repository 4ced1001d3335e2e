"""Budgets: what a host or a site may use in a round, what it has used up, and the rounds.

A host or site that has used up its budget is not dropped but deferred (BEAST, Lee and others 2008): the host moves from
the workbench to a separate index, with all its queued URLs, at the cost of one entry. A round ends when all other hosts
are done, or after `round_s`. Then every budget is full again, and the deferred hosts are drawn at random. Each round
fetches at least one page, so a crawl with budgets still ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from math import ceil, inf
from typing import Literal

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.model.standing import BudgetFacts, BudgetUse, Standing
from gossamer.model.visits import Contact
from gossamer.model.words import counted
from gossamer.ports import HostPrioritizer
from gossamer.stages.frontier.accounts import (
    ACCOUNT_BYTES,
    HOST,
    SITE,
    Account,
    AccountHolder,
    Accounts,
    Reputation,
    account_key,
    linking_sites,
    read_account,
)
from gossamer.stages.frontier.host import Host
from gossamer.stages.frontier.options import BudgetOptions, BudgetOverride
from gossamer.stages.frontier.priority import FrontierRules
from gossamer.stages.frontier.record import LEVELS
from gossamer.stages.frontier.remembered import Remembered
from gossamer.state.epoch import Epochs, load
from gossamer.state.schema import BUDGET_ROUND, LINKING_MAX, PARTITIONED
from gossamer.state.store import Store
from gossamer.url.site import site_of
from gossamer.url.url import Url
from gossamer.world.dice import Dice


class Budget(msgspec.Struct, frozen=True):
    """Limits of a round; infinity: no limit."""

    pages: float = inf
    """Requests for URLs, with any result."""
    wire_bytes: float = inf
    time_s: float = inf
    """Total time of requests."""

    @property
    def is_set(self) -> bool:
        """Whether there is a limit."""
        return min(self.pages, self.wire_bytes, self.time_s) < inf

    def grown(self, factor: float) -> Budget:
        """Return the budget multiplied by `factor`."""
        if factor == 1.0:
            return self
        return Budget(self.pages * factor, self.wire_bytes * factor, self.time_s * factor)

    def limit_reached(self, pages: int, wire_bytes: int, time_s: float) -> str:
        """Return the limit that is used up, for people; empty if none is."""
        if pages + 1 > self.pages:  # A part of a page does not count.
            return counted(int(self.pages), "page")
        if wire_bytes >= self.wire_bytes:
            return f"{int(self.wire_bytes)} bytes"
        if time_s >= self.time_s:
            return f"{self.time_s:g} s"
        return ""


def growth(linking: float, linking_max: float, growth_max: float) -> float:
    """Return the factor of a site's budget: from 1 for a site without links from others, to `growth_max` for the site
    with most linking sites, in proportion (STAR: B_min + (B_max - B_min) · d / d_max).
    """
    return 1.0 + (growth_max - 1.0) * min(linking / linking_max, 1.0) if linking_max > 0.0 else 1.0


def host_budget(options: BudgetOptions, host: str) -> Budget:
    """Return a host's budget before growth: its overrides take precedence over the keys for all hosts."""
    return _budget(options.overrides.get(host), options.host_pages, options.host_bytes, options.host_time_s)


def site_budget(options: BudgetOptions, site: str) -> Budget:
    """Return a site's budget before growth; its overrides have its name with a leading dot as key."""
    return _budget(options.overrides.get("." + site), options.site_pages, options.site_bytes, options.site_time_s)


def _budget(own: BudgetOverride | None, pages: int | None, wire_bytes: int | None, time_s: float | None) -> Budget:
    own = own or BudgetOverride()
    return Budget(_first_of(own.pages, pages), _first_of(own.bytes, wire_bytes), _first_of(own.time_s, time_s))


def _first_of(*limits: float | None) -> float:
    return next((limit for limit in limits if limit is not None), inf)


SITES_MAX = 65_536
"""Hosts whose site is cached: about 8 MB."""
LOOK_AGAIN_S = 1.0
"""Interval of checks of a host whose site's remaining budget is used by requests in flight."""
AFTER_ALL_ROUNDS = (1 << 32) - 1

Verdict = Literal["", "wait", "over"]
"""Empty: may be leased. `wait`: requests in flight use the remaining budget. `over`: none is left in this round."""


class Round(msgspec.Struct, array_like=True):
    """The stored state of the rounds."""

    number: int = 1
    began_at: float = 0.0
    options: int = 0
    """Hash of the budgets in force in this round; 0: not known."""


class Budgets:
    """Charges hosts and sites, and decides which may continue in this round. 2.2 µs a visit and 1.1 µs a decision."""

    def __init__(
        self,
        epochs: Epochs,
        accounts: Accounts,
        reputation: Reputation | None,
        options: BudgetOptions,
        now: float,
        remembered: Remembered | None = None,
    ) -> None:
        self._epochs = epochs
        self._accounts = accounts
        self._reputation = reputation
        self._options = options
        self._site_of = lru_cache(SITES_MAX)(site_of)
        self._host_budget = host_budget(options, "")
        self._site_budget = site_budget(options, "")
        self._has_site_budgets = _has_site_budgets(options)
        stored = epochs.get("meta", BUDGET_ROUND)
        self._round = Round(1, now) if stored is None else msgspec.msgpack.decode(stored, type=Round)
        self._remembered = remembered
        last = remembered.round() if remembered is not None else None
        if last is not None and (stored is None or last[0] > self._round.number):
            self._round = Round(*last, options=self._round.options)  # Another crawl has advanced it since.
        self._round.began_at = min(self._round.began_at, now)  # The clock may have been set back since.
        was = self._round.options
        self._round.options = _hash_of(options)
        if stored is not None and was not in (0, self._round.options):
            self.begin_round(now)  # Hosts that the old budgets deferred may continue.

    def reconfigure(self, options: BudgetOptions, hosts: Iterable[Host], *, is_new: bool) -> None:
        """Apply new budgets. `hosts` are those in memory: their leased URLs are counted now if no budget (`is_new`), or
        no site budget, was set when they were leased.
        """
        had_sites = self._has_site_budgets and not is_new
        self._options = options
        self._round.options = _hash_of(options)
        self._host_budget = host_budget(options, "")
        self._site_budget = site_budget(options, "")
        self._has_site_budgets = had_sites or _has_site_budgets(options)
        for host in hosts:
            if host.leased and is_new:
                self._host(host).leased += host.leased
            if host.leased and self._has_site_budgets and not had_sites:
                self._site(host).leased += host.leased

    @property
    def round(self) -> int:
        """Number of the round, from 1."""
        return self._round.number

    @property
    def round_ends_at(self) -> float | None:
        """Return when the round ends even if hosts are left; None: only when no host is left."""
        round_s = self._options.round_s
        return None if round_s is None else self._round.began_at + round_s

    def begin_round(self, now: float) -> None:
        """Begin the next round: every host and site has its full budget again."""
        self._round = Round(self._round.number + 1, now, self._round.options)

    def verdict(self, host: Host) -> Verdict:
        """Return whether a host's next URL may be leased now."""
        site = self._site(host) if self._has_site_budgets or self._reputation is not None else None
        factor = self._growth(site.account) if site is not None else 1.0
        budget = host_budget(self._options, host.name) if self._options.overrides else self._host_budget
        budget = budget.grown(factor)
        if budget.is_set and (answer := _verdict(budget, self._current(self._host(host)), host.leased)):
            return answer
        if site is None or not self._has_site_budgets:
            return ""
        own = site_budget(self._options, self._site_of(host.name)) if self._options.overrides else self._site_budget
        return _verdict(own.grown(factor), self._current(site), site.leased)

    def count_leased(self, host: Host, urls: int) -> None:
        """Count leased URLs of a host; -1: one was returned."""
        self._host(host).leased += urls
        if self._has_site_budgets:
            self._site(host).leased += urls

    def spend(self, host: Host, contact: Contact, *, page: bool) -> None:
        """Charge a request; prerequisite fetches (robots.txt) count as bytes and time, not as pages."""
        for held in (self._host(host), *((self._site(host),) if self._has_site_budgets else ())):
            account = self._current(held)
            account.pages += page
            account.wire_bytes += contact.wire_bytes
            account.time_s += contact.fetch_s
            self._accounts.touch(held)

    def facts(self, url: Url) -> BudgetFacts:
        """Return the current budget use of a URL's host and site."""
        host = self._accounts.get(HOST, url.partition, url.host).account
        site = self._accounts.get(SITE, url.partition, url.site).account
        linking_max = self._reputation.linking_max if self._reputation is not None else 0.0
        return _facts(self._options, url, self.round, host, site, linking_max)

    def cut(self) -> None:
        """Put the state of the rounds into the open epoch; the accounts' owner cuts these."""
        self._epochs.put("meta", BUDGET_ROUND, msgspec.msgpack.encode(self._round))
        if self._remembered is not None:
            self._remembered.keep_round(self._round.number, self._round.began_at)

    def _host(self, host: Host) -> AccountHolder:
        return self._accounts.get(HOST, host.partition, host.name)

    def _site(self, host: Host) -> AccountHolder:
        return self._accounts.get(SITE, host.partition, self._site_of(host.name))

    def _growth(self, site: Account) -> float:
        if self._reputation is None:
            return 1.0
        return growth(self._reputation.linking(site), self._reputation.linking_max, self._options.growth_max)

    def _current(self, held: AccountHolder) -> Account:
        account = held.account
        if account.round != self._round.number:
            account.round = self._round.number
            account.pages = 0
            account.wire_bytes = 0
            account.time_s = 0.0
        return account


class DeferredHosts:
    """Draws the hosts that used up their budget in an earlier round, and begins the rounds. Without budgets, hosts that
    were deferred in any round may continue. Memory holds which partitions may have some, never the hosts.
    """

    def __init__(self, epochs: Epochs, dice: Dice) -> None:
        self._epochs = epochs
        self._dice = dice
        self.budgets: Budgets | None = None
        self.hosts = 0
        """Deferred hosts, of any round."""
        self._listed: list[int] = []
        """Partitions that may hold hosts of earlier rounds than `_drawn`."""
        self._later: set[int] = set()
        """Partitions that may hold hosts of `_drawn`."""
        self._drawn = 0
        """The round in which hosts were drawn last."""
        self._floor: dict[int, int] = {}
        """By partition: the first round of which it may hold hosts, so that a seek skips deleted entries."""
        self._is_their_turn = False

    def load(self, store: Store) -> None:
        """Read the index at the start: a seek for each partition with entries."""
        begin = b"\0\0"
        while (key := next((key for key, _ in store.scan("deferred", begin, PARTITIONED[1])), None)) is not None:
            self._later.add(int.from_bytes(key[:2]))
            begin = (int.from_bytes(key[:2]) + 1).to_bytes(2)

    def forget(self, first: int, end: int) -> None:
        """Drop what memory has of some partitions."""
        self._listed = [partition for partition in self._listed if not first <= partition < end]
        for partition in range(first, end):
            self._later.discard(partition)
            self._floor.pop(partition, None)

    def key(self, host: Host, number: int) -> bytes:
        """Return the key of a host that is deferred in a round."""
        self._later.add(host.partition)
        return host.partition.to_bytes(2) + number.to_bytes(4) + host.name.encode()

    @property
    def may_continue(self) -> bool:
        """Whether some may continue already; call `draw` to find one."""
        return bool(self.hosts and (self._listed or (self._drawn != self._round and self._later)))

    @property
    def round_ends_at(self) -> float | None:
        """Return when the round ends even if hosts are left; None: only when no host is left."""
        return self.budgets.round_ends_at if self.budgets is not None else None

    def end_round(self, now: float) -> None:
        """Begin the next round after `round_s`, even if hosts are still ready in this one."""
        if self.hosts and (ends_at := self.round_ends_at) is not None and ends_at <= now:
            assert self.budgets is not None
            self.budgets.begin_round(now)

    def draw_in_turn(self) -> tuple[int, str] | None:
        """Return, in every other call, a host that may continue: these and the ready hosts of this round take turns."""
        if not self.may_continue:
            return None
        self._is_their_turn = not self._is_their_turn
        return self._draw() if self._is_their_turn else None

    def draw(self, now: float, *, others_done: bool) -> tuple[int, str] | None:
        """Return a host, for use when no host is ready; begin the next round when all other hosts are done."""
        if not self.hosts:
            return None
        found = self._draw()
        if found is None and self.budgets is not None and others_done:
            self.budgets.begin_round(now)
            found = self._draw()
        return found

    def _draw(self) -> tuple[int, str] | None:
        """Return partition and name of a host of an earlier round: a seek. Move it before drawing again."""
        number = self._round
        if self._drawn != number:
            self._drawn = number
            self._listed = sorted({*self._listed, *self._later})
            self._later.clear()
        listed = self._listed
        while listed:
            at = self._dice.below(len(listed))
            partition = listed[at]
            begin = partition.to_bytes(2) + self._floor.get(partition, 0).to_bytes(4)
            end = (partition + 1).to_bytes(2)
            key = next((key for key, _ in self._epochs.scan("deferred", begin, end)), None)
            if key is not None:
                self._floor[partition] = since = round_of(key)
                if since < number:
                    return partition, key[6:].decode()
                self._later.add(partition)
            listed[at] = listed[-1]
            listed.pop()
        return None

    @property
    def _round(self) -> int:
        return self.budgets.round if self.budgets is not None else AFTER_ALL_ROUNDS


def round_of(key: bytes) -> int:
    """Return the round in which a host was deferred, from its entry."""
    return int.from_bytes(key[2:6])


def _hash_of(options: BudgetOptions) -> int:
    return xxh3_64_intdigest(msgspec.json.encode(options))


def _has_site_budgets(options: BudgetOptions) -> bool:
    return site_budget(options, "").is_set or any(name[0] == "." for name in options.overrides)


def budget_facts(epochs: Epochs, options: BudgetOptions, url: Url, split: frozenset[str]) -> BudgetFacts | None:
    """Return the budget use of a URL's host and site at the last commit; None if there are no budgets."""
    if not options.is_set:
        return None
    host = read_account(epochs, account_key(HOST, url.partition, url.host))
    site = read_account(epochs, account_key(SITE, url.partition, url.site, split))
    return _facts(options, url, read_round(epochs), host, site, load(epochs, LINKING_MAX, float))


def read_round(epochs: Epochs) -> int:
    """Return the number of the round at the last commit."""
    stored = epochs.get("meta", BUDGET_ROUND)
    return 1 if stored is None else msgspec.msgpack.decode(stored, type=Round).number


def _verdict(budget: Budget, account: Account, leased: int) -> Verdict:
    if budget.limit_reached(account.pages, account.wire_bytes, account.time_s):
        return "over"
    return "wait" if leased and budget.limit_reached(account.pages + leased, account.wire_bytes, account.time_s) else ""


def _facts(options: BudgetOptions, url: Url, number: int, host: Account, site: Account, most: float) -> BudgetFacts:
    linking = linking_sites(site.linking)
    factor = growth(linking, most, options.growth_max)
    return BudgetFacts(
        number, factor, linking,
        _describe(host, number, host_budget(options, url.host).grown(factor)),
        _describe(site, number, site_budget(options, url.site).grown(factor)),
    )  # fmt: skip


def _describe(account: Account, number: int, budget: Budget) -> BudgetUse:
    is_current = account.round == number
    spent = (account.pages, account.wire_bytes, account.time_s) if is_current else (0, 0, 0.0)
    shown: BudgetUse = {}
    if budget.pages < inf:
        shown["pages"] = {"spent": spent[0], "of": int(budget.pages)}
    if budget.wire_bytes < inf:
        shown["bytes"] = {"spent": spent[1], "of": ceil(budget.wire_bytes)}
    if budget.time_s < inf:
        shown["time_s"] = {"spent": round(spent[2], 3), "of": round(budget.time_s, 3)}
    used_up = budget.limit_reached(*spent)
    return {**shown, "used_up": used_up} if used_up else shown


class Ledger:
    """Budgets, reputation and host levels. Parts that are not configured are None and cost nothing."""

    def __init__(self, epochs: Epochs, rules: FrontierRules, now: float, remembered: Remembered | None = None) -> None:
        self.options = options = rules.budget
        self._epochs = epochs
        self._remembered = remembered
        self._accounts = Accounts(epochs, rules.options.records_cached_max, remembered, rules.split)
        self._prioritizer = rules.prioritizer if isinstance(rules.prioritizer, HostPrioritizer) else None
        needs = set(self._prioritizer.needs) if self._prioritizer is not None else set()
        linking = "linking_sites" in needs or (options.is_set and options.growth_max > 1.0)
        cash = "cash" in needs
        self.reputation: Reputation | None = None
        if linking or cash:
            self.reputation = Reputation(epochs, self._accounts, linking=linking, cash=cash)
        grows = self.reputation if options.growth_max > 1.0 else None
        self.budgets = Budgets(epochs, self._accounts, grows, options, now, remembered) if options.is_set else None
        self.host_level: Callable[[Host], int] | None = self._level if self._prioritizer is not None else None
        """Returns a host's level among waiting hosts; None: the level is that of its most urgent URL."""

    @property
    def linking(self) -> Callable[[int, str], float] | None:
        """A function from partition and name of a site to how many other sites link to it; None: not counted."""
        reputation = self.reputation
        if reputation is None:
            return None
        return lambda partition, site: reputation.linking(self._accounts.get(SITE, partition, site).account)

    def reconfigure(self, options: BudgetOptions, hosts: Iterable[Host], now: float) -> None:
        """Apply new budgets; `hosts` are those in memory. A new round begins: hosts the old ones deferred continue."""
        if options == self.options:
            return
        self.options = options
        is_new = self.budgets is None
        if self.budgets is None:
            self.budgets = Budgets(self._epochs, self._accounts, None, options, now, self._remembered)
        self.budgets.reconfigure(options, hosts, is_new=is_new)
        self.budgets.begin_round(now)

    @property
    def round(self) -> int:
        """Number of the budget round; 0 without budgets."""
        return self.budgets.round if self.budgets is not None else 0

    def forget(self, first: int, end: int) -> None:
        """Drop everything about some partitions from memory."""
        self._accounts.forget(first, end)

    def admit(self, first: int, end: int, number: int) -> None:
        """Admit the accounts of partitions from another shard, which is in budget round `number`."""
        if number != self.round:
            self._accounts.admit(first, end, number, self.round)

    @property
    def memory_bytes(self) -> int:
        """Approximate memory of the accounts that wait for the next `cut`."""
        return self._accounts.dirty * ACCOUNT_BYTES

    def cut(self) -> None:
        """Put all changes into the open epoch."""
        if self.budgets is not None:
            self.budgets.cut()
        if self.reputation is not None:
            self.reputation.cut()
        self._accounts.cut()

    def _level(self, host: Host) -> int:
        assert self._prioritizer is not None
        level = self._prioritizer.host_level(self.standing(host))
        return max(0, min(level, LEVELS - 1))

    def standing(self, host: Host) -> Standing:
        """Return the figures of a host; those that no prioritizer needs are 0."""
        record = host.record
        linking = 0.0
        cash = 0.0
        if self.reputation is not None:
            site = self._accounts.get(SITE, host.partition, site_of(host.name))
            linking = self.reputation.linking(site.account)
            cash = self.reputation.cash(host.partition, host.name)
        return Standing(host.name, record.urls_queued, record.requests, record.failures, linking, cash)
