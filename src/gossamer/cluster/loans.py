"""Loans: what two shards say to each other about addresses."""

from __future__ import annotations

from typing import Final

import msgspec

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
    opening: int = 0
    """A borrower: which start of the owner it speaks to. What was meant for an earlier one is not for this."""
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


encode_message = msgspec.msgpack.Encoder().encode
decode_message = msgspec.msgpack.Decoder(Message).decode
