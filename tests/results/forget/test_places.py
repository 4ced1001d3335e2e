"""`gossamer forget` in checkpoints, several shards, object stores, and while a crawl runs."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from gossamer import Crawler
from gossamer.api import forget_of, forgettable_of, verify_of
from gossamer.api.restoring import restore_of
from gossamer.api.shares import build_index_in_store
from gossamer.assembly.home import homes
from gossamer.assembly.integrity import open_store
from gossamer.config import configure
from gossamer.config.gather import reopen
from gossamer.features.render.choice import RenderChoice, evidence_of, place_of
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import ConfigError
from gossamer.state.epoch import Epochs
from gossamer.url.name import Namer
from gossamer.world.dice import Dice
from gossamer.world.process import MAINTENANCE, DirectoryLock
from tests import commands
from tests.cluster import crawls as shards
from tests.further import with_further
from tests.results.forget import marks
from tests.results.forget.crawls import AGAIN, BATCH, crawled, resumed
from tests.results.forget.site import GONE, KEPT, MARKS, Site
from tests.ring.crawls import command_line, rows, until
from tests.stages.archive.bucket import KEYS, Bucket


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    one = Site()
    with one.serving():
        yield one


def left(directory: Path) -> list[str]:
    return marks.found(directory, MARKS) + marks.found_in_stores(directory, MARKS)


def damage(directory: Path) -> list[str]:
    return [one.says() for one in verify_of(directory, deep=True).damage]


@asynccontextmanager
async def fetching(
    site: Site, folder: Path, *names: str, **options: object
) -> AsyncIterator[tuple[Crawler, asyncio.Task[str]]]:
    """Crawl some hosts, and give the crawl when it has 40 pages."""
    config = configure(
        options={"allow_private": True, "hosts": str(site.hosts_file(folder)), "scope": "any", **options},
        sets=AGAIN, seeds=tuple(site.url(name) for name in names),
    )  # fmt: skip
    crawler = Crawler(output=folder / "crawl", config=config)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(crawler.run())
        while int(str(crawler.status().get("pages", 0))) < 40:  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(0.02)
        yield crawler, running


async def checkpointed(site: Site, folder: Path) -> None:
    """Crawl, with a checkpoint taken while files still grow; kill nothing, but leave the crawl as a kill would."""
    async with fetching(site, folder, "gone.test/", "third.test/", "kept.test/", max_pages=80) as (crawler, running):
        answer = await crawler.ask({"verb": "checkpoint"})
        assert answer["ok"], answer
        assert [str(path) for path in (folder / "crawl/checkpoints").iterdir()] == [answer["result"]["checkpoint"]]
        # As a kill leaves it: what grows has no final name, and no table is finished.
        shutil.copytree(folder / "crawl/checkpoints", folder / "taken")
        assert await running == "limit"


@pytest.mark.heavy
def test_checkpoints_and_what_a_killed_crawl_left_are_cleaned_too(site: Site, tmp_path: Path) -> None:
    asyncio.run(checkpointed(site, tmp_path))
    crawl = tmp_path / "crawl"
    [checkpoint] = (crawl / "checkpoints").iterdir()
    growing = {path.name for path in checkpoint.rglob("*.open")}
    assert any(name.startswith("gossamer-") for name in growing)
    assert any(name.startswith("pages-") for name in growing)
    assert marks.found(checkpoint, MARKS)
    kept = {(row["url"], row["fetched_at"]) for row in rows(crawl / "pages") if row["host"] != GONE}
    forget_of(crawl, GONE)
    assert left(crawl) == []
    assert marks.found_in_stores(checkpoint, MARKS) == []
    assert damage(crawl) == []
    assert {(row["url"], row["fetched_at"]) for row in rows(crawl / "pages")} == kept
    restore_of([str(checkpoint)], tmp_path / "restored")
    site.asked.clear()
    assert resumed(tmp_path / "restored", "limits.max_pages=60").end == "limit"
    assert left(tmp_path / "restored") == []
    assert [name for name in site.asked if name.startswith(GONE)] == [], "the checkpoint knows what was forgotten"


@pytest.mark.heavy
def test_a_crawl_that_was_killed_is_cleaned_as_it_lies(site: Site, tmp_path: Path) -> None:
    """Logs that are not tables yet and a WARC file that grows lose what is forgotten; a resume makes tables of them."""
    asyncio.run(checkpointed(site, tmp_path))
    [killed] = (tmp_path / "taken").iterdir()
    (killed / "state").joinpath("lock").unlink(missing_ok=True)
    assert not list(killed.glob("pages/*.parquet"))
    forget_of(killed, GONE)
    assert left(killed) == []
    site.asked.clear()
    assert resumed(killed, "limits.max_pages=70").end == "limit"
    assert {row["host"] for row in rows(killed / "pages")} == {KEPT, "third.test"}
    assert left(killed) == []
    assert damage(killed) == []
    assert [name for name in site.asked if name.startswith(GONE)] == []


def test_what_a_kill_left_of_checkpoints_is_deleted(site: Site, tmp_path: Path) -> None:
    """Of one in the crawl's directory, and of one on its way to another place."""
    crawled(site, tmp_path, *BATCH)
    crawl = tmp_path / "crawl"
    [home], config = homes(crawl, 1), reopen(crawl / "crawl.toml")
    unfinished = [home.snapshot, crawl / "checkpoints/.00000007"]
    for folder in unfinished:
        folder.mkdir(parents=True)
        with closing(open_store(config, home)) as store:
            store.checkpoint(folder / "store")
        for number, path in enumerate(crawl.glob("warc/*")):
            (folder / f"{number:08d}").hardlink_to(path)
        assert marks.found(folder, MARKS)
    forget_of(crawl, GONE)
    assert left(crawl) == []
    assert not [folder for folder in unfinished if folder.exists()]


