"""Tokens: the concurrent requests that a split site permits, leased among the shards that have its hosts.

A site with a delay has one token: the shard that holds it keeps the gate as a single shard would, and the delay moves
with the token. A site without a delay has a token for each concurrent request. So the site's limits hold for all shards
together. A shard asks for a token when a host has its turn without one, never for more tokens than it has hosts to use
them. After giving a token away it asks again only when a host needs it.
"""

from typing import Final, Protocol

import msgspec

KEY: Final = "site "
"""Prefix of the keys of tokens: no address contains a space."""
WANTED_MAX: Final = 4
"""Tokens of a site that a shard asks for at once. Each gives a host its turn, which shows whether more are needed."""


class Leases(Protocol):
    """Leases of addresses and site tokens that several shards share, by key."""

    def want(self, address: str, now: float) -> float | None:
        """Return when an address may be requested; None if it must be leased first: then `on_open` is called later."""

    def may_ask(self, address: str, now: float) -> bool:
        """Return whether a request to an address may begin now."""

    def began(self, address: str) -> None:
        """Note that a request to an address begins."""

    def end(self, address: str, delay_until: float) -> None:
        """Note the end of a request, and until when its address is delayed."""

    def leave(self, address: str) -> None:
        """Note that no host here uses an address any more."""


def site_of_key(key: str) -> str:
    """Return the site of a token's key; empty for the key of an address."""
    return key.split(" ", 2)[1] if key.startswith(KEY) else ""


class SiteLimits(msgspec.Struct, frozen=True):
    """The limits of split sites, as one of their shards uses them."""

    per_site: int
    """Requests at once; 0: no limit."""
    has_delay: bool
    first: float = 0.0
    """Position, from 0 to 1, of the token that this shard asks for first: shards begin with different tokens."""

    def keys(self, site: str) -> list[str]:
        """Return the keys of a site's tokens, in the order in which this shard asks for them."""
        if self.has_delay:
            return [f"{KEY}{site}"]
        begin = int(self.first * self.per_site)
        return [f"{KEY}{site} {(begin + number) % self.per_site}" for number in range(self.per_site)]


class SiteTokens:
    """This shard's tokens of one site."""

    __slots__ = ("_keys", "_leases", "_most_each", "_out", "_usable", "_wanted")

    def __init__(self, site: str, rules: SiteLimits, leases: Leases) -> None:
        self._keys = rules.keys(site)
        self._leases = leases
        self._most_each = rules.per_site if rules.has_delay else 1
        """Requests at once by one token; 0: no limit."""
        self._out: dict[str, int] = {}
        """Requests in flight by token, only tokens that have any, including recalled ones."""
        self._usable: dict[str, None] = {}
        self._wanted: dict[str, None] = {}

    @property
    def most(self) -> int | None:
        """Limit of concurrent requests to the site from this shard now; None: no limit."""
        if self._most_each == 1:
            return len(self._usable) + sum(1 for key in self._out if key not in self._usable)
        return (self._most_each or None) if self._usable else 0

    def ask(self, now: float) -> None:
        """Ask for one more token, if any, for a host that has its turn without; `on_open` is called when it arrives."""
        if len(self._wanted) < WANTED_MAX and len(self._usable) + len(self._wanted) < len(self._keys):
            key = next(key for key in self._keys if key not in self._usable and key not in self._wanted)
            self._wanted[key] = None
            self._leases.want(key, now)

    def on_open(self, key: str) -> None:
        """Note that this shard has a token from now on."""
        self._wanted.pop(key, None)
        self._usable[key] = None

    def on_close(self, key: str, *, needed: bool) -> None:
        """Note that a token may not be used any more. If it is still `needed`, it is leased again without asking."""
        self._usable.pop(key, None)
        if needed:
            self._wanted[key] = None
        else:
            self._wanted.pop(key, None)
            self._leases.leave(key)

    def begin(self, now: float) -> str:
        """Take a token for a request that begins now; return its key, empty if there is none."""
        for key in list(self._usable):
            if self._most_each and self._out.get(key, 0) >= self._most_each:
                continue
            if self._leases.may_ask(key, now):
                self._leases.began(key)
                self._out[key] = self._out.get(key, 0) + 1
                return key
        return ""

    def end(self, key: str, delay_until: float) -> None:
        """Release the token that `begin` took."""
        self._out[key] -= 1
        if not self._out[key]:
            del self._out[key]
        self._leases.end(key, delay_until)

    def leave(self) -> None:
        """Give up all tokens, since no host of the site is here."""
        for key in (*self._usable, *self._wanted):
            self._leases.leave(key)
        self._usable.clear()
        self._wanted.clear()
