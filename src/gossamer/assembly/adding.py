"""Adding: creates the state of a shard that is added to a running crawl."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from gossamer.assembly.home import Home, locked, named_before
from gossamer.assembly.integrity import opened_store
from gossamer.cluster.frames import encode
from gossamer.config import Config
from gossamer.crawl.counters import Totals
from gossamer.state.schema import FAMILIES, TOTALS


def begin_shard(config: Config, directory: Path, number: int) -> None:
    """Create the state of a new shard, so that its files get other names than those of an earlier shard with its
    number, and so that these files do not look as if its state were lost. An existing state is left alone.

    Raises:
        ConfigError: another process holds the state.
    """
    home = Home(directory, number, 2)
    with ExitStack() as undo:
        undo.callback(locked(directory, wait_s=0.0, state=home.state).release)
        store = opened_store(config, home)
        undo.callback(store.close)
        if store.get("meta", TOTALS) is None:
            totals, epoch = Totals(incarnation=named_before(directory, number)), store.epoch + 1
            store.commit(epoch, [], {FAMILIES.index("meta"): {TOTALS: encode(totals)}})
            store.apply(epoch)
