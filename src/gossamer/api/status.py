"""Status: the counts of a crawl, running or not, in one shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gossamer.api.given import directory_of
from gossamer.api.setting import changes_of
from gossamer.api.shards import held_stopped, owner_of, require_here, told_last
from gossamer.api.waiting import waiting
from gossamer.assembly import Assembled, budget_of, homes, lost_views, open_stopped
from gossamer.cluster.aggregate import whole
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.crawl.options import LimitsOptions
from gossamer.crawl.tally import Seeds, Totals
from gossamer.frontier.budgets import stored_round
from gossamer.frontier.record import Counts
from gossamer.model.damage import Damage
from gossamer.model.modules import module_facts
from gossamer.revisit.state import whole_facts
from gossamer.scope.traps import Traps
from gossamer.state.epoch import Epochs
from gossamer.state.schema import FRONTIER_COUNTS
from gossamer.world.clock import WallClock

TRAPS_TOLD_MAX = 100
ALARMS_MAX = 20
HOSTS_TOLD_MAX = 10
REDIRECTS_TOLD_MAX = 5
COMPLETE = frozenset(("finished", "limit"))
"""Ends of a crawl that did what it was to do."""
ENDED_SAYS = {
    "finished": "no URLs left",
    "low_water": "too few hosts left (frontier.hosts_min)",
    "stopped": "stopped on request",
}


def running_status(shard: Assembled, *, detail: bool = False) -> dict[str, object]:
    """Return a running crawl's status. Some tens of microseconds, plus one per host in memory when nothing happens;
    `detail` adds hosts and the course of rates: about 1 µs more per host in memory.
    """
    ring, controls, epochs, uploads = shard.ring, shard.controls, shard.kept.storage.epochs, shard.outputs.uploads
    config, telemetry, watchdogs = controls.settings.config, controls.telemetry, controls.watchdogs
    loop, frontier, tally, now = ring.loop, ring.frontier, telemetry.tally, telemetry.clock.now()
    counts, totals, elapsed_s = frontier.counts, tally.totals, loop.elapsed_s()
    status = _common(counts, totals, elapsed_s, config.limits)
    status["seeds"] = seeds_told(totals.seeds, controls.story.why)
    pages_s, bytes_s = tally.rates(now)
    under_way, awaited, state = loop.in_flight, waiting(ring, uploads, telemetry), loop.state
    if state == "running" and (loop.paused or loop.held):  # What ends goes on ending.
        state = "paused"
    if ring.recrawl is None:
        # Errands such as robots.txt are no URLs, and who has ended a visit is at work for a moment yet: every URL that
        # was discovered is told in one place.
        under_way = min(under_way, counts.pending)
    status |= {
        "state": state,
        "in_flight": under_way,
        "queued": max(0, counts.pending - under_way),
        "hosts_active": frontier.benched,
        **_budget(config, counts, frontier.round),
        "pages_s": pages_s,
        "bytes_s": bytes_s,
        "epoch": epochs.number - 1,
        "rejected": {name: count for name, count in ring.scope.chain.counts.items() if count},
        "traps": traps_told(ring.scope.traps),
        "mode": config.crawl.mode,
        "revisits": whole_facts(ring.recrawl.schedule.state, now) if ring.recrawl is not None else None,
        "waiting_for": awaited.says if awaited is not None else "",
        "waiting": msgspec.structs.asdict(awaited) if awaited is not None else None,
        "alarms": [msgspec.structs.asdict(alarm) for alarm in watchdogs.alarms],
        "counters": msgspec.structs.asdict(tally.counters()),
        "watch": msgspec.structs.asdict(watchdogs.gauges),
        "shards": [_health(shard)],
        "concurrency": loop.concurrency,
        "closings": [{"host": host, "reason": reason} for host, reason in frontier.closings],
        "uploads": msgspec.structs.asdict(uploads.counts) if uploads is not None else None,
        "eta_s": _eta_s(config.limits, totals, elapsed_s, pages_s, bytes_s) if state == "running" else None,
    }
    if detail:
        status |= {
            "course": tally.course.rates(),
            "hosts": frontier.overview(now, HOSTS_TOLD_MAX),
            "changes": changes_of(epochs),
        }
    return status


def _health(shard: Assembled) -> dict[str, object]:
    """Return how one shard is."""
    committer, watchdogs, now = shard.kept.committer, shard.controls.watchdogs, shard.controls.telemetry.clock.now()
    gauges = watchdogs.gauges
    return {
        "shard": 0,
        "state": shard.ring.loop.state,
        "epoch": shard.kept.storage.epochs.number - 1,
        "commits": committer.commits,
        "commit_s": committer.last_s,
        "commit_s_total": committer.lasted_s,
        "commit_under_way_s": now - committer.began_at if committer.stage else 0.0,
        "commit_stage": committer.stage,
        "loop_lag_s": gauges.loop_lag_s,
        "memory_bytes": gauges.memory_bytes,
        "open_files": gauges.open_files,
        "alarms": [alarm.name for alarm in watchdogs.alarms],
    }


def status_of(directory: str | Path) -> dict[str, object]:
    """Return the status of a crawl that does not run, as of its last commit.

    Raises:
        ConfigError: there is no crawl, or a process holds it.
    """
    directory = directory_of(directory)
    config = reopen(directory / "crawl.toml")
    if config.cluster.workers == 1:
        return _status_of(config, directory, 0)
    with held_stopped(directory):
        if not all(home.is_there for home in homes(directory, config.cluster.workers)):
            return told_last(directory)
        found = whole([_status_of(config, directory, shard) for shard in range(config.cluster.workers)])
        is_over = not found["queued"] and found["discovered"]
        found["state"] = "finished" if is_over or found["ended"] in COMPLETE else "stopped"
        return found


def _status_of(config: Config, directory: Path, shard: int) -> dict[str, object]:
    opened = open_stopped(config, directory, shard, config.cluster.workers)
    try:
        stored = opened.store.get("meta", FRONTIER_COUNTS)
        counts = Counts() if stored is None else msgspec.msgpack.decode(stored, type=Counts)
        status = _common(counts, opened.totals, opened.totals.elapsed_s, config.limits)
        status["seeds"] = seeds_told(opened.totals.seeds, opened.story.why)
        status |= {
            "state": _state_of(counts, opened.totals, config),
            "in_flight": 0,
            "queued": counts.pending,
            "hosts_active": 0,
            **_budget(config, counts, stored_round(Epochs(opened.store))),
            "pages_s": 0.0,
            "bytes_s": 0.0,
            "epoch": opened.store.epoch,
            "rejected": {name: count for name, count in opened.rejected.items() if count},
            "traps": traps_told(opened.traps),
            "mode": config.crawl.mode,
            "revisits": whole_facts(opened.revisits, WallClock().now()) if opened.revisits is not None else None,
            "waiting": None,
            "alarms": [],
            "counters": {},
            "watch": {},
            "shards": [],
            "concurrency": config.crawl.concurrency,
            "closings": [],
            "waiting_for": _stopped(counts, opened.totals, config, directory, str(status["ended_says"])),
            "uploads": msgspec.structs.asdict(opened.uploads) if opened.uploads is not None else None,
            "eta_s": None,
        }
        return status | _damaged(opened.lost, directory)
    finally:
        opened.close()


def _damaged(lost: Sequence[Damage], directory: Path) -> dict[str, object]:
    """Return what a status says of files that are missing or cut short, beside what it says otherwise."""
    found = [*lost, *lost_views(directory)]
    if not found:
        return {}
    many = "a file is" if len(found) == 1 else f"{len(found):,} files are"
    return {
        "damage": [damage.as_object() for damage in found],
        "alarms": [{"name": "files", "since": 0.0, "says": damage.says()} for damage in found[:ALARMS_MAX]],
        "waiting_for": f"{many} missing or cut short; `gossamer verify {directory}` says which, and what to do",
    }


def _state_of(counts: Counts, totals: Totals, config: Config) -> str:
    is_over = not counts.pending and counts.discovered and config.crawl.mode != "continuous"
    return "finished" if is_over or totals.ended in COMPLETE else "stopped"


def _ended_says(totals: Totals, elapsed_s: float, limits: LimitsOptions) -> str:
    """Return how the last run ended, for people; empty while one goes on, and after one that died."""
    if totals.ended != "limit":
        return ENDED_SAYS.get(totals.ended, "")
    if limits.max_pages is not None and totals.pages >= limits.max_pages:
        return "page limit reached"
    if limits.max_bytes is not None and totals.wire_bytes >= limits.max_bytes:
        return "byte limit reached"
    if limits.max_time_s is not None and elapsed_s >= limits.max_time_s:
        return "time limit reached"
    return "limit reached"


def seeds_told(seeds: Seeds, why: Callable[[str], dict[str, object]]) -> dict[str, object]:
    """Return how many seeds there are and whether any was fetched; while none is, the state of the first ones with the
    reason: about 0.1 ms for each.
    """
    first = [] if seeds.any_fetched else seeds.first
    return {
        "count": seeds.count,
        "any_fetched": seeds.any_fetched,
        "not_fetched": [{"url": text, **_seed_state(text, why)} for text in first],
    }


def _seed_state(text: str, why: Callable[[str], dict[str, object]]) -> dict[str, object]:
    """Return the state of a seed, or of the last URL to which it redirects, and the reason."""
    reasons = []
    for _ in range(REDIRECTS_TOLD_MAX):
        told = why(text)
        reasons.append(str(told["reason"]))
        if told["state"] != "redirected" or not told.get("redirect_to"):
            break
        text = str(told["redirect_to"])
    return {"state": told["state"], "reason": "; ".join(reasons)}


def traps_told(traps: Traps) -> list[str]:
    """Return a sentence for each trap that is not released, the first ones first."""
    return [trap.says() for trap in traps.all if not trap.released][:TRAPS_TOLD_MAX]


def why_of(directory: str | Path, url: str) -> dict[str, object]:
    """Return what a crawl that does not run knows of a URL. Raises ConfigError as `status_of`."""
    directory = directory_of(directory)
    config = reopen(directory / "crawl.toml")
    shards = config.cluster.workers
    if shards == 1:
        return _why_of(config, directory, 0, url)
    with held_stopped(directory):
        shard = owner_of(config, directory, url)
        require_here(directory, shard, shards)
        return {**_why_of(config, directory, shard, url), "shard": shard}


def _why_of(config: Config, directory: Path, shard: int, url: str) -> dict[str, object]:
    opened = open_stopped(config, directory, shard, config.cluster.workers)
    try:
        found = opened.story.why(url)
        lost = [damage.says() for damage in (*opened.lost, *lost_views(directory))]
        return {**found, "damage": lost} if lost else found
    finally:
        opened.close()


def _common(counts: Counts, totals: Totals, elapsed_s: float, limits: LimitsOptions) -> dict[str, object]:
    return {
        "pages": totals.pages,
        "attempts": totals.attempts,
        "discovered": counts.discovered,
        "terminal": sum(counts.terminal.values()),
        "terminal_outcomes": dict(counts.terminal),
        "outcomes": dict(totals.outcomes),
        "wire_bytes": totals.wire_bytes,
        "body_bytes": totals.body_bytes,
        "media_types": dict(totals.media_types),
        "modules": module_facts(totals.modules),
        "text_methods": dict(totals.text_methods),
        "levels": {str(level): max(0, urls) for level, urls in enumerate(counts.levels) if urls > 0},
        "elapsed_s": elapsed_s,
        "hosts_known": counts.hosts,
        "hosts_left": counts.working,
        "runs": totals.incarnation,
        "workers": 1,
        "warnings": [],
        "ended": totals.ended,
        "ended_says": _ended_says(totals, elapsed_s, limits),
        "awaited": [msgspec.structs.asdict(one) for one in totals.awaited],
        "max_pages": limits.max_pages,
        "max_time_s": limits.max_time_s,
        "max_bytes": limits.max_bytes,
        "damage": [],
    }


def _stopped(counts: Counts, totals: Totals, config: Config, directory: Path, ended_says: str) -> str:
    if not counts.pending and config.crawl.mode != "continuous":
        return ""
    few = f"fewer hosts than frontier.hosts_min = {config.frontier.hosts_min} were left"
    why = {"low_water": few, "limit": ended_says, "patience": _awaited(totals)}.get(totals.ended, "nothing runs")
    return f"{why}; `gossamer resume {directory}` continues"


def _awaited(totals: Totals) -> str:
    hosts = ", ".join(one.host for one in totals.awaited)
    return f"what is left waits for longer than crawl.patience_s: {hosts}"


def _budget(config: Config, counts: Counts, number: int) -> dict[str, object]:
    return {"budget_round": number, "hosts_deferred": counts.deferred} if budget_of(config).is_set else {}


def _eta_s(limits: LimitsOptions, totals: Totals, elapsed_s: float, pages_s: float, bytes_s: float) -> float | None:
    left = []
    if limits.max_time_s is not None:
        left.append(limits.max_time_s - elapsed_s)
    if limits.max_pages is not None and pages_s:
        left.append((limits.max_pages - totals.pages) / pages_s)
    if limits.max_bytes is not None and bytes_s:
        left.append((limits.max_bytes - totals.wire_bytes) / bytes_s)
    return max(0.0, min(left)) if left else None
