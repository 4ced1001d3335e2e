"""Status view: a status in full, once or refreshed: counts, rates over time, levels, hosts, shards, health."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from gossamer.cli.output import count, harmless, obeys_escapes, size, write_line
from gossamer.cli.status_text import (
    Status,
    errors_of,
    modules_of,
    number,
    revisits_of,
    seeds_not_fetched_lines,
    state_of,
    to_upload_of,
    uploaded_of,
    warnings_of,
)
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
INTERVAL_S = 1.0
PLAIN_INTERVAL_S = 5.0
CLEAR, HOME, ERASE_LINE, ERASE_BELOW = "\x1b[2J\x1b[H", "\x1b[H", "\x1b[K", "\x1b[J"
ALTERNATE_ON, ALTERNATE_OFF = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def status_text(status: Mapping[str, object]) -> str:
    """Return a status for people."""
    rows = [
        ("state", state_of(status)),
        ("pages", _with_limit(status, "pages", "max_pages")),
        ("attempts", count(number(status, "attempts"))),
        ("discovered", count(number(status, "discovered"))),
        ("queued", count(number(status, "queued"))),
        ("in flight", count(number(status, "in_flight"))),
        ("done with", count(number(status, "terminal"))),
        ("rate", f"{number(status, 'pages_s'):.1f} pages/s, {size(number(status, 'bytes_s'))}/s"),
        ("received", size(number(status, "wire_bytes"))),
        ("content", size(number(status, "body_bytes"))),
        ("hosts", ", ".join(f"{count(number(status, f'hosts_{k}'))} {k}" for k in ("known", "active", "left"))),
        ("budgets", budgets_of(status)),
        *picture_rows(status),
        ("time", duration(number(status, "elapsed_s"))),
        ("epoch", count(number(status, "epoch"))),
        ("seeds", "\n             ".join(seeds_not_fetched_lines(status)) if has_ended(status) else ""),
        ("not fetched", ", ".join(f"{name} {count(n)}" for name, n in errors_of(status).items())),
        ("rejected", _counts(status.get("rejected"))),
        *(("failing", says) for says in modules_of(status)),
        ("uploaded", uploaded_of(status)),
        ("to upload", to_upload_of(status)),
    ]
    rows[4:4] = revisits_of(status)
    shards = status.get("shards")
    if isinstance(shards, list) and len(shards) > 1:  # One alone is the crawl, and all that stands above is told of it.
        rows += [("shard", _shard_counts(one)) for one in shards if isinstance(one, Mapping)]
    rows += [("warning", warning) for warning in warnings_of(status)]
    traps = status.get("traps")
    rows += [("trap", harmless(trap)) for trap in traps] if isinstance(traps, list) else []
    return "\n".join(f"{name:<12} {value}" for name, value in rows if value)


def has_ended(status: Mapping[str, object]) -> bool:
    """Say whether the crawl ended by itself: not one that runs, was stopped or has died."""
    return status.get("ended") not in ("", "stopped", None)


def _shard_counts(one: Mapping[str, object]) -> str:
    told = [
        f"{count(number(one, 'shard'))}: {harmless(one.get('state', ''))}",
        f"{count(number(one, 'pages'))} pages",
        f"{count(number(one, 'queued'))} queued",
        f"{number(one, 'pages_s'):.1f}/s",
    ]
    if deaths := number(one, "deaths"):
        told.append(f"started again {'once' if deaths == 1 else f'{count(deaths)} times'}")
    return ", ".join(told)


def budgets_of(status: Mapping[str, object]) -> str:
    """Return the budget round and how many hosts wait for the next; nothing without budgets."""
    if "budget_round" not in status:
        return ""
    waiting = number(status, "hosts_deferred")
    who = "1 host waits" if waiting == 1 else f"{count(waiting)} hosts wait"
    return f"round {count(number(status, 'budget_round'))}, {who} for the next"


def _with_limit(status: Mapping[str, object], key: str, limit: str) -> str:
    bound = number(status, limit)
    return count(number(status, key)) + (f" of {count(bound)}" if bound else "")


def _counts(counts: object) -> str:
    if not isinstance(counts, Mapping):
        return ""
    return ", ".join(f"{harmless(name)} {n:,}" for name, n in counts.items() if n)


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


def watch(text: Callable[[], tuple[str, bool]]) -> int:
    """Show what `text` returns until it says that the crawl is over, or `q` or Ctrl-C is typed; the last one stays."""
    if not (obeys_escapes(sys.stdout) and sys.stdin.isatty()):
        return _plain(text)
    shown = ""
    with _screen() as keyboard:
        over = False
        while not over:
            shown, over = text()
            size = os.get_terminal_size(sys.stdout.fileno())
            lines = [line[: size.columns] for line in shown.splitlines()][: size.lines - 2]
            body = "".join(f"{line}{ERASE_LINE}\r\n" for line in [*lines, "", "q: quit"][: size.lines - 1])
            sys.stdout.write(HOME + body + ERASE_BELOW)
            sys.stdout.flush()
            if _quits(keyboard):
                break
    write_line(sys.stdout, shown)
    return 0


def _plain(text: Callable[[], tuple[str, bool]]) -> int:
    while True:
        shown, over = text()
        write_line(sys.stdout, shown + "\n")
        if over:
            return 0
        time.sleep(PLAIN_INTERVAL_S)


@contextmanager
def _screen() -> Iterator[int]:
    """Take the terminal's second screen and single keys; give both back, whatever happens."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        sys.stdout.write(ALTERNATE_ON + CLEAR)
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        sys.stdout.write(ALTERNATE_OFF)
        sys.stdout.flush()


def _quits(keyboard: int) -> bool:
    """Wait for the next refresh; say whether `q` was typed meanwhile."""
    until = time.monotonic() + INTERVAL_S
    while (left_s := until - time.monotonic()) > 0:
        if not select.select([keyboard], [], [], left_s)[0]:
            return False
        typed = os.read(keyboard, 64)
        if not typed or b"q" in typed.lower() or b"\x03" in typed:
            return True
    return False
