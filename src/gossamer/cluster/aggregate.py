"""Aggregate: the status of a crawl of several shards, from the status of each."""

from collections.abc import Callable, Container, Mapping, Sequence
from functools import reduce
from typing import Any, Final, cast

from msgspec import UNSET

from gossamer.model.counters import total
from gossamer.model.modules import sum_modules
from gossamer.model.outcomes import SUCCEEDED
from gossamer.model.status import MachineState, Together, fields_together, left_s, read_status

Status = Mapping[str, object]

REVISIT_SUMS = (
    "pages", "given_up", "overdue", "due_in_an_hour", "visits", "changes_seen", "unchanged", "not_modified", "late",
    "hosts_at_their_limit", "importance",
)  # fmt: skip
HELD = ("memory_bytes", "memory_budget_bytes", "open_files")
"""Gauges of a process that add up."""
LISTED_MAX = 20
HEALTH = (
    "epoch", "commit_s", "commit_under_way_s", "commit_stage", "loop_lag_s", "memory_bytes", "open_files", "alarms",
)  # fmt: skip
"""Health fields that a shard reports beside its counts."""
STATES = ("failed", "starting", "running", "stopping", "paused", "stopped", "finished")
"""States by precedence: when shards differ, the first one here is the state of the crawl."""
TRAPS_SHOWN_MAX = 100
SILENT = "silent"
"""State of a shard that does not answer; its other values are those of its last answer."""
FAILING = "failing"
"""State of a shard whose process dies again and again, or cannot begin; the same."""
IDLE_ATTEMPTS_MIN = 10
"""Attempts of the whole crawl after which a shard without URLs counts as idle."""
SPLIT_HOSTS = 6
"""Hosts per shard from which an idle shard shows that the hosts belong to few sites: if each had its own site, one of
three shards would have none in only 0.2 % of crawls.
"""
WAITING_SHOWN_MAX = 3
PRESENT = (
    "state", "ended", "ended_says", "waiting_for", "waiting", "warnings", "alarms", "in_flight", "pages_s", "bytes_s",
    "eta_s", "workers", "machines",
)  # fmt: skip
"""Fields that say how the crawl is now, beside its figures."""
FIGURES = ("pages", "queued", "wire_bytes", "runs")
"""Figures of each shard."""
GAUGES = {
    "gossamer_pages": "Documents fetched (outcome fetched)",
    "gossamer_received_bytes": "Bytes received",
    "gossamer_queued_urls": "URLs that are not finished, those in flight left out",
    "gossamer_failed_attempts": "Attempts without a page or a redirect, by any cause",
}
"""Metrics of each shard that Ray exports, with its prefix `ray_`: counts of the status, set in each round. They are
gauges, since a shard that is restored from a checkpoint has lower counts than before. All together cost 8 µs
(`benchmarks/bench_ray_metrics.py`)."""
LABELS = ("crawl", "shard")
_COMBINE: Final[Mapping[Together, Callable[[Any, Any], Any]]] = {"total": total, "most": max}


