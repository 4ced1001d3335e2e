"""Status text: what a status says, in words and in one line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from gossamer.cli.output import count, counted, harmless, size
from gossamer.model.outcomes import SUCCEEDED
from gossamer.model.words import duration

Status = Mapping[str, object]
"""What a crawl answers to `status`, and what `status --json` prints."""


def number(status: Status, key: str) -> float:
    """Return a number of the status; 0 when it is not there."""
    value = status.get(key)
    return float(value) if isinstance(value, int | float) else 0.0


def errors_of(status: Status) -> dict[str, int]:
    """Return the outcomes that are errors or refusals, most frequent first."""
    outcomes = status.get("outcomes")
    if not isinstance(outcomes, dict):
        return {}
    found = {name: n for name, n in outcomes.items() if n and name not in SUCCEEDED}
    return {harmless(name): n for name, n in sorted(found.items(), key=lambda item: (-item[1], item[0]))}


def state_of(status: Status) -> str:
    """Return the state in words; when nothing happens, for what it waits."""
    state, waiting = harmless(status.get("state", "")), status.get("waiting_for")
    return f"{state}: {harmless(waiting)}" if waiting else state


def seeds_not_fetched(status: Status) -> list[Mapping[str, object]]:
    """Return the first seeds with `url`, `state` and `reason`, where not one was fetched; nothing where one was."""
    seeds = status.get("seeds")
    listed = seeds.get("not_fetched") if isinstance(seeds, Mapping) else None
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def seeds_not_fetched_lines(status: Status) -> list[str]:
    """Return lines that name seeds with the reasons, where not one was fetched; nothing where one was."""
    seeds = status.get("seeds")
    if not isinstance(seeds, Mapping) or seeds.get("any_fetched"):
        return []
    total, named = number(seeds, "count"), seeds_not_fetched(status)
    if not total:
        return ["no URL could be fetched: there was none to fetch"]
    lines = [
        f"none of the {counted(total, 'seed')} could be fetched:" if total > 1 else "the seed could not be fetched:"
    ]
    for one in named:
        reason = f": {harmless(one['reason'])}" if one.get("reason") else ""
        lines.append(f"  {harmless(one['url'])}: {harmless(one['state'])}{reason}")
    if total > len(named):
        lines.append(f"  and {count(total - len(named))} more")
    return lines


def warnings_of(status: Status) -> list[str]:
    """Return what the operator should know of how the crawl is set up, in sentences."""
    warnings = status.get("warnings")
    return [harmless(warning) for warning in warnings] if isinstance(warnings, list) else []


def to_upload_of(status: Status) -> str:
    """Return what an object store does not hold yet, or nothing."""
    uploads = status.get("uploads")
    if not isinstance(uploads, dict) or not uploads.get("waiting_files"):
        return ""
    return f"{counted(number(uploads, 'waiting_files'), 'file')} ({size(number(uploads, 'waiting_bytes'))})"


def uploaded_of(status: Status) -> str:
    """Return what an object store holds, and which, or nothing."""
    uploads = status.get("uploads")
    if not isinstance(uploads, dict):
        return ""
    held = f"{counted(number(uploads, 'uploaded_files'), 'file')} ({size(number(uploads, 'uploaded_bytes'))})"
    return f"{held} to {harmless(uploads.get('store', ''))}"


def revisits_of(status: Status) -> list[tuple[str, str]]:
    """Return how fresh a continuous crawl's pages are, what is due, and which promises are kept; names and texts."""
    facts = status.get("revisits")
    if not isinstance(facts, dict):
        return []
    fresh = facts.get("expected_freshness")
    known = f"{counted(number(facts, 'pages'), 'page')}, {count(number(facts, 'overdue'))} overdue"
    lines = [
        ("revisits", f"{known}, {count(number(facts, 'due_in_an_hour'))} due in an hour"),
        ("freshness", f"{fresh:.0%} expected" if isinstance(fresh, float) else ""),
        ("seen again", f"{count(number(facts, 'changes_seen'))} changed, {count(number(facts, 'unchanged'))} the same"),
        ("given up", count(number(facts, "given_up")) if number(facts, "given_up") else ""),
    ]
    if slow := number(facts, "hosts_at_their_limit"):
        lines.append(("at limit", f"{counted(slow, 'host')} whose pages deserve more visits than politeness permits"))
    promises = facts.get("promises")
    for promise in promises if isinstance(promises, list) else ():
        old, broken = number(promise, "older_now"), number(promise, "broken")
        kept = (
            "kept so far"
            if not (old or broken)
            else (
                f"not kept: {count(old)} older now, {count(broken)} visits too late, "
                f"by {duration(number(promise, 'late_s_worst'))} at worst"
            )
        )
        age = duration(number(promise, "max_age_s"))
        lines.append(("promise", f"{harmless(promise.get('pattern', ''))} never older than {age}: {kept}"))
    return lines


