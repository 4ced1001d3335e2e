"""A continuous crawl in real time against pages that change, killed at random moments: what it asks, and how often, and
that no page's due time is lost.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections import defaultdict
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gossamer.features.revisit.state import decode_memory
from gossamer.lab.simweb.judge import Promise, judge
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.web import Web
from gossamer.stages.frontier.record import decode_entry
from gossamer.state.store import Store
from tests.ring.crawls import BRIEF, CommandLine, command_line, rows, until

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(300),
    pytest.mark.promise("Continuous crawls", "A page that is revisited has one due time, which no crash loses."),
]

WEB = SimwebOptions.plain(
    hosts=6, pages=90, changing_share=0.7, change_s_median=6.0, change_sigma=1.0, names_per_address=1,
    bytes_median=25_000, links_per_page=15.0,
)  # fmt: skip
KILLS = 4
INTERVAL_S_MAX = 8.0
EDGE_S = 1.5
"""Between the start of a request, as the crawl has it, and the instant at which the server looked: what takes longer
is ended by `BRIEF`.
"""
DELAY_S = 0.05
ORDINARY = re.compile(r"/(?:[a-z]+/p(\d+)\.html)?")
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


def asked_since(simweb: SimwebProcess, began: float) -> set[tuple[str | None, str]]:
    return {(one.host, one.path) for one in simweb.requests() if one.started_at >= began}


def check_conditions(web: Web, table: list[dict[str, object]]) -> tuple[int, int]:
    """Assert that what did not change was not sent again, and what did was, whatever died between; return the bytes
    received and those that were spared.
    """
    received = spared = pairs = 0
    by_page: dict[str, list[dict[str, object]]] = defaultdict(list)
    for row in table:
        received += int(str(row["wire_bytes"]))
        if row["outcome"] in ("fetched", "not_modified"):
            by_page[str(row["url"])].append(row)
    for address, visits in by_page.items():
        parts = urlsplit(address)
        host, ordinary = web.host(parts.hostname or ""), ORDINARY.fullmatch(parts.path)
        if host is None or ordinary is None:
            continue
        whole = max(int(str(row["wire_bytes"])) for row in visits)
        for before, row in pairwise(sorted(visits, key=instant)):
            began, ended = instant(before), instant(row)
            changes = web.changing.changes(host.index, int(ordinary[1] or 0), began - EDGE_S, ended + EDGE_S)
            if any(abs(at - edge) <= EDGE_S for at in changes for edge in (began, ended)):
                continue  # Nobody knows which of the two came first.
            assert row["outcome"] == ("fetched" if changes else "not_modified"), (address, ended)
            pairs += 1
            spared += whole - int(str(row["wire_bytes"])) if row["outcome"] == "not_modified" else 0
    assert pairs > 60
    return received, spared


def instant(row: dict[str, object]) -> float:
    at = row["fetched_at"]
    assert isinstance(at, datetime)
    return at.timestamp()


@pytest.mark.long
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
        # What was due while nobody ran is visited by whoever comes next, page by page.
        began = restarts[-1]
        wanted = {(urlsplit(address).hostname, urlsplit(address).path) for address in known}
        until(lambda: wanted <= asked_since(simweb, began), timeout_s=60.0)
        assert running.process is not None
        running.process.send_signal(signal.SIGINT)
        assert running.wait() == 130, running.errors.read_text()
        due = due_times(directory)
        assert set(known) <= set(due)
        known = due
        log = simweb.requests()

    assert len(known) > 60
    promise = Promise(delay_s_min=DELAY_S, factor=10.0, delay_s_max=1.0, address_delay_s=0.01)
    violations = judge(log, promise, simweb.web, restarts=restarts)
    assert [one for one in violations if one.kind != "repeated"] == []  # To ask again is what it is for.
    table = rows(directory / "pages")
    received, spared = check_conditions(simweb.web, table)
    assert spared > 0.25 * (received + spared)
    with capsys.disabled():
        print(
            f"\ncontinuous: {len(table)} visits to {len(known)} pages, {KILLS} kills; {received / 1e6:.1f} MB "
            f"received, {spared / 1e6:.1f} MB spared by conditional requests ({spared / (received + spared):.0%})"
        )
