"""Addresses: leases of server addresses, so that all shards with hosts at one address act as one client.

The hash of an address names its owner among the shards. The owner leases it to one shard at a time, which applies its
usual gates there. An address that one shard uses is leased once and costs nothing more. When several shards want it,
the lease rotates every `address_turn_s`. A shard that hears nothing from an owner for `address_term_s` starts no more
requests at the owner's addresses. The owner leases them again after that term plus the longest request. A restarted
owner grants no lease until every shard has declared what it holds, or that time is over; from then on each address
waits its delay once. Hosts whose address is leased elsewhere wait without blocking others.

Does no I/O; time is an argument. Frames may be lost, duplicated or late: each lease has a ticket, and both sides repeat
unconfirmed messages.
"""

from collections.abc import Callable

from gossamer.cluster.lease_client import LeaseClient
from gossamer.cluster.lease_server import LeaseServer, Message, Terms, decode_message, encode_message

ROUNDS_MAX = 3
"""Messages that the two sides of one shard exchange at once: request, grant, confirmation."""


class Addresses:
    """Both sides of one shard (`frontier.tokens.Leases`)."""

    def __init__(self, shard: int, shards: int, terms: Terms, now: float, *, is_new: bool, added: int = 0) -> None:
        """`is_new`: the crawl has never run here, so no shard holds a lease of ours. `added`: number of shards beyond
        `shards`, which own no addresses but hold leases like the others.
        """
        self.shard = shard
        self.client = LeaseClient(shard, shards, terms.term_s, terms.request_s_max, now)
        self.server = LeaseServer(shard, shards + added, terms, now, is_new=is_new)
        self.may_ask = self.client.may_ask
        self.began = self.client.began
        self.end = self.client.end
        self.leave = self.client.leave

    def listen(
        self, opened: Callable[[str, float], None], closed: Callable[[str], None], outgoing: Callable[[], None]
    ) -> None:
        """Set callbacks: an address may be requested, it may no longer be requested, and there is something to send."""
        self.client.on_opened = opened
        self.client.on_closed = closed
        self.client.on_outgoing = self.server.on_outgoing = outgoing

    # ---- the user's side (`frontier.tokens.Leases`)

    def want(self, address: str, now: float) -> float | None:
        at = self.client.want(address)
        if at is None and self.client.owner_of(address) == self.shard:
            self._own(now)
            at = self.client.want(address)
        return at

    # ---- messages

    def outgoing(self, to: int, now: float) -> bytes:
        """Return the message to a shard now; empty if there is none."""
        message = Message()
        says = self.client.say(to, message, now)
        says |= self.server.say(to, message, now)
        return encode_message(message) if says else b""

    def take(self, sender: int, data: bytes, now: float, opening: int) -> None:
        """Handle a shard's message; `opening` is ours."""
        message = decode_message(data)
        if message.opening == opening:
            self.server.hear(sender, message, now)
        self.client.hear(sender, message, now)

    def on_restart(self, shard: int, opening: int, now: float) -> None:
        """Note that a shard was restarted."""
        self.client.on_restart(shard, opening)
        self.server.on_restart(shard, opening, now)
        self.client.on_outgoing()

    def tick(self, now: float) -> None:
        """Handle what is due: turns that are over, and leases that have expired or were not renewed."""
        self.client.tick(now)
        self._own(now)
        self.server.tick(now)

    def _own(self, now: float) -> None:
        """Exchange messages between the two sides of this shard."""
        for _ in range(ROUNDS_MAX):
            asked = Message()
            answer = Message()
            says = self.client.say(self.shard, asked, now)
            if says:
                self.server.hear(self.shard, asked, now)
            answers = self.server.say(self.shard, answer, now)
            if answers:
                self.client.hear(self.shard, answer, now)
            if not (says or answers):
                return
