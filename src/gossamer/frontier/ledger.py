"""Ledger: what is reckoned of hosts and sites besides their URLs, as far as anybody asked for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gossamer.frontier.accounts import ACCOUNT_BYTES, SITE, Accounts
from gossamer.frontier.budgets import Budgets
from gossamer.frontier.host import Host
from gossamer.frontier.options import BudgetOptions
from gossamer.frontier.record import LEVELS
from gossamer.frontier.remembered import Remembered
from gossamer.frontier.reputation import Reputation
from gossamer.model.standing import Standing
from gossamer.ports import HostPrioritizer, Prioritizer
from gossamer.state.epoch import Epochs
from gossamer.url.site import site_of


class Ledger:
    """Budgets, reputation and host levels. Those that nobody configured are None and cost nothing."""

    def __init__(
        self,
        epochs: Epochs,
        options: BudgetOptions,
        prioritizer: Prioritizer | None,
        cached_max: int,
        now: float,
        remembered: Remembered | None = None,
    ) -> None:
        self.options = options
        self._epochs = epochs
        self._remembered = remembered
        self._accounts = Accounts(epochs, cached_max, remembered)
        self._prioritizer = prioritizer if isinstance(prioritizer, HostPrioritizer) else None
        needs = set(self._prioritizer.needs) if self._prioritizer is not None else set()
        linking = "linking_sites" in needs or (options.is_set and options.growth_max > 1.0)
        cash = "cash" in needs
        self.reputation: Reputation | None = None
        if linking or cash:
            self.reputation = Reputation(epochs, self._accounts, linking=linking, cash=cash)
        grows = self.reputation if options.growth_max > 1.0 else None
        self.budgets = Budgets(epochs, self._accounts, grows, options, now, remembered) if options.is_set else None
        self.host_level: Callable[[Host], int] | None = self._level if self._prioritizer is not None else None
        """Says how urgent a host is among those that wait; None: as urgent as its most urgent URL."""

    @property
    def linking(self) -> Callable[[int, str], float] | None:
        """What says how many other sites link to one, by partition and name; None where that is not counted."""
        reputation = self.reputation
        if reputation is None:
            return None
        return lambda partition, site: reputation.linking(self._accounts.get(SITE, partition, site).account)

    def reconfigure(self, options: BudgetOptions, hosts: Iterable[Host], now: float) -> None:
        """Go by other budgets from now on; `hosts` are those in memory. A round begins: who was put off for what the
        budgets were may come again.
        """
        if options == self.options:
            return
        self.options = options
        is_new = self.budgets is None
        if self.budgets is None:
            self.budgets = Budgets(self._epochs, self._accounts, None, options, now, self._remembered)
        self.budgets.reconfigure(options, hosts, is_new=is_new)
        self.budgets.begin_round(now)

    @property
    def memory_bytes(self) -> int:
        """Memory of the accounts that wait for the next `cut`, about."""
        return self._accounts.dirty * ACCOUNT_BYTES

    def cut(self) -> None:
        """Give the open epoch what changed."""
        if self.budgets is not None:
            self.budgets.cut()
        if self.reputation is not None:
            self.reputation.cut()
        self._accounts.cut()

    def _level(self, host: Host) -> int:
        assert self._prioritizer is not None
        level = self._prioritizer.host_level(self._standing(host))
        return max(0, min(level, LEVELS - 1))

    def _standing(self, host: Host) -> Standing:
        record, linking, cash = host.record, 0.0, 0.0
        if self.reputation is not None:
            site = self._accounts.get(SITE, host.partition, site_of(host.name))
            linking = self.reputation.linking(site.account)
            cash = self.reputation.cash(host.partition, host.name)
        return Standing(host.name, record.queued, record.requests, record.failures, linking, cash)
