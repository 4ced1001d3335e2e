"""Kill -9 while files are on their way to an object store: after a resume all is there, whole, and nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.crash.crawls import VICTIMS, crawl_of, until
from tests.crash.harvest import Harvest
from tests.ring.test_uploads import check
from tests.stages.archive.bucket import KEYS, Bucket

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.promise("Files and exports", "Kills during uploads lose no file and upload none twice."),
]

WEB = SimwebOptions.plain(seed=4, hosts=6, pages=150, bytes_median=4000)
SLOW_BYTES_S = 300_000.0


@pytest.mark.parametrize("keep", ["true", "false"])
@pytest.mark.long
def test_kills_while_uploading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with Bucket() as bucket, SimwebProcess(WEB, tmp_path / "web") as web:
        bucket.wire.bytes_s = SLOW_BYTES_S
        settings = ("archive.warc_segment_bytes_max=60_000", f"archive.store_keep_warc={keep}", *bucket.sets)
        crawl = crawl_of(web, tmp_path / "crawl", *settings)
        try:
            crawl.start()
            for kill in range(4):
                passed = bucket.wire.passed
                until(lambda: bucket.wire.passed > passed + 70_000 or not crawl.runs)  # noqa: B023 - called at once
                if not crawl.runs:
                    break
                crawl.kill(VICTIMS[kill % len(VICTIMS)])
                bucket.wire.forget()
                if not crawl.runs:
                    crawl.start()
            assert kill > 2, "it was over before it could be killed"
            bucket.wire.bytes_s = 0.0
            assert crawl.finish() == 0, crawl.complaints
        finally:
            crawl.close()
        check(bucket, crawl.directory, tmp_path / "copy")
        if keep == "true":
            assert Harvest(crawl.directory).faults() == []
        else:
            assert list((crawl.directory / "warc").iterdir()) == []
