"""Kinds: the records that a build works with, and what their bits mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.offline.records import Kind, shift_for

SILENT = 1
"""Of a page: its links are not followed (but for redirects and what is part of it)."""
PART = 2
"""It was fetched as part of another page."""
BEYOND = 4
"""It is ours only as part of another page: what it names is not, but for its own parts."""
REDIRECTS = 8
PASSING = 16
"""Its last attempt ended with an error that may pass."""

LINK, EMBEDDED, SEED, AGAIN = 0, 1, 2, 3
"""How a URL was found, as far as filters care: the two lowest bits of `variant`. The others stand for its text where
that is not its key. `AGAIN` is a URL that was listed before and is to be listed again."""

PAGE = Kind(
    "page",
    np.dtype([("fp", "<u8"), ("at", "<i8"), ("pos", "<u8"), ("way", "<u4"), ("flags", "u1"), ("first", "u1")]),
)
"""An attempt: when, its row, the way to it; `first` where a visit began with it."""

KNOWN = Kind("known", np.dtype([("fp", "<u8"), ("way", "<u4")]))
"""A URL that is known: its least way, and in the uppermost byte how often it was listed."""

FROM = Kind("from", np.dtype([("fp", "<u8"), ("pos", "<u8"), ("site", "<u4")]))
"""A page that has links, and the first of their rows in one batch."""

FOUND = Kind("found", np.dtype([("fp", "<u8"), ("pos", "<u8"), ("way", "<u4"), ("variant", "<u4"), ("site", "<u4")]))
"""A link: where it leads, its row, the way; the site of its page where sites are counted, 0 for the target's own. Of
one that is listed `AGAIN`, `site` says how often it was."""


def way_kind(rows: int) -> Kind:
    """Return the kind of: the links from a row on are of a page to which this is the way."""
    fields: list[tuple[str, Any]] = [("pos", "<u8"), ("way", "<u4"), ("site", "<u4"), ("flags", "u1")]
    return Kind("way", np.dtype(fields), shift_for(rows))


def chosen_kind(rows: int) -> Kind:
    """Return the kind of: the URL in this row is to be judged."""
    fields: list[tuple[str, Any]] = [
        ("pos", "<u8"), ("fp", "<u8"), ("way", "<u4"), ("sites", "<u4"), ("variant", "<u4"), ("listed", "u1"),
        ("several", "u1"),
    ]  # fmt: skip
    return Kind("chosen", np.dtype(fields), shift_for(rows))
