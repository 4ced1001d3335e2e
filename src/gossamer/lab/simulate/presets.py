"""Presets: webs, machines and politeness of published crawls, each figure with its source; and two synthetic webs.

The published ones are data (`presets.toml`).
"""

import pkgutil
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.options import convert, to_table

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


_SYNTHETIC = tomllib.loads((pkgutil.get_data("gossamer.lab.simulate", "synthetic.toml") or b"").decode())
OF_DRAWN_HOSTS = frozenset(f"web.{name}" for name in _SYNTHETIC["of_drawn_hosts"])
"""Options without meaning for a synthetic web, whose hosts come with their sizes, addresses and delays."""
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
        "web.fetch_s_median": simweb.latency_s + LOOPBACK_S,
        "web.slow_s_median": simweb.slow_s_median,
        "web.slow_sigma": simweb.slow_sigma,
        "web.page_bytes_mean": 1.28 * simweb.bytes_median,
        **_SYNTHETIC["fixed"],
    }


def even_web(seed: int) -> SimwebOptions:
    """Return the synthetic web of `simweb-even`: 60 hosts of about one size, none odd."""
    return convert(SimwebOptions, _SYNTHETIC["simweb-even"] | {"seed": seed})


def uneven_web(seed: int) -> SimwebOptions:
    """Return the synthetic web of `simweb-uneven`: sizes by Zipf's law, slow hosts, Crawl-delays, closed hosts."""
    return convert(SimwebOptions, _SYNTHETIC["simweb-uneven"] | {"seed": seed})


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
