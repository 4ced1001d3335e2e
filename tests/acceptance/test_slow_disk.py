"""A disk that takes long to sync holds up the commit, not the fetching."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.shims import preloaded
from tests.acceptance.slow_disk import BEAT_S, Beats

pytestmark = [pytest.mark.acceptance, pytest.mark.alone, pytest.mark.timeout(300)]

SYNC_S = 0.5


@pytest.mark.long
def test_the_loop_goes_on_while_the_disk_syncs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "crawl").mkdir()
    slow = preloaded(SHIM_DIR=str(tmp_path / "crawl"), SHIM_SLOW=str(int(SYNC_S * 1000)))
    with SimwebProcess(SimwebOptions.plain(hosts=3, pages=100), tmp_path / "web") as web:
        arguments = [str(tmp_path / "crawl"), str(web.hosts_file), str(SYNC_S * 0.8), *web.seeds]
        done = subprocess.run(
            [sys.executable, "-m", "tests.acceptance.slow_disk", *arguments],
            env=slow, stdout=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert done.returncode == os.EX_OK
    beats = msgspec.json.decode(done.stdout, type=Beats)
    with capsys.disabled():
        print(
            f"\nslow disk: {beats.commits} commits of {beats.commit_s / beats.commits:.1f} s, "
            f"{beats.while_committing / beats.commit_s:.0f} beats/s of {1 / BEAT_S:.0f} meanwhile, "
            f"{beats.stalls} stalls"
        )
    assert beats.pages >= 100
    assert beats.commits >= 2
    assert beats.commit_s >= beats.commits * SYNC_S
    assert beats.stalls == 0
    assert beats.while_committing >= 10 * beats.commits
