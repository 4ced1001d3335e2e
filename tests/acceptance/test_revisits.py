"""A continuous crawl in real time against pages that change, killed at random moments: what it asks, and how often, and
that no page's due time is lost.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import defaultdict
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from gossamer.frontier.record import decode_entry
from gossamer.revisit.memory import decode_memory
from gossamer.simweb.judge import Promise, judge
from gossamer.simweb.log import Logged
from gossamer.simweb.options import SimwebOptions
from gossamer.simweb.process import SimwebProcess
from gossamer.simweb.web import Web
from gossamer.state.store import Store
from tests.ring.crawls import BRIEF, CommandLine, command_line, until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(150)]

WEB = SimwebOptions.plain(
    hosts=6, pages=90, changing_share=0.7, change_s_median=6.0, change_sigma=1.0, names_per_address=1,
    bytes_median=25_000, links_per_page=15.0,
)  # fmt: skip
KILLS = 4
INTERVAL_S_MAX = 8.0
DELAY_S = 0.05
ALL = (b"\0\0", b"\xff\xff")
SETS = (
    *BRIEF, "politeness.preset='polite'", f"politeness.delay_s_min={DELAY_S}", "politeness.delay_s_max=1.0",
    "politeness.address_delay_s=0.01", "revisit.interval_s_mean=3.0", "revisit.interval_s_min=0.5",
    f"revisit.interval_s_max={INTERVAL_S_MAX}", "revisit.failed_s_first=0.5",
)  # fmt: skip


def kill(running: CommandLine) -> None:
    """End supervisor and child at once, as a power cut would."""
    assert running.process is not None
    child = until(lambda: running.child)
    running.process.kill()
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    running.wait()
    until(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split())


def opened(path: Path) -> Store | None:
    """Return the store once the threads of the dead have let go of it."""
    with suppress(OSError):
        return Store(path)
    return None


def due_times(directory: Path) -> dict[str, float]:
    """Return when each page is due, and assert that its memory and the frontier agree on that."""
    store = until(lambda: opened(directory / "state/store"))
    try:
        memories = {key: decode_memory(data) for key, data in store.scan("revisit", *ALL)}
        waiting: dict[bytes, list[float]] = defaultdict(list)
        again = set()
        for key, data in store.scan("due", *ALL):
            waiting[key[:2] + key[-8:]].append(int.from_bytes(key[-16:-8]) / 1e6)
            if decode_entry(data).revisit:
                again.add(key[:2] + key[-8:])
    finally:
        store.close()
    assert again <= set(memories)
    for key, memory in memories.items():
        assert memory.due_at
        assert len(waiting[key]) == 1, f"{memory.address} is due {len(waiting[key])} times"
        assert waiting[key][0] == pytest.approx(memory.due_at, abs=2e-6)
    return {memory.address: memory.due_at for memory in memories.values()}


def by_page(log: list[Logged]) -> dict[tuple[str, str], list[Logged]]:
    found: dict[tuple[str, str], list[Logged]] = defaultdict(list)
    for one in sorted(log, key=lambda one: one.started_at):
        if one.path != "/robots.txt" and one.host != "-":
            found[one.host, one.path].append(one)
    return found


def check_conditions(web: Web, log: list[Logged], deaths: list[float]) -> tuple[int, int]:
    """Assert that what did not change was not sent again, and what did was; return bytes sent and bytes spared."""
    sent = spared = pairs = 0
    for (name, path), visits in by_page(log).items():
        host = web.host(name)
        assert host is not None
        number = 0 if path == "/" else int(path.rpartition("/p")[2].removesuffix(".html"))
        sent += sum(one.sent_bytes for one in visits)
        whole = max(one.sent_bytes for one in visits)
        for before, one in pairwise(visits):
            if any(before.started_at < death < one.ended_at + 1.0 for death in deaths) or not (
                before.whole and one.whole
            ):
                continue  # What it knew of the page may have died with it.
            changes = web.changing.changes(host.index, number, before.started_at - 0.2, one.ended_at + 0.2)
            if any(abs(at - edge) < 0.2 for at in changes for edge in (before.started_at, one.ended_at)):
                continue
            assert one.status == (200 if changes else 304), (name, path, one.started_at)
            pairs += 1
            spared += (whole - one.sent_bytes) if one.status == 304 else 0
    assert pairs > 100
    return sent, spared


def test_it_is_polite_thrifty_and_loses_no_due_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, draw = tmp_path / "crawl", random.Random(11)
    deaths: list[float] = []
    restarts: list[float] = []
    known: dict[str, float] = {}
    with SimwebProcess(WEB, tmp_path / "web") as simweb, command_line(directory) as running:
        options = {"hosts": str(simweb.hosts_file), "mode": "continuous", "scope": "any"}
        running.crawl(tuple(simweb.web.fronts), *SETS, **options)
        until((directory / "state/store").exists)
        time.sleep(2.0)
        for _ in range(KILLS):
            running.until_commit()
            time.sleep(draw.uniform(0.2, 2.5))
            kill(running)
            deaths.append(time.time())
            due = due_times(directory)
            assert set(known) <= set(due), "no page is forgotten"
            known = due
            restarts.append(time.time())
            running.start("resume", str(directory), "--quiet")
        running.until_commit()
        time.sleep(8.0)
        assert running.process is not None
        running.process.send_signal(signal.SIGINT)
        ended_at = time.time()
        assert running.wait() == 130, running.errors.read_text()
        due = due_times(directory)
        assert set(known) <= set(due)
        known = due
        log = simweb.requests()

    assert len(known) > 60
    promise = Promise(delay_s_min=DELAY_S, factor=10.0, delay_s_max=1.0, address_delay_s=0.01)
    violations = judge(log, promise, simweb.web, restarts=restarts)
    assert [one for one in violations if one.kind != "repeated"] == []  # To ask again is what it is for.
    # All pages came back, again and again: what was due while nobody ran was visited soon after.
    down_s = max(restart - death for death, restart in zip(deaths, restarts, strict=True))
    for page, visits in by_page(log).items():
        gaps = [after - before for before, after in pairwise([*(one.started_at for one in visits), ended_at])]
        assert max(gaps) <= INTERVAL_S_MAX * 1.05 + down_s + 8.0, page
    sent, spared = check_conditions(simweb.web, log, deaths)
    assert spared > 0.4 * (sent + spared)
    with capsys.disabled():
        visits_count = sum(map(len, by_page(log).values()))
        print(
            f"\ncontinuous: {visits_count} visits to {len(known)} pages, {KILLS} kills; {sent / 1e6:.1f} MB sent, "
            f"{spared / 1e6:.1f} MB spared by conditional requests ({spared / (sent + spared):.0%})"
        )
