"""Power cuts: a small crawl is ended at its n-th write or sync, resumed, and compared, for one n after the other.

Run with the shim preloaded: `python -m tests.acceptance.power`, a `Series` as JSON on standard input, one `Cut` a line
on standard output. Everything is imported once; each life is a fork, so a death and a recovery cost half a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import importlib
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import uvloop

import gossamer.api.crawler as crawler_module
from gossamer import Crawler
from gossamer.assembly.building import assemble
from gossamer.assembly.values import Shard
from gossamer.config import Config, configure
from gossamer.url.site import site_of
from tests.crash.harvest import Harvest, differences

shim = ctypes.CDLL(None)
SURE = 3
"""After so many crawls in a row that ended before their n-th operation there are no more."""
IMPORTED = "imported.txt"
FINISHED, OTHERWISE, RAISED = 0, 3, 4


class Series(msgspec.Struct):
    """What to do: every `step`-th n from `first` on."""

    root: str
    seeds: tuple[str, ...]
    hosts_file: str
    first: int
    step: int
    keep_thousandths: int
    """How much of what was not synced is there all the same."""
    twice: bool
    """Cut the power a second time, in the recovery."""


class Cut(msgspec.Struct):
    """How one n went."""

    n: int
    died: bool
    died_again: bool = False
    faults: list[str] = []


def cuts(series: Series) -> None:
    """Print how each n went, until crawls end before their n-th operation."""
    config = configured(series)
    root = Path(series.root)
    calm = root / f"calm-{series.first}"
    assert lived(calm, config, series, 0) == FINISHED
    warm(calm)
    n, ended = series.first, 0
    while ended < SURE:
        directory = root / f"cut-{n}"
        cut = one_cut(directory, calm, config, series, n)
        ended = 0 if cut.died else ended + 1
        sys.stdout.buffer.write(msgspec.json.encode(cut) + b"\n")
        sys.stdout.flush()
        if not cut.faults:
            shutil.rmtree(directory)
        n += series.step


def warm(calm: Path) -> None:
    """Import what a crawl has come to import, so that its forks need not."""
    for name in (calm / IMPORTED).read_text().split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    site_of("example.org")


def one_cut(directory: Path, calm: Path, config: Config, series: Series, n: int) -> Cut:
    status = lived(directory, config, series, n)
    cut = Cut(n, died=status == -signal.SIGKILL)
    if cut.died and series.twice:
        status = lived(directory, config, series, n * 7 % 97 + 1)
        cut.died_again = status == -signal.SIGKILL
    if status == -signal.SIGKILL:
        status = lived(directory, config, series, 0)
    if status != FINISHED:
        cut.faults = [f"it ended with {status}"]
    else:
        found = forked(lambda: os._exit(compared(directory, calm)))
        cut.faults = (directory / "faults.txt").read_text().splitlines() if found else []
    return cut


def lived(directory: Path, config: Config, series: Series, n: int) -> int:
    """Crawl or resume in a process of its own that dies at its n-th operation; return how that ended."""

    def live() -> None:
        directory.mkdir(parents=True, exist_ok=True)
        shim.shim_arm(ctypes.c_long(n), str(directory).encode(), ctypes.c_long(series.keep_thousandths))
        resuming = (directory / "crawl.toml").exists()
        hold_to_commits(directory.with_suffix(".epoch"))
        crawler = Crawler(output=directory, config=config, resuming=resuming)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            ended = runner.run(crawler.run())
        if not n:
            (directory / IMPORTED).write_text("\n".join(sys.modules))
        os._exit(FINISHED if ended == "finished" else OTHERWISE)

    return forked(live)


def hold_to_commits(witness: Path) -> None:
    """Note each epoch that is said to be committed, and fail when the state that is opened lacks one."""

    def opened(config: Config, directory: Path, **more: Any) -> Shard:
        shard = assemble(config, directory, **more)
        noted = int(witness.read_text() or 0) if witness.exists() else 0
        epoch = shard.kept.storage.store.epoch
        assert epoch >= noted, f"epoch {noted} was committed, {epoch} is there"
        shard.kept.committer.on_epoch = lambda number: witness.write_text(str(number)) and None
        return shard

    crawler_module.assemble = opened


def compared(directory: Path, calm: Path) -> int:
    """Write in what a crawl differs from the undisturbed one; return whether it does."""
    harvest = Harvest(directory)
    faults = harvest.faults() + differences(harvest, Harvest(calm))
    (directory / "faults.txt").write_text("\n".join(faults))
    return bool(faults)


def forked(work: Callable[[], None]) -> int:
    """Do something in a fork and return its exit status, or the negative of the signal it died of."""
    pid = os.fork()
    if not pid:
        _never_back(work)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _never_back(work: Callable[[], None]) -> NoReturn:
    try:
        work()
    except BaseException:  # noqa: BLE001 - a fork must not go on with its parent's work
        traceback.print_exc()
    os._exit(RAISED)


def configured(series: Series) -> Config:
    """Return the configuration of the small crawl: epochs of two or three pages."""
    sets = ("crawl.commit_pages=3", "crawl.commit_s=0.02", "crawl.concurrency=2", "state.write_buffer_bytes=1048576")
    return configure(
        options={"politeness": "own", "allow_private": True, "hosts": series.hosts_file, "scope": "any"},
        sets=sets,
        seeds=series.seeds,
    )


if __name__ == "__main__":
    cuts(msgspec.json.decode(sys.stdin.buffer.read(), type=Series))
