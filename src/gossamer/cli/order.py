"""Order: what a command line of `crawl` or `resume` asks for, before it is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple


class Order(NamedTuple):
    """One crawl that somebody wants."""

    command: Literal["crawl", "resume"]
    options: Mapping[str, object]
    """By their names in the table of flags."""
    sets: Sequence[str] = ()
    directory: Path = Path()
    """Of `resume`."""
    seeds: Sequence[str] = ()
    file: Path | None = None
    or_resume: bool = False
