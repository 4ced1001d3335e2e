"""Status text: a status in words, and in one line."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from shutil import get_terminal_size
from typing import TextIO

from msgspec import UNSET

from gossamer.cli.output import harmless, obeys_escapes
from gossamer.model.extras import missing
from gossamer.model.outcomes import MAY_PASS, MEANINGS, SUCCEEDED
from gossamer.model.status import SeedState, Status, limit_reached, resume_command
from gossamer.model.words import count, counted, duration, shell_word, size

BARS = "▁▂▃▄▅▆▇█"
COURSE_SHOWN_MAX = 60
COMMAND_COLUMNS = 44
COLUMNS_MIN = 30
"""Columns of a terminal below which views that redraw have no room for their figures."""
WARC = "warc/"
OUTPUTS = (WARC, "pages/", "links/", "index.cdxj")
NEXT = {
    "": ("gossamer export {} --to wacz -o FILE", WARC, "a package for other tools"),
    "archive": ("gossamer verify {} --deep", WARC, "loss and damage of its files"),
    "corpus": ("gossamer export {} --to datasets -o FOLDER", "pages/", "a data set with its card"),
    "watch": ("gossamer changes {}", "pages/", "changed pages, by time"),
}
"""Last command that the summary of a recipe advises, the output that it needs, and what it shows."""
LIMITS = {
    "fetching": "fetching",
    "politeness": "delay",
    "crawl_delay": "delay (Crawl-delay)",
    "asked_to_wait": "delay (Retry-After)",
    "failing": "failing",
    "robots": "waiting for robots.txt",
    "lookup": "waiting for DNS",
    "address": "waiting for its address",
    "site": "waiting for its site",
    "ready": "ready",
    "closed": "closed",
}

StatusFields = Mapping[str, object]
"""A crawl's answer to `status`, which `status --json` prints; `read_status` makes a `Status` of it."""


def redraws(out: TextIO) -> bool:
    """Return whether a stream is a terminal that can redraw, and has room for figures beside their names."""
    return obeys_escapes(out) and get_terminal_size().columns >= COLUMNS_MIN


def errors_of(status: Status) -> dict[str, int]:
    """Return how many URLs ended with an error or a refusal for good, by outcome, most frequent first."""
    found = {name: n for name, n in status.terminal_outcomes.items() if n and name not in SUCCEEDED}
    return {harmless(name): n for name, n in sorted(found.items(), key=lambda item: (-item[1], item[0]))}


def state_of(status: Status) -> str:
    """Return the state in words; for an idle crawl, what it waits for."""
    state = harmless(status.state)
    waiting = harmless(status.waiting_for)
    return f"{state}: {waiting}" if waiting else state


LOST = {"redirected", "rejected", *MEANINGS.keys() - SUCCEEDED}
"""States of a seed that is not fetched, and that nothing more is done for."""
_OWN_AUTHORITY = "--set fetch.ca_bundle=FILE trusts the certificates in a file"
HINTS = {
    "self-signed certificate": _OWN_AUTHORITY,
    "local issuer certificate": _OWN_AUTHORITY,
    "asks for a login": "docs/how-to/login.md shows how to send a login",
    "robots.txt disallows it": "on a server of your own, such as a staging host, --no-robots ignores robots.txt",
}
"""What to do, by a part of the reason why a seed was not fetched."""


def seeds_not_fetched_lines(status: Status) -> list[str]:
    """Return lines that name seeds with the reasons, where not one was fetched; nothing if one was."""
    seeds = status.seeds
    if seeds is None or seeds.any_fetched:
        return []
    total = seeds.count
    named = seeds.not_fetched
    if not total:
        return ["no URL could be fetched: there was none to fetch"]
    lines = [
        "the seed could not be fetched:" if total == 1 else f"none of the {counted(total, 'seed')} could be fetched:"
    ]
    lines += map(_seed_line, named)
    if total > len(named):
        lines.append(f"  and {count(total - len(named))} more")
    reasons = " ".join(one.reason for one in named)
    return [*lines, *(hint for sign, hint in HINTS.items() if sign in reasons)]


def _seed_line(seed: SeedState) -> str:
    reason = f": {harmless(seed.reason)}" if seed.reason else ""
    return f"  {harmless(seed.url)}: {harmless(seed.state)}{reason}"


def warnings_of(status: Status) -> list[str]:
    """Return warnings about the crawl's setup, in sentences."""
    return [harmless(warning) for warning in status.warnings]


