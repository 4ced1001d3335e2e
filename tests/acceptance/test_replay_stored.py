"""Pywb replays a crawl whose WARC files are in a store alone: by the index that `export` makes of that store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.replay import VENV, Pywb
from tests.acceptance.test_workers import crawl_of, gossamer
from tests.stages.archive.bucket import KEYS, NAME, Bucket

WEB = SimwebOptions(seed=4, hosts=4, pages=60, bytes_median=2_000, behaviours=("redirects", "copies"))


@pytest.mark.acceptance
@pytest.mark.promise("Files and exports", "Pywb replays a crawl from the object store that has its WARC files.")
@pytest.mark.parametrize("scheme", ["s3", "file"])
@pytest.mark.long
def test_pywb_replays_from_a_store(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scheme != "s3" or list(VENV.glob("lib/*/site-packages/boto3")), "`make acceptance` installs boto3 for pywb"
    with Bucket() as bucket, SimwebProcess(WEB, tmp_path / "web") as web:
        settings = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": bucket.options["endpoint"]}
        for name, value in {**KEYS, **settings}.items():
            monkeypatch.setenv(name, value)
        uri = f"s3://{NAME}/crawls/four" if scheme == "s3" else f"file://{tmp_path}/store"
        places = (f"state.checkpoint_uri='{uri}'", bucket.sets[1], "archive.store_keep_warc=false")
        done = gossamer(*crawl_of(web, tmp_path / "crawl", 1, *places))
        assert done.returncode == 0, done.stderr
        assert list((tmp_path / "crawl/warc").iterdir()) == []
        pywb = Pywb(tmp_path / "pywb")
        pywb.at.mkdir()
        done = gossamer("export", uri, "--to", "cdxj", "-o", pywb.at / "crawl.cdxj", "--set", bucket.sets[1])
        assert done.returncode == 0, done.stderr
        collection = {"index_paths": str(pywb.at / "crawl.cdxj"), "archive_paths": f"{uri}/warc/"}
        (pywb.at / "config.yaml").write_text(json.dumps({"collections": {"crawl": collection}}))
        entries = [json.loads(line.split(" ", 2)[2]) for line in (pywb.at / "crawl.cdxj").read_text().splitlines()]
        pages = [one for one in entries if one["status"] == "200" and one.get("mime") == "text/html"]
        with pywb:
            for one in pages[:: len(pages) // 20]:
                replayed = pywb.get("crawl", one["url"])
                assert (replayed.status, replayed.body[:1]) == (200, b"<"), one
            [copy, *_] = [one for one in entries if one.get("mime") == "warc/revisit"] or [pages[0]]
            assert pywb.get("crawl", copy["url"]).body