@pytest.mark.heavy
@pytest.mark.parametrize("hosts_per_site", with_further(3, 8))
@pytest.mark.long
def test_all_shards_of_a_crawl_are_cleaned(tmp_path: Path, hosts_per_site: int) -> None:
    """Also where they have the hosts of one site."""
    web = SimwebOptions.plain(seed=4, hosts=8, hosts_per_site=hosts_per_site, pages=120, zipf_exponent=0.0)
    with SimwebProcess(web, tmp_path / "web") as simweb:
        directory = tmp_path / "crawl"
        split = ['url.split_sites=["d000.test"]'] if hosts_per_site == web.hosts else []
        config = shards.config_of(simweb, directory, 3, *split)
        shards.begun(config, directory, 3, pages=60)
        before = rows(directory / "pages")
        hosts = sorted({str(row["host"]) for row in before if row["outcome"] == "fetched"})
        for host in hosts[:4]:
            forget_of(directory, host)
        assert {row["host"] for row in rows(directory / "pages")} == {row["host"] for row in before} - set(hosts[:4])
        assert damage(directory) == []
        ends = shards.ended(reopen(directory / "crawl.toml"), directory, 3)
        assert not [url for url in ends if url.split("/")[2].partition(":")[0] in hosts[:4]]
        assert len(ends) > 30
        assert damage(directory) == []


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with Bucket() as one:
        yield one


@pytest.mark.heavy
@pytest.mark.parametrize("keep", with_further("false", "true"))
@pytest.mark.long
def test_the_objects_of_a_store_are_cleaned(site: Site, bucket: Bucket, tmp_path: Path, keep: str) -> None:
    """Also where the store alone has the WARC files."""
    sets = (*BATCH, *bucket.sets, f"archive.store_keep_warc={keep}", "archive.warc_segment_bytes_max=100_000")
    crawled(site, tmp_path, *sets)
    crawl = tmp_path / "crawl"
    assert bool(list((crawl / "warc").iterdir())) is (keep == "true")

    def fetched(name: str) -> Path:
        for key, data in bucket.objects().items():
            (tmp_path / name / key).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / key).write_bytes(data)
        return tmp_path / name

    assert marks.found(fetched("before"), MARKS)
    forget_of(crawl, GONE)
    copy = fetched("after")
    assert left(crawl) == []
    assert marks.found(copy, MARKS) == []
    assert damage(crawl) == []
    assert bool(list((crawl / "warc").iterdir())) is (keep == "true")
    summed = subprocess.run(["sha256sum", "-c", "manifest-sha256.txt"], cwd=copy, capture_output=True, text=True)
    assert summed.returncode == 0, summed.stdout + summed.stderr
    assert len(summed.stdout.splitlines()) == sum(path.is_file() for path in copy.rglob("*")) - 1
    assert resumed(crawl).end == "finished"


