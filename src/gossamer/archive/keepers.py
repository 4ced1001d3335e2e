"""Keepers: what keeps the full-text index of a crawl, imported only where there is one."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import cast

from gossamer.archive.archive import Closing, Following
from gossamer.archive.search.options import SearchOptions
from gossamer.model.errors import ConfigError
from gossamer.state.journals import Journals
from gossamer.world.clock import Clock


def index_keepers(
    options: SearchOptions, journals: Journals, clock: Clock, incarnation: int
) -> tuple[Closing, Following]:
    """Return the archive that notes pages for the index, and the follower that indexes them.

    Raises:
        ConfigError: the library is not installed, or the index is one that this version cannot read.
    """
    if find_spec("tantivy") is None:
        raise ConfigError("search.enabled: it needs tantivy; pip install 'gossamer[search]'")
    log = import_module("gossamer.archive.search.log").SearchLog(options, journals, clock, incarnation=incarnation)
    indexer = import_module("gossamer.archive.search.follower").IndexFollower(options, journals)
    return cast("Closing", log), cast("Following", indexer)
