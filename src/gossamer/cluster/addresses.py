"""Addresses: hosts of sites on different shards may share one, and it must not feel how many shards we are.

Each address has an owner among the shards, named by its hash, who lends it to one shard at a time. Whoever has it
keeps his own gates there, as if he were alone; so an address that one shard uses is lent once and costs nothing more.
When others want it too, it goes round in turns of `address_turn_s`. A shard that does not hear from an owner for
`address_term_s` begins no more requests at what that one lent; the owner lends it again when the longest request must
have ended besides. An owner that starts anew lends nothing before every shard has told what it holds, or that time is
over. Hosts whose address is elsewhere wait, and nobody waits for them.

Pure but for what it calls; time is an argument. Frames may be lost, doubled and late: each loan has a ticket, and both
sides say again what was not confirmed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec
from xxhash import xxh3_64_intdigest

LEFT_S: Final = 1.0
"""What a dead process asked for may still be under way at the server for so long: it notices late that nobody waits."""
AGAIN_S: Final = 1.0
"""What was not confirmed is said again after so long."""
MESSAGES_MAX: Final = 5_000
"""Of a kind in one frame; the rest goes with the next."""


class Message(msgspec.Struct, array_like=True):
    """What two shards say to each other about addresses, each as borrower and as owner."""

    serial: int = 0
    """Grows with each message of a borrower."""
    knows: bool = False
    """A borrower: `holds` names all that I have from you, or nothing that you do not know."""
    holds: list[tuple[str, int]] = msgspec.field(default_factory=list)
    """A borrower to an owner that started anew: address and ticket."""
    wants: list[tuple[str, int]] = msgspec.field(default_factory=list)
    returns: list[tuple[str, int, float]] = msgspec.field(default_factory=list)
    """Address, ticket, seconds that it must rest."""
    echo: int = 0
    """An owner: the newest serial heard."""
    loans: int = 0
    """An owner: a number that changes when it has taken back all that the borrower had."""
    grants: list[tuple[str, int, float]] = msgspec.field(default_factory=list)
    returned: list[tuple[str, int]] = msgspec.field(default_factory=list)
    recalls: list[tuple[str, int]] = msgspec.field(default_factory=list)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


class Borrowed(msgspec.Struct):
    """An address as its user sees it."""

    ticket: int
    state: str = "wanted"
    """wanted, held, recalled (held until what is out has ended), returning."""
    out: int = 0
    rest_until: float = 0.0
    said_at: float = -1e9
    again: bool = False
    """Wanted anew as soon as it is returned."""
    usable: bool = False
    """The user was told that it may be asked."""


class Owner(msgspec.Struct):
    """What a borrower knows of one owner."""

    opening: int = -1
    loans: int = -1
    until: float = 0.0
    """Nothing that it lent may be asked from then on."""
    serial: int = 0
    sent: OrderedDict[int, float] = msgspec.field(default_factory=OrderedDict)
    """Serials on the way, and when they left."""
    spoke_at: float = -1e9
    declare: bool = True
    """It must be told what we hold."""


class Lent(msgspec.Struct):
    """An address as its owner sees it."""

    holder: int = -1
    ticket: int = 0
    since: float = 0.0
    rest_until: float = 0.0
    told_at: float = -1e9
    recalled_at: float = -1e9
    waiting: OrderedDict[int, int] = msgspec.field(default_factory=OrderedDict)
    """Shard to ticket, first come first."""


class Borrower(msgspec.Struct):
    """What an owner knows of one borrower."""

    opening: int = -1
    heard_at: float = -1e9
    serial: int = 0
    loans: int = 0
    known: bool = False
    """It has said what it holds since this owner began."""
    holds: set[str] = msgspec.field(default_factory=set)
    returned: list[tuple[str, int]] = msgspec.field(default_factory=list)
    voids: list[tuple[str, int]] = msgspec.field(default_factory=list)
    owed: bool = False


class Addresses:
    """Both sides of one shard (`ports.AddressDoor`)."""

    def __init__(
        self,
        shard: int,
        shards: int,
        *,
        term_s: float,
        turn_s: float,
        request_s_max: float,
        rest_s: float,
        now: float,
        is_new: bool,
    ) -> None:
        """`rest_s` is how long an address rests when nobody knows of its last request; `is_new`: the crawl never ran
        here, so that nobody has anything from us.
        """
        self.shard = shard
        self._shards = shards
        self._term_s = term_s
        self._turn_s = turn_s
        self._request_s_max = request_s_max
        self._rest_s = rest_s
        self._ticket = 0
        self._borrowed: dict[str, Borrowed] = {}
        self._owners: dict[int, Owner] = {}
        self._of_owner: dict[int, set[str]] = {}
        self._lent: dict[str, Lent] = {}
        self._contended: set[str] = set()
        self._borrowers: dict[int, Borrower] = {}
        self._grants: dict[int, list[str]] = {}
        self._lends_from = now if is_new else now + term_s + request_s_max
        """Before, nothing is lent but what a borrower says that it has, unless all have said so."""
        self.on_opened: Callable[[str, float], None] = _opened
        """Called when an address may be asked, and from when on."""
        self.on_closed: Callable[[str], None] = _closed
        """Called when it may not be asked any more."""
        self.on_outgoing: Callable[[], None] = lambda: None
        self.messages_sent = self.loans_made = self.recalls_made = 0

    def owner_of(self, address: str) -> int:
        """Return the shard that lends an address."""
        return xxh3_64_intdigest(address.encode()) % self._shards

    # ---- the user's side (`ports.AddressDoor`)

    def want(self, address: str, now: float) -> float | None:
        """Return from when on an address may be asked, or None when it must be borrowed first."""
        borrowed = self._borrowed.get(address)
        if borrowed is None:
            self._ticket += 1
            borrowed = self._borrowed[address] = Borrowed(self._ticket)
            owner = self.owner_of(address)
            self._of_owner.setdefault(owner, set()).add(address)
            if owner == self.shard:
                self._own(now)
            else:
                self.on_outgoing()
        elif borrowed.state in {"recalled", "returning"}:
            borrowed.again = True
        return borrowed.rest_until if borrowed.usable else None

    def may_ask(self, address: str, now: float) -> bool:
        """Say whether a request may begin now."""
        borrowed = self._borrowed.get(address)
        if borrowed is None or borrowed.state != "held" or not borrowed.usable:
            return False
        owner = self.owner_of(address)
        if owner == self.shard or self._owners[owner].until > now:
            return True
        self._close(address, borrowed)
        return False

    def began(self, address: str) -> None:
        self._borrowed[address].out += 1

    def ended(self, address: str, rest_until: float) -> None:
        borrowed = self._borrowed[address]
        borrowed.out -= 1
        borrowed.rest_until = max(borrowed.rest_until, rest_until)
        if borrowed.state == "recalled" and not borrowed.out:
            borrowed.state, borrowed.said_at = "returning", -1e9
            self._speak(address)

    def leave(self, address: str) -> None:
        """Say that nobody here uses an address any more."""
        borrowed = self._borrowed.get(address)
        if borrowed is not None and not borrowed.out:
            borrowed.again = borrowed.usable = False
            if borrowed.state != "returning":
                borrowed.state, borrowed.said_at = "returning", -1e9
                self._speak(address)

    # ---- messages

    def outgoing(self, to: int, now: float) -> bytes:
        """Return what is to be said to a shard now; empty when nothing is."""
        message = Message()
        says = self._say_as_borrower(to, message, now)
        says |= self._say_as_owner(to, message, now)
        if not says:
            return b""
        self.messages_sent += 1
        return _encode(message)

    def take(self, sender: int, data: bytes, now: float) -> None:
        """Take what a shard said."""
        message = _decode(data)
        self._hear_borrower(sender, message, now)
        self._hear_owner(sender, message, now)

    def restarted(self, shard: int, opening: int, now: float) -> None:
        """Note that a shard is another process now. Whoever had what was lent to it is dead."""
        owner = self._owners.setdefault(shard, Owner())
        if owner.opening != opening:
            owner.opening, owner.declare, owner.loans = opening, True, -1
        borrower = self._borrowers.setdefault(shard, Borrower())
        if borrower.opening != opening:
            if borrower.opening >= 0 or borrower.holds:
                self._take_all_back(shard, borrower, now)
            borrower.opening, borrower.serial = opening, 0
            borrower.known = False
        self.on_outgoing()

    def tick(self, now: float) -> None:
        """Do what is due: turns that are over, loans that ran out, terms that were not renewed."""
        for shard, owner in self._owners.items():
            if owner.until <= now and shard != self.shard:
                for address in self._of_owner.get(shard, ()):
                    borrowed = self._borrowed[address]
                    if borrowed.usable:
                        self._close(address, borrowed)
        for shard, borrower in self._borrowers.items():
            over = borrower.heard_at + self._term_s + self._request_s_max
            if borrower.holds and shard != self.shard and over <= now:
                self._take_all_back(shard, borrower, now)
        self._own(now)
        for address in list(self._contended):
            self._settle(address, now)

    def facts(self) -> dict[str, int]:
        """Return counts, for people."""
        return {
            "borrowed": sum(one.state == "held" for one in self._borrowed.values()),
            "wanted": sum(one.state == "wanted" for one in self._borrowed.values()),
            "lent": sum(one.holder >= 0 for one in self._lent.values()),
            "contended": sum(bool(one.waiting) for one in self._lent.values()),
            "messages_sent": self.messages_sent,
            "loans_made": self.loans_made,
            "recalls_made": self.recalls_made,
        }

    # ---- inside: borrowing

    def _speak(self, address: str) -> None:
        if self.owner_of(address) != self.shard:
            self.on_outgoing()  # Else `tick` sees to it.

    def _say_as_borrower(self, to: int, message: Message, now: float) -> bool:
        owner = self._owners.setdefault(to, Owner())
        mine = self._of_owner.get(to, set())
        if owner.declare and owner.opening >= 0:
            # What was lent by the process before stands as long as that one would have let it stand.
            stands = owner.until + self._request_s_max > now
            for address in list(mine):
                borrowed = self._borrowed[address]
                if borrowed.state in {"held", "recalled"} and stands:
                    message.holds.append((address, borrowed.ticket))
                elif borrowed.state in {"held", "recalled"}:
                    self._lose(address, borrowed)
            message.knows = True
        for address in list(mine):
            borrowed = self._borrowed[address]
            if now - borrowed.said_at < AGAIN_S:
                continue
            if borrowed.state == "wanted" and len(message.wants) < MESSAGES_MAX:
                message.wants.append((address, borrowed.ticket))
                borrowed.said_at = now
            elif borrowed.state == "returning" and len(message.returns) < MESSAGES_MAX:
                message.returns.append((address, borrowed.ticket, max(0.0, borrowed.rest_until - now)))
                borrowed.said_at = now
        quiet_s = now - owner.spoke_at
        says = bool(message.wants or message.returns)
        says |= quiet_s >= (AGAIN_S if owner.declare else self._term_s / 3) and (owner.declare or bool(mine))
        if says:
            owner.serial += 1
            message.serial = owner.serial
            message.knows |= not owner.declare
            owner.spoke_at = now
            owner.sent[owner.serial] = now
            while len(owner.sent) > 64:
                owner.sent.popitem(last=False)
        return says

    def _hear_owner(self, sender: int, message: Message, now: float) -> None:
        owner = self._owners.setdefault(sender, Owner())
        if message.loans and message.loans != owner.loans:
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
        for address, ticket, rest_s in message.grants:
            self._granted(address, ticket, now + rest_s, owner.until > now)
        for address, ticket in message.returned:
            self._given_back(address, ticket)
        for address, ticket in message.recalls:
            self._recalled(address, ticket)

    def _granted(self, address: str, ticket: int, rest_until: float, usable: bool) -> None:
        borrowed = self._borrowed.get(address)
        if borrowed is None or borrowed.ticket != ticket:
            if borrowed is None:  # A grant of what was given back long ago: give it back once more.
                borrowed = self._borrowed[address] = Borrowed(ticket, "returning")
                self._of_owner.setdefault(self.owner_of(address), set()).add(address)
                self._speak(address)
            return
        if borrowed.state == "wanted":
            borrowed.state = "held"
            borrowed.rest_until = max(borrowed.rest_until, rest_until)
            borrowed.said_at = -1e9
            if usable:
                self._open(address, borrowed)

    def _recalled(self, address: str, ticket: int) -> None:
        borrowed = self._borrowed.get(address)
        if borrowed is None or borrowed.ticket != ticket or borrowed.state != "held":
            return
        borrowed.state, borrowed.again = "recalled", True
        self._close(address, borrowed)
        if not borrowed.out:
            borrowed.state, borrowed.said_at = "returning", -1e9
            self._speak(address)

    def _given_back(self, address: str, ticket: int) -> None:
        borrowed = self._borrowed.get(address)
        if borrowed is None or borrowed.ticket != ticket or borrowed.state != "returning":
            return
        if borrowed.again:
            self._ticket += 1
            self._borrowed[address] = Borrowed(self._ticket, rest_until=borrowed.rest_until)
            self._speak(address)
        else:
            del self._borrowed[address]
            self._of_owner[self.owner_of(address)].discard(address)

    def _lose(self, address: str, borrowed: Borrowed) -> None:
        """What was lent stands no more: want it anew."""
        self._close(address, borrowed)
        self._ticket += 1
        borrowed.ticket, borrowed.state, borrowed.said_at = self._ticket, "wanted", -1e9

    def _open(self, address: str, borrowed: Borrowed) -> None:
        borrowed.usable = True
        self.on_opened(address, borrowed.rest_until)

    def _close(self, address: str, borrowed: Borrowed) -> None:
        if borrowed.usable:
            borrowed.usable = False
            self.on_closed(address)

    # ---- inside: lending

    def _say_as_owner(self, to: int, message: Message, now: float) -> bool:
        borrower = self._borrowers.get(to)
        if borrower is None:
            return False
        for address in self._grants.pop(to, []):
            lent = self._lent[address]
            if lent.holder == to and now - lent.told_at >= AGAIN_S:
                message.grants.append((address, lent.ticket, max(0.0, lent.rest_until - now)))
                lent.told_at = now
        for address in self._contended:
            lent = self._lent[address]
            turn_over = lent.waiting and now - lent.since >= self._turn_s
            if lent.holder == to and turn_over and now - lent.recalled_at >= AGAIN_S:
                message.recalls.append((address, lent.ticket))
                lent.recalled_at = now
                self.recalls_made += 1
        message.returned, borrower.returned = borrower.returned, []
        message.recalls += borrower.voids
        borrower.voids = []
        says = borrower.owed or bool(message.grants or message.returned or message.recalls)
        if says:
            message.echo, message.loans = borrower.serial, borrower.loans
            borrower.owed = False
        return says

    def _hear_borrower(self, sender: int, message: Message, now: float) -> None:
        if not message.serial:
            return
        borrower = self._borrowers.setdefault(sender, Borrower())
        if message.serial <= borrower.serial:
            return  # Came twice, or was overtaken: what it says is said again if it still holds.
        borrower.serial, borrower.heard_at, borrower.owed = message.serial, now, True
        if not borrower.loans:
            borrower.loans = 1 + int(now * 1000)
        for address, ticket in message.holds:
            lent = self._lent.setdefault(address, Lent())
            if lent.holder < 0:
                lent.holder, lent.ticket, lent.since = sender, ticket, now
                borrower.holds.add(address)
            elif lent.holder != sender:
                borrower.voids.append((address, ticket))  # It comes too late with this.
        borrower.known |= message.knows
        for address, ticket, rest_s in message.returns:
            self._returned(sender, borrower, address, ticket, now + rest_s, now)
        for address, ticket in message.wants:
            self._wanted(sender, address, ticket, now)
        self.on_outgoing()

    def _wanted(self, sender: int, address: str, ticket: int, now: float) -> None:
        lent = self._lent.setdefault(address, Lent())
        if lent.holder == sender:
            if lent.ticket == ticket:
                self._grants.setdefault(sender, []).append(address)
                return
            # It began another loan without the end of this one having reached us: that one is over.
            self._free(address, lent, now + self._rest_s)
        lent.waiting[sender] = ticket
        self._settle(address, now)

    def _returned(
        self, sender: int, borrower: Borrower, address: str, ticket: int, rest_until: float, now: float
    ) -> None:
        borrower.returned.append((address, ticket))
        lent = self._lent.get(address)
        if lent is None:
            return
        if lent.holder == sender and lent.ticket == ticket:
            self._free(address, lent, rest_until)
        if lent.waiting.get(sender) == ticket:
            del lent.waiting[sender]
        self._settle(address, now)

    def _settle(self, address: str, now: float) -> None:
        """Lend an address to the next in turn, when it is free; forget one that nobody needs."""
        lent = self._lent[address]
        if lent.holder < 0 and lent.waiting and self._may_lend(now):
            holder, ticket = lent.waiting.popitem(last=False)
            lent.holder, lent.ticket, lent.since, lent.told_at, lent.recalled_at = holder, ticket, now, -1e9, -1e9
            self._borrowers[holder].holds.add(address)
            self._grants.setdefault(holder, []).append(address)
            self.loans_made += 1
            self.on_outgoing()
        if lent.waiting or (lent.holder < 0 and lent.rest_until > now):
            self._contended.add(address)
        else:
            self._contended.discard(address)
            if lent.holder < 0:
                del self._lent[address]

    def _may_lend(self, now: float) -> bool:
        if now >= self._lends_from:
            return True
        known = [self._borrowers.get(shard) for shard in range(self._shards) if shard != self.shard]
        if all(one is not None and one.known for one in known):
            self._lends_from = now
        return now >= self._lends_from

    def _free(self, address: str, lent: Lent, rest_until: float) -> None:
        self._borrowers[lent.holder].holds.discard(address)
        lent.holder = -1
        lent.rest_until = max(lent.rest_until, rest_until)

    def _take_all_back(self, shard: int, borrower: Borrower, now: float) -> None:
        for address in list(borrower.holds):
            self._free(address, self._lent[address], now + self._rest_s + LEFT_S)
            self._contended.add(address)
        for address, lent in self._lent.items():
            if lent.waiting.pop(shard, None) is not None:
                self._contended.add(address)
        borrower.loans += 1
        self._grants.pop(shard, None)

    def _own(self, now: float) -> None:
        """Let both sides of this shard speak with each other."""
        for _ in range(3):
            self._owners.setdefault(self.shard, Owner(opening=0, declare=False, until=float("inf")))
            self._borrowers.setdefault(self.shard, Borrower(known=True, loans=1))
            message = Message()
            says = self._say_as_borrower(self.shard, message, now)
            if says:
                self._hear_borrower(self.shard, message, now)
            message = Message()
            said = self._say_as_owner(self.shard, message, now)
            if said:
                self._hear_owner(self.shard, message, now)
            if not (says or said):
                return


def _opened(address: str, at: float) -> None:
    """Stands in for a user who does not listen yet."""


def _closed(address: str) -> None:
    """The same."""
