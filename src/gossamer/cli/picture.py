"""Picture: the parts of a status that show a crawl as a whole: rates over time, levels, hosts, health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer.cli.door import Status
from gossamer.cli.standing import number
from gossamer.cli.words import count, harmless, size
from gossamer.model.words import duration

BARS = "▁▂▃▄▅▆▇█"
COURSE_SHOWN_MAX = 60
SHOWN_MAX = 6
LIMITS = {
    "fetching": "being asked",
    "politeness": "resting",
    "crawl_delay": "resting (Crawl-delay)",
    "asked_to_wait": "asked us to wait",
    "failing": "failing",
    "robots": "waiting for robots.txt",
    "lookup": "to be looked up",
    "address": "at an address in use",
    "site": "of a site in use",
    "ready": "ready",
    "closed": "closed",
}


def picture_rows(status: Status) -> list[tuple[str, str]]:
    """Return names and lines; what a status does not tell has none."""
    rows = [("alarm", f"{harmless(one.get('says', ''))}") for one in _mappings(status.get("alarms"))]
    rows += [
        ("course", course_of(status)),
        ("levels", _tally(status.get("levels"), "level ")),
        ("media types", _tally(status.get("media_types"), largest_first=True)),
        ("text found as", _tally(status.get("text_methods"), largest_first=True)),
    ]
    hosts = status.get("hosts")
    if isinstance(hosts, Mapping):
        limits = hosts.get("limits")
        if isinstance(limits, Mapping):
            shown = sorted(limits.items(), key=lambda item: -item[1])
            rows.append(("active hosts", ", ".join(f"{count(n)} {LIMITS.get(name, name)}" for name, n in shown)))
        rows += [("largest", _host(one)) for one in _mappings(hosts.get("active"))[:SHOWN_MAX]]
        rows += [("slowest", _host(one)) for one in _mappings(hosts.get("slowest"))[: SHOWN_MAX // 2]]
        rows += [("failing", _host(one)) for one in _mappings(hosts.get("failing"))[:SHOWN_MAX]]
    rows += [
        ("closed", f"{harmless(one['host'])}: {harmless(one['reason'])}") for one in _mappings(status.get("closings"))
    ]
    rows += [("shard", _shard(one)) for one in _mappings(status.get("shards"))]
    watch = status.get("watch")
    if isinstance(watch, Mapping) and watch:  # A crawl that does not run uses no memory and no files.
        rows.append(("machine", _machine(watch)))
    changes = _mappings(status.get("changes"))[-SHOWN_MAX:]
    rows += [("set", f"{one['key']}: {one['before'] or 'none'} → {one['after'] or 'none'}") for one in changes]
    return [(name, harmless(line)) for name, line in rows if line]


def course_of(status: Status) -> str:
    """Return the rate of the last minutes as a line of bars, with its largest value."""
    course = status.get("course")
    if not isinstance(course, Sequence) or len(course) < 2:
        return ""
    steps = list(course)[-COURSE_SHOWN_MAX:]
    rates = [float(step[1]) for step in steps]
    most = max(rates)
    bars = "".join(BARS[min(int(rate / most * len(BARS)), len(BARS) - 1)] if most else BARS[0] for rate in rates)
    lasted = duration(float(steps[-1][0]) - float(steps[0][0]))
    return f"{bars} up to {most:.1f} pages/s in {lasted}"


def _host(one: Mapping[str, object]) -> str:
    limit = str(one.get("limit", ""))
    parts = [f"{one.get('host')}: {LIMITS.get(limit, limit)}", f"{count(number(one, 'queued'))} queued"]
    if one.get("fetch_s") is not None:
        parts.append(f"{number(one, 'fetch_s') * 1000:,.0f} ms a request")
    if number(one, "failures"):
        parts.append(f"{count(number(one, 'failures'))} failures in a row")
    if one.get("reason"):
        parts.append(str(one["reason"]))
    return ", ".join(parts)


def _shard(one: Mapping[str, object]) -> str:
    alarms = one.get("alarms")
    return ", ".join(
        [
            f"{one.get('shard')}: {one.get('state')}",
            f"commit {count(number(one, 'epoch'))} took {number(one, 'commit_s') * 1000:,.0f} ms",
            *([str(one["commit_stage"])] if one.get("commit_stage") else []),
            f"loop lag {number(one, 'loop_lag_s') * 1000:,.0f} ms",
            *([f"alarms: {', '.join(map(str, alarms))}"] if isinstance(alarms, list) and alarms else []),
        ]
    )


def _machine(watch: Mapping[str, object]) -> str:
    parts = [
        f"{size(number(watch, 'memory_bytes'))} of {size(number(watch, 'memory_budget_bytes'))} memory",
        f"{count(number(watch, 'open_files'))} of {count(number(watch, 'open_files_max'))} open files",
    ]
    parts += [
        f"{size(number(disk, 'free_bytes'))} free on {disk.get('path')}" for disk in _mappings(watch.get("disks"))
    ]
    return ", ".join(parts)


def _tally(counts: object, prefix: str = "", *, largest_first: bool = False) -> str:
    if not isinstance(counts, Mapping):
        return ""
    found = sorted(counts.items(), key=lambda item: -item[1]) if largest_first else list(counts.items())
    shown = ", ".join(f"{prefix}{name or 'unknown'} {count(n)}" for name, n in found[:8] if n)
    return shown + (" …" if len(found) > 8 else "")


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
