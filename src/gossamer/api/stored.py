"""Stored: reads the store of a stopped crawl: its cookies, and near-uniform pages of a walk."""

from contextlib import ExitStack, closing
from pathlib import Path

from gossamer.api.given import directory_of
from gossamer.assembly.home import homes
from gossamer.assembly.schemes import namer_for
from gossamer.assembly.sessions import netscape_file
from gossamer.assembly.stopped import open_stopped
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.stages.frontier.walked import sample
from gossamer.state.epoch import Epochs
from gossamer.world.dice import Dice


def cookies_of(directory: str | Path) -> str:
    """Return the cookies of a crawl that does not run, as a file in Netscape format. They are credentials. Raises
    ConfigError: there is no crawl in `directory`, or it runs.
    """
    directory = directory_of(directory)
    config = reopen(directory / "crawl.toml")
    return netscape_file(config, homes(directory, config.cluster.workers))


def sample_of(directory: str | Path, size: int, seed: int | None = None) -> list[dict[str, object]]:
    """Return pages of a walk that does not run, each with `url`, `visits` and `weight`; the same ones for one `seed`.
    Raises ConfigError: there is no crawl, a process holds it, or it did not walk.
    """
    directory = directory_of(directory)
    config = reopen(directory / "crawl.toml")
    if config.frontier.strategy != "walk":
        raise ConfigError(
            f"{directory} did not walk; begin a crawl with --set frontier.strategy=walk to draw samples from it"
        )
    shards = config.cluster.workers
    with ExitStack() as undo:
        epochs = []
        for home in homes(directory, shards):
            home.require_here()
            opened = undo.enter_context(closing(open_stopped(config, directory, home.shard, shards)))
            epochs.append(Epochs(opened.store))
        drawn = sample(epochs, size, config.walk.restart_share, namer_for(config).name, Dice(seed))
    return [{"url": page.url, "visits": page.visits, "weight": page.weight} for page in drawn]
