"""Watchdogs with real causes: a stopped process, a loop that stands still, a slow disk, few open files."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.shims import preloaded
from tests.crash.crawls import Crawl, crawl_of, environment, until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

STANDING = """
import pathlib, time

class Standing:
    go_on = pathlib.Path(__file__).with_name("go-on")
    def level(self, link):
        while link.depth > 0 and not self.go_on.exists():
            time.sleep(0.05)
        return 0
"""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[SimwebProcess]:
    options = SimwebOptions.plain(hosts=4, pages=400, bytes_median=3_000, latency_s=0.02)
    with SimwebProcess(options, tmp_path / "web") as served:
        yield served


@pytest.fixture
def crawl(web: SimwebProcess, tmp_path: Path) -> Iterator[Crawl]:
    crawl = crawl_of(
        web, tmp_path / "crawl", "watch.look_s=0.05", "watch.stall_s=0.5", "watch.commit_s_max=0.5",
        "crawl.concurrency=2",
    )  # fmt: skip
    yield crawl
    crawl.close()


def status_text(crawl: Crawl) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gossamer", "status", str(crawl.directory)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)


def alarms(crawl: Crawl) -> dict[str, str]:
    found = crawl.ask("status")["alarms"]
    assert isinstance(found, list)
    return {alarm["name"]: alarm["says"] for alarm in found}


def logged(crawl: Crawl, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (crawl.directory / "logs" / name).read_bytes().splitlines()]


def alarm(crawl: Crawl, name: str) -> str:
    """Wait for an alarm; return what it says."""
    found: list[str] = []
    until(lambda: found.append(alarms(crawl).get(name, "")) or found[-1])
    return found[-1]


def begun(crawl: Crawl) -> None:
    crawl.start()
    until(lambda: '"pages": 1' in crawl.said() or '"pages": 2' in crawl.said())


@pytest.mark.long
def test_a_stopped_process_is_reported_from_outside_and_from_within_when_it_goes_on(crawl: Crawl) -> None:
    begun(crawl)
    child = crawl.child()
    os.kill(child, signal.SIGSTOP)
    try:
        done = status_text(crawl)
    finally:
        os.kill(child, signal.SIGCONT)
    assert done.returncode == 2
    assert f"kill -CONT {child}" in done.stderr
    assert "stalled for" in alarm(crawl, "loop")
    until(lambda: "the event loop stalled" in crawl.said())


@pytest.mark.long
def test_a_loop_that_stands_still_is_reported_with_the_place_where_it_stands(
    crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "standing.py").write_text(STANDING)
    monkeypatch.setattr("tests.crash.crawls.SOURCE", f"{environment()['PYTHONPATH']}{os.pathsep}{tmp_path}")
    crawl.arguments += ("--set", "components.prioritizer=standing:Standing")
    crawl.start()
    stalled = crawl.directory / "state/stalled.json"
    until(stalled.exists)
    told: list[subprocess.CompletedProcess[str]] = []
    # A busy machine may have it stand elsewhere before.
    until(lambda: told.append(status_text(crawl)) or "standing.py" in told[-1].stderr)
    assert told[-1].returncode == 2
    assert "its event loop has been stalled for" in told[-1].stderr
    (tmp_path / "go-on").touch()
    until(lambda: not stalled.exists())
    until(lambda: any("time.sleep(0.05)" in stack for stack in stacks(crawl)))


def stacks(crawl: Crawl) -> list[str]:
    """Return where the loop stood, of each time that it was logged."""
    return [str(one["stack"]) for one in logged(crawl, "critical.log") if one["event"] == "loop_stalled"]


@pytest.mark.long
def test_a_commit_that_waits_for_the_disk_is_reported_with_its_stage(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl.directory.mkdir()
    for key, value in preloaded(SHIM_DIR=str(crawl.directory), SHIM_SLOW="1500").items():
        monkeypatch.setenv(key, value)
    crawl.start()
    monkeypatch.delenv("LD_PRELOAD")
    until(lambda: "commit" in alarms(crawl) if (crawl.directory / "state/control.sock").exists() else False)
    until(lambda: any("waiting for the disk" in says for says in alarms(crawl).values()))
    until(lambda: "over: a commit takes long" in crawl.said())


@pytest.mark.long
def test_few_open_files_mean_fewer_requests_and_too_few_are_refused(crawl: Crawl) -> None:
    crawl.arguments += ("--set", "crawl.concurrency=256")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (700, before[1]))
    try:
        begun(crawl)
        raised = crawl.ask("status")["watch"]
        crawl.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert isinstance(raised, dict)
    assert raised["open_files_max"] > 1_100, "the soft limit goes up by itself"
    for limit, status in ((700, 0), (600, 2), (20, 2)):
        command = f"ulimit -n {limit} && exec {sys.executable} -m gossamer resume {crawl.directory} --max-time 2 --json"
        done = subprocess.run(["sh", "-c", command], env=environment(), capture_output=True, text=True, timeout=200)
        assert done.returncode == status, done.stderr
        if status:
            assert "ulimit" in done.stderr
            assert done.stderr.count("\n") == 1
        else:
            assert "20 requests at once instead of 256" in done.stdout