def to_upload_of(status: Status) -> str:
    """Return number and size of the files that are not yet in the object store; empty: none."""
    uploads = status.uploads
    if uploads is None or not uploads["waiting_files"]:
        return ""
    return f"{counted(uploads['waiting_files'], 'file')} ({size(uploads['waiting_bytes'])})"


def proxies_of(status: Status) -> list[str]:
    """Return how each proxy of a pool works, a sentence each."""
    failing = {one.proxy: one for one in status.proxies_failing}
    lines = []
    for proxy, answers in status.proxy_answers.items():
        line = f"{proxy}: {count(answers)} answered, {count(status.proxy_failures.get(proxy, 0))} failed"
        if out := failing.get(proxy):
            since, until = (f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}" for at in (out.since, out.until))
            line += f"; left out since {since} UTC, tried again at {until}: {out.reason}"
        lines.append(harmless(line))
    return lines


def uploads_of(status: Status) -> str:
    """Return number and size of the files in the object store, and its name; empty without one."""
    uploads = status.uploads
    if uploads is None:
        return ""
    held = f"{counted(uploads['uploaded_files'], 'file')} ({size(uploads['uploaded_bytes'])})"
    return f"{held} to {harmless(uploads['store'])}"


def revisits_of(status: Status) -> list[tuple[str, str]]:
    """Return how fresh a continuous crawl's pages are, what is due, and which promises are kept; names and texts."""
    facts = status.revisits
    if facts is None:
        return []
    fresh = facts["expected_freshness"]
    known = f"{counted(facts['pages'], 'page')}, {count(facts['overdue'])} overdue"
    lines = [
        ("revisits", f"{known}, {count(facts['due_in_an_hour'])} due in an hour"),
        ("freshness", f"{fresh:.0%} expected" if fresh is not None else ""),
        ("seen again", f"{count(facts['changes_seen'])} changed, {count(facts['unchanged'])} the same"),
        ("given up", count(facts["given_up"]) if facts["given_up"] else ""),
    ]
    if slow := facts["hosts_at_their_limit"]:
        lines.append(("at limit", f"{counted(slow, 'host')} whose pages deserve more visits than politeness permits"))
    for promise in facts["promises"]:
        old = promise["older_now"]
        broken = promise["broken"]
        kept = "kept so far"
        if old or broken:
            late = duration(promise["late_s_worst"])
            kept = f"not kept: {count(old)} older now, {count(broken)} visits too late, by {late} at worst"
        age = duration(promise["max_age_s"])
        lines.append(("promise", f"{harmless(promise['pattern'])} never older than {age}: {kept}"))
    return lines


def modules_of(status: Status) -> list[str]:
    """Return a sentence for each processing module that failed."""
    return [harmless(one["says"]) for one in status.modules.values() if one["says"]]


def failures_of(status: Status) -> list[str]:
    """Return a sentence for each module that failed on every page, and for each rule for items that found none."""
    failures = [one["says"] for one in status.modules.values() if one["says"] and one["failed"] >= one["pages"]]
    return [*map(harmless, failures), *unmatched_of(status)]


def unmatched_of(status: Status) -> list[str]:
    """Return a sentence for each rule for items that found none."""
    return [harmless(says) for one in status.modules.values() if (says := one.get("unmatched"))]


def progress_of(status: Status) -> str:
    """Return how far a crawl with a limit has come; nothing for one that has ended."""
    if status.ended:
        return ""
    limits = ((status.pages, status.max_pages, count), (status.wire_bytes, status.max_bytes, size))
    parts = [f"{show(done)} of {show(most)} ({done / most:.0%})" for done, most, show in limits if most]
    if status.max_time_s:
        parts.append(f"{duration(status.elapsed_s)} of {duration(status.max_time_s)}")
    if status.eta_s is not None:
        parts.append(f"about {duration(status.eta_s)} left")
    return ", ".join(parts)


def line_of(status: Status) -> str:
    """Return one line about a crawl."""
    parts = [
        counted(status.pages, "page"),
        f"{status.pages_s:.1f}/s",
        f"{count(status.queued)} queued",
        f"{count(status.in_flight)} in flight",
        f"{counted(status.hosts_active, 'host')} active",
        size(status.wire_bytes),
    ]
    if errors := errors_of(status):
        parts.append("not fetched: " + ", ".join(f"{name} {count(n)}" for name, n in list(errors.items())[:5]))
    if failing := modules_of(status):
        parts.append(failing[0] if len(failing) == 1 else f"{len(failing)} modules failed on pages")
    if done := progress_of(status):
        parts.append(done)
    if to_upload := to_upload_of(status):
        parts.append(f"{to_upload} to upload")
    if (state := state_of(status)) != "running":
        parts.append(state)
    return f"{duration(status.elapsed_s)}: " + ", ".join(parts)


