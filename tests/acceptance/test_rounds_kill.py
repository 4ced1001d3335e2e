"""The loop that the documentation shows, with crawler and builder killed at any moment: the result does not change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.crash.harvest import Harvest
from tests.docs.shown import blocks
from tests.ring.crawls import BRIEF

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(500),
    pytest.mark.promise(
        "Offline crawls",
        "Rounds of fetching and building end with the pages and links of a live crawl, also after kills.",
    ),
]

ROOT = Path(__file__).parents[2]
KILLS = 10
NOTHING_NEW = "0 URLs of 0 sites"
WEB = SimwebOptions(
    seed=9, hosts=6, pages=150, latency_s=0.15, links_per_page=30, bytes_median=3_000, retry_after_s=1,
    behaviours=("robots_404", "robots_part", "robots_redirect_host", "errors", "nofollow"),
)  # fmt: skip


def the_loop() -> str:
    """Return the three lines of docs/how-to/offline.md."""
    (found,) = (block.text for block in blocks(ROOT / "docs/how-to/offline.md") if block.text.endswith("; done\n"))
    assert found.count("\n") == 3
    return found


class Rounds:
    """The loop as people run it: a shell that runs `gossamer`."""

    def __init__(self, directory: Path, simweb: SimwebProcess) -> None:
        self.directory = directory
        (directory / "bin").mkdir(parents=True)
        command = directory / "bin/gossamer"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m gossamer "$@"\n')
        command.chmod(0o755)
        (directory / "seeds.txt").write_text("".join(f"{seed}\n" for seed in simweb.seeds))
        tables: dict[str, list[str]] = {
            "scope": ['scope = "any"'],
            "politeness": ['preset = "own"'],
            "resolve": [f'hosts_file = "{simweb.hosts_file}"', "allow_private = true"],
            "state": ['hosts_store = "hosts"'],
            "progress": ['style = "quiet"'],
            "crawl": ["commit_pages = 20", "concurrency = 8"],
        }
        for setting in BRIEF:
            key, _, value = setting.partition("=")
            section, _, name = key.partition(".")
            tables.setdefault(section, []).append(f"{name} = {value}")
        text = "".join(f"[{section}]\n" + "\n".join(lines) + "\n" for section, lines in tables.items())
        (directory / "web.toml").write_text(text)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Run the loop, from its first line."""
        path = f"{self.directory / 'bin'}:{os.environ['PATH']}"
        with (self.directory / "errors").open("ab") as errors:
            self.process = subprocess.Popen(
                ["sh", "-c", the_loop()], cwd=self.directory, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PATH": path}, start_new_session=True,
            )  # fmt: skip

    def kill_one(self, dice: Random) -> str:
        """End a process that the loop has started, or the loop with all of them; return whom."""
        assert self.process is not None
        everybody = [self.process.pid, *descendants(self.process.pid)]
        victim = dice.choice(everybody)
        named = "the loop" if victim == self.process.pid else command_of(victim)
        victims = everybody if victim == self.process.pid else [victim]
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return named

    def ended(self) -> bool:
        """Say whether the loop has come to an end, whichever."""
        return self.process is None or self.process.poll() is not None

    def finish(self) -> None:
        """Wait for the loop's end, which must be that nothing is new."""
        assert self.process is not None
        assert self.process.wait(200) == 0
        said = (self.directory / "errors").read_text()
        assert NOTHING_NEW in said.splitlines()[-1], said[-2_000:]

    def close(self) -> None:
        """Leave nothing running."""
        if self.process is not None:
            for pid in [self.process.pid, *descendants(self.process.pid)]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()

    def result(self) -> tuple[dict[str, tuple[object, ...]], set[tuple[object, ...]], int]:
        """Return what became of each URL, every link, and in how many rounds; each URL is in one of them."""
        finals: dict[str, tuple[object, ...]] = {}
        links: set[tuple[object, ...]] = set()
        number = 0
        while (self.directory / str(number)).exists():
            harvest = Harvest(self.directory / str(number))
            assert harvest.faults() == []
            assert not finals.keys() & harvest.finals.keys()
            finals |= harvest.finals
            links |= set(harvest.links)
            number += 1
        return finals, links, number


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [one for child in listed for one in (int(child), *descendants(int(child)))]


def command_of(pid: int) -> str:
    try:
        return " ".join(Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[2:6])
    except OSError:
        return ""


@pytest.mark.long
def test_the_loop_ends_alike_whatever_is_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        calm = Rounds(tmp_path / "calm", simweb)
        began = time.monotonic()
        calm.start()
        calm.finish()
        took_s = time.monotonic() - began
        expected = calm.result()
        killed = Rounds(tmp_path / "killed", simweb)
        dice, whom = Random(1), []
        try:
            while len(whom) < KILLS:
                killed.start()
                while not killed.ended() and len(whom) < KILLS:
                    time.sleep(dice.uniform(0.2, 1.5 * took_s / KILLS))
                    if not killed.ended():
                        whom.append(killed.kill_one(dice))
                assert killed.process is not None
                if len(whom) < KILLS:
                    killed.process.wait(60)
            killed.close()
            killed.start()
            killed.finish()
        finally:
            killed.close()
    with capsys.disabled():
        builders, loops = sum("segment" in one for one in whom), whom.count("the loop")
        print(
            f"\nrounds: {expected[2]} in {took_s:.0f} s; {KILLS} kills: {builders} of the builder, {loops} of all, "
            f"{KILLS - builders - loops} of the crawler or its supervisor"
        )
    assert killed.result() == expected
