"""Fifty kills in one crawl, spread evenly over it, in turns of the child, the supervisor and both."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from tests.crash.killing import killed, undisturbed
from tests.crash.test_kill import IMPATIENT, check

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400)]

KILLS = 50
WEB = SimwebOptions.plain(hosts=20, pages=2_000, latency_s=0.03, bytes_median=3_000)


@pytest.mark.promise(
    "Crash safety", "Killing any process of a crawl at any moment loses no discovered URL and archives no page twice."
)
@pytest.mark.long
def test_fifty_kills_lose_nothing_and_repeat_little(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calm, web = undisturbed(WEB, tmp_path / "calm", *IMPATIENT)
    assert (calm.status, calm.again, calm.harvest.faults()) == (0, 0, [])
    story = killed(web, tmp_path / "killed", KILLS, calm.asked, *IMPATIENT)
    with capsys.disabled():
        print(
            f"\nkill -9: {story.kills} kills, {len(story.harvest.finals)} pages, {story.again / KILLS:.1f} fetched "
            f"again per kill, {story.seconds:.0f} s (undisturbed {calm.seconds:.0f} s)"
        )
    check(story, calm)
