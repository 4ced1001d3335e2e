"""`kill -9` at any moment: nothing is lost, nothing is there twice, and little is asked for again."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from tests.crash.crawls import EPOCH_PAGES_MAX
from tests.crash.harvest import differences, imbalances
from tests.crash.killing import Story, killed, undisturbed

KILLS = 6
PLAIN = SimwebOptions.plain(hosts=10, pages=300, latency_s=0.03, bytes_median=3_000)
ODD = SimwebOptions(
    hosts=12, pages=100, latency_s=0.03, bytes_median=3_000, retry_after_s=1, oversized_bytes=1_500_000,
    bomb_bytes=2_000_000,
    behaviours=(
        "robots_404", "robots_part", "robots_named", "robots_redirect_host", "redirects", "errors", "bodies", "copies",
        "nofollow", "charsets", "types", "frames", "distinct", "compressed",
    ),
)  # fmt: skip
IMPATIENT = (
    "frontier.retry_s_first=0.1", "politeness.backoff_s_first=0.1", "fetch.body_bytes_max=1000000",
    "archive.warc_segment_bytes_max=500000", "archive.table_segment_rows_max=500",
)  # fmt: skip


@pytest.mark.promise(
    "Crash safety", "Killing any process of a crawl at any moment loses no discovered URL and archives no page twice."
)
@pytest.mark.heavy
@pytest.mark.parametrize(
    "web", [pytest.param(PLAIN, id="plain", marks=pytest.mark.acceptance), pytest.param(ODD, id="odd")]
)
@pytest.mark.long
def test_a_killed_crawl_ends_as_an_undisturbed_one(web: SimwebOptions, tmp_path: Path) -> None:
    calm, web = undisturbed(web, tmp_path / "calm", *IMPATIENT)
    assert (calm.status, calm.again, calm.harvest.faults()) == (0, 0, [])
    story = killed(web, tmp_path / "killed", KILLS, calm.asked, *IMPATIENT)
    check(story, calm)


def check(story: Story, calm: Story) -> None:
    assert story.status == 0, story.crawl.complaints
    assert differences(story.harvest, calm.harvest) == []
    assert story.harvest.faults() == []
    assert story.harvest.check_archives() == []
    assert imbalances(story.crawl.events) == []
    assert imbalances([story.crawl.ask("status")]) == []
    assert story.again <= story.kills * EPOCH_PAGES_MAX
    once = [url for url, count in story.harvest.records.items() if count > 1]
    assert once == [key for key, count in calm.harvest.records.items() if count > 1]