@pytest.mark.heavy
def test_checkpoints_elsewhere_are_replaced(site: Site, tmp_path: Path) -> None:
    uri = (tmp_path / "elsewhere").as_uri()
    crawled(site, tmp_path, *BATCH, f"state.checkpoint_uri='{uri}'", "state.checkpoint_s=1.0")
    assert marks.found(tmp_path / "elsewhere", MARKS)
    build_index_in_store(uri, (), "", lambda *_: None)
    assert (tmp_path / "elsewhere/search/datapackage.json").exists()
    forget_of(tmp_path / "crawl", GONE)
    assert left(tmp_path / "crawl") == []
    assert marks.found(tmp_path / "elsewhere", MARKS) == []
    assert [path for path in (tmp_path / "elsewhere/search").rglob("*") if path.is_file()] == []
    restore_of([uri], tmp_path / "restored")
    assert left(tmp_path / "restored") == []
    assert [one for one in damage(tmp_path / "restored") if "search" not in one] == [], "a checkpoint has no index"
    assert (tmp_path / "restored/forgotten.jsonl").read_bytes() == (tmp_path / "crawl/forgotten.jsonl").read_bytes()
    assert {row["host"] for row in rows(tmp_path / "restored/pages")} == {KEPT, "third.test"}
    site.asked.clear()
    assert resumed(tmp_path / "crawl").end == "finished"
    assert not site.asked


def test_frames_of_zstandard_become_tombstones_too(site: Site, tmp_path: Path) -> None:
    crawled(site, tmp_path, *BATCH, "archive.warc_compression='zstd'")
    crawl = tmp_path / "crawl"
    assert len(marks.found(crawl / "warc", MARKS)) == len(MARKS)
    forget_of(crawl, GONE)
    assert left(crawl) == []
    assert damage(crawl) == []
    assert {row["warc_type"] for row in rows(crawl / "pages")} - {""} == {"response", "revisit"}


def test_a_warc_file_that_is_elsewhere_is_asked_for(site: Site, tmp_path: Path) -> None:
    """What could not be looked at does not count as cleaned."""
    uri = (tmp_path / "elsewhere").as_uri()
    crawled(site, tmp_path, *BATCH, f"archive.store='{uri}'", "archive.store_keep_warc=false")
    settings = tmp_path / "crawl/crawl.toml"
    text = settings.read_text().replace(f'store = "{uri}"', 'store = ""')
    settings.write_text(text.replace("store_keep_warc = false", "store_keep_warc = true"))
    with pytest.raises(ConfigError, match="is not here: copy it back, then repeat the command"):
        forget_of(tmp_path / "crawl", GONE)


@pytest.mark.heavy
@pytest.mark.long
def test_a_running_crawl_stops_for_it_and_goes_on(site: Site, tmp_path: Path) -> None:
    crawl = tmp_path / "crawl"
    seeds = tuple(site.url(name) for name in ("gone.test/", "third.test/", "kept.test/"))
    with command_line(crawl) as first, command_line(crawl) as second:
        site.asked.clear()
        first.crawl(seeds, *AGAIN, hosts=str(site.hosts_file(tmp_path)), scope="any")
        until(lambda: site.asked[f"{GONE}/secret-5.html"] > 2, timeout_s=60)
        second.start("forget", str(crawl), GONE, "--reason", "a letter")  # It writes to the same file of errors.
        until((crawl / "forgotten.jsonl").exists, timeout_s=60)
        assert second.wait() == 0
        site.asked.clear()
        until(lambda: site.asked[f"{KEPT}/page-3.html"] > 2, timeout_s=60)
        until(lambda: commands.run("stop", str(crawl))[0] == 0)
        assert first.wait() == 130, "it went on where it ran"
    assert [name for name in site.asked if name.startswith(GONE)] == []
    assert left(crawl) == []
    assert damage(crawl) == []


