"""Every kind of file that a crawl keeps, lost or damaged in every way: it is found, and the file is named."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from pathlib import Path
from typing import cast
from zlib import crc32

import msgspec
import pytest

from gossamer import Crawler
from gossamer.api import scale_crawl
from gossamer.api.maintenance import Verified, accept_loss_of, verify_of
from gossamer.api.search import search_of
from gossamer.api.status import status_of
from gossamer.api.views import export_of
from gossamer.assembly.integrity import manifest_of, require_files
from gossamer.config import configure
from gossamer.config.gather import reopen
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.state.journals import Phase
from gossamer.state.schema import FAMILIES, MANIFEST
from gossamer.state.store import Store
from tests.api.faults import DAMAGES, KINDS, OLDER, flip, largest
from tests.further import with_further
from tests.ring.crawls import OWN, rows

WEB = SimwebOptions.plain(seed=4, hosts=4, pages=80, bytes_median=3000)
SETS = (
    *OWN,
    "search.enabled=true",
    "archive.warc_segment_bytes_max=60_000",
    "crawl.commit_s=0.05",
    "crawl.commit_pages=10",
    "crawl.concurrency=2",
)
RUNNING = "running.json"
"""What verify said of the first crawl while it ran."""
HARMLESS = {("checksums of the index", "missing"), ("checksums of the search", "missing")} | {
    ("slots", damage) for damage in DAMAGES
}
"""What they are the checksums of is looked at by its own form then; slots hold nothing that is not elsewhere."""

NAMED = [name for name in KINDS if name != "configuration"]
"""The configuration is the operator's to change."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Crawls to be copied: one that ended, one that was killed half-way, one with a checkpoint, one of two shards."""
    directory = tmp_path_factory.mktemp("made")
    with SimwebProcess(WEB, directory / "web") as web:
        asyncio.run(_crawl(web, directory))
    shutil.copytree(directory / "finished", directory / "sharded")
    scale_crawl(directory / "sharded", 2, lambda _: None)
    return directory


async def _crawl(web: SimwebProcess, directory: Path) -> None:
    options = {"allow_private": True, "hosts": str(web.hosts_file), "scope": "any"}
    config = configure(options=options, sets=SETS, seeds=web.seeds)
    async with Crawler(output=directory / "finished", config=config) as crawler:
        pages = 0
        async for _ in crawler:
            pages += 1
            if pages == 1:
                assert crawler._shard is not None
                assert (await crawler.ask({"verb": "pause"}))["ok"]  # It shall not end meanwhile.
                await crawler._shard.kept.committer.hold(
                    lambda: shutil.copytree(
                        directory / "finished", directory / "killed", ignore=shutil.ignore_patterns("*.sock")
                    )
                )
                answer = await crawler.ask({"verb": "checkpoint"})
                assert answer["ok"], answer
                found = await asyncio.to_thread(verify_of, directory / "finished", deep=True)
                (directory / RUNNING).write_bytes(msgspec.json.encode(found))
                answer = await crawler.ask({"verb": "unpause"})
                assert answer["ok"], answer
    shutil.copytree(directory / "finished", directory / "checkpointed")
    shutil.rmtree(directory / "finished/checkpoints")
    [checkpoint] = (directory / "checkpointed/checkpoints").iterdir()
    _cut_to_commit(checkpoint)


def _cut_to_commit(checkpoint: Path) -> None:
    """Cut what the crawl added after the checkpoint: they share growing files, and damage behind the checkpoint's own
    bytes is no damage of it.
    """
    store = Store(checkpoint / "state/store", writable=False)
    for entry in manifest_of(store):
        path = checkpoint / f"{entry.name}.open"
        if path.exists():
            os.truncate(path, entry.length)
    store.close()


