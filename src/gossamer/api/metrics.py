"""Metrics: a status as Prometheus reads it, made at each request from counts that exist anyway: pages cost no more.

Names follow https://prometheus.io/docs/practices/naming/: base units, `_total` for what only grows. Labels come from
sets that are bounded: outcomes, filters, levels, limits, alarms, file systems, processing modules, and at most 51
media types.
"""

import pkgutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, get_type_hints

import msgspec
from msgspec import UNSET
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from gossamer.model.counters import Counters
from gossamer.model.product import __version__
from gossamer.model.status import Status, read_status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ALARMS = ("disk", "disk_soon", "proxy", "answers", "memory", "open_files", "commit", "loop", "files", "logs", "clock")
STATES = ("starting", "running", "paused", "stopping", "finished", "stopped", "failed")
STAGES = ("fetch", "parse", "store", "render")
PREFIX = "gossamer_"
_Family = type[CounterMetricFamily | GaugeMetricFamily]

DNS_WITHIN = {"dns_within_10_ms": "0.01", "dns_within_100_ms": "0.1", "dns_within_1_s": "1"}
"""Counters that have a label in place of a unit in their name."""


class Measure(msgspec.Struct, array_like=True, frozen=True):
    """A metric: the key of its value in a part of the status, and its help."""

    key: str
    says: str
    label: str = ""
    """Of its values; empty: it has one."""


class MeasureGroup(msgspec.Struct, frozen=True):
    """Metrics of one kind, by name, from one part of the status."""

    of: Literal["status", "cost", "watch", "modules", "shards", "machines"]
    kind: Literal["counter", "gauge"]
    metrics: dict[str, Measure]


GROUPS = msgspec.toml.decode(
    pkgutil.get_data("gossamer.api", "metrics.toml") or b"", type=dict[str, list[MeasureGroup]]
)["groups"]


def metrics_of(status: Mapping[str, object]) -> bytes:
    """Return a detailed status in Prometheus' text format. About 2 ms."""
    return _text(_of_status(read_status(status)))


def fleet_metrics(states: Iterable[str], running: int, crawls_max: int) -> bytes:
    """Return how many crawls of a server are in which state, in Prometheus' text format."""
    found = Counter(states)
    counts = {state: found[state] for state in ("created", "reading", *STATES)}
    return _text(
        (
            InfoMetricFamily(PREFIX + "build", "The program", {"version": __version__}),
            _by_label("crawls", "Crawls in the folder, by how they stand", "state", counts),
            GaugeMetricFamily(PREFIX + "crawls_running", "Crawls that run at once", running),
            GaugeMetricFamily(PREFIX + "crawls_max", "Crawls that may run at once", crawls_max),
        )
    )


def struct_metrics(prefix: str, counts: msgspec.Struct, gauges: Collection[str]) -> bytes:
    """Return the numbers of a struct, with its descriptions as help, in Prometheus' format: counters, and `gauges`."""
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
    for group in GROUPS:
        yield from _of_group(group, status)
    overdue = _float((status.revisits or {}).get("overdue"))
    yield GaugeMetricFamily(PREFIX + "overdue_urls", "URLs of a continuous crawl whose visit is due", overdue)
    stages = {name: status.cost.get(f"cpu_{name}_s") for name in STAGES}
    says = "Processor time by stage, over all runs"
    yield _by_label("processor_seconds", says, "stage", stages, CounterMetricFamily)
    within = {seconds: status.counters.get(name) for name, seconds in DNS_WITHIN.items()}
    says = "Lookups by the seconds that they took at most"
    yield _by_label("dns_within", says, "seconds", within, CounterMetricFamily)
    for name, kind in get_type_hints(Counters, include_extras=True).items():
        if name in DNS_WITHIN:
            continue
        metric = name.removesuffix("_s") + "_seconds" if name in ("dns_s", "requests_s") else name
        says = f"{kind.__metadata__[0]}, in this process"
        yield CounterMetricFamily(PREFIX + metric, says, status.counters.get(name, 0.0))
    limits = status.hosts.get("limits", {}) if status.hosts is not UNSET else {}
    yield _by_label("active_hosts_by_limit", "Active hosts by what limits them", "limit", limits)
    alarms = {alarm.name for alarm in status.alarms}
    yield _by_label("alarm", "1 while it lasts", "alarm", {name: name in alarms for name in ALARMS})
    states = {name: status.state == name for name in STATES}
    yield _by_label("state", "1 for the state that the crawl is in", "state", states)
    for name, key in (("disk_free_bytes", "free_bytes"), ("disk_size_bytes", "total_bytes")):
        values = {disk["path"]: disk[key] for disk in status.watch.get("disks", ())}
        yield _by_label(name, "Of each file system that the crawl writes to", "path", values)


def _of_group(group: MeasureGroup, status: Status) -> Iterator[Metric]:
    family = CounterMetricFamily if group.kind == "counter" else GaugeMetricFamily
    for name, one in group.metrics.items():
        found = _value_of(status, group.of, one.key)
        if one.label:
            yield _by_label(name, one.says, one.label, found, family)
        else:
            yield family(PREFIX + name, one.says, _float(found))


def _value_of(status: Status, of: str, key: str) -> Any:
    """Return a value of a part of the status, or its values by label."""
    match of:
        case "shards":
            return {str(shard.shard): getattr(shard, key) for shard in status.shards}
        case "machines":
            machines = {one.address or one.machine: getattr(one, key) for one in status.machines or ()}
            return {name: value for name, value in machines.items() if value is not None}
        case "modules":
            return {module: facts.get(key) for module, facts in status.modules.items()}
        case "status":
            return getattr(status, key)
        case _:
            return getattr(status, of).get(key)


def _by_label(
    name: str, what: str, label: str, values: Mapping[str, object], family: _Family = GaugeMetricFamily
) -> Metric:
    metric = family(PREFIX + name, what, labels=[label])
    for value, number in values.items():
        metric.add_metric([value or "unknown"], _float(number))
    return metric


def _float(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