async def counted(site: Site, folder: Path) -> dict[str, int]:
    """Return what a dry run counts while its crawl fetches revisits."""
    async with fetching(site, folder, "gone.test/", "kept.test/") as (crawler, running):
        counts = await asyncio.to_thread(forgettable_of, folder / "crawl", GONE)
        assert not running.done()
        crawler.stop()
    return counts


def test_a_dry_run_counts_what_a_running_crawl_has(site: Site, tmp_path: Path) -> None:
    counts = asyncio.run(counted(site, tmp_path))
    assert counts["pages"] > 0
    assert counts["rows"] >= counts["pages"]
    assert counts["rows"] <= forgettable_of(tmp_path / "crawl", GONE)["rows"]
    assert not (tmp_path / "crawl" / "forgotten.jsonl").exists()


def test_two_commands_do_not_work_on_a_crawl_at_once(site: Site, tmp_path: Path) -> None:
    crawled(site, tmp_path)
    crawl = tmp_path / "crawl"
    other = DirectoryLock(crawl / MAINTENANCE)
    assert other.acquire(0.0)
    of_running = (
        ("pause",),
        ("set", "limits.max_pages=9"),
        ("host", "a.example", "delay_s=1"),
        ("seed", "http://a.example/"),
    )
    for name, *others in (("forget", GONE), ("scale", "--workers", "1"), *of_running):
        words = (name, str(crawl), *others)
        status, _, errors = commands.run(*words)
        assert (status, "another command works on" in errors) == (2, True), errors
        assert DirectoryLock.is_held(crawl / MAINTENANCE), "it took the other's lock away"
    with command_line(crawl) as line:
        line.start("resume", str(crawl), "--quiet")
        assert line.wait() == 2
        assert line.errors.read_text().startswith(f"gossamer: another command works on {crawl}; repeat")
    with pytest.raises(ConfigError, match="another command works on"):
        Crawler.resume(crawl)
    assert "finished: another command works on it\n" in commands.run("status", str(crawl))[1]
    other.release()
    assert commands.run("forget", str(crawl), GONE)[0] == 0
    assert not (crawl / MAINTENANCE).exists()


def test_a_crawl_prepared_before_a_command_began_to_work_on_it_waits_for_its_end(site: Site, tmp_path: Path) -> None:
    crawled(site, tmp_path)
    other = DirectoryLock(tmp_path / "crawl" / MAINTENANCE)
    crawler = Crawler.resume(tmp_path / "crawl")
    assert other.acquire(0.0)
    with pytest.raises(ConfigError, match="another command works on"):
        asyncio.run(crawler.run())
    other.release()
    assert asyncio.run(crawler.run()) == "finished"


def test_what_rendering_a_hosts_pages_brought_is_deleted_with_them(site: Site, tmp_path: Path) -> None:
    crawled(site, tmp_path, *BATCH, "limits.max_pages=20")
    crawl = tmp_path / "crawl"
    [home], config = homes(crawl, 1), reopen(crawl / "crawl.toml")
    urls = [url for name in (GONE, KEPT) if (url := Namer().name(site.url(f"{name}/"))) is not None]
    with closing(open_store(config, home)) as store:
        epochs = Epochs(store)
        choice = RenderChoice(epochs, Dice(1))
        for url in urls:
            choice.choose(place_of(url, "root"))
            choice.learn(place_of(url, "root"), (1,), gains_text=True)
        choice.cut(0.0)
        epochs.close_at_once()
        assert all(evidence_of(epochs, url) for url in urls)
    forget_of(crawl, GONE)
    with closing(open_store(config, home)) as store:
        assert [bool(evidence_of(Epochs(store), url)) for url in urls] == [False, True]
