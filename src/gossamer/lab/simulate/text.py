"""Text: a simulation's result for a terminal, assumptions and all."""

from collections.abc import Iterator

from gossamer.lab.simulate.arguments import settable_keys
from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simulate.presets import OF_DRAWN_HOSTS, PRESETS, source_of
from gossamer.lab.simulate.result import LIMITS, Simulated
from gossamer.model.words import bit_rate, duration, size
from gossamer.options import to_table

ROWS = 12
ENDS = {"pages": "the requested pages are fetched", "finished": "no URL is left", "time": "the time is over"}
SHOWN_SECTIONS = ("web.", "machine.", "exchange.")
SHOWN_KEYS = (
    "politeness.preset", "politeness.delay_s_min", "politeness.delay_factor", "politeness.address_delay_s",
    "frontier.active_hosts_max", "frontier.active_hosts_bytes_max", "seen.backend",
)  # fmt: skip
SYNTHETIC_KEYS = ("simweb.hosts", "simweb.pages", "simweb.zipf_exponent", "simweb.crawl_delay_s", "simweb.shares")


def as_text(result: Simulated, options: SimulateOptions, given: frozenset[str] = frozenset()) -> str:
    """Return the result as lines: what happens, over time, what limits it, what it costs, what was assumed."""
    return "\n".join([*_summary(result, options), "", *_timeline(result), "", *_assumptions(options, given)]) + "\n"


def _summary(result: Simulated, options: SimulateOptions) -> Iterator[str]:
    preset = PRESETS.get(options.preset)
    if preset is not None:
        yield f"{options.preset}: {preset.what}"
    yield f"{count(result.pages)} pages in {duration(result.time_s, 1)} ({ENDS[result.ended]})"
    first, *others = result.limits.items()
    more = "".join(f", then {limit} ({share:.0%})" for limit, share in others if share >= 0.02)
    yield _row("Limited by", f"{first[0]} {first[1]:.0%} of the time{more}")
    yield _row("", LIMITS[first[0]])
    yield _row(
        "Rate", f"{result.pages_per_s:,.1f} pages/s, {result.pages_per_s_most:,.1f} in the best tenth of the time"
    )
    per_machine = result.pages_per_s / result.machines
    yield _row("", f"{per_machine:,.1f} a machine, {result.pages_per_s / options.shards:,.1f} a shard")
    yield _row(
        "Time", f"half of the pages after {duration(result.half_s, 1)}, 90 % after {duration(result.nine_tenths_s, 1)}"
    )
    if result.ended == "finished":
        yield _row("", f"the largest host alone takes {duration(result.largest_host_s, 1)}")
    yield _row("Hosts", f"{count(result.hosts_known)} found, {count(result.hosts_active_most)} with work at once")
    yield _row("", f"{count(result.hosts_benched_most)} on workbenches at once")
    yield _row("URLs", f"{count(result.urls)} found, {count(result.pending_most)} queued at once")
    yield _row("Requests", f"{count(result.requests)}, {result.requests / max(1.0, result.pages):.2f} a page")
    network = f"{result.network_share:.0%} of the network, {bit_rate(result.bits_per_s)}"
    yield _row("Busy", f"{result.cpu_share:.0%} of the shards' processors, {network}")
    yield _row("", f"{result.coordinator_share:.1%} of a core for the coordinator")
    foot = result.footprint
    machine = options.machine
    fits = "" if foot.memory_per_machine <= machine.memory_bytes else f": more than its {size(machine.memory_bytes)}"
    yield _row("Memory", f"{size(foot.memory_per_shard)} a shard, {size(foot.memory_per_machine)} a machine{fits}")
    fits = "" if foot.disk_per_machine <= machine.disk_bytes else f": more than its {size(machine.disk_bytes)}"
    yield _row("Disk", f"{size(foot.state_disk)} state, {size(foot.archive_disk)} archive")
    yield _row("", f"{size(foot.disk_per_machine)} a machine{fits}")
    together = min(machine.shards, options.shards)
    yield _row(
        "Machines",
        f"{result.machines} with {together} of {options.shards} shards, {result.machine_hours:,.1f} hours in all",
    )
    if result.cost:
        traffic = f", {result.traffic_cost:,.2f} of it for traffic" if result.traffic_cost else ""
        yield _row("Cost", f"{result.cost:,.2f}, {result.cost_per_million:.3f} for a million pages{traffic}")
    if result.storage_cost_month:
        yield _row("", f"{result.storage_cost_month:,.2f} a month to keep state and archive")
    sample = f"{result.shards_simulated} of {options.shards} shards, 1 of {result.scale:,.0f} of their hosts"
    yield _row("Simulated", f"{sample}: {result.pages_simulated:,} pages; seed {options.seed}")
    if preset is not None and preset.published is not None:
        original = preset.published
        cost = f", {original.cost_per_million:.2f} for a million" if original.cost_per_million else ""
        yield _row(
            "Published",
            f"{count(original.pages)} pages in {duration(original.time_s, 1)}, "
            f"{original.pages_per_s:,.0f} pages/s{cost}",
        )
        yield _row("", f"limited by {original.limit}")


def _timeline(result: Simulated) -> Iterator[str]:
    columns = (("after", 12), ("pages/s", 10), ("pages", 10), ("hosts", 10), ("queued", 10))
    shares = (("cpu", 6), ("net", 6), ("slots", 6))
    yield " ".join(f"{name:>{width}}" for name, width in (*columns, *shares)) + "  limit"
    between = result.intervals
    by_time = {sample.at_s: sample for sample in result.samples}
    step = max(1, len(between) // ROWS)
    for number in [*range(step - 1, len(between) - 1, step), len(between) - 1]:
        one = between[number]
        sample = by_time[one.end_s]
        yield (
            f"{duration(one.end_s, 1):>12} {one.pages_per_s:>10,.1f} {count(sample.pages):>10} "
            f"{count(sample.hosts_active):>10} {count(sample.pending):>10} {one.cpu_share:>6.0%} "
            f"{one.network_share:>6.0%} {one.slots_share:>6.0%}  {one.limit}"
        )


def _assumptions(options: SimulateOptions, given: frozenset[str]) -> Iterator[str]:
    yield "Assumptions (--set KEY=VALUE changes them)"
    values = to_table(options, defaults=True)
    for key in settable_keys():
        if options.simweb is not None and key in OF_DRAWN_HOSTS:
            continue
        if key.startswith(SHOWN_SECTIONS) or key in SHOWN_KEYS or (options.simweb and key in SYNTHETIC_KEYS):
            section, _, name = key.partition(".")
            if (value := values[section][name]) is not None:
                yield f"  {key:<34} {_plain(value):>18}  {source_of(options, key, given)}"


def _row(name: str, text: str) -> str:
    return f"{name:<12}{text}"


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(share)}" for name, share in value.items()) or "none"
    return f"{value:,.4f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def count(number: float) -> str:
    """Return a large number in short: 12,500, 250.1 M, 1 G."""
    for least, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if number >= least:
            return f"{number / least:.4g} {unit}"
    return f"{number:,.0f}"
