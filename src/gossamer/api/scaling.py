"""Scaling: a stopped crawl is divided among another number of shards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gossamer.api.given import directory_of
from gossamer.assembly import Scaled, scale
from gossamer.config.gather import reopen
from gossamer.config.live import save
from gossamer.model.errors import ConfigError


def scale_crawl(directory: str | Path, workers: int, note: Callable[[str], None] = lambda _: None) -> Scaled:
    """Divide a stopped crawl among `workers` shards, by moving partitions with all that is known of their sites.

    What was interrupted, by a kill too, goes on when it is called again with the same number. Costs about 3 µs for
    each URL that moves.

    Raises:
        ConfigError: there is no crawl, or it cannot be divided; one line says why.
    """
    directory = directory_of(directory)
    stored = directory / "crawl.toml"
    if not stored.exists():
        raise ConfigError(f"{directory} holds no crawl (it has no crawl.toml)")
    config = reopen(stored)
    if config.state.checkpoint_uri:
        raise ConfigError(
            "state.checkpoint_uri: this crawl goes on from its checkpoints, and `scale` moves what lies in its "
            "directory alone"
        )

    def write_config(shards: int) -> None:
        cluster = config.cluster.model_copy(update={"workers": shards})
        origins = config.origins | {"cluster.workers": "gossamer scale"}
        changed = config.model_copy(update={"cluster": cluster}).with_origins(origins)
        save(changed, directory)

    return scale(config, directory, workers, note, write_config)
