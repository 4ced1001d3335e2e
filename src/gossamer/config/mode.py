"""Mode: keys whose defaults differ in a continuous crawl, which has time to wait."""

from __future__ import annotations

from gossamer.config.sections import Config

ORIGIN = "crawl.mode"
CONTINUOUS = {"robots.robots_wait_max_s": 21_600.0, "frontier.unanswered_s_max": 86_400.0}


def by_mode(config: Config) -> Config:
    """Return the configuration with the defaults of its mode, in seconds, in place of keys that hold their defaults.

    Their origin is `crawl.mode` then, and another mode changes them again.
    """
    defaults, origins = Config(), config.origins
    taken: dict[str, dict[str, object]] = {}
    for key, longer_s in CONTINUOUS.items():
        default = defaults.value(key)
        is_default = config.origin(key) == "default" and config.value(key) == default
        if not is_default and config.origin(key) != ORIGIN:
            continue
        origins.pop(key, None)
        if config.crawl.mode == "continuous":
            origins[key] = ORIGIN
        section, _, name = key.partition(".")
        taken.setdefault(section, {})[name] = longer_s if config.crawl.mode == "continuous" else default
    sections = {section: getattr(config, section).model_copy(update=values) for section, values in taken.items()}
    return config.model_copy(update=sections).with_origins(origins)