def course_of(status: Status, bars: int = COURSE_SHOWN_MAX) -> str:
    """Return the rate of the last minutes as a line of at most `bars` bars, with its largest value."""
    if status.course is UNSET or len(status.course) < 2:
        return ""
    steps = status.course[-min(bars, COURSE_SHOWN_MAX) :]
    rates = [pages_s for _, pages_s, _ in steps]
    most = max(rates)
    drawn = "".join(BARS[min(int(rate / most * len(BARS)), len(BARS) - 1)] if most else BARS[0] for rate in rates)
    return f"{drawn} up to {most:.1f} pages/s in {duration(steps[-1][0] - steps[0][0])}"


def waits_of(status: Status) -> list[str]:
    """Return the hosts that the crawl did not wait for, and until when they wait, a sentence each."""
    return [
        f"Waiting: {harmless(one.host)}, {counted(one.queued, 'URL')}, next at "
        f"{datetime.fromtimestamp(one.at, UTC):%Y-%m-%d %H:%M:%S} UTC: {harmless(one.reason)}."
        for one in status.awaited
    ]


def summary_of(status: Status, directory: str, ended: str, recipe: str = "") -> str:
    """Return the last words about a crawl: its result, where its output is, what to do next. A crawl that was stopped
    within a recipe goes on with it, so that its exports are made.
    """
    limit = limit_reached(status)
    how = {
        "finished": "finished",
        "limit": f"ended at its {limit.says(status)}" if limit is not None else "ended at its limit",
        "low_water": "ended with few hosts left, the rest saved",
        "patience": f"finished but for {counted(status.queued, 'URL')} of {counted(status.hosts_left, 'host')}",
    }.get(ended, "stopped, everything saved")
    sums = [counted(status.pages, "page"), size(status.wire_bytes), counted(status.hosts_known, "host")]
    lines = [f"The crawl {how}: {', '.join(sums)} in {duration(status.elapsed_s)}."]
    if errors := errors_of(status):
        lines.append("Not fetched: " + ", ".join(f"{name} {count(n)}" for name, n in errors.items()) + ".")
    if status.seeds is not None and status.seeds.any_fetched:
        lost = [one for one in status.seeds.not_fetched if one.state in LOST]
        lines += ["Seeds not fetched:", *map(_seed_line, lost)] if lost else []
    lines += [f"{says[:1].upper()}{says[1:]}." for says in (*modules_of(status), *unmatched_of(status))]
    lines += waits_of(status) if ended == "patience" else []
    if queued := status.queued:
        command, how = resume_command(harmless(directory), status)
        command = f"the same {recipe} command" if recipe and ended == "stopped" else command
        lines.append(f"Still queued: {count(queued)}; {command} continues{how}.")
    lines += [f"Warning: {warning}." for warning in warnings_of(status)]
    if uploaded := uploads_of(status):
        lines.append(f"Uploaded: {uploaded}.")
    # A directory that cannot be seen from here, of another machine for example, has all of them.
    made = [name for name in OUTPUTS if (Path(directory) / name).exists()] or OUTPUTS
    lines.append(f"Output: {harmless(directory)} ({', '.join(made)}).")
    commands = next_commands(harmless(shell_word(directory)), status, made, recipe)
    width = max(COMMAND_COLUMNS, *(len(command) + 1 for command, _ in commands))
    lines += [f"  {command:<{width}} {says}" for command, says in commands]
    return "\n".join(lines)


def next_commands(word: str, status: Status, made: Collection[str], recipe: str = "") -> list[tuple[str, str]]:
    """Return commands worth typing after a crawl with some outputs, or a recipe, and what each shows."""
    commands = [(f"gossamer report {word}", "statistics")]
    if missing("starlette", "") is None and missing("uvicorn", "") is None:
        commands.append((f"gossamer serve {word}", "dashboard"))
    else:
        commands.append((f"gossamer report {word} --html FILE", "statistics as a page"))
    if errors := errors_of(status):
        commands.append((f"gossamer why {word} URL", "why a URL was not fetched"))
        if not (recipe or status.queued or MAY_PASS.isdisjoint(errors)):
            again = f"gossamer segment build {word} --retry 1 -o FILE"
            commands.append((again, "what failed, to request it again: gossamer crawl --mode offline FILE"))
    command, needs, says = NEXT.get(recipe, NEXT[""])
    if status.pages and needs in made:
        commands.append((command.format(word), says))
    return commands
