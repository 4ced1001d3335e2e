"""A crawl whose files go to an object store: a real S3 server that is slow, away for a while, or refuses."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gossamer
from gossamer import Crawler
from gossamer.api.status import status_of
from gossamer.cli.status_view import status_text
from gossamer.config import configure
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.status import read_status
from tests.ring.crawls import OWN, command_line, rows, until
from tests.stages.archive import strict
from tests.stages.archive.bucket import KEYS, Bucket

WEB = SimwebOptions.plain(seed=4, hosts=6, pages=150, bytes_median=4000)
FILES = ("archive.warc_segment_bytes_max=60_000",)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimwebProcess]:
    with SimwebProcess(WEB, tmp_path_factory.mktemp("web")) as simweb:
        yield simweb


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with Bucket() as one:
        yield one


def crawler(web: SimwebProcess, directory: Path, *sets: str) -> Crawler:
    options = {"allow_private": True, "hosts": str(web.hosts_file), "scope": "any"}
    return Crawler(output=directory, config=configure(options=options, sets=(*OWN, *FILES, *sets), seeds=web.seeds))


def fetched(bucket: Bucket, directory: Path) -> Path:
    """Copy a crawl out of its bucket."""
    for name, data in bucket.objects().items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(data)
    return directory


def check(bucket: Bucket, crawl: Path, directory: Path) -> None:
    """What is in the bucket is the whole crawl, sound, each file written once."""
    copy = fetched(bucket, directory)
    names = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
    local = {
        str(path.relative_to(crawl))
        for path in crawl.glob("*/*")
        if path.parent.name not in ("logs", "state")
    }  # fmt: skip
    assert local <= names
    assert all((crawl / name).read_bytes() == (copy / name).read_bytes() for name in local | {"index.cdxj"})
    warcs = sorted((copy / "warc").iterdir())
    assert strict.faults(warcs) == []
    check = subprocess.run(["sha256sum", "-c", "manifest-sha256.txt"], cwd=copy, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr
    assert len(check.stdout.splitlines()) == len(names) - 1, "all but the manifest itself"
    archived = {(record.file, record.offset) for path in warcs for record in strict.read(path)}
    pages = rows(copy / "pages")
    assert len(pages) == len({(row["url"], row["attempt"]) for row in pages})
    answered = [row for row in pages if row["warc_file"]]
    assert {(row["warc_file"], row["warc_offset"]) for row in answered} <= archived
    entries = [json.loads(line.split(b" ", 2)[2]) for line in (copy / "index.cdxj").read_bytes().splitlines()]
    assert {(one["filename"], int(one["offset"])) for one in entries} <= archived
    assert len(entries) == len(answered) >= len({row["url"] for row in pages})
    written = bucket.written()
    assert {name for name, count in written.items() if count > 1} <= {"manifest-sha256.txt", "index.cdxj"}


def check_resumed(bucket: Bucket, crawl: Path, copy: Path) -> None:
    """A crawl that ended before its uploads did makes up for them over a quick wire."""
    bucket.wire.forget()
    bucket.wire.bytes_s = 0.0
    with command_line(crawl) as cli:
        cli.start("resume", str(crawl), "--quiet")
        assert cli.wait() == 0
    check(bucket, crawl, copy)


@pytest.mark.heavy
@pytest.mark.promise(
    "Files and exports", "A file counts as uploaded to an object store only after its content there was verified."
)
@pytest.mark.parametrize("keep", ["true", "false"])
def test_the_whole_crawl_is_in_the_bucket(web: SimwebProcess, bucket: Bucket, tmp_path: Path, keep: str) -> None:
    one = crawler(web, tmp_path / "crawl", *bucket.sets, f"archive.store_keep_warc={keep}")
    assert asyncio.run(one.run()) == "finished"
    check(bucket, tmp_path / "crawl", tmp_path / "copy")
    warcs = len(list((tmp_path / "copy/warc").iterdir()))
    assert warcs > 3
    assert len(list((tmp_path / "crawl/warc").iterdir())) == (warcs if keep == "true" else 0)
    uploads = one.status()["uploads"]
    assert isinstance(uploads, dict)
    others = sum(1 for path in (tmp_path / "copy").glob("*/*.parquet"))
    assert (uploads["waiting_files"], uploads["uploaded_files"], uploads["error"]) == (0, warcs + others, "")
    assert {path.parent.name for path in (tmp_path / "copy").glob("*/*.parquet")} >= {"pages", "links"}
    assert status_of(tmp_path / "crawl")["uploads"] == uploads


@pytest.mark.heavy
def test_a_server_that_is_away_for_a_while_holds_up_nobody(web: SimwebProcess, bucket: Bucket, tmp_path: Path) -> None:
    bucket.wire.cut()
    one = crawler(web, tmp_path / "crawl", *bucket.sets)
    notes: list[str] = []
    backlog: list[int] = []

    async def main() -> str:
        crawling = asyncio.create_task(one.run())
        while not crawling.done():  # It comes back when the crawl itself is over.
            await asyncio.wait([crawling], timeout=0.02)
            status = one.status()
            if status["state"] == "finished" and bucket.wire.is_cut:
                uploads = status["uploads"]
                assert isinstance(uploads, dict)
                backlog.append(uploads["waiting_files"])
                if uploads["waiting_files"] > 3 and notes:
                    assert status["waiting_for"] == "uploads to s3://archive/crawls/one"
                    bucket.wire.mend()
        return await crawling

    one.on_note(notes.append)
    assert asyncio.run(main()) == "finished"
    assert backlog[-1] > 3, "all of it was fetched while nothing could be uploaded"
    check(bucket, tmp_path / "crawl", tmp_path / "copy")
    about = [note for note in notes if "Uploads" in note]
    assert len(about) == 2
    assert about[0].startswith("Uploads to s3://archive/crawls/one fail: Error performing HEAD http://127.0.0.1:")
    assert "retries" not in about[0]
    assert about[1] == "Uploads to s3://archive/crawls/one work again."


@pytest.mark.heavy
def test_wrong_credentials_cost_nothing_but_the_upload(web: SimwebProcess, bucket: Bucket, tmp_path: Path) -> None:
    bucket.refuse_strangers()
    directory = tmp_path / "crawl"
    with command_line(directory) as cli:
        cli.crawl(web.seeds, *OWN, *FILES, *bucket.sets, hosts=str(web.hosts_file), scope="any")
        assert cli.wait() == 1
    (line,) = cli.errors.read_text().splitlines()
    assert line.startswith("gossamer: ")
    assert "not uploaded to s3://archive/crawls/one: The AWS Access Key Id" in line
    assert line.endswith(f"they are kept, gossamer resume {directory} uploads them")
    assert strict.faults(sorted((directory / "warc").iterdir())) == []
    assert (directory / "index.cdxj").exists()
    status = status_of(directory)
    uploads = status["uploads"]
    assert isinstance(uploads, dict)
    assert uploads["uploaded_files"] == 0
    assert uploads["waiting_files"] > 3
    bucket.let_all_in()
    assert (status["state"], bucket.objects()) == ("finished", {})
    told = status_text(read_status(status)).splitlines()
    assert [line for line in told if line.startswith("uploaded")] == [
        "uploaded     0 files (0 B) to s3://archive/crawls/one"
    ]
    assert next(line for line in told if line.startswith("to upload")).endswith(")")
    with command_line(directory) as cli:
        cli.start("resume", str(directory), "--quiet")
        assert cli.wait() == 0
    check(bucket, directory, tmp_path / "copy")


@pytest.mark.heavy
def test_a_store_can_be_named_when_a_crawl_is_resumed(web: SimwebProcess, bucket: Bucket, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    assert asyncio.run(crawler(web, directory).run()) == "finished"
    with command_line(directory) as cli:
        cli.start("resume", str(directory), "--quiet", *(word for one in bucket.sets for word in ("--set", one)))
        assert cli.wait() == 0
    check(bucket, directory, tmp_path / "copy")


@pytest.mark.heavy
def test_a_stop_waits_for_a_slow_store_for_a_bounded_time(web: SimwebProcess, bucket: Bucket, tmp_path: Path) -> None:
    bucket.wire.bytes_s = 2_000.0  # The files take minutes.
    directory = tmp_path / "crawl"
    with command_line(directory) as cli:
        sets = (*OWN, *FILES, *bucket.sets, "archive.store_wait_s=1")
        cli.crawl(web.seeds, *sets, hosts=str(web.hosts_file), scope="any")
        until(lambda: (directory / "index.cdxj").exists() and bucket.wire.passed > 0)
        assert cli.process is not None
        cli.process.send_signal(signal.SIGTERM)
        assert cli.wait() in (1, 130)
    assert f"they are kept, gossamer resume {directory} uploads them" in cli.errors.read_text()
    check_resumed(bucket, directory, tmp_path / "copy")


@pytest.mark.heavy
@pytest.mark.long
def test_two_signals_end_an_upload_at_once(web: SimwebProcess, bucket: Bucket, tmp_path: Path) -> None:
    bucket.wire.bytes_s = 2_000.0
    directory = tmp_path / "crawl"
    with command_line(directory) as cli:
        cli.crawl(web.seeds, *OWN, *FILES, *bucket.sets, hosts=str(web.hosts_file), scope="any")
        until(lambda: (directory / "index.cdxj").exists() and bucket.wire.passed > 0)
        assert cli.process is not None
        cli.process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            cli.process.wait(1.0)  # One waits for the uploads; the kernel would make one of two in a row.
        cli.process.send_signal(signal.SIGINT)
        assert cli.wait() in (1, 130)
    assert "resume" in cli.errors.read_text()
    check_resumed(bucket, directory, tmp_path / "copy")


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (("archive.store='nobody://bucket'",), "archive.store: nobody://bucket: "),
        (("archive.store='s3://b'", "archive.store_options={secret_access_key='x'}"), "archive.store_options: "),
    ],
)
def test_a_mistake_starts_nothing(tmp_path: Path, settings: tuple[str, ...], line: str) -> None:
    sets = [word for one in settings for word in ("--set", one)]
    command = [
        sys.executable,
        "-m",
        "gossamer",
        "crawl",
        "http://127.0.0.1:9/",
        "--allow-private",
        "-o",
        "crawl",
        *sets,
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parents[1])}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2, ended.stderr
    assert line in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert not (tmp_path / "crawl").exists()
