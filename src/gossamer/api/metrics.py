"""Metrics: a status as Prometheus reads it. Made at each request, of what is counted anyway: no page pays for it.

Names follow https://prometheus.io/docs/practices/naming/: base units, `_total` for what only grows. Labels come from
sets that are bounded: outcomes, filters, levels, limits, alarms, file systems, processing modules, and at most 51
media types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from gossamer.model.counters import SAYS
from gossamer.model.product import __version__
from gossamer.model.status import Status, read_status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ALARMS = ("loop", "commit", "disk", "disk_soon", "proxy", "open_files", "memory", "clock")
STATES = ("starting", "running", "paused", "stopping", "finished", "stopped", "failed")
STAGES = ("fetch", "parse", "store", "render")
PREFIX = "gossamer_"

# Name, key of the status, what it is.
COUNTERS = (
    ("pages", "pages", "Documents fetched (outcome fetched)"),
    ("received_bytes", "wire_bytes", "Bytes received"),
    ("content_bytes", "body_bytes", "Bytes of content, codings removed"),
    ("discovered_urls", "discovered", "URLs found, each counted once"),
    ("elapsed_seconds", "elapsed_s", "Seconds of crawling, over all runs"),
    ("runs", "runs", "Times that the crawl was started"),
)
GAUGES = (
    ("queued_urls", "queued", "URLs that are not finished, those in flight left out"),
    ("requests_in_flight", "in_flight", "Requests under way"),
    ("requests_in_flight_max", "concurrency", "Requests that may be under way at once"),
    ("hosts_known", "hosts_known", "Hosts with a record"),
    ("hosts_with_work", "hosts_left", "Hosts with URLs that are not finished"),
    ("hosts_active", "hosts_active", "Hosts with work in memory"),
    ("hosts_deferred", "hosts_deferred", "Hosts that have used up their budget in this round"),
    ("disk_bytes", "disk_bytes", "What the crawl's directory takes on disk"),
    ("links_held", "links_held", "Links that await the duplicate check"),
    ("epoch", "epoch", "Number of the last commit"),
)
LABELLED_COUNTERS = (
    ("attempts", "outcomes", "outcome", "Attempts by how they ended"),
    ("finished_urls", "terminal_outcomes", "outcome", "URLs by how they ended for good"),
    ("rejected_links", "rejected", "filter", "Links by the filter that rejected them"),
    ("fetched_pages", "media_types", "media_type", "Documents fetched by media type"),
    ("rendered_pages", "rendered", "result", "Pages that were to be rendered, by what became of it"),
    ("rendering", "rendering", "what", "What rendering took and brought: processor seconds, links, resources"),
    ("pages_with_text", "text_methods", "text_method", "Pages fetched by how their text was found"),
)
DNS_WITHIN = {"dns_within_10_ms": "0.01", "dns_within_100_ms": "0.1", "dns_within_1_s": "1"}
"""Counters that have a label in place of a unit in their name."""
MODULE_COUNTERS = (
    ("module_pages", "pages", "Pages that a processing module was given"),
    ("module_failures", "failed", "Pages that a processing module failed on"),
)
SHARD_COUNTERS = (
    ("commits", "commits", "Commits, in this process"),
    ("commit_seconds", "commit_s_total", "Their time, in this process"),
)
SHARD_GAUGES = (
    ("commit_last_seconds", "commit_s", "How long the last commit took"),
    ("commit_under_way_seconds", "commit_under_way_s", "How long the commit under way has taken; 0 without one"),
    ("loop_lag_seconds", "loop_lag_s", "How late the event loop was at its last beat"),
    ("silent_seconds", "heard_s", "How long the shard has not answered; 0 while it does"),
)
MACHINE_GAUGES = (
    ("machine_silent_seconds", "heard_s", "How long a shard of the machine has not answered; 0 while all do"),
    ("machine_disk_free_bytes", "disk_free_bytes", "Of the fullest file system that shards of the machine write to"),
)
WATCH_GAUGES = (
    ("loop_lag_max_seconds", "loop_lag_s_max", "The most in the last minute"),
    ("memory_bytes", "memory_bytes", "Memory that the process holds"),
    ("memory_budget_bytes", "memory_budget_bytes", "memory.budget_bytes"),
    ("open_files", "open_files", "Open files and sockets"),
    ("open_files_max", "open_files_max", "How many the system allows"),
    ("clock_shift_seconds", "clock_shift_s", "By how much the system's clock was set forward since the start"),
)
WATCH_COUNTERS = (
    ("loop_stalls", "stalls", "Times that the event loop stalled, in this process"),
    ("clock_jumps", "clock_jumps", "Times that the clock jumped, in this process"),
)


def metrics_of(status: Mapping[str, object]) -> bytes:
    """Return a detailed status in Prometheus' text format. About 2 ms."""
    return _text(_of_status(read_status(status)))


def fleet_metrics(states: Iterable[str], running: int, crawls_max: int) -> bytes:
    """Return how many crawls of a server are in which state, in Prometheus' text format."""
    found = Counter(states)
    counts = {state: found[state] for state in ("created", *STATES)}
    return _text(
        (
            InfoMetricFamily(PREFIX + "build", "The program", {"version": __version__}),
            _by_label("crawls", "Crawls in the folder, by how they stand", "state", counts),
            GaugeMetricFamily(PREFIX + "crawls_running", "Crawls that run at once", running),
            GaugeMetricFamily(PREFIX + "crawls_max", "Crawls that may run at once", crawls_max),
        )
    )


