"""Presets: values for a kind of crawl, and for its mode, which file, options and `--set` override."""

import pkgutil

import msgspec

from gossamer.config.sections import Config
from gossamer.model.errors import ConfigError
from gossamer.options import nearest


class CrawlPreset(msgspec.Struct, frozen=True):
    """One way to crawl."""

    summary: str
    values: dict[str, object]
    """By dotted key."""


PRESETS = msgspec.toml.decode(pkgutil.get_data("gossamer.config", "presets.toml") or b"", type=dict[str, CrawlPreset])


def preset_values(name: str) -> dict[str, object]:
    """Return the values of a preset by dotted key. Raises ConfigError: no preset has this name."""
    if name not in PRESETS:
        hint = nearest(name, PRESETS, f"known are {', '.join(PRESETS)}")
        raise ConfigError(f"no preset is called {name!r}{hint}")
    return dict(PRESETS[name].values)


ORIGIN = "crawl.mode"
CONTINUOUS = {"robots.robots_wait_max_s": 21_600.0, "frontier.unanswered_s_max": 86_400.0}


def by_mode(config: Config) -> Config:
    """Return the configuration with the defaults of its mode, in seconds, in place of keys that hold their defaults.

    Their origin is `crawl.mode` then, and another mode changes them again.
    """
    defaults = Config()
    origins = config.origins
    taken: dict[str, object] = {}
    for key, longer_s in CONTINUOUS.items():
        default = defaults.value(key)
        is_default = config.origin(key) == "default" and config.value(key) == default
        if not is_default and config.origin(key) != ORIGIN:
            continue
        origins.pop(key, None)
        if config.crawl.mode == "continuous":
            origins[key] = ORIGIN
        taken[key] = longer_s if config.crawl.mode == "continuous" else default
    return config.with_values(taken).with_origins(origins)
