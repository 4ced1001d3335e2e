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

from collections.abc import Callable

from gossamer.cluster.borrowing import Borrowing
from gossamer.cluster.lending import Lending
from gossamer.cluster.loans import Message, decode_message, encode_message

ROUNDS_MAX = 3
"""How often the two sides of one shard answer each other at once: a want, a grant, a word of thanks."""


class Addresses:
    """Both sides of one shard (`frontier.door`)."""

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
        self.borrowing = Borrowing(shard, shards, term_s, request_s_max, now)
        terms = (term_s, turn_s, request_s_max, rest_s)
        self.lending = Lending(shard, shards, terms, now, is_new=is_new)
        self.messages_sent = self.message_bytes_sent = 0

    def listen(
        self, opened: Callable[[str, float], None], closed: Callable[[str], None], outgoing: Callable[[], None]
    ) -> None:
        """Have somebody told when an address may be asked, when not any more, and when there is something to send."""
        self.borrowing.on_opened, self.borrowing.on_closed = opened, closed
        self.borrowing.on_outgoing = self.lending.on_outgoing = outgoing

    # ---- the user's side (`frontier.door`)

    def want(self, address: str, now: float) -> float | None:
        at = self.borrowing.want(address)
        if at is None and self.borrowing.owner_of(address) == self.shard:
            self._own(now)
            at = self.borrowing.want(address)
        return at

    def may_ask(self, address: str, now: float) -> bool:
        return self.borrowing.may_ask(address, now)

    def began(self, address: str) -> None:
        self.borrowing.began(address)

    def ended(self, address: str, rest_until: float) -> None:
        self.borrowing.ended(address, rest_until)

    def leave(self, address: str) -> None:
        self.borrowing.leave(address)

    # ---- messages

    def outgoing(self, to: int, now: float) -> bytes:
        """Return what is to be said to a shard now; empty when nothing is."""
        message = Message()
        says = self.borrowing.say(to, message, now)
        says |= self.lending.say(to, message, now)
        if not says:
            return b""
        data = encode_message(message)
        self.messages_sent += 1
        self.message_bytes_sent += len(data)
        return data

    def take(self, sender: int, data: bytes, now: float, opening: int) -> None:
        """Take what a shard said; `opening` is ours."""
        message = decode_message(data)
        if message.opening == opening:
            self.lending.hear(sender, message, now)
        self.borrowing.hear(sender, message, now)

    def restarted(self, shard: int, opening: int, now: float) -> None:
        """Note that a shard is another process now."""
        self.borrowing.restarted(shard, opening)
        self.lending.restarted(shard, opening, now)
        self.borrowing.on_outgoing()

    def tick(self, now: float) -> None:
        """Do what is due: turns that are over, loans that ran out, terms that were not renewed."""
        self.borrowing.tick(now)
        self._own(now)
        self.lending.tick(now)

    def facts(self) -> dict[str, int]:
        """Return counts, for people."""
        return {
            "borrowed": self.borrowing.count("held"),
            "wanted": self.borrowing.count("wanted"),
            "lent": self.lending.lent,
            "contended": self.lending.contended,
            "messages_sent": self.messages_sent,
            "message_bytes_sent": self.message_bytes_sent,
            "loans_made": self.lending.loans_made,
            "recalls_made": self.lending.recalls_made,
        }

    def _own(self, now: float) -> None:
        """Let both sides of this shard speak with each other."""
        for _ in range(ROUNDS_MAX):
            asked, told = Message(), Message()
            says = self.borrowing.say(self.shard, asked, now)
            if says:
                self.lending.hear(self.shard, asked, now)
            answers = self.lending.say(self.shard, told, now)
            if answers:
                self.borrowing.hear(self.shard, told, now)
            if not (says or answers):
                return
