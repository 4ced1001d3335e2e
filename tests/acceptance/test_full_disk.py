"""A full disk: one line that says so, nothing lost, and once there is room the crawl ends as it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.shims import preloaded
from tests.crash.crawls import crawl_of
from tests.crash.harvest import Harvest, differences
from tests.crash.killing import undisturbed

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

WEB = SimwebOptions.plain(hosts=4, pages=150, bytes_median=3_000)
CONTACTS_BYTES = 3_940_000
ROOM_BYTES = (8_000, *(CONTACTS_BYTES + more for more in (60_000, 200_000, 400_000, 600_000, 800_000)))
"""How much may be written: not even the store's beginning, then more and more of the crawl."""


@pytest.mark.long
def test_a_full_disk_is_one_clear_line_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calm, web = undisturbed(WEB, tmp_path / "calm")
    full = 0
    for room in ROOM_BYTES:
        place = tmp_path / str(room)
        with SimwebProcess(web, place / "web") as served:
            crawl = crawl_of(served, place / "crawl")
            crawl.directory.mkdir()
            with monkeypatch.context() as patched:
                for key, value in preloaded(SHIM_DIR=str(crawl.directory), SHIM_FULL=str(room)).items():
                    patched.setenv(key, value)
                crawl.start()
                status = crawl.wait()
            if status == 1:
                full += 1
                lines = crawl.complaints.splitlines()
                assert len(lines) == 1, crawl.complaints
                assert "full" in lines[0]
                assert ("gossamer resume" if (crawl.directory / "crawl.toml").exists() else "same command") in lines[0]
                crawl.start()
                status = crawl.wait()
            assert status == 0, crawl.complaints
        assert differences(Harvest(crawl.directory), calm.harvest) == []
        assert Harvest(crawl.directory).faults() == []
    assert full >= len(ROOM_BYTES) - 1