def modules_of(status: Status) -> list[str]:
    """Return a sentence for each processing module that failed."""
    modules = status.get("modules")
    told = [one.get("says") for one in modules.values() if isinstance(one, dict)] if isinstance(modules, dict) else []
    return [harmless(says) for says in told if says]


def done_of(status: Status) -> str:
    """Return how far a crawl with a limit has come; nothing for one that has ended."""
    if status.get("ended"):
        return ""
    parts = []
    for key, limit, show in (("pages", "max_pages", count), ("wire_bytes", "max_bytes", size)):
        if bound := number(status, limit):
            parts.append(f"{show(number(status, key))} of {show(bound)} ({number(status, key) / bound:.0%})")
    if bound := number(status, "max_time_s"):
        parts.append(f"{duration(number(status, 'elapsed_s'))} of {duration(bound)}")
    if status.get("eta_s") is not None:
        parts.append(f"about {duration(number(status, 'eta_s'))} left")
    return ", ".join(parts)


def line_of(status: Status) -> str:
    """Return one line about a crawl."""
    parts = [
        f"{count(number(status, 'pages'))} pages",
        f"{number(status, 'pages_s'):.1f}/s",
        f"{count(number(status, 'queued'))} queued",
        f"{count(number(status, 'in_flight'))} in flight",
        f"{counted(number(status, 'hosts_active'), 'host')} active",
        size(number(status, "wire_bytes")),
    ]
    if errors := errors_of(status):
        parts.append("not fetched: " + ", ".join(f"{name} {count(n)}" for name, n in list(errors.items())[:5]))
    if failing := modules_of(status):
        parts.append(failing[0] if len(failing) == 1 else f"{len(failing)} modules failed on pages")
    if done := done_of(status):
        parts.append(done)
    if to_upload := to_upload_of(status):
        parts.append(f"{to_upload} to upload")
    if (state := state_of(status)) != "running":
        parts.append(state)
    return f"{duration(number(status, 'elapsed_s'))}: " + ", ".join(parts)


def awaited_of(status: Status) -> list[str]:
    """Return the hosts that the crawl did not wait for, and until when they wait, a sentence each."""
    awaited = status.get("awaited")
    return [
        f"Waiting: {harmless(one['host'])}, {counted(one['queued'], 'URL')}, next at "
        f"{datetime.fromtimestamp(one['at'], UTC):%Y-%m-%d %H:%M:%S} UTC: {harmless(one['reason'])}."
        for one in (awaited if isinstance(awaited, list) else [])
    ]


def summary_of(status: Status, directory: str, ended: str) -> str:
    """Return the last words about a crawl: what came of it, where it lies, what to do next."""
    how = {
        "finished": "finished",
        "limit": "ended at its limit",
        "low_water": "ended with few hosts left, the rest saved",
        "patience": "finished but for "
        f"{counted(number(status, 'queued'), 'URL')} of {counted(number(status, 'hosts_left'), 'host')}",
    }.get(ended, "stopped, everything saved")
    sums = [
        counted(number(status, "pages"), "page"),
        size(number(status, "wire_bytes")),
        counted(number(status, "hosts_known"), "host"),
    ]
    lines = [f"The crawl {how}: {', '.join(sums)} in {duration(number(status, 'elapsed_s'))}."]
    if errors := errors_of(status):
        lines.append("Not fetched: " + ", ".join(f"{name} {count(n)}" for name, n in errors.items()) + ".")
    lines += [f"{says[:1].upper()}{says[1:]}." for says in modules_of(status)]
    lines += awaited_of(status) if ended == "patience" else []
    if queued := number(status, "queued"):
        lines.append(f"Still queued: {count(queued)}; gossamer resume {harmless(directory)} continues.")
    lines += [f"Warning: {warning}." for warning in warnings_of(status)]
    if uploaded := uploaded_of(status):
        lines.append(f"Uploaded: {uploaded}.")
    lines.append(
        f"It lies in {harmless(directory)}: warc/, pages/, links/, index.cdxj. gossamer report {harmless(directory)}"
    )
    return "\n".join(lines)
