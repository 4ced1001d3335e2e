"""Footprint: what one budget of memory gives to each part that grows with the web.

A part's key that nobody set takes its share of `memory.budget_bytes`: the defaults are the shares of the default
budget, and what a budget leaves beside `BASE_BYTES` and the filters of URLs is shared in the same proportions.
"""

from __future__ import annotations

from gossamer.config.sections import Config
from gossamer.model.errors import ConfigError

BASE_BYTES = 128 << 20
"""The interpreter with our libraries (108 MiB of RSS measured after the imports) and what an idle crawl adds."""
ORIGIN = "memory.budget_bytes"

SHARES = {
    "state.cache_bytes": 8 << 20,
    "state.write_buffer_bytes": 8 << 20,
    "frontier.records_cached_max": 500,
    "frontier.bench_bytes_max": 2 << 20,
    "seen.popular_bytes_max": 1 << 20,
    "seen.popular_urls_max": 1 << 16,
    "robots.cache_bytes_max": 1 << 20,
    "crawl.epoch_bytes_max": 4 << 20,
    "fetch.bodies_memory_bytes_max": 4 << 20,
}
"""The keys that take a share, and the least that each can work with."""


def fitted(config: Config) -> Config:
    """Return the configuration with the shares of its budget in place of keys that hold their defaults.

    Their origin is `memory.budget_bytes` then, and another budget changes them again.

    Raises:
        ConfigError: the filters of URLs alone do not fit into the budget.
    """
    defaults = Config()
    shared = config.memory.budget_bytes - BASE_BYTES - config.seen.filter_bytes
    if shared < 0 < config.seen.filter_bytes:
        raise ConfigError(_too_small(config))
    scale = max(shared, 0) / (defaults.memory.budget_bytes - BASE_BYTES)
    taken: dict[str, dict[str, int]] = {}
    origins = config.origins
    for key, least in SHARES.items():
        default = defaults.value(key)
        assert isinstance(default, int)
        derived = config.origin(key) == ORIGIN
        if not derived and (config.origin(key) != "default" or config.value(key) != default):
            continue
        share = max(int(default * scale), least)
        section, _, name = key.partition(".")
        if share != config.value(key):
            taken.setdefault(section, {})[name] = share
        if share != default:
            origins[key] = ORIGIN
        else:
            origins.pop(key, None)
    if not taken:
        return config.with_origins(origins)
    sections = {section: getattr(config, section).model_copy(update=values) for section, values in taken.items()}
    return config.model_copy(update=sections).with_origins(origins)


def _too_small(config: Config) -> str:
    seen, filters_mib = config.seen, config.seen.filter_bytes >> 20
    return (
        f"memory.budget_bytes = {config.memory.budget_bytes >> 20} MiB: Bloom filters for seen.expected_urls = "
        f"{seen.expected_urls:,} at seen.false_positive_rate = {seen.false_positive_rate:g} take {filters_mib} MiB "
        f"beside {BASE_BYTES >> 20} of the program; give {(BASE_BYTES >> 20) + filters_mib + 1} MiB or more, "
        f"or expect fewer"
    )
