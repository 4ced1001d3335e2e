"""Reports: what each shard tells of itself in every round of questions, and what it is told in return."""

from __future__ import annotations

from typing import Literal

import msgspec


class Report(msgspec.Struct, frozen=True):
    """One shard's answer. All of it was true at one instant between two steps of its loop; counts are committed."""

    shard: int
    opening: int
    """Which start of the shard this is: grows with each, also when an older checkpoint is restored."""
    passive: bool
    """Nothing is queued, delayed, in flight or uncommitted, and nothing arrived that was not taken; what is queued for
    longer than the crawl's patience does not count."""
    activity: int
    """Grows whenever the shard does anything that could make work, since this start."""
    incarnation: int = 0
    """Of what it sends: see `Exchange`."""
    sent: dict[int, int] = msgspec.field(default_factory=dict)
    """Receiver to the number of the last batch in the outbox."""
    taken: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)
    """Sender to incarnation and number of the last batch taken, in a commit."""
    seeds_open: bool = True
    """Seeds are still to come, or out, or what came of them is not committed: their redirects may widen the scope."""
    seeds_activity: int = 0
    """Grows with each seed, or target of a seed's redirect, that this start of the shard was offered."""
    seeds_sent: dict[int, int] = msgspec.field(default_factory=dict)
    """Receiver to the number of the last batch with a seed or a root in it."""
    pages: int = 0
    pages_under_way: int = 0
    """Not committed, or in flight: each may become a page."""
    wire_bytes: int = 0
    quota_serial: int = 0
    """The newest order whose quota is in force here."""
    awaits: bool = False
    """It has URLs that wait for longer than the crawl's patience."""


class Orders(msgspec.Struct, frozen=True):
    """What a shard is told."""

    quota: int | None = None
    """Pages that it may have fetched in all; None: as many as it likes."""
    quota_serial: int = 0
    scope_final: bool = False
    """No redirect of a seed can widen the scope any more, anywhere."""
    paused: bool = False
    end: Literal["", "finished", "limit", "patience", "stopped"] = ""
    """The crawl is over, and how."""
