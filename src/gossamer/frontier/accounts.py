"""Accounts: what hosts and sites have spent and been given, one small record each, kept with the epoch."""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import Final

import msgspec

from gossamer.frontier.remembered import Remembered, Spent
from gossamer.state.epoch import Epochs

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
    """Of a site: hashes of the other sites that link to it, the smallest ones in order (see `linking`)."""
    cash: float = 0.0
    """Of a host: see `cash`."""
    known: bool = False
    """Of a host: it was given its first cash."""


class Holder:
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

    def __init__(self, epochs: Epochs, cached_max: int, remembered: Remembered | None = None) -> None:
        self._epochs = epochs
        self._remembered = remembered
        self._cached_max = cached_max
        self._evict_at = cached_max
        self._held: OrderedDict[str, Holder] = OrderedDict()
        self._dirty: list[Holder] = []

    def get(self, kind: str, partition: int, name: str) -> Holder:
        """Return an account, from memory, from disk (about 3 µs) or new."""
        name_of_kind = kind + name
        held = self._held.get(name_of_kind)
        if held is not None:
            self._held.move_to_end(name_of_kind)
            return held
        if len(self._held) >= self._evict_at:
            self._evict()
        key = account_key(kind, partition, name)
        account = read_account(self._epochs, key)
        if self._remembered is not None:
            _recall(account, self._remembered.spent(key))
        held = self._held[name_of_kind] = Holder(name_of_kind, key, account)
        return held

    @property
    def dirty(self) -> int:
        """Accounts that wait for the next `cut`."""
        return len(self._dirty)

    def touch(self, held: Holder) -> None:
        """Have the account written with this epoch."""
        if not held.dirty:
            held.dirty = True
            self._dirty.append(held)
            self._held[held.name] = held  # It may have left since it was asked for.

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


def account_key(kind: str, partition: int, name: str) -> bytes:
    """Return where the disk keeps an account."""
    return partition.to_bytes(2) + kind.encode() + name.encode()


def read_account(epochs: Epochs, key: bytes) -> Account:
    """Return an account as the disk has it, or a new one."""
    data = epochs.get("account", key)
    return Account() if data is None else _decode(data)