@pytest.fixture
def copied(made: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    shutil.copytree(made / request.param, tmp_path / "crawl")
    return tmp_path / "crawl"


def files(found: Verified) -> set[str]:
    return {damage.file for damage in found.damage}


@pytest.mark.parametrize("name", ["finished", "killed", "checkpointed", "sharded"])
@pytest.mark.parametrize("deep", [False, True])
def test_what_is_sound_is_found_sound(made: Path, name: str, *, deep: bool) -> None:
    found = verify_of(made / name, deep=deep)
    assert found.damage == ()
    assert not found.running
    assert not found.notes
    assert found.files >= (5 if deep else 1)


@pytest.mark.heavy
@pytest.mark.promise(
    "Crash safety", "`gossamer verify` finds and names every missing or changed file of the last commit."
)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(("name", "copied"), [(name, KINDS[name].crawl) for name in NAMED], indirect=["copied"])
def test_every_damage_is_found_and_the_file_is_named(copied: Path, name: str, damage: str) -> None:
    kind = KINDS[name]
    path = largest(copied, kind)
    DAMAGES[damage](path)
    expected = str(copied / kind.named) if kind.named else str(path)
    found = verify_of(copied, deep=True)
    if (name, damage) in HARMLESS:
        assert found.damage == ()
        return
    assert any(one.file.startswith(expected) for one in found.damage), found.damage
    for one in found.damage:
        assert "\n" not in one.says()
        assert one.affects
        assert one.remedy
    if kind.quick and damage in ("missing", "truncated"):
        quick = verify_of(copied)
        assert any(one.file.startswith(expected) for one in quick.damage), quick.damage


PAGE = Path(__file__).parents[2] / "docs/how-to/damaged-files.md"


def cases() -> dict[tuple[str, str], tuple[str, str]]:
    """The table of all damages in the documentation: what `verify --deep` and `resume` do about each."""
    lines = PAGE.read_text(encoding="utf-8").partition("## What `verify` and `resume` do in every case")[2].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    damages, _, *kinds = rows
    found = {(kind, damage): cell for kind, *cells in kinds for damage, cell in zip(damages[1:], cells, strict=True)}
    split = {case: tuple(cell.split(", ")) for case, cell in found.items() if cell}
    return {case: (verified, resumed) for case, (verified, resumed) in split.items()}


def test_the_documentation_has_every_kind_of_file_and_every_damage() -> None:
    wanted = {(kind, damage) for kind in KINDS for damage in DAMAGES} | {(kind, "an older copy") for kind in OLDER}
    assert set(cases()) == wanted


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "damage"), with_further(*cases()))
def test_verify_and_resume_do_what_the_documentation_says(made: Path, tmp_path: Path, name: str, damage: str) -> None:
    assert done_about(made, tmp_path / "crawl", name, damage) == cases()[name, damage]


def refused(error: Exception) -> str:
    return "refuses" if "\n" not in str(error) else f"refuses in more than one line: {error}"


def done_about(made: Path, crawl: Path, name: str, damage: str) -> tuple[str, str]:
    """Damage a file of a crawl, and return what `verify --deep` and `resume` do."""
    kind = KINDS[name]
    shutil.copytree(made / kind.crawl, crawl)
    if damage in DAMAGES:
        DAMAGES[damage](largest(crawl, kind))
    else:
        OLDER[name](crawl, made)
    try:
        found = verify_of(crawl, deep=True).damage
    except ConfigError as error:
        return refused(error), refused(error)
    verified = "names it" if found else "finds nothing"
    try:
        if kind.crawl == "sharded":
            require_files(reopen(crawl / "crawl.toml"), crawl)  # As `resume` does before it starts the shards.
        else:
            asyncio.run(Crawler.resume(crawl, max_pages=1).run())
    except (DamagedError, ConfigError) as error:
        return verified, refused(error)
    return verified, "repairs" if not verify_of(crawl, deep=True).damage else "continues"


@pytest.mark.promise("Crash safety", "A store that lost commits is refused before any file is cut.")
@pytest.mark.parametrize("copied", ["killed"], indirect=True)
def test_a_store_that_lost_commits_is_not_gone_on_with(copied: Path) -> None:
    """A write-ahead log that is cut ends without an error: what was committed after it would be cut off everywhere."""
    logs = list((copied / "state/store").glob("*.log"))
    assert logs
    for log in logs:
        log.unlink()
    before = {path: path.read_bytes() for folder in ("warc", "pages") for path in (copied / folder).glob("*")}
    assert before
    with pytest.raises(DamagedError, match=r"ends with commit \d+ and \d+ were made; restore a checkpoint"):
        asyncio.run(Crawler.resume(copied).run())
    with pytest.raises(DamagedError, match="ends with commit"):
        status_of(copied)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.heavy
