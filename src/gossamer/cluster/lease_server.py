"""Lease server: the addresses that this shard owns, each leased to one shard at a time; and the messages of both sides.
See `addresses`.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

LEFT_S: Final = 1.0
"""How long a dead process's request may still run at the web server, which notices the lost connection late."""
AGAIN_S: Final = 1.0
"""Interval after which an unconfirmed message is repeated."""
MESSAGES_MAX: Final = 5_000
"""Messages of one kind in a frame; the others go with the next frame."""


class Terms(NamedTuple):
    """For how long addresses are leased, in seconds."""

    term_s: float
    turn_s: float
    """Length of a turn if several shards want an address."""
    request_s_max: float
    """The longest request."""
    delay_s: float
    """The delay at an address whose last request is unknown."""


class Message(msgspec.Struct, array_like=True):
    """A message about addresses between two shards, each as client (borrower) and as owner."""

    serial: int = 0
    """Grows with each message of a borrower."""
    opening: int = 0
    """A borrower: the start of the owner that the message is for. The owner ignores messages for an earlier one."""
    knows: bool = False
    """A borrower: whether `holds` is complete, or the owner knows all leases already."""
    holds: list[tuple[str, int]] = msgspec.field(default_factory=list)
    """A borrower to a restarted owner: address and ticket."""
    wants: list[tuple[str, int]] = msgspec.field(default_factory=list)
    returns: list[tuple[str, int, float]] = msgspec.field(default_factory=list)
    """Address, ticket, seconds of delay that remain."""
    echo: int = 0
    """An owner: the newest serial heard."""
    loans: int = 0
    """An owner: a number that changes when it has ended all leases of the borrower."""
    grants: list[tuple[str, int, float]] = msgspec.field(default_factory=list)
    returned: list[tuple[str, int]] = msgspec.field(default_factory=list)
    recalls: list[tuple[str, int]] = msgspec.field(default_factory=list)


encode_message = msgspec.msgpack.Encoder().encode
decode_message = msgspec.msgpack.Decoder(Message).decode


class AddressLease(msgspec.Struct):
    """A lease of an address, as its owner sees it."""

    holder: int = -1
    ticket: int = 0
    since: float = 0.0
    """Beginning of the turn, from which the holder may use the address."""
    delay_until: float = 0.0
    sent_at: float = -1e9
    recalled_at: float = -1e9
    waiting: OrderedDict[int, int] = msgspec.field(default_factory=OrderedDict)
    """Waiting shards with their tickets, first come first served."""


class Borrower(msgspec.Struct):
    """An owner's state of one borrower."""

    opening: int = -1
    heard_at: float = -1e9
    serial: int = 0
    loans: int = 0
    known: bool = False
    """Whether it has declared its leases since this owner started."""
    holds: dict[str, None] = msgspec.field(default_factory=dict)
    """A dictionary, since the order of a set would differ from run to run."""
    returned: list[tuple[str, int]] = msgspec.field(default_factory=list)
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    """Address to ticket of declared leases that do not hold, until the borrower has returned or lost them."""
    owed: bool = False


