"""A disk that fills up: the crawl pauses before it is full, says so, and goes on when there is room again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.crash.crawls import crawl_of, until
from tests.crash.harvest import Harvest, differences
from tests.crash.killing import undisturbed

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(300),
    pytest.mark.promise("Bounds", "A crawl pauses before its disk is full and continues by itself."),
]

WEB = SimwebOptions.plain(hosts=4, pages=150, bytes_median=3_000)
NOTE = '"note": "paused for want of room'
DISK_BYTES = 96 << 20
KEPT_FREE_BYTES = 40 << 20
LEFT_BYTES = KEPT_FREE_BYTES + (1 << 20)
"""Somebody else fills the disk until so much is left: the crawl itself takes the rest."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, small."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def free_bytes(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


def fill(disk: Path, left_bytes: int) -> Path:
    """Leave so much of a disk to others."""
    ballast = disk / "ballast"
    with ballast.open("ab") as file:
        while (more := free_bytes(disk) - left_bytes) > 0:
            file.write(bytes(min(more, 1 << 20)))
            file.flush()
    return ballast


def test_a_crawl_pauses_before_its_disk_is_full_and_goes_on_with_nothing_lost(disk: Path, tmp_path: Path) -> None:
    calm, web = undisturbed(WEB, tmp_path / "calm")
    with SimwebProcess(web, tmp_path / "web") as served:
        ballast = fill(disk, LEFT_BYTES)
        crawl = crawl_of(
            served, disk / "crawl", f"watch.disk_free_bytes_min={KEPT_FREE_BYTES}", "watch.look_s=0.05",
            "crawl.concurrency=4",
        )  # fmt: skip
        crawl.start()
        until(lambda: NOTE in crawl.said() or not crawl.runs)
        assert crawl.runs, crawl.complaints
        status = crawl.ask("status")
        assert status["state"] == "paused"
        assert "watch.disk_free_bytes_min" in str(status["waiting_for"])
        assert str(disk) in str(status["waiting_for"])
        waiting, alarms = status["waiting"], status["alarms"]
        assert isinstance(waiting, dict)
        assert waiting["kind"] == "disk"
        assert isinstance(alarms, list)
        assert [alarm["name"] for alarm in alarms] == ["disk"]
        until(lambda: crawl.ask("status")["in_flight"] == 0)
        held = crawl.ask("status")
        assert free_bytes(disk) > 0, "it paused before the disk was full"
        assert int(str(held["queued"])) > 0
        fill(disk, KEPT_FREE_BYTES - (8 << 20))  # A restart tidies up, and so makes room.
        crawl.kill("child")  # It pauses again, and nothing is lost by that either.
        until(lambda: crawl.said().count(NOTE) == 2)
        assert crawl.ask("status")["pages"] == held["pages"], "nothing was begun while there was no room"
        ballast.unlink()
        assert crawl.wait() == 0, crawl.complaints
    assert any("over: paused for want of room" in str(event.get("note")) for event in crawl.events)
    assert differences(Harvest(crawl.directory), calm.harvest) == []
    assert Harvest(crawl.directory).faults() == []