@pytest.mark.promise(
    "Files and exports",
    "An index made from incomplete tables replaces a complete one only if the operator accepts the loss.",
)
@pytest.mark.parametrize("copied", ["finished"], indirect=True)
@pytest.mark.parametrize("name", ["pages", "links", "epochs", "WARC"])
def test_what_is_lost_is_shown_refused_and_can_be_accepted(copied: Path, tmp_path: Path, name: str) -> None:
    index = (copied / "index.cdxj").read_bytes()
    path = largest(copied, KINDS[name])
    path.unlink()
    status = status_of(copied)
    assert [damage["file"] for damage in cast("list[dict[str, object]]", status["damage"])] == [str(path)]
    assert "gossamer verify" in str(status["waiting_for"])
    with pytest.raises(DamagedError, match=f"{path.name} is missing; affected: .*put a sound copy in its place"):
        asyncio.run(Crawler.resume(copied).run())
    to = {"pages": "jsonl", "links": "pagefiles", "epochs": "parquet", "WARC": "wacz"}[name]
    with pytest.raises(DamagedError, match=f"{path.name} is missing"):
        export_of(copied, to, tmp_path / "made")
    assert not list(tmp_path.glob("made*"))
    assert (copied / "index.cdxj").read_bytes() == index, "no smaller index takes the place of a larger one"
    assert accept_loss_of(copied) == [str(path.relative_to(copied))]
    assert verify_of(copied).damage == ()
    assert asyncio.run(Crawler.resume(copied).run()) == "finished"
    assert verify_of(copied, deep=True).damage == ()


@pytest.mark.heavy
@pytest.mark.parametrize("copied", ["finished"], indirect=True)
@pytest.mark.parametrize("to", ["wacz", "markdown", "pagefiles"])
@pytest.mark.parametrize("state", ["with its state", "without"])
def test_a_flipped_bit_in_a_warc_file_is_named_with_offset_and_url(
    copied: Path, tmp_path: Path, to: str, state: str
) -> None:
    if state == "without":
        shutil.rmtree(copied / "state")
    row = next(one for one in rows(copied / "pages") if one["media_type"] == "text/html" and one["warc_length"])
    path, offset = copied / "warc" / str(row["warc_file"]), int(str(row["warc_offset"]))
    flip(path, offset + int(str(row["warc_length"])) // 2)
    with pytest.raises(DamagedError) as raised:
        export_of(copied, to, tmp_path / "made")
    said = str(raised.value)
    assert said.startswith(f"{path} is damaged: the record at offset {offset} ({row['url']}) ")
    assert "\n" not in said
    assert not (tmp_path / "made").exists()
    [damage] = [one for one in verify_of(copied, deep=True).damage if one.kind == "warc"]
    assert (damage.file, damage.offset, damage.url) == (str(path), offset, row["url"])


@pytest.mark.parametrize("copied", ["finished"], indirect=True)
def test_every_file_that_stays_has_its_sha256(copied: Path) -> None:
    store = Store(copied / "state/store", writable=False)
    manifest = manifest_of(store)
    store.close()
    assert {entry.name.partition("/")[0] for entry in manifest} == {"warc", "pages", "links", "epochs"}
    for entry in manifest:
        data = (copied / entry.name).read_bytes()
        assert entry.digest == hashlib.sha256(data).hexdigest()
        assert (entry.length, entry.crc) == (len(data), crc32(data))


@pytest.mark.parametrize("copied", ["finished"], indirect=True)
def test_a_search_index_that_was_damaged_is_one_line(copied: Path) -> None:
    assert search_of(copied, "the").problems == ()
    flip(largest(copied, KINDS["search"]))
    with pytest.raises(
        DamagedError, match=r"\.term does not hold what was written .*`gossamer search \S+/crawl --build` rebuilds"
    ):
        search_of(copied, "the")


@pytest.mark.parametrize("copied", ["finished"], indirect=True)
def test_an_uploaded_file_that_was_removed_here_is_not_missing(copied: Path) -> None:
    path = largest(copied, KINDS["WARC"])
    store = Store(copied / "state/store")
    changed = [
        msgspec.structs.replace(entry, phase=int(Phase.AWAY)) if entry.name.endswith(path.name) else entry
        for entry in manifest_of(store)
    ]
    number = store.epoch + 1
    store.commit(number, [], {FAMILIES.index("meta"): {MANIFEST: msgspec.msgpack.encode(changed)}})
    store.apply(number)
    store.close()
    path.unlink()
    assert status_of(copied)["damage"] == []
    assert verify_of(copied, deep=True).damage == ()


def test_a_running_crawl_is_verified_as_far_as_it_is_committed(made: Path) -> None:
    found = msgspec.json.decode((made / RUNNING).read_bytes(), type=Verified)
    assert found.running
    assert found.damage == ()
    assert found.bytes
