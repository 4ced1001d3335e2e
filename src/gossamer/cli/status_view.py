"""Status view: a status in full, with counts, rates over time, levels, hosts, shards, health."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET

from gossamer.cli.output import harmless
from gossamer.cli.status_text import (
    LIMITS,
    course_of,
    errors_of,
    modules_of,
    proxies_of,
    revisits_of,
    seeds_not_fetched_lines,
    state_of,
    to_upload_of,
    unmatched_of,
    uploads_of,
    warnings_of,
)
from gossamer.model.health import health_of
from gossamer.model.status import MachineState, ShardHealth, Status
from gossamer.model.words import cost_text, count, counted, duration, size

SHOWN_MAX = 6


def status_text(status: Status) -> str:
    """Return a status for people."""
    health = health_of(status)
    rows = [
        ("state", state_of(status)),
        ("pages", f"{count(status.pages)} of {count(status.max_pages)}" if status.max_pages else count(status.pages)),
        ("attempts", count(status.attempts)),
        ("discovered", count(status.discovered)),
        ("queued", count(status.queued)),
        ("in flight", count(status.in_flight)),
        ("concurrency", f"{count(status.concurrency)} {status.concurrency_says}" if status.concurrency_says else ""),
        ("done with", count(status.terminal)),
        ("rate", f"{status.pages_s:.1f} pages/s, {size(status.bytes_s)}/s"),
        ("received", size(status.wire_bytes)),
        ("content", size(status.body_bytes)),
        (
            "hosts",
            f"{count(status.hosts_known)} known, {count(status.hosts_active)} active, {count(status.hosts_left)} left",
        ),
        ("limited by", harmless(health.limited_by)),
        ("remaining", health.remaining),
        ("held", f"{count(status.links_held)} links await the duplicate check" if status.links_held else ""),
        ("budgets", budgets_of(status)),
        *picture_rows(status),
        ("time", duration(status.elapsed_s)),
        ("commit", count(status.epoch)),
        ("seeds", "\n             ".join(seeds_not_fetched_lines(status)) if has_ended(status) else ""),
        ("not fetched", ", ".join(f"{name} {count(n)}" for name, n in errors_of(status).items())),
        ("rejected", ", ".join(f"{harmless(name)} {n:,}" for name, n in status.rejected.items() if n)),
        *(("failing", says) for says in (*modules_of(status), *unmatched_of(status))),
        ("uploaded", uploads_of(status)),
        ("to upload", to_upload_of(status)),
    ]
    rows[4:4] = revisits_of(status)
    if len(status.shards) > 1:  # One alone is the crawl: the rows above are its own.
        rows += [("shard", _shard_counts(one)) for one in status.shards]
    rows += [("machine", _machine_counts(one)) for one in status.machines or ()]
    rows += [("proxy", line) for line in proxies_of(status)]
    rows.append(("sandbox", sandbox_of(status)))
    rows += [("warning", warning) for warning in warnings_of(status)]
    rows += [("trap", harmless(trap)) for trap in status.traps]
    return "\n".join(f"{name:<12} {value}" for name, value in rows if value)


def sandbox_of(status: Status) -> str:
    """Return the sandbox of the process that parses, or why it has none; empty if that is not known."""
    if (sandbox := status.sandbox) is None:
        return ""
    bounded = ", ".join(sandbox.enforced).replace("_", " ")
    return f"in force: {harmless(bounded)}" if sandbox.in_force else f"none: {harmless(sandbox.says)}"


def has_ended(status: Status) -> bool:
    """Return whether the crawl ended by itself: not one that runs, was stopped or has died."""
    return status.ended not in ("", "stopped")


def _shard_counts(one: ShardHealth) -> str:
    parts = [
        f"{one.shard}: {harmless(one.state)}",
        f"{count(one.pages or 0)} pages",
        f"{count(one.queued or 0)} queued",
        f"{one.pages_s or 0.0:.1f}/s",
    ]
    if one.heard_s is not UNSET:
        parts.append(f"as of {one.heard_s:.0f} s ago")
    if one.failing_s is not UNSET:
        parts.append(f"for {one.failing_s:.0f} s")
    if one.idle:
        parts.append("idle (no URLs)")
    if one.deaths:
        parts.append(f"started again {'once' if one.deaths == 1 else f'{count(one.deaths)} times'}")
    return ", ".join(parts)


def _machine_counts(one: MachineState) -> str:
    parts = [
        f"{harmless(one.address or one.machine[:8])}: {counted(len(one.shards), 'shard')}",
        f"{one.pages_s:.1f}/s",
        f"{size(one.memory_bytes)} memory",
    ]
    if one.disk_free_bytes is not None:
        parts.append(f"{size(one.disk_free_bytes)} free")
    if one.heard_s:
        parts.append(f"silent for {one.heard_s:.0f} s")
    return ", ".join(parts)


def budgets_of(status: Status) -> str:
    """Return the budget round and how many hosts wait for the next; nothing without budgets."""
    if status.budget_round is UNSET:
        return ""
    waiting = status.hosts_deferred or 0
    who = "1 host waits" if waiting == 1 else f"{count(waiting)} hosts wait"
    return f"round {count(status.budget_round)}, {who} for the next"


def picture_rows(status: Status) -> list[tuple[str, str]]:
    """Return names and lines; omit those that the status lacks."""
    rows = [("alarm", one.says) for one in status.alarms]
    rows += [
        ("rates", course_of(status)),
        ("levels", _list_counts(status.levels, "level ")),
        ("media types", _list_counts(status.media_types, largest_first=True)),
        ("text found as", _list_counts(status.text_methods, largest_first=True)),
        ("rendered", _list_counts(status.rendered, largest_first=True)),
        ("rendering", rendering_of(status)),
        ("cost", _cost(status.cost, status.disk_bytes)),
    ]
    if (hosts := status.hosts) is not UNSET:
        shown = sorted(hosts["limits"].items(), key=lambda item: -item[1])
        rows.append(("active hosts", ", ".join(f"{count(n)} {LIMITS.get(name, name)}" for name, n in shown)))
        rows += [("largest", _host(one)) for one in hosts["active"][:SHOWN_MAX]]
        rows += [("slowest", _host(one)) for one in hosts["slowest"][: SHOWN_MAX // 2]]
        for host in hosts["failing"][:SHOWN_MAX]:
            rows.append(("failing", _host(host)))
            rows += [("origin", _origin(one)) for one in host.get("origins", ())[:SHOWN_MAX]]
    rows += [("lasting", f"{one.host}: {one.says}") for one in status.lasting]
    rows += [("closed", f"{one.host}: {one.reason}") for one in status.closings]
    # A shard that does not run has neither a commit nor a lag.
    rows += [("shard", _shard(one)) for one in status.shards if one.epoch is not UNSET]
    if status.watch:  # A crawl that does not run uses no memory and no files.
        rows.append(("machine", _machine(status.watch)))
    changes = status.changes[-SHOWN_MAX:] if status.changes is not UNSET else ()
    rows += [("set", f"{one['key']}: {one['before'] or 'none'} → {one['after'] or 'none'}") for one in changes]
    return [(name, harmless(line)) for name, line in rows if line]


def _cost(cost: Mapping[str, float], disk_bytes: int) -> str:
    cpu_s = {name: cost.get(f"cpu_{name}_s", 0.0) for name in ("fetch", "parse", "store", "render")}
    requests, memory_bytes = (int(cost.get(name, 0)) for name in ("requests", "memory_bytes_max"))
    return cost_text(cpu_s, requests, disk_bytes, memory_bytes) if requests else ""


CHOICES = {
    "pages_signal": "by a signal", "pages_sample": "as a sample", "pages_gain": "for the gain of others like them",
    "pages_budget": "left out for the budget",
}  # fmt: skip


def rendering_of(status: Status) -> str:
    """Return costs and gains of rendering; empty if no page was rendered."""
    facts = status.rendering
    if not facts:
        return ""
    refused = sum(n for name, n in facts.items() if name.startswith("refused_"))
    requested = facts.get("resources_requested", 0)
    reused = facts.get("resources_reused", 0)
    links = facts.get("links_gained", 0.0)
    cpu_s = facts.get("cpu_s", 0.0)
    each = f" ({cpu_s / links:,.2f} s a link)" if links else ""
    chosen = [f"{reason} {facts[name]:,.0f}" for name, reason in CHOICES.items() if name in facts]
    return (
        f"{links:,.0f} links gained, {cpu_s:,.1f} s of processor time{each}, "
        f"resources: {requested:,.0f} requested, {reused:,.0f} used again, {refused:,.0f} refused"
        + (f"; pages chosen: {', '.join(chosen)}" if chosen else "")
    )


def _host(one: Mapping[str, Any]) -> str:
    parts = [f"{one['host']}: {LIMITS.get(one['limit'], one['limit'])}", f"{count(one['queued'])} queued"]
    if one["fetch_s"] is not None:
        parts.append(f"{one['fetch_s'] * 1000:,.0f} ms a request")
    if one["failures"]:
        parts.append(f"{counted(one['failures'], 'failure')} in a row")
    if one["reason"]:
        parts.append(one["reason"])
    return ", ".join(parts)


def _origin(one: Mapping[str, Any]) -> str:
    state = "given up until" if one["state"] == "closed" else "waiting, next request at"
    at = datetime.fromtimestamp(one["next_at"], UTC)
    return f"{one['origin']}: {state} {at:%Y-%m-%d %H:%M:%S} UTC, {count(one['queued'])} queued: {one['reason']}"


def _shard(one: ShardHealth) -> str:
    return ", ".join(
        [
            f"{one.shard}: {one.state}",
            f"commit {count(one.epoch or 0)} took {(one.commit_s or 0.0) * 1000:,.0f} ms",
            *(["idle (no URLs)"] if one.idle else []),
            *([one.commit_stage] if one.commit_stage else []),
            f"loop lag {(one.loop_lag_s or 0.0) * 1000:,.0f} ms",
            *([f"alarms: {', '.join(one.alarms)}"] if one.alarms else []),
        ]
    )


def _machine(watch: Mapping[str, Any]) -> str:
    parts = [
        f"{size(watch['memory_bytes'])} of {size(watch['memory_budget_bytes'])} memory",
        f"{count(watch['open_files'])} of {count(watch['open_files_max'])} open files",
    ]
    parts += [f"{size(disk['free_bytes'])} free on {disk['path']}" for disk in watch["disks"]]
    return ", ".join(parts)


def _list_counts(counts: Mapping[str, int], prefix: str = "", *, largest_first: bool = False) -> str:
    # Names are numbers otherwise.
    found = sorted(counts.items(), key=lambda item: (-item[1] if largest_first else len(item[0]), item[0]))
    shown = ", ".join(f"{prefix}{name or 'unknown'} {count(n)}" for name, n in found[:8] if n)
    return shown + (" …" if len(found) > 8 else "")
