"""Footprint: what one budget of memory gives to each part that grows with the web.

The budget is of the process tree. Parts that do not grow are subtracted first: the program, and what the configuration
adds to it. A part's key that is not set takes its share of the rest: the defaults are the shares of the default budget,
and other budgets are shared in the same proportions. A budget that does not hold the least shares is refused.
"""

from functools import cache
from typing import NamedTuple

from msgspec.structs import replace

from gossamer.config.sections import Config
from gossamer.model.errors import ConfigError
from gossamer.stages.process.options import ISOLATED, ProcessOptions

MIB = 1 << 20
BASE_BYTES = 155 * MIB
"""An idle crawl with its supervisor (137 MiB measured), and pages under way. `tests/test_footprint.py` measures."""
SEARCH_BYTES = 56 * MIB
"""The indexer beside `search.memory_bytes_max`, and a search process."""
ISOLATED_BYTES = 72 * MIB
"""A process for isolated modules with one page; what it shares with the crawl's process counts there."""
PROGRAM = "the program"
BROWSERS = "browsers (render.browsers, render.memory_bytes_max)"
CONSOLE_BYTES = 8 * MIB
PARTS_AT_ONCE = 2
"""Parts of each uploaded file that are in memory at once."""
ORIGIN = "memory.budget_bytes"


class MemoryShare(NamedTuple):
    """The memory with which a key can work."""

    least: int
    unit_bytes: int = 1
    """Memory for each unit of the key."""
    backend: str = ""
    """The backend of `seen` that uses the key; empty: all of them."""


SHARES = {
    "state.cache_bytes": MemoryShare(8 * MIB),
    "state.write_buffer_bytes": MemoryShare(8 * MIB),
    "frontier.records_cached_max": MemoryShare(500, 2_000),
    "frontier.active_hosts_bytes_max": MemoryShare(2 * MIB),
    "seen.popular_bytes_max": MemoryShare(MIB, backend="rocksdb"),
    "seen.popular_urls_max": MemoryShare(98_304, 8, "diskmerge"),
    "seen.held_urls_max": MemoryShare(10_000, 32, "diskmerge"),  # As many are compared meanwhile.
    "robots.cache_bytes_max": MemoryShare(MIB, 2),  # Texts, and as much for the rules.
    "crawl.epoch_bytes_max": MemoryShare(4 * MIB, 2),  # One epoch closes while the next is open.
    "fetch.bodies_memory_bytes_max": MemoryShare(4 * MIB),
    "archive.table_group_bytes_max": MemoryShare(MIB, 3),  # Batches, the group made of them, and the writer's pages.
    # Sorted when nothing is fetched any more: in the memory of bodies.
    "archive.index_sort_bytes_max": MemoryShare(MIB, 0),
}
"""The keys that take a share."""


def fixed_bytes(config: Config) -> dict[str, int]:
    """Return the memory that a configuration needs before anything is fetched, by its use."""
    process = config.process
    archive = config.archive
    parts = {
        PROGRAM: BASE_BYTES,
        "search (search.enabled)": SEARCH_BYTES + config.search.memory_bytes_max if config.search.enabled else 0,
        "isolated modules (process.isolated_processes)": (
            ISOLATED_BYTES * process.isolated_processes if _has_isolated(process) else 0
        ),
        BROWSERS: browser_bytes(config),
        "the console (console.port)": CONSOLE_BYTES if config.console.port is not None else 0,
        "uploads (archive.store_uploads_max)": (
            (archive.store_uploads_max * PARTS_AT_ONCE + 1) * archive.store_part_bytes if archive.store else 0
        ),
        "the store of hosts (state.hosts_store_cache_bytes)": (
            config.state.hosts_store_cache_bytes if config.state.hosts_store else 0
        ),
        "counts of links (frontier.importance_bytes)": (
            config.frontier.importance_bytes if config.frontier.priority == "in_links" else 0
        ),
        f"filters of seen URLs (seen.expected_urls = {config.seen.expected_urls:,})": config.seen.filter_bytes,
    }
    return {name: size for name, size in parts.items() if size}


def _has_isolated(process: ProcessOptions) -> bool:
    """Return whether modules run isolated; those from outside that declare it themselves are not known here."""
    named = {*process.modules, *(name for names in process.types.values() for name in names)}
    return bool(process.isolated) or not ISOLATED.isdisjoint(named)


