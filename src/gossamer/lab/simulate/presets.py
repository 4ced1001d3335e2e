"""Presets: webs, machines and politeness of published crawls, each figure with its source; and two synthetic webs.

The published ones are data (`presets.toml`).
"""

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.options import to_table

ASSUMED = "assumed"
UNITS = ("request", "tls", "document", "kb", "link")
MEASURED = "measured: docs/explanation/simulation.md"


@dataclass(frozen=True)
class Published:
    """Published results of the original crawl."""

    pages: float
    time_s: float
    pages_per_s: float
    limit: str
    """The limit that its authors name."""
    cost_per_million: float | None = None
    cores: int = 0
    """Of all its machines."""


@dataclass(frozen=True)
class SimulationPreset:
    """Options by dotted key, and where each comes from; keys without a source are assumed."""

    what: str
    values: Mapping[str, object]
    sources: Mapping[str, str] = field(default_factory=dict)
    published: Published | None = None


LOOPBACK_S = 0.01
"""Seconds that a request on loopback takes beside the latency of the synthetic web."""


def synthetic_web(simweb: SimwebOptions) -> dict[str, object]:
    """Return the options that describe a synthetic web on loopback."""
    return {
        "simweb": to_table(simweb, defaults=True),
        "web.hosts": simweb.hosts,
        "web.pages": max(simweb.hosts, simweb.pages),
        "web.zipf_exponent": simweb.zipf_exponent,
        "web.hosts_per_address": simweb.hosts / simweb.addresses,
        "web.links_per_page": simweb.links_per_page,
        "web.new_urls_per_page": float(simweb.children_per_page),
        "web.same_host_share": 1.0,
        "web.fetch_s_median": simweb.latency_s + LOOPBACK_S,
        "web.fetch_sigma_host": 0.0,
        "web.fetch_sigma_page": 0.1,
        "web.slow_s_median": simweb.slow_s_median,
        "web.slow_sigma": simweb.slow_sigma,
        "web.page_bytes_mean": 1.28 * simweb.bytes_median,
        "web.wire_share": 1.0,
        "web.https_share": 0.0,
        "web.dead_host_share": 0.0,
        "web.error_share": 0.0,
        "web.lookup_s": 0.001,
        "machine.shards": 1,
        "machine.cores": 2.0,
        "machine.price_per_hour": 0.0,
        "machine.concurrency": 256,
    }


def even_web(seed: int) -> SimwebOptions:
    """Return the synthetic web of `simweb-even`: 60 hosts of about one size, none odd."""
    return SimwebOptions.plain(seed=seed, hosts=60, pages=2_400, zipf_exponent=0.2, latency_s=0.02, links_per_page=20)


def uneven_web(seed: int) -> SimwebOptions:
    """Return the synthetic web of `simweb-uneven`: sizes by Zipf's law, slow hosts, Crawl-delays, closed hosts."""
    return SimwebOptions(
        seed=seed,
        hosts=60,
        pages=900,
        zipf_exponent=0.6,
        latency_s=0.02,
        links_per_page=20,
        slow_s_median=0.4,
        crawl_delay_s=2.0,
        behaviours=("slow", "robots_crawl_delay", "robots_deny_all", "robots_404", "robots_allow", "compressed"),
        shares={"slow": 0.2, "robots_crawl_delay": 0.1, "robots_deny_all": 0.05},
    )


SYNTHETIC: Mapping[str, Callable[[int], SimwebOptions]] = {"simweb-even": even_web, "simweb-uneven": uneven_web}
"""By preset: the synthetic web that it describes, by its seed."""
PRESETS = msgspec.toml.decode(
    pkgutil.get_data("gossamer.lab.simulate", "presets.toml") or b"", type=dict[str, SimulationPreset]
)
MEASURED_KEYS = frozenset(f"machine.cpu_us_per_{unit}" for unit in UNITS)


def source_of(options: SimulateOptions, key: str, given: frozenset[str] = frozenset()) -> str:
    """Return where the value of a dotted key comes from: the operator, a publication, a measurement, or nowhere."""
    if key in given:
        return "given"
    preset = PRESETS.get(options.preset)
    if preset is not None and key in preset.sources:
        return preset.sources[key]
    return MEASURED if key in MEASURED_KEYS else ASSUMED
