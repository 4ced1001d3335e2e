"""Presets: webs, machines and politeness of published crawls, each figure with its source; and two synthetic webs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.options import to_table

ASSUMED = "assumed"
IRLBOT = "IRLbot: Lee, Leonard, Wang, Loguinov, WWW 2008 (abstract)"
IRLBOT_BODY = "IRLbot, from memory of the paper"
MERCATOR = "Mercator: Najork and Heydon 2001, from memory of the paper"
CHAN = "Chan 2025, post on crawling a billion pages"
NIELSEN = "Nielsen 2012, post on crawling a quarter billion pages"
EC2 = "EC2 m1.xlarge: 4 cores, 15 GB, 4 disks of 420 GB"
EC2_PRICES = "EC2 prices of 2012, from memory"
CORE_2012 = "assumed: 2.5 times as long as measured, on a core of 2012"
COMMON_CRAWL = "Common Crawl, May 2024"
UNITS = ("request", "tls", "document", "kb", "link")
MEASURED = "measured: docs/explanation/simulation.md"


@dataclass(frozen=True)
class Published:
    """What the original crawl is said to have done."""

    pages: float
    time_s: float
    pages_per_s: float
    limit: str
    """What its authors say limited it."""
    cost_per_million: float | None = None


@dataclass(frozen=True)
class SimulationPreset:
    """Options by dotted key, and where each comes from; keys without a source are assumed."""

    what: str
    values: Mapping[str, object]
    sources: Mapping[str, str]
    published: Published | None = None
    synthetic: Callable[[int], SimwebOptions] | None = None
    """The synthetic web that it describes, by its seed."""


LOOPBACK_S = 0.01
"""What a request on loopback takes beside the latency of the synthetic web."""


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


PRESETS: dict[str, SimulationPreset] = {
    "mercator2001": SimulationPreset(
        "the web and the four machines of Mercator, 2001",
        {
            "pages": 891_000_000,
            "shards": 4,
            "web.hosts": 10_000_000,
            "web.pages": 5_000_000_000,
            "web.seed_hosts": 100_000,
            "web.links_per_page": 20.0,
            "web.new_urls_per_page": 4.0,
            "web.fetch_s_median": 1.0,
            "web.page_bytes_mean": 12_000.0,
            "web.wire_share": 1.0,
            "web.https_share": 0.0,
            "politeness.delay_s_min": 0.0,
            "politeness.delay_s_max": 3_600.0,
            "politeness.delay_factor": 10.0,
            "politeness.address_delay_s": 0.0,
            "machine.cores": 2.0,
            "machine.cores_per_shard": 2.0,
            "machine.shards": 1,
            "machine.memory_bytes": 4e9,
            "machine.disk_bytes": 650e9,
            "machine.bandwidth_bits_per_s": 100e6,
            "machine.price_per_hour": 0.0,
            "machine.cpu_us_per_page": 13_000.0,
            "machine.concurrency": 2_000,
        },
        {
            "pages": MERCATOR,
            "shards": MERCATOR,
            "politeness.delay_factor": MERCATOR + ": it waits ten times the last fetch",
            "machine.cores": MERCATOR,
            "machine.memory_bytes": MERCATOR,
            "machine.disk_bytes": MERCATOR,
            "machine.cpu_us_per_page": "derived: 2 cores at the published 152 pages/s a machine; so an upper bound",
            "web.same_host_share": MERCATOR,
        },
        Published(891e6, 17 * 86_400, 607, "the disk of the URL-seen test; before that DNS"),
    ),
    "irlbot2007": SimulationPreset(
        "the web and the one server of IRLbot, 2007",
        {
            "pages": 6_300_000_000,
            "shards": 1,
            "web.hosts": 117_000_000,
            "web.pages": 100_000_000_000,
            "web.seed_hosts": 1_000_000,
            "web.links_per_page": 62.5,
            "web.new_urls_per_page": 6.5,
            "web.fetch_s_median": 0.8,
            "web.page_bytes_mean": 20_800.0,
            "web.wire_share": 1.0,
            "web.https_share": 0.0,
            "web.error_share": 0.12,
            "politeness.delay_s_min": 40.0,
            "politeness.delay_s_max": 40.0,
            "politeness.delay_factor": 0.0,
            "politeness.address_delay_s": 1.0,
            "frontier.active_hosts_max": 1_000_000,
            "frontier.active_hosts_bytes_max": 4 << 30,
            "machine.cores": 4.0,
            "machine.cores_per_shard": 4.0,
            "machine.shards": 1,
            "machine.memory_bytes": 16e9,
            "machine.disk_bytes": 8e12,
            "machine.bandwidth_bits_per_s": 1e9,
            "machine.price_per_hour": 0.0,
            "machine.cpu_us_per_page": 2_200.0,
            "machine.concurrency": 16_000,
        },
        {
            "pages": IRLBOT,
            "shards": IRLBOT,
            "web.hosts": IRLBOT,
            "web.links_per_page": IRLBOT + ": 394 billion links on 6.3 billion pages",
            "web.new_urls_per_page": IRLBOT + ": 41 billion URLs found on 6.3 billion pages",
            "web.page_bytes_mean": IRLBOT + ": 319 Mb/s at 1,789 pages/s, less heads",
            "web.error_share": IRLBOT + ": 7.6 billion connections for 6.3 billion pages, with dead hosts",
            "politeness.delay_s_min": IRLBOT_BODY,
            "politeness.address_delay_s": IRLBOT_BODY,
            "machine.cores": IRLBOT_BODY,
            "machine.memory_bytes": IRLBOT_BODY,
            "machine.bandwidth_bits_per_s": IRLBOT_BODY,
            "machine.cpu_us_per_page": "derived: 4 cores at the published 1,789 pages/s; so an upper bound",
        },
        Published(6.3e9, 41 * 86_400, 1_789, "nothing: 'did not experience any bottlenecks'"),
    ),
    "nielsen2012": SimulationPreset(
        "the million domains, the 20 machines and the prices of Nielsen's crawl of 2012, crawled by deploy/crawl.toml",
        {
            "pages": 250_113_669,
            "shards": 20,
            "web.hosts": 1_000_000,
            "web.pages": 1_000_000_000,
            "web.zipf_exponent": 0.97,
            "web.same_host_share": 1.0,
            "web.fetch_s_median": 0.8,
            "web.page_bytes_mean": 51_000.0,
            "web.wire_share": 0.47,
            "web.https_share": 0.02,
            "web.error_share": 0.1,
            "politeness.preset": "broad",
            "frontier.active_hosts_bytes_max": 512 << 20,
            "machine.cores": 4.0,
            "machine.shards": 1,
            "machine.memory_bytes": 15e9,
            "machine.disk_bytes": 1.68e12,
            "machine.bandwidth_bits_per_s": 1e9,
            "machine.price_per_hour": 0.64,
            "machine.price_per_gb_sent": 0.12,
            "machine.price_per_gb_month": 0.10,
            "machine.cpu_us_per_request": 500.0,
            "machine.cpu_us_per_tls": 1_090.0,
            "machine.cpu_us_per_document": 460.0,
            "machine.cpu_us_per_kb": 27.5,
            "machine.cpu_us_per_link": 7.5,
            "machine.concurrency": 1_024,
        },
        {
            "pages": NIELSEN,
            "shards": NIELSEN + ": 20 machines; one shard each",
            "web.hosts": NIELSEN + ": a list of a million domains",
            "web.pages": "assumed: 1,000 pages a domain; see the sensitivities",
            "web.zipf_exponent": "fitted: his 39 h 25 min come out; Huberman and Adamic 1999 give 1.1",
            "web.same_host_share": "deploy/crawl.toml: no links out of a domain",
            "web.links_per_page": IRLBOT + ": 394 billion links on 6.3 billion pages",
            "web.new_urls_per_page": IRLBOT,
            "web.page_bytes_mean": CHAN + ": 51 kB in 2012",
            "web.wire_share": "Google 2010: two thirds are compressed; IRLbot: five to one",
            "politeness.preset": CHAN + ", as Nielsen: 70 s for each domain",
            "machine.cores": EC2,
            "machine.memory_bytes": EC2,
            "machine.disk_bytes": EC2 + ", in the price",
            "machine.price_per_hour": EC2_PRICES + ": US dollars, on demand",
            "machine.price_per_gb_sent": EC2_PRICES + "; what arrives is free",
            "machine.price_per_gb_month": EC2_PRICES + ": EBS",
            "machine.sent_bytes_per_request": "IRLbot (INFOCOM 2015): 3 TB sent for 7.35 billion pages",
            **dict.fromkeys((f"machine.cpu_us_per_{unit}" for unit in UNITS), CORE_2012),
            "machine.concurrency": "deploy/crawl.toml; his machines had 141 threads each",
        },
        Published(
            250_113_669,
            39 * 3_600 + 25 * 60,
            1_763,
            "unknown; 20 times 141 threads at 1.6 s a page give this rate",
            2.32,
        ),
    ),
    "web2025": SimulationPreset(
        "a million seeded domains of the web of 2025, on machines as Chan rented them",
        {
            "pages": 1_000_000_000,
            "shards": 12,
            "web.hosts": 1_000_000,
            "web.pages": 20_000_000_000,
            "web.zipf_exponent": 0.8,
            "web.links_per_page": 80.0,
            "web.page_bytes_mean": 154_000.0,
            "web.dead_host_share": 0.1,
            "web.error_share": 0.1,
            "politeness.preset": "broad",
            "frontier.active_hosts_bytes_max": 512 << 20,
        },
        {
            "pages": CHAN,
            "web.hosts": CHAN,
            "web.new_urls_per_page": IRLBOT,
            "web.same_host_share": MERCATOR,
            "web.page_bytes_mean": COMMON_CRAWL + ": 377 TiB in 2.7 billion pages",
            "politeness.preset": CHAN + ": 70 s for each domain",
            "machine.cores": CHAN + ": i7i.4xlarge",
            "machine.memory_bytes": CHAN,
            "machine.disk_bytes": CHAN,
            "machine.bandwidth_bits_per_s": CHAN + ": the smaller of the two figures in it",
            "machine.price_per_hour": CHAN + ": US dollars, on demand",
        },
        Published(1.005e9, 25.5 * 3_600, 10_950, "the processor: HTML, then TLS; then memory", 0.46),
    ),
    "simweb-even": SimulationPreset(
        "60 hosts of about one size on loopback, for the check against reality",
        {"politeness.delay_s_min": 1.0, "politeness.delay_factor": 10.0, "politeness.address_delay_s": 0.01},
        {},
        synthetic=even_web,
    ),
    "simweb-uneven": SimulationPreset(
        "60 hosts by Zipf's law on loopback, some slow, some with a Crawl-delay, some closed",
        {"politeness.delay_s_min": 1.0, "politeness.delay_factor": 5.0, "politeness.address_delay_s": 0.01},
        {},
        synthetic=uneven_web,
    ),
}

MEASURED_KEYS = frozenset(f"machine.cpu_us_per_{unit}" for unit in UNITS)


def source_of(options: SimulateOptions, key: str, given: frozenset[str] = frozenset()) -> str:
    """Return where the value of a dotted key comes from: the operator, a publication, a measurement, or nowhere."""
    if key in given:
        return "given"
    preset = PRESETS.get(options.preset)
    if preset is not None and key in preset.sources:
        return preset.sources[key]
    return MEASURED if key in MEASURED_KEYS else ASSUMED