def combine(statuses: Sequence[Status], owners: Container[int] = range(1 << 16)) -> dict[str, object]:
    """Return the status of a crawl from those of its shards: sums where these make sense, else common values. Keys are
    those of one shard; `shards` has the state of each. Only `owners` should have something to fetch.
    """
    found: dict[str, object] = {}
    none = read_status({})
    for how, together in _COMBINE.items():
        for key in fields_together(how):
            known = [value for status in statuses if (value := status.get(key)) is not None]
            value = reduce(together, known) if known else getattr(none, key)
            if value is not UNSET:  # It is reported only if there are budgets, or an eliminator that holds links.
                found[key] = value[:LISTED_MAX] if isinstance(value, list) else value
    # The crawl goes on without silent and failing ones.
    states = {str(status.get("state", "")) for status in statuses} - {SILENT, FAILING}
    found["state"] = next((state for state in STATES if state in states), "running" if statuses else "")
    ends = {str(status.get("ended", "")) for status in statuses}
    found["ended"] = ends.pop() if len(ends) == 1 else ""
    found["ended_says"] = statuses[0].get("ended_says", "") if found["ended"] else ""
    found["traps"] = [trap for status in statuses for trap in _list(status.get("traps"))][:TRAPS_SHOWN_MAX]
    found["modules"] = sum_modules([one for status in statuses if isinstance(one := status.get("modules"), Mapping)])
    if isinstance(seeds := found["seeds"], dict):
        # A seed, or the page that it redirects to, is unknown to the shard that counted it if another shard has it.
        named = [one for one in seeds["not_fetched"] if one["state"] != "unknown"]
        found["seeds"] = {**seeds, "not_fetched": named[:LISTED_MAX]}
    idle = _idle(statuses)
    theirs = [str(one) for status in statuses for one in _list(status.get("warnings"))]
    ours = _warnings(sum(one in owners for one in idle), len(statuses), int(_number(found.get("hosts_known"))))
    found["warnings"] = [*ours, *dict.fromkeys(theirs)][:LISTED_MAX]
    found["waiting_for"] = _waiting_for(statuses)
    waiting = (one for status in statuses if (one := status.get("waiting")))
    found["waiting"] = next(waiting, None) if found["waiting_for"] else None
    found["watch"] = _watch(statuses)
    found["mode"] = next((mode for status in statuses if (mode := status.get("mode"))), "batch")
    found["revisits"] = _revisits([one for status in statuses if isinstance(one := status.get("revisits"), Mapping)])
    found["eta_s"] = left_s(read_status(found)) if found["state"] == "running" else None
    found["sandbox"] = None  # Only in a crawl of one shard.
    found["workers"] = len(statuses)
    found["shards"] = [{**brief(number, status), "idle": number in idle} for number, status in enumerate(statuses)]
    return found


def with_earlier(status: Status, earlier: Status) -> dict[str, object]:
    """Return a status with the figures of an earlier one while a shard that had some has none yet: it starts again, or
    the coordinator does. States, rates and what the crawl waits for are those of the new one.
    """
    shards = cast("list[Status]", status["shards"])
    before = cast("list[Status]", earlier.get("shards", []))
    held = {n for n, (new, old) in enumerate(zip(shards, before, strict=False)) if "runs" in old.keys() - new.keys()}
    if not held:
        return dict(status)
    kept = {**earlier, **{key: status[key] for key in PRESENT if key in status}}
    kept["shards"] = [
        {**{key: before[n][key] for key in FIGURES if key in before[n]}, **one} if n in held else one
        for n, one in enumerate(shards)
    ]
    return kept


def brief(number: int, status: Status) -> dict[str, object]:
    """Return the fields of one shard that the status lists beside the sums."""
    keys = (
        "state", "pages", "queued", "in_flight", "pages_s", "wire_bytes", "runs", "node", "deaths", "restored",
        "heard_s", "failing_s", "failure",
    )  # fmt: skip
    health = next((one for one in _list(status.get("shards")) if isinstance(one, Mapping)), {})
    return {
        "shard": number,
        **{key: health[key] for key in HEALTH if key in health},
        **{key: status[key] for key in keys if key in status},
    }


def machines_of(statuses: Sequence[Status], addresses: Mapping[str, str]) -> list[MachineState]:
    """Return the machines of the cluster, and those that shards named in their last answer, ordered by address."""
    found = {machine: MachineState(machine=machine, address=address) for machine, address in addresses.items()}
    for number, status in enumerate(statuses):
        if not (machine := str(status.get("node", ""))):
            continue
        one = found.setdefault(machine, MachineState(machine=machine))
        watch = status.get("watch")
        gauges = watch if isinstance(watch, Mapping) else {}
        one.shards.append(number)
        one.pages_s += _number(status.get("pages_s"))
        one.memory_bytes += int(_number(gauges.get("memory_bytes")))
        one.heard_s = max(one.heard_s, _number(status.get("heard_s")))
        free = [one.disk_free_bytes, *(disk["free_bytes"] for disk in gauges.get("disks", ()))]
        one.disk_free_bytes = min((count for count in free if count is not None), default=None)
    return sorted(found.values(), key=lambda one: (one.address, one.machine))


