"""Recent: the last attempts that went well and the last that did not, for people who look on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from gossamer.model.outcomes import SUCCEEDED
from gossamer.model.visits import PageRow

KEPT_MAX = 20
TOLD_CHARACTERS_MAX = 300


class Recent:
    """Keeps the last 20 of either kind. An attempt costs about 0.1 µs."""

    def __init__(self) -> None:
        self._last = 0
        self._well: deque[tuple[int, PageRow]] = deque(maxlen=KEPT_MAX)
        self._badly: deque[tuple[int, PageRow]] = deque(maxlen=KEPT_MAX)

    def add(self, row: PageRow) -> None:
        """Take a finished attempt."""
        self._last += 1
        (self._well if row.outcome in SUCCEEDED else self._badly).append((self._last, row))

    def since(self, after: int, most: int = KEPT_MAX) -> dict[str, object]:
        """Return attempts since that numbered `after`, at most `most` of either kind, the oldest first; how many
        there were beside them, and the number of the last one of all.
        """
        if after > self._last:
            after = 0  # Who asks saw another run.
        pages, errors = _told(self._well, after, most), _told(self._badly, after, most)
        left_out = self._last - after - len(pages) - len(errors)
        return {"last": self._last, "pages": pages, "errors": errors, "left_out": left_out}


def told(row: PageRow, number: int = 0) -> dict[str, object]:
    """Return what is told of an attempt. What strangers wrote is text, and bounded."""
    return {
        "number": number,
        "at": row.fetched_at,
        "url": row.url,
        "outcome": row.outcome,
        "status": row.status,
        "media_type": row.media_type[:TOLD_CHARACTERS_MAX],
        "body_bytes": row.body_bytes,
        "fetch_s": round(row.fetch_s, 4),
        "depth": row.depth,
        "attempt": row.attempt,
        "title": row.title[:TOLD_CHARACTERS_MAX],
        "error": row.error[:TOLD_CHARACTERS_MAX],
    }


def _told(rows: Iterable[tuple[int, PageRow]], after: int, most: int) -> list[dict[str, object]]:
    found = [(number, row) for number, row in rows if number > after]
    return [told(row, number) for number, row in found[-most:]]
