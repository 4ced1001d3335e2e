"""Lease client: the addresses that this shard uses, each leased by its owner. See `addresses`."""

from collections import OrderedDict
from collections.abc import Callable

import msgspec
from xxhash import xxh3_64_intdigest

from gossamer.cluster.lease_server import AGAIN_S, MESSAGES_MAX, Message


class Borrowed(msgspec.Struct):
    """A lease of an address, as the client sees it."""

    ticket: int
    state: str = "wanted"
    """wanted, held, recalled (held until requests in flight have ended), returning."""
    out: int = 0
    delay_until: float = 0.0
    said_at: float = -1e9
    again: bool = False
    """Whether to request it again as soon as it is returned."""
    usable: bool = False
    """Whether `on_opened` has announced it."""


class Owner(msgspec.Struct):
    """A client's state of one owner."""

    opening: int = -1
    loans: int = -1
    until: float = 0.0
    """Time from which no request may start at its addresses."""
    serial: int = 0
    sent: OrderedDict[int, float] = msgspec.field(default_factory=OrderedDict)
    """Serials in flight, and when they were sent."""
    spoke_at: float = -1e9
    declare: bool = True
    """Whether our leases must be declared to it."""


class LeaseClient:
    """The user's side."""

    def __init__(self, shard: int, shards: int, term_s: float, request_s_max: float, now: float) -> None:
        self.shard = shard
        self._shards = shards
        self._term_s = term_s
        self._request_s_max = request_s_max
        self._first = int(now * 1e6)
        """Tickets and serials of this process are above those of the previous one, whose answers may arrive late."""
        self._ticket = self._first
        self._borrowed: dict[str, Borrowed] = {}
        self._owners: dict[int, Owner] = {shard: Owner(opening=0, declare=False, until=float("inf"))}
        self._of_owner: dict[int, dict[str, None]] = {}
        """Addresses in the order of their requests; the order of a set would differ from run to run."""
        self.on_opened: Callable[[str, float], None] = lambda _address, _at: None
        """Called with an address and the time from which it may be requested."""
        self.on_closed: Callable[[str], None] = lambda _address: None
        """Called when it may no longer be requested."""
        self.on_outgoing: Callable[[], None] = lambda: None

    def owner_of(self, address: str) -> int:
        """Return the shard that leases out an address."""
        return xxh3_64_intdigest(address.encode()) % self._shards

    def want(self, address: str) -> float | None:
        """Return when an address may be requested, or None if it must be leased first."""
        borrowed = self._borrowed.get(address)
        if borrowed is None:
            self._ticket += 1
            borrowed = self._borrowed[address] = Borrowed(self._ticket)
            self._of_owner.setdefault(self.owner_of(address), {})[address] = None
            self._speak(address)
        elif borrowed.state in {"recalled", "returning"}:
            borrowed.again = True
        return borrowed.delay_until if borrowed.usable else None

    def may_ask(self, address: str, now: float) -> bool:
        """Return whether a request may begin now."""
        borrowed = self._borrowed.get(address)
        if borrowed is None or borrowed.state != "held" or not borrowed.usable:
            return False
        if self._owners[self.owner_of(address)].until > now:
            return True
        self._close(address, borrowed)
        return False

    def began(self, address: str) -> None:
        self._borrowed[address].out += 1

    def end(self, address: str, delay_until: float) -> None:
        borrowed = self._borrowed[address]
        borrowed.out -= 1
        borrowed.delay_until = max(borrowed.delay_until, delay_until)
        if borrowed.state == "recalled" and not borrowed.out:
            self._hand_back(address, borrowed)

    def leave(self, address: str) -> None:
        """Note that no host here uses an address any more."""
        borrowed = self._borrowed.get(address)
        if borrowed is None:
            return
        borrowed.again = False
        if not borrowed.out:
            borrowed.usable = False
            if borrowed.state != "returning":
                self._hand_back(address, borrowed)

    def say(self, to: int, message: Message, now: float) -> bool:
        """Fill in the message to an owner; return whether there is anything to send."""
        owner = self._owners.setdefault(to, Owner())
        mine = self._of_owner.get(to, {})
        quiet_s = now - owner.spoke_at
        again = owner.declare and quiet_s >= AGAIN_S
        for address in list(mine):
            borrowed = self._borrowed[address]
            if now - borrowed.said_at < AGAIN_S:
                continue
            if borrowed.state == "wanted" and len(message.wants) < MESSAGES_MAX:
                message.wants.append((address, borrowed.ticket))
                borrowed.said_at = now
            elif borrowed.state == "returning" and len(message.returns) < MESSAGES_MAX:
                message.returns.append((address, borrowed.ticket, max(0.0, borrowed.delay_until - now)))
                borrowed.said_at = now
        says = again or bool(message.wants or message.returns) or (bool(mine) and quiet_s >= self._term_s / 3)
        if says:
            owner.serial = max(owner.serial, self._first) + 1
            message.serial = owner.serial
            message.opening = owner.opening
            message.knows = True
            if owner.declare:
                self._declare(owner, mine, message, now)
            owner.spoke_at = now
            owner.sent[owner.serial] = now
            while len(owner.sent) > 64:
                owner.sent.popitem(last=False)
        return says

    def _declare(self, owner: Owner, mine: dict[str, None], message: Message, now: float) -> None:
        """Declare our leases to a restarted owner. They last as long as its predecessor granted them."""
        stands = owner.until + self._request_s_max > now
        for address in list(mine):
            borrowed = self._borrowed[address]
            if borrowed.state in {"held", "recalled"} and stands:
                message.holds.append((address, borrowed.ticket))
            elif borrowed.state in {"held", "recalled"}:
                self._lose(address, borrowed)

    def hear(self, sender: int, message: Message, now: float) -> None:
        """Handle an owner's message."""
        owner = self._owners.setdefault(sender, Owner())
        if message.loans > max(owner.loans, 0):  # A lower number is of an older message that arrived late.
            if owner.loans >= 0:
                for address in list(self._of_owner.get(sender, ())):
                    borrowed = self._borrowed[address]
                    if borrowed.state in {"held", "recalled"}:
                        self._lose(address, borrowed)
            owner.loans = message.loans
        left = owner.sent.pop(message.echo, None)
        if left is not None:
            owner.until = max(owner.until, left + self._term_s)
            owner.declare = False
            while owner.sent and next(iter(owner.sent)) < message.echo:
                owner.sent.popitem(last=False)
            for address in self._of_owner.get(sender, ()):
                borrowed = self._borrowed[address]
                if borrowed.state == "held" and not borrowed.usable and owner.until > now:
                    self._open(address, borrowed)
        # A grant from before the owner ended all leases may arrive after newer messages.
        for address, ticket, delay_s in message.grants if message.loans >= owner.loans else ():
            self._on_grant(address, ticket, now + delay_s, owner.until > now)
        for address, ticket in message.returned:
            self._on_return(address, ticket)
        for address, ticket in message.recalls:
            self._on_recall(address, ticket)

    def on_restart(self, shard: int, opening: int) -> None:
        """Note that an owner was restarted."""
        owner = self._owners.setdefault(shard, Owner())
        if owner.opening != opening:
            owner.opening = opening
            owner.declare = True
            owner.loans = -1
            owner.spoke_at = -1e9
            for address in self._of_owner.get(shard, ()):
                self._borrowed[address].said_at = -1e9

    def tick(self, now: float) -> None:
        """End the leases of owners that were silent for a term."""
        for shard, owner in self._owners.items():
            if owner.until <= now:
                for address in self._of_owner.get(shard, ()):
                    self._close(address, self._borrowed[address])

    def _on_grant(self, address: str, ticket: int, delay_until: float, usable: bool) -> None:
        borrowed = self._borrowed.get(address)
        if borrowed is None or borrowed.ticket != ticket:
            if borrowed is None:  # A grant of an address that was returned long ago: return it again.
                borrowed = self._borrowed[address] = Borrowed(ticket, "returning")
                self._of_owner.setdefault(self.owner_of(address), {})[address] = None
                self._speak(address)
            return
        if borrowed.state == "wanted":
            borrowed.state = "held"
            borrowed.delay_until = max(borrowed.delay_until, delay_until)
            borrowed.said_at = -1e9
            if usable:
                self._open(address, borrowed)

    def _on_recall(self, address: str, ticket: int) -> None:
        borrowed = self._borrowed.get(address)
        if borrowed is None or borrowed.ticket != ticket or borrowed.state != "held":
            return
        borrowed.state = "recalled"
        borrowed.again = True
        self._close(address, borrowed)
        if not borrowed.out:
            self._hand_back(address, borrowed)

    def _on_return(self, address: str, ticket: int) -> None:
        borrowed = self._borrowed.get(address)
        if borrowed is None or borrowed.ticket != ticket or borrowed.state != "returning":
            return
        if borrowed.again:
            self._ticket += 1
            self._borrowed[address] = Borrowed(self._ticket, delay_until=borrowed.delay_until)
            self._speak(address)
        else:
            del self._borrowed[address]
            del self._of_owner[self.owner_of(address)][address]

    def _hand_back(self, address: str, borrowed: Borrowed) -> None:
        borrowed.state = "returning"
        borrowed.said_at = -1e9
        self._speak(address)

    def _lose(self, address: str, borrowed: Borrowed) -> None:
        """Drop a lease that no longer holds, and request it again."""
        self._close(address, borrowed)
        self._ticket += 1
        borrowed.ticket = self._ticket
        borrowed.state = "wanted"
        borrowed.said_at = -1e9

    def _open(self, address: str, borrowed: Borrowed) -> None:
        borrowed.usable = True
        self.on_opened(address, borrowed.delay_until)

    def _close(self, address: str, borrowed: Borrowed) -> None:
        if borrowed.usable:
            borrowed.usable = False
            self.on_closed(address)

    def _speak(self, address: str) -> None:
        if self.owner_of(address) != self.shard:
            self.on_outgoing()  # Otherwise `tick` sends it.