class LeaseServer:
    """The owner's side."""

    def __init__(self, shard: int, shards: int, terms: Terms, now: float, *, is_new: bool) -> None:
        """`shards`: number of shards that may hold leases."""
        self.shard = shard
        self._shards = shards
        self._term_s, self._turn_s, self._request_s_max, self._delay_s = terms
        self._leases: dict[str, AddressLease] = {}
        self._contended: dict[str, None] = {}
        self._borrowers: dict[int, Borrower] = {shard: Borrower(known=True, loans=1)}
        self._grants: dict[int, list[str]] = {}
        self._first = int(now * 1e6)
        """Numbers of this process are above those of the previous one."""
        self._leases_from = now if is_new else now + self._term_s + self._request_s_max
        """Before this time only declared leases are confirmed, unless all borrowers have declared theirs."""
        self._unknown_s = 0.0 if is_new else self._delay_s + LEFT_S
        """Time after `_leases_from` for which the remaining delay of addresses is unknown: a request may have run until
        then under a lease of the previous process that its borrower has lost or dropped since.
        """
        self.on_outgoing: Callable[[], None] = lambda: None

    def say(self, to: int, message: Message, now: float) -> bool:
        """Fill in the message to a borrower; return whether there is anything to send."""
        borrower = self._borrowers.get(to)
        if borrower is None:
            return False
        for address in self._grants.pop(to, []):
            lease = self._leases.get(address)  # None: it was returned before its grant was sent.
            if lease is not None and lease.holder == to and now - lease.sent_at >= AGAIN_S:
                message.grants.append((address, lease.ticket, max(0.0, lease.delay_until - now)))
                lease.sent_at = now
        for address in self._contended:
            lease = self._leases[address]
            turn_over = lease.waiting and now - lease.since >= self._turn_s
            if lease.holder == to and turn_over and now - lease.recalled_at >= AGAIN_S:
                message.recalls.append((address, lease.ticket))
                lease.recalled_at = now
        message.returned = borrower.returned
        borrower.returned = []
        says = borrower.owed or bool(message.grants or message.returned or message.recalls)
        if says:
            # With every serial that confirms the declaration, since each renews the borrower's leases.
            message.recalls += borrower.refused.items()
            message.echo = borrower.serial
            message.loans = borrower.loans
            borrower.owed = False
        return says

    def hear(self, sender: int, message: Message, now: float) -> None:
        """Handle a borrower's message."""
        if not message.serial:
            return
        borrower = self._borrower(sender)
        if message.serial <= borrower.serial:
            return  # A duplicate or a late message: its content is repeated if it still applies.
        borrower.serial = message.serial
        borrower.heard_at = now
        borrower.owed = True
        for address, ticket in message.holds:
            self._on_declaration(sender, borrower, address, ticket, now)
        borrower.known |= message.knows
        for address, ticket in [*((address, ticket) for address, ticket, _ in message.returns), *message.wants]:
            if borrower.refused.get(address, ticket + 1) <= ticket:
                del borrower.refused[address]
        for address, ticket, delay_s in message.returns:
            self._on_return(sender, borrower, address, ticket, now + delay_s, now)
        for address, ticket in message.wants:
            self._on_request(sender, address, ticket, now)
        self._may_lease(now)  # Also if nothing is wanted, since it sets the time from which delays are unknown.
        self.on_outgoing()

    def _borrower(self, shard: int) -> Borrower:
        return self._borrowers.setdefault(shard, Borrower(loans=self._first))

    def on_restart(self, shard: int, opening: int, now: float) -> None:
        """Note that a borrower was restarted, which ends the leases of its previous process."""
        borrower = self._borrower(shard)
        if borrower.opening != opening:
            if borrower.opening >= 0 or borrower.holds:
                self._take_all_back(shard, borrower, now)
            borrower.opening = opening
            borrower.serial = 0
            borrower.refused.clear()
            borrower.known = False

    def tick(self, now: float) -> None:
        """End the leases of shards that are silent for too long, and lease the free addresses."""
        for shard, borrower in self._borrowers.items():
            over = borrower.heard_at + self._term_s + self._request_s_max
            if borrower.holds and shard != self.shard and over <= now:
                self._take_all_back(shard, borrower, now)
        for address in list(self._contended):
            self._settle(address, now)

    def _on_declaration(self, sender: int, borrower: Borrower, address: str, ticket: int, now: float) -> None:
        lease = self._leases.get(address, AddressLease())
        if lease.holder < 0 and lease.delay_until <= now:
            lease.holder = sender
            lease.ticket = ticket
            lease.since = now
            self._leases[address] = lease
            borrower.holds[address] = None
        elif lease.holder != sender:  # Too late: another shard has the address, or its delay is not over.
            borrower.refused[address] = ticket

    def _on_request(self, sender: int, address: str, ticket: int, now: float) -> None:
        lease = self._leases.setdefault(address, AddressLease())
        if lease.holder == sender:
            if lease.ticket == ticket:
                self._grants.setdefault(sender, []).append(address)
                return
            # A new request without a message about the end of this lease: the lease is over.
            self._free(address, lease, now + self._delay_s)
        lease.waiting[sender] = ticket
        self._settle(address, now)

    def _on_return(
        self, sender: int, borrower: Borrower, address: str, ticket: int, delay_until: float, now: float
    ) -> None:
        borrower.returned.append((address, ticket))
        lease = self._leases.setdefault(address, AddressLease())
        lease.delay_until = max(lease.delay_until, delay_until)  # Also for a lease of an earlier process of ours.
        if lease.holder == sender and lease.ticket == ticket:
            self._free(address, lease, delay_until)
        if lease.waiting.get(sender) == ticket:
            del lease.waiting[sender]
        self._settle(address, now)

    def _settle(self, address: str, now: float) -> None:
        """Lease a free address to the next shard in turn; drop one that no shard needs."""
        lease = self._leases[address]
        if lease.holder < 0 and lease.waiting and self._may_lease(now):
            holder, ticket = lease.waiting.popitem(last=False)
            lease.delay_until = max(lease.delay_until, self._leases_from + self._unknown_s)
            lease.holder = holder
            lease.ticket = ticket
            lease.sent_at = -1e9
            lease.recalled_at = -1e9
            lease.since = max(now, lease.delay_until)
            self._borrowers[holder].holds[address] = None
            self._grants.setdefault(holder, []).append(address)
            self.on_outgoing()
        if lease.waiting or (lease.holder < 0 and lease.delay_until > now):
            self._contended[address] = None
        else:
            self._contended.pop(address, None)
            if lease.holder < 0:
                del self._leases[address]

    def _may_lease(self, now: float) -> bool:
        if now >= self._leases_from:
            return True
        known = [self._borrowers.get(shard) for shard in range(self._shards) if shard != self.shard]
        if all(one is not None and one.known for one in known):
            self._leases_from = now
        return now >= self._leases_from

    def _free(self, address: str, lease: AddressLease, delay_until: float) -> None:
        self._borrowers[lease.holder].holds.pop(address, None)
        lease.holder = -1
        lease.delay_until = max(lease.delay_until, delay_until)

    def _take_all_back(self, shard: int, borrower: Borrower, now: float) -> None:
        for address in list(borrower.holds):
            self._free(address, self._leases[address], now + self._delay_s + LEFT_S)
            self._contended[address] = None
        for address, lease in self._leases.items():
            if lease.waiting.pop(shard, None) is not None:
                self._contended[address] = None
        borrower.loans += 1
        self._grants.pop(shard, None)
