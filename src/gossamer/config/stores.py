"""Stores: keys about object stores that mean something only together."""

from gossamer.config.sections import Config
from gossamer.model.errors import ConfigError


def check_stores(config: Config) -> None:
    """Raise ConfigError if local WARC files are to go and no store is named that would have them."""
    if not (config.archive.store_keep_warc or config.archive.store or config.state.checkpoint_uri):
        raise ConfigError(
            "archive.store_keep_warc = false: no store has the WARC files; name one in archive.store or "
            "state.checkpoint_uri, or leave out the key"
        )