def _number(value: object) -> float | int:
    return value if isinstance(value, int | float) else 0


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _waiting_for(statuses: Sequence[Status]) -> str:
    """Return the reason for which the crawl waits; empty if any shard does not wait."""
    waits = [str(status.get("waiting_for") or "") for status in statuses]
    if all(status.get("ended") for status in statuses):  # All have ended: shards without URLs wait for nothing.
        waits = [wait for wait in waits if wait]
    return " · ".join(dict.fromkeys(waits[:WAITING_SHOWN_MAX])) if all(waits) else ""


def _watch(statuses: Sequence[Status]) -> dict[str, object]:
    """Return the largest value of each gauge; those of `HELD` are added up. `shards` has the values of each shard."""
    gauges = [one for status in statuses if isinstance(one := status.get("watch"), Mapping)]
    found: dict[str, object] = {}
    for name in dict.fromkeys(name for one in gauges for name in one):
        values = [value for one in gauges if isinstance(value := one.get(name), int | float)]
        if values:
            found[name] = sum(values) if name in HELD else max(values)
        else:
            found[name] = next((value for one in gauges if (value := one.get(name))), gauges[0].get(name))
    return found


def _revisits(parts: Sequence[Status]) -> dict[str, object] | None:
    """Return the sums over all shards; freshness is weighted by importance, and a promise counts once for all."""
    if not parts:
        return None
    found: dict[str, object] = {name: sum(_number(part.get(name)) for part in parts) for name in REVISIT_SUMS}
    fresh = sum(_number(part.get("expected_freshness")) * _number(part.get("importance")) for part in parts)
    importance = _number(found["importance"])
    found["expected_freshness"] = fresh / importance if importance > 0 else None
    promises: dict[tuple[object, object], dict[str, object]] = {}
    for one in (one for part in parts for one in _list(part.get("promises")) if isinstance(one, Mapping)):
        same = promises.setdefault((one.get("pattern"), one.get("max_age_s")), {})
        for name, value in one.items():
            if name in ("pattern", "max_age_s"):
                same[name] = value
            elif name == "late_s_worst":
                same[name] = max(_number(same.get(name)), _number(value))
            else:
                same[name] = _number(same.get(name)) + _number(value)
    return {**found, "promises": list(promises.values())}


def _idle(statuses: Sequence[Status]) -> list[int]:
    """Return the shards that have nothing to fetch, after there was time to find URLs for them."""
    is_early = any(status.get("state") == "starting" for status in statuses)
    if is_early or sum(_number(status.get("attempts")) for status in statuses) < IDLE_ATTEMPTS_MIN:
        return []
    return [number for number, status in enumerate(statuses) if not _number(status.get("discovered"))]


def _warnings(idle: int, shards: int, hosts: int) -> list[str]:
    if not idle:
        return []
    nothing = f"{idle} of {shards} shards have nothing to fetch: no URL found so far is theirs"
    why = "One shard fetches all of a registrable domain"
    if hosts < SPLIT_HOSTS * shards:
        return [f"{nothing}. {why}: for one site --workers 1 is as fast"]
    remedy = 'a new crawl with url.split_sites=["DOMAIN"] divides the hosts of one among the shards'
    return [f"{nothing}. {why}, and the {hosts:,} hosts found are of few: {remedy}"]


def figures_of(status: Mapping[str, Any]) -> dict[str, float]:
    """Return the values of `GAUGES` for a shard's status."""
    failed = sum(count for outcome, count in status.get("outcomes", {}).items() if outcome not in SUCCEEDED)
    counts = (status.get("pages", 0), status.get("wire_bytes", 0), status.get("queued", 0), failed)
    return dict(zip(GAUGES, map(float, counts), strict=True))