def struct_metrics(prefix: str, counts: msgspec.Struct, gauges: Collection[str]) -> bytes:
    """Return the numbers of a struct, whose descriptions are their help, in Prometheus' text format: counters, and
    `gauges`.
    """
    families: list[Metric] = []
    for field in msgspec.structs.fields(counts):
        value = getattr(counts, field.name)
        if isinstance(value, int):
            family = GaugeMetricFamily if field.name in gauges else CounterMetricFamily
            [meta] = field.type.__metadata__
            families.append(family(f"{PREFIX}{prefix}_{field.name}", meta.description.rstrip("."), value))
    return _text(families)


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _text(families: Iterable[Metric]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(families))
    return generate_latest(registry)


def _of_status(status: Status) -> Iterator[Metric]:
    yield InfoMetricFamily(PREFIX + "build", "The program", {"version": __version__})
    for name, key, what in COUNTERS:
        yield CounterMetricFamily(PREFIX + name, what, _float(getattr(status, key)))
    for name, key, what in GAUGES:
        yield GaugeMetricFamily(PREFIX + name, what, _float(getattr(status, key)))
    overdue = _float((status.revisits or {}).get("overdue"))
    yield GaugeMetricFamily(PREFIX + "overdue_urls", "URLs of a continuous crawl whose visit is due", overdue)
    for name, key, label, what in LABELLED_COUNTERS:
        counts = {str(value) or "unknown": count for value, count in getattr(status, key).items()}
        yield _by_label(name, what, label, counts, CounterMetricFamily)
    stages = {name: status.cost.get(f"cpu_{name}_s") for name in STAGES}
    says = "Processor time by stage, over all runs"
    yield _by_label("processor_seconds", says, "stage", stages, CounterMetricFamily)
    yield CounterMetricFamily(PREFIX + "requests", "Requests sent, over all runs", status.cost.get("requests", 0.0))
    most = status.cost.get("memory_bytes_max", 0.0)
    yield GaugeMetricFamily(PREFIX + "memory_bytes_max", "The most memory that the crawl held, over all runs", most)
    within = {seconds: status.counters.get(name) for name, seconds in DNS_WITHIN.items()}
    says = "Lookups by the seconds that they took at most"
    yield _by_label("dns_within", says, "seconds", within, CounterMetricFamily)
    for name, what in SAYS.items():
        if name in DNS_WITHIN:
            continue
        metric = name.removesuffix("_s") + "_seconds" if name in ("dns_s", "requests_s") else name
        yield CounterMetricFamily(PREFIX + metric, f"{what}, in this process", status.counters.get(name, 0.0))
    for name, key, what in MODULE_COUNTERS:
        counts = {module: facts.get(key) for module, facts in status.modules.items()}
        yield _by_label(name, what, "module", counts, CounterMetricFamily)
    yield _by_label("level_urls", "URLs in queues by level, 0 the most urgent", "level", status.levels)
    limits = status.hosts.get("limits", {}) if status.hosts is not UNSET else {}
    yield _by_label("active_hosts_by_limit", "Active hosts by what limits them", "limit", limits)
    alarms = {alarm.name for alarm in status.alarms}
    yield _by_label("alarm", "1 while it lasts", "alarm", {name: name in alarms for name in ALARMS})
    states = {name: status.state == name for name in STATES}
    yield _by_label("state", "1 for the state that the crawl is in", "state", states)
    for name, key, what in SHARD_COUNTERS:
        values = {str(shard.shard): getattr(shard, key) for shard in status.shards}
        yield _by_label(name, what, "shard", values, CounterMetricFamily)
    for name, key, what in SHARD_GAUGES:
        values = {str(shard.shard): getattr(shard, key) for shard in status.shards}
        yield _by_label(name, what, "shard", values)
    for name, key, what in MACHINE_GAUGES:
        machines = {one.address or one.machine: getattr(one, key) for one in status.machines or ()}
        yield _by_label(name, what, "machine", {one: value for one, value in machines.items() if value is not None})
    yield from _of_machine(status.watch)


def _of_machine(watch: Mapping[str, Any]) -> Iterator[Metric]:
    for name, key, what in WATCH_GAUGES:
        yield GaugeMetricFamily(PREFIX + name, what, _float(watch.get(key)))
    for name, key, what in WATCH_COUNTERS:
        yield CounterMetricFamily(PREFIX + name, what, _float(watch.get(key)))
    for name, key in (("disk_free_bytes", "free_bytes"), ("disk_size_bytes", "total_bytes")):
        values = {disk["path"]: disk[key] for disk in watch.get("disks", ())}
        yield _by_label(name, "Of each file system that the crawl writes to", "path", values)


def _by_label(
    name: str,
    what: str,
    label: str,
    values: Mapping[str, object],
    family: type[CounterMetricFamily | GaugeMetricFamily] = GaugeMetricFamily,
) -> Metric:
    metric = family(PREFIX + name, what, labels=[label])
    for value, number in values.items():
        metric.add_metric([value], _float(number))
    return metric


def _float(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
