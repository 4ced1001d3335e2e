"""Router: what the ring asks of whoever knows the other shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gossamer.model.links import Link
from gossamer.model.visits import Errand, Failure, Reply
from gossamer.url.url import Url


class Router(Protocol):
    """Says which links are this shard's, and sees that the others reach theirs. Absent where there is one shard."""

    def own(self, links: Sequence[Link]) -> list[Link]:
        """Return the links that are ours; the others are sent with this epoch, those sent lately left out."""
        ...

    def has(self, url: Url) -> bool:
        """Say whether a URL is ours."""
        ...

    def widened(self, seed: Url, target: Url, kind: int) -> None:
        """Tell the other shards that a seed of a `kind` redirects to a target that was beyond the scope."""
        ...

    def linked(self, page: Url, links: Sequence[Link]) -> None:
        """Tell the other shards which of their sites a page of ours links to."""
        ...

    def run_errand(self, errand: Errand) -> bool:
        """Have another shard make a request for us, through the gates of its host; the answer comes back by itself.

        False when it cannot be asked.
        """
        ...

    def answer_errand(self, errand: Errand, result: Reply | Failure, body: bytes) -> None:
        """Give what an errand brought back to the shard that asked for it."""
        ...
