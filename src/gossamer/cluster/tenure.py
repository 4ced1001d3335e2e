"""Tenure: the right of one process to crawl as a shard, so that no two ever do. Pure; time is an argument.

A lease in the sense of Gray and Cheriton (1989): the holder counts from the moment at which it asked, the lender from
the moment at which it answered, so the holder's end is never the later one, whatever the network did between. Only
lengths of time are compared between machines: their clocks may differ, but must run alike.
"""

from __future__ import annotations

import msgspec


class Tenure:
    """The shard's side: may it begin a request now?"""

    def __init__(self, term_s: float) -> None:
        self.term_s = term_s
        self._until = 0.0
        self.lost = False
        """Another has the shard, or the crawl knows nothing of us: end now, and commit nothing that others can see."""

    def renewed(self, asked_at: float) -> None:
        """Note that what was asked at an instant of our clock was granted."""
        self._until = max(self._until, asked_at + self.term_s)

    def refused(self) -> None:
        """Note that the shard is another's."""
        self.lost = True

    def holds(self, now: float) -> bool:
        """Say whether a request may begin now."""
        return not self.lost and now < self._until


class Holding(msgspec.Struct):
    """Who has a shard, as the lender knows it."""

    holder: str
    until: float
    """End of the lease, by the lender's clock."""


class Tenancy:
    """The lender's side. It lends one shard to one holder; a successor waits until the one before cannot be at it.

    A lender that starts anew knows nothing of leases that run: whoever renews goes on, and a shard that nobody renews
    is lent again once every lease from before has run out.
    """

    def __init__(self, term_s: float, request_s_max: float, now: float, *, is_new: bool) -> None:
        """`is_new`: the crawl never ran, so that nobody can hold anything."""
        self._term_s = term_s
        self._request_s_max = request_s_max
        self._unknown_until = 0.0 if is_new else now + term_s + request_s_max
        self._holdings: dict[int, Holding] = {}

    def ask(self, shard: int, holder: str, now: float, *, renews: bool = False, proven: bool = False) -> float:
        """Lend a shard for a term, or renew; return 0, or how many seconds to wait before asking again.

        `renews` is what a holder says who has a lease that has not run out. `proven` says that whoever held it is known
        to be dead: the shard's directory is on one machine, and its lock was let go.
        """
        held = self._holdings.get(shard)
        if held is None:
            free_at = 0.0 if renews or proven else self._unknown_until
        elif held.holder == holder or proven:
            free_at = 0.0
        else:
            free_at = held.until + self._request_s_max
        if free_at > now:
            return free_at - now
        self._holdings[shard] = Holding(holder, now + self._term_s)
        return 0.0

    def holder(self, shard: int) -> str:
        """Return who has a shard; empty when nobody is known to."""
        held = self._holdings.get(shard)
        return held.holder if held is not None else ""