def browser_bytes(config: Config) -> int:
    """Return the memory of browsers and of the resources of rendered pages."""
    if config.crawl.render == "never":
        return 0
    return config.render.browsers * config.render.memory_bytes_max + config.render.cache_bytes_max


def require_memory(config: Config, program_bytes: int) -> None:
    """Check that the budget holds the configuration when the program takes `program_bytes` before it crawls. Raises
    ConfigError: it takes more here than where we measured, and the budget does not hold that.
    """
    fixed = fixed_bytes(config)
    fixed[PROGRAM] = max(fixed[PROGRAM], program_bytes)
    if config.memory.budget_bytes < sum(fixed.values()) + least_bytes(config):
        raise ConfigError(_too_small(config, fixed))


def least_bytes(config: Config) -> int:
    """Return the least memory of all shares: of a key that is set its value, of any other its minimum."""
    return sum(
        (share.least if _is_shared(config, key) else _value(config, key)) * share.unit_bytes
        for key, share in _shares(config)
    )


def fit_budget(config: Config) -> Config:
    """Return the configuration with the shares of its budget in place of keys that hold their defaults.

    Their origin is `memory.budget_bytes` then, and another budget changes them again. A key that is set to more than
    its share takes from the others; one that is set to less leaves them as they are. Raises ConfigError: the budget
    does not hold this configuration.
    """
    defaults = _defaults()
    budget_bytes = defaults.memory.budget_bytes + browser_bytes(config)
    if config.origin(ORIGIN) in ("default", BROWSERS) and config.memory.budget_bytes != budget_bytes:
        # A budget that was not set does not keep pages from being rendered.
        memory = replace(config.memory, budget_bytes=budget_bytes)
        config = replace(config, memory=memory).with_origins({**config.origins, ORIGIN: BROWSERS})
    fixed = fixed_bytes(config)
    left = config.memory.budget_bytes - sum(fixed.values())
    if left < least_bytes(config):
        raise ConfigError(_too_small(config, fixed))
    scale = _scale(config, defaults, left)
    taken: dict[str, object] = {}
    origins = config.origins
    for key, one in SHARES.items():
        if not _is_shared(config, key):
            continue
        default = _value(defaults, key)
        share = max(int(default * scale), one.least)
        if share != config.value(key):
            taken[key] = share
        if share != default:
            origins[key] = ORIGIN
        else:
            origins.pop(key, None)
    return config.with_values(taken).with_origins(origins)


def _scale(config: Config, defaults: Config, left: int) -> float:
    """Return the factor between the defaults and the shares with which all of them fit into `left` bytes."""
    scale = left / (defaults.memory.budget_bytes - BASE_BYTES)
    shared = dict(_shares(config))
    for key in [key for key in shared if not _is_shared(config, key)]:
        left -= _value(config, key) * shared.pop(key).unit_bytes
    while shared:
        default_bytes = sum(_value(defaults, key) * share.unit_bytes for key, share in shared.items())
        scale = min(scale, left / max(1, default_bytes))
        raised = [key for key, share in shared.items() if _value(defaults, key) * scale < share.least]
        if not raised:
            break
        for key in raised:  # It takes more than its share, and the others less.
            share = shared.pop(key)
            left -= share.least * share.unit_bytes
    return scale


def _shares(config: Config) -> list[tuple[str, MemoryShare]]:
    return [(key, share) for key, share in SHARES.items() if share.backend in ("", config.seen.backend)]


def _is_shared(config: Config, key: str) -> bool:
    """Return whether a key takes its share: it is not set, or was sized by another budget."""
    origin = config.origin(key)
    return origin == ORIGIN or (origin == "default" and config.value(key) == _defaults().value(key))


@cache
def _defaults() -> Config:
    return Config()


def _value(config: Config, key: str) -> int:
    value = config.value(key)
    assert isinstance(value, int)
    return value


def _too_small(config: Config, fixed: dict[str, int]) -> str:
    least = least_bytes(config)
    needed = -(-(sum(fixed.values()) + least) // MIB)
    budget_bytes = config.memory.budget_bytes
    if needed <= budget_bytes < MIB:
        return f"memory.budget_bytes = {budget_bytes} is a number of bytes; did you mean {budget_bytes}MiB?"
    parts = ", ".join(f"{name} {-(-size // MIB)} MiB" for name, size in fixed.items())
    return (
        f"memory.budget_bytes = {budget_bytes // MIB} MiB does not hold this configuration: {parts}, "
        f"caches and buffers {-(-least // MIB)} MiB at least; set {needed} MiB or more (--memory {needed}MiB)"
    )
