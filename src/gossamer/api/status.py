"""Status: the counts of a crawl, running or not, in one shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import UNSET, UnsetType

from gossamer.api.given import directory_of
from gossamer.api.setting import changes_of
from gossamer.api.shards import hold_stopped, last_status, owner_of
from gossamer.assembly.home import Home, homes
from gossamer.assembly.integrity import half_forgotten, view_losses
from gossamer.assembly.parts import budget_of
from gossamer.assembly.ring import CrawlRing
from gossamer.assembly.stopped import open_stopped
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.engine.counters import SeedCounters, Telemetry, Totals
from gossamer.engine.history import NothingHeld, holding
from gossamer.features.revisit.state import whole_facts
from gossamer.model.errors import Damage
from gossamer.model.modules import module_facts
from gossamer.model.outcomes import WITH_CONTENT
from gossamer.model.status import (
    Alarm,
    Closing,
    SandboxState,
    SeedsState,
    SeedState,
    ShardHealth,
    Status,
    WaitingReason,
    left_s,
    limit_reached,
    read_status,
    resume_command,
)
from gossamer.model.words import counted, duration, shell_word
from gossamer.ports import UrlSeen
from gossamer.stages.archive.uploads import Uploads
from gossamer.stages.frontier.budgets import read_round
from gossamer.stages.frontier.record import QueueCounts
from gossamer.stages.process.html import HTML_TYPES
from gossamer.stages.scope.chain import DEPTH, NOFOLLOW
from gossamer.stages.scope.traps import Traps
from gossamer.state.epoch import Epochs, load
from gossamer.state.schema import FRONTIER_COUNTS
from gossamer.state.slots import end_of
from gossamer.world.clock import WallClock
from gossamer.world.machine import disk_bytes

if TYPE_CHECKING:
    from gossamer.assembly.values import Shard

TRAPS_SHOWN_MAX = 100
ALARMS_MAX = 20
HOSTS_SHOWN_MAX = 10
REDIRECTS_SHOWN_MAX = 5
PATTERNS_SHOWN_MAX = 3
COMPLETE = frozenset(("finished", "limit"))
"""Ends of a crawl that reached its goal."""
ENDED_SAYS = {
    "finished": "no URLs left",
    "low_water": "too few hosts left (frontier.hosts_min)",
    "stopped": "stopped on request",
    "imported": "all archives imported",
}
QUIET_S = 3.0
"""A reply that takes longer is reported if nothing else happens meanwhile."""


def narrow(sandbox: SandboxState | None, shard: Shard) -> SandboxState | None:
    """Refuse a process in a sandbox further Unix sockets, once its control socket exists; log and return the state."""
    if sandbox is None:
        return None
    config = shard.controls.settings.config
    # Browsers and commands of the console open such sockets, and inherit what is refused.
    if sandbox.in_force and config.crawl.render == "never" and config.console.port is None:
        from gossamer.world.sandbox import AF_UNIX, refuse_sockets  # noqa: PLC0415 - without a sandbox, of no use

        if refuse_sockets(AF_UNIX):
            sandbox = msgspec.structs.replace(sandbox, enforced=(*sandbox.enforced, "sockets"))
    shard.controls.telemetry.logs.info("sandbox", **msgspec.to_builtins(sandbox))
    return sandbox


def running_status(shard: Shard, *, detail: bool = False, sandbox: SandboxState | None = None) -> Status:
    """Return a running crawl's status. Some tens of microseconds, plus one per host in memory when nothing happens;
    `detail` adds hosts and rates over time: about 1 µs more per host in memory.
    """
    ring = shard.ring
    controls = shard.controls
    epochs = shard.kept.storage.epochs
    uploads = shard.outputs.uploads
    config = controls.settings.config
    telemetry = controls.telemetry
    watchdogs = controls.watchdogs
    loop = ring.loop
    frontier = ring.frontier
    counters = telemetry.counters
    now = telemetry.clock.now()
    counts = frontier.counts
    totals = counters.totals
    status = _common(counts, totals, loop.elapsed_s(), config)
    status.warnings += counters.passing.values()
    status.seeds = seeds_state(totals.seeds, controls.explainer.why)
    status.sandbox = sandbox
    status.state = loop.state
    if loop.state == "running" and (loop.paused or loop.brakes.held):  # A stopping crawl is not shown as paused.
        status.state = "paused"
    # Prerequisite fetches such as robots.txt are not URLs, and a visit that has ended counts as running a moment more.
    # So cap the number: every discovered URL counts once.
    recrawl = ring.features.recrawl
    status.in_flight = loop.requests if recrawl is not None else min(loop.requests, counts.pending)
    status.queued = max(0, counts.pending - status.in_flight)
    status.links_held = links_held_by(ring.urls.url_seen)
    status.hosts_active = frontier.active_hosts
    if status.hosts_deferred is not UNSET:
        status.budget_round = frontier.ledger.round
    status.pages_s, status.bytes_s = counters.rates(now)
    status.epoch = epochs.number - 1
    status.rejected = {name: count for name, count in ring.scope.chain.counts.items() if count}
    _tell_rejected(status, totals, config)
    status.traps = trap_lines(ring.scope.traps)
    status.revisits = whole_facts(recrawl.schedule.state, now) if recrawl is not None else None
    status.waiting = waiting(ring, uploads, telemetry)
    status.waiting_for = status.waiting.says if status.waiting is not None else ""
    status.alarms = watchdogs.alarms
    status.counters = msgspec.structs.asdict(counters.dns_and_caches())
    status.watch = msgspec.structs.asdict(watchdogs.gauges)
    status.shards = [_health(shard)]
    status.concurrency = loop.brakes.concurrency
    status.concurrency_says = loop.brakes.why or UNSET
    if ring.features.proxies is not None:
        status.proxies_failing = ring.features.proxies.failing(now)
    status.closings = [Closing(host=host, reason=reason) for host, reason in frontier.closings]
    status.uploads = msgspec.structs.asdict(uploads.counts) if uploads is not None else None
    status.eta_s = left_s(status) if status.state == "running" else None
    if detail:
        status.course = counters.timeline.rates()
        status.disk_bytes = disk_bytes(shard.kept.storage.journals.directory)
        status.hosts = frontier.overview(now, HOSTS_SHOWN_MAX)
        status.changes = changes_of(epochs)
        if loop.state == "running":
            status.lasting = loop.lasting()
    return status


def _health(shard: Shard) -> ShardHealth:
    committer = shard.kept.committer
    watchdogs = shard.controls.watchdogs
    now = shard.controls.telemetry.clock.now()
    gauges = watchdogs.gauges
    return ShardHealth(
        shard=0,
        state=shard.ring.loop.state,
        epoch=shard.kept.storage.epochs.number - 1,
        commits=committer.commits,
        commit_s=committer.last_s,
        commit_s_total=committer.lasted_s,
        commit_under_way_s=now - committer.began_at if committer.stage else 0.0,
        commit_stage=committer.stage,
        loop_lag_s=gauges.loop_lag_s,
        memory_bytes=gauges.memory_bytes,
        open_files=gauges.open_files,
        alarms=[alarm.name for alarm in watchdogs.alarms],
    )


def status_of(directory: str | Path) -> dict[str, object]:
    """Return the status of a crawl that does not run, as of its last commit. Raises ConfigError: there is no crawl, or
    a process holds it.
    """
    directory = directory_of(directory)
    found = _read_status(reopen(directory / "crawl.toml"), directory) | {"disk_bytes": disk_bytes(directory)}
    ended, says = end_of(directory / "state")
    if ended:
        command = f"`gossamer resume {shell_word(directory)}` continues"
        state = "failed" if ended == "failed" else found["state"]
        waiting = found["waiting_for"] if found.get("damage") else f"{says}; {command}"
        found |= {"state": state, "ended": ended, "ended_says": says, "waiting_for": waiting}
    elif found.get("workers") == 1 and not found["ended"] and found["state"] == "stopped":
        found["ended_says"] = "its process ended before it could save why"
    if unfinished := half_forgotten(directory):
        found["warnings"] = [*cast("list[str]", found.get("warnings", [])), unfinished]
    return found


def _read_status(config: Config, directory: Path) -> dict[str, object]:
    if config.cluster.workers == 1:
        return _status_of(config, directory, 0).as_object()
    with hold_stopped(directory):
        if not all(home.is_there for home in homes(directory, config.cluster.workers)):
            return last_status(directory)
        from gossamer.cluster.aggregate import combine  # noqa: PLC0415 - of several shards alone

        found = combine([_status_of(config, directory, shard).as_object() for shard in range(config.cluster.workers)])
        is_over = not found["queued"] and found["discovered"]
        found["state"] = "finished" if is_over or found["ended"] in COMPLETE else "stopped"
        status = read_status(found)  # No shard alone reaches a limit of them all.
        found["ended_says"] = status.ended_says = end_text(status)
        if not status.damage:
            found["waiting_for"] = _why_stopped(config, directory, status)
        return found


def _status_of(config: Config, directory: Path, shard: int) -> Status:
    with closing(open_stopped(config, directory, shard, config.cluster.workers)) as opened:
        counts = load(opened.store, FRONTIER_COUNTS, QueueCounts)
        totals = opened.totals
        status = _common(counts, totals, totals.elapsed_s, config)
        status.seeds = seeds_state(totals.seeds, opened.explainer.why)
        status.links_held = links_held_by(opened.url_seen)
        is_over = not counts.pending and counts.discovered and config.crawl.mode != "continuous"
        is_finished = (is_over or totals.ended in COMPLETE) and not status.links_held
        status.state = "finished" if is_finished else "stopped"
        status.queued = counts.pending
        if status.hosts_deferred is not UNSET:
            status.budget_round = read_round(Epochs(opened.store))
        status.epoch = opened.store.epoch
        status.rejected = {name: count for name, count in opened.rejected.items() if count}
        _tell_rejected(status, totals, config)
        status.traps = trap_lines(opened.traps)
        status.revisits = whole_facts(opened.revisits, WallClock().now()) if opened.revisits is not None else None
        status.concurrency = config.crawl.concurrency_of(totals.concurrency)
        status.waiting_for = _why_stopped(config, directory, status)
        status.uploads = msgspec.structs.asdict(opened.uploads) if opened.uploads is not None else None
        _tell_damage(status, opened.lost, directory)
        return status


def links_held_by(url_seen: UrlSeen) -> int | UnsetType:
    """Return how many links await the duplicate check, where an eliminator holds any."""
    later = holding(url_seen)
    return UNSET if isinstance(later, NothingHeld) else later.links_held


def _tell_damage(status: Status, lost: Sequence[Damage], directory: Path) -> None:
    found = [*lost, *view_losses(directory)]
    if not found:
        return
    many = "a file is" if len(found) == 1 else f"{len(found):,} files are"
    status.damage = [damage.as_object() for damage in found]
    status.alarms = [Alarm("files", 0.0, damage.says()) for damage in found[:ALARMS_MAX]]
    status.waiting_for = (
        f"{many} missing or cut short; `gossamer verify {shell_word(directory)}` says which, and what to do"
    )


def end_text(status: Status) -> str:
    """Return how the last run ended, for people; empty while one goes on, and after one that died."""
    if status.ended != "limit":
        return ENDED_SAYS.get(status.ended, "")
    limit = limit_reached(status)
    return f"{limit.says(status)} reached" if limit is not None else "limit reached"


def seeds_state(seeds: SeedCounters, why: Callable[[str], dict[str, object]]) -> SeedsState:
    """Return how many seeds there are, whether any was fetched, and which of the first ones were not (0.1 ms each)."""
    first = [_seed_state(text, why) for text in seeds.first]
    return SeedsState(seeds.count, seeds.any_fetched, [one for one in first if one.state not in WITH_CONTENT])


def _tell_rejected(status: Status, totals: Totals, config: Config) -> None:
    """Warn if a crawl that has ended followed no link, because of filters or scripts, or excluded nothing."""
    pages = status.discovered - status.terminal_outcomes.get("redirected", 0)
    if status.ended != "finished" or not totals.seeds.any_fetched or config.cluster.workers > 1:
        return
    if config.scope.exclude and "exclude" not in status.rejected and pages > totals.seeds.count:
        patterns = " or ".join(map(repr, config.scope.exclude[:PATTERNS_SHOWN_MAX]))
        status.warnings.append(f"scope.exclude left nothing out: no link matched {patterns}")
    if DEPTH in status.rejected or config.scope.depth_max == 0:
        return
    scripted = totals.seeds.scripted
    if scripted and sum(totals.media_types.get(one, 0) for one in HTML_TYPES) <= totals.seeds.count:
        status.warnings.append(f"no links lead on from {scripted}; if scripts make them, --render auto finds them")
    if not status.rejected or pages > totals.seeds.count:
        return
    first = totals.rejected.get
    links = counted(sum(status.rejected.values()), "link")
    filters = (
        f"{name} {number}" + (f", for example {first(name)}" if first(name) else "")
        for name, number in sorted(status.rejected.items(), key=lambda item: -item[1])
    )
    remedy = "; robots.obey = false follows nofollow pages, on your own servers" if NOFOLLOW in status.rejected else ""
    status.warnings.append(f"no link was followed, because filters rejected {links} ({'; '.join(filters)}){remedy}")


def _seed_state(seed: str, why: Callable[[str], dict[str, object]]) -> SeedState:
    """Return the state of a seed, or of the last URL to which it redirects, and the reason."""
    text = seed
    reasons = dict[str, str]()
    while text not in reasons and len(reasons) < REDIRECTS_SHOWN_MAX:
        found = why(text)
        reasons[text] = str(found["reason"])
        if found["state"] != "redirected" or not found.get("redirect_to"):
            break
        text = str(found["redirect_to"])
    return SeedState(seed, str(found["state"]), "; ".join(reasons.values()))


def trap_lines(traps: Traps) -> list[str]:
    """Return a sentence for each trap that is not released, the first ones first."""
    return [trap.says() for trap in traps.all if not trap.released][:TRAPS_SHOWN_MAX]


def why_of(directory: str | Path, url: str) -> dict[str, object]:
    """Explain a URL of a crawl that does not run. Raises ConfigError as `status_of`."""
    directory = directory_of(directory)
    config = reopen(directory / "crawl.toml")
    shards = config.cluster.workers
    if shards == 1:
        return _why_of(config, directory, 0, url)
    with hold_stopped(directory):
        shard = owner_of(config, directory, url)
        Home(directory, shard, shards).require_here()
        return {**_why_of(config, directory, shard, url), "shard": shard}


def _why_of(config: Config, directory: Path, shard: int, url: str) -> dict[str, object]:
    with closing(open_stopped(config, directory, shard, config.cluster.workers)) as opened:
        found = opened.explainer.why(url)
        lost = [damage.says() for damage in (*opened.lost, *view_losses(directory))]
        return {**found, "damage": lost} if lost else found


def _common(counts: QueueCounts, totals: Totals, elapsed_s: float, config: Config) -> Status:
    limits = config.limits
    rendering = totals.figures.get("rendering", {})
    status = Status(
        state="",
        pages=totals.pages,
        attempts=totals.attempts,
        answers=counts.answers,
        discovered=counts.discovered,
        terminal=sum(counts.terminal.values()),
        terminal_outcomes=dict(counts.terminal),
        outcomes=dict(totals.outcomes),
        wire_bytes=totals.wire_bytes,
        body_bytes=totals.body_bytes,
        media_types=dict(totals.media_types),
        modules=module_facts(totals.modules),
        text_methods=dict(totals.text_methods),
        rendered={result: int(pages) for result, pages in totals.figures.get("rendered", {}).items()},
        rendering=dict(rendering),
        proxy_answers={proxy: int(n) for proxy, n in totals.figures.get("proxy_answers", {}).items()},
        proxy_failures={proxy: int(n) for proxy, n in totals.figures.get("proxy_failures", {}).items()},
        cost={**msgspec.structs.asdict(totals.cost), "cpu_render_s": rendering.get("cpu_s", 0.0)},
        levels={str(level): max(0, urls) for level, urls in enumerate(counts.levels) if urls > 0},
        elapsed_s=elapsed_s,
        hosts_known=counts.hosts,
        hosts_left=counts.working,
        runs=totals.incarnation,
        ended=totals.ended,
        awaited=list(totals.awaited),
        lasting=list(totals.lasting),
        warnings=totals.warnings(),
        max_pages=limits.max_pages,
        max_time_s=limits.max_time_s,
        max_bytes=limits.max_bytes,
        mode=config.crawl.mode,
        hosts_deferred=counts.deferred if budget_of(config).is_set else UNSET,
    )
    status.ended_says = end_text(status)
    return status


def _why_stopped(config: Config, directory: Path, status: Status) -> str:
    if not status.queued and config.crawl.mode != "continuous":
        return ""
    few = f"fewer hosts than frontier.hosts_min = {config.frontier.hosts_min} were left"
    awaited = f"what is left waits for longer than crawl.patience_s: {', '.join(one.host for one in status.awaited)}"
    why = {"low_water": few, "limit": status.ended_says, "patience": awaited}.get(status.ended, "nothing runs")
    command, how = resume_command(str(directory), status)
    return f"{why}; `{command}` continues{how}"


def waiting(ring: CrawlRing, uploads: Uploads | None, telemetry: Telemetry) -> WaitingReason | None:
    """Return why the crawl waits; None while it works, or is over. A pass over the hosts in memory at worst."""
    crawl = ring.loop
    counts = uploads.counts if uploads is not None else None
    if counts is not None and counts.waiting_files and crawl.state in ("finished", "stopped"):
        return WaitingReason("uploads", f"uploads to {counts.store}")
    if crawl.state != "running":
        return None
    if crawl.paused:
        return WaitingReason("operator", "`gossamer unpause`")
    if crawl.brakes.held:
        who, why = next(iter(crawl.brakes.held.items()))
        return WaitingReason(who, why)
    if crawl.in_flight:
        return _answer(ring, telemetry) or (WaitingReason("blocked", crawl.blocker) if crawl.blocker else None)
    if blocked := crawl.blocker:
        return WaitingReason("blocked", blocked)
    turn = ring.frontier.next_turn()
    now = telemetry.clock.now()
    if turn is None or turn.at <= now:
        return None
    says = f"{turn.host or 'a sleeping host'} ({turn.reason}), next request in {duration(ceil(turn.at - now))}"
    return WaitingReason("host", says, turn.host, None, turn.at)


def _answer(ring: CrawlRing, telemetry: Telemetry) -> WaitingReason | None:
    """Return the request that has been under way for longest, when nothing has come for a while."""
    now = telemetry.clock.now()
    lease, since = min(ring.loop.under_way, key=lambda under_way: under_way[1])
    if now - max(since, telemetry.counters.last_at) < QUIET_S:
        return None
    host = lease.url.host
    more = ring.loop.in_flight - 1
    others = f", and {more} more" if more else ""
    if not lease.address:
        return WaitingReason("lookup", f"the address of {host} (DNS, for {now - since:.0f} s){others}", host, since)
    return WaitingReason("answer", f"an answer of {host} (for {now - since:.0f} s){others}", host, since)
