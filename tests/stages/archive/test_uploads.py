"""Uploads while a crawl goes on, with a store that does what the test wants and journals that can crash."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gossamer.model.errors import ConfigError, StoreError
from gossamer.options import convert, to_table
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.uploads import MANIFEST, UploadCounts, Uploads, counts_of, uploads_of
from gossamer.state.journals import Phase
from gossamer.state.sums import Sums
from gossamer.world.dice import Dice

from .web import Shard

DOWN = StoreError("nobody answers")
REFUSED = StoreError("not with these keys", lasting=True)
QUICK = {"store": "s3://b/p", "store_retry_s_first": 0.001, "store_retry_s_max": 0.002}


class FakeStore:
    """Keeps what it is given; `errors` are raised one after the other before that, by name or for all."""

    url = "s3://b/p"

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.order: list[str] = []
        self.errors: list[StoreError] = []
        self.errors_of: dict[str, StoreError] = {}
        self.at_once = self.at_once_max = 0
        self.began, self.took = asyncio.Event(), asyncio.Event()
        self.let_go: asyncio.Event | None = None

    async def copy(self, source: Path | bytes, name: str, *, overwrite: bool = False) -> str:
        self.at_once += 1
        self.began.set()
        self.at_once_max = max(self.at_once_max, self.at_once)
        try:
            await (self.let_go.wait() if self.let_go is not None else asyncio.sleep(0))
            if self.errors:
                raise self.errors.pop(0)
            if name in self.errors_of:
                raise self.errors_of[name]
        finally:
            self.at_once -= 1
        return self._take(source, name, overwrite)

    def _take(self, source: Path | bytes, name: str, overwrite: bool) -> str:
        data = source if isinstance(source, bytes) else source.read_bytes()
        assert overwrite or self.held.get(name, data) == data
        self.held[name] = data
        self.order.append(name)
        self.took.set()
        return hashlib.sha256(data).hexdigest()


class Case:
    """A directory with finished files, a store and what was said."""

    def __init__(self, directory: Path, shard: Shard | None = None, **options: object) -> None:
        self.shard = shard or Shard(directory)
        self.store = FakeStore()
        self.said: list[str] = []
        self.options = convert(ArchiveOptions, QUICK | options)
        self.commits = 0
        self.uploads = self.begun()

    def begun(self) -> Uploads:
        return Uploads(self.options, self.shard.journals, self.store, Dice(1), self.said.append)

    def file(self, name: str, data: bytes = b"data") -> None:
        journal = self.shard.journals.create(name)
        journal.append(data)
        self.shard.journals.close(journal)
        self.shard.commit()

    async def commit(self) -> None:
        self.commits += 1
        self.shard.commit()

    def finish(self, views: tuple[str, ...] = ()) -> bool:
        return asyncio.run(self.uploads.finish(self.commit, views))

    def crash(self) -> Case:
        after = Case(self.shard.directory, self.shard.crash(), **to_table(self.options))
        after.store.held = self.store.held
        return after


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_finished_files_and_nothing_else(case: Case, tmp_path: Path) -> None:
    case.file("warc/1", b"one")
    case.file("pages/1", b"two")
    case.file("state/tables/1", b"ours")
    case.shard.journals.create("warc/2").append(b"grows")
    (tmp_path / "index.cdxj").write_bytes(b"view")
    assert case.finish(("index.cdxj",))
    assert case.store.held.keys() == {"warc/1", "pages/1", "index.cdxj", MANIFEST}
    lines = case.store.held[MANIFEST].decode().splitlines()
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in case.store.held.items() if name != MANIFEST}
    assert lines == [f"{digests[name]}  {name}" for name in sorted(digests)]
    assert case.store.order[-1] == MANIFEST
    assert case.uploads.counts == UploadCounts("s3://b/p", 0, 0, 2, 6, "")
    assert case.said == []


@pytest.mark.promise("Files and exports", "Kills during uploads lose no file and upload none twice.")
def test_each_is_uploaded_once_over_all_runs(case: Case) -> None:
    case.file("warc/1")
    assert case.finish()
    case.file("warc/2")
    assert case.finish()
    later = case.crash()
    assert later.finish()
    assert case.store.order == ["warc/1", MANIFEST, "warc/2", MANIFEST]
    assert later.store.order == [MANIFEST]
    assert later.uploads.counts.uploaded_files == 2


def test_what_was_uploaded_but_not_committed_is_found_there(case: Case) -> None:
    case.file("warc/1")
    asyncio.run(case.uploads._pass())
    assert case.uploads.counts.uploaded_files == 1
    later = case.crash()
    assert [entry.name for entry in later.shard.journals.to_upload()] == ["warc/1"]
    assert later.finish()
    assert later.uploads.counts.uploaded_files == 1


def test_a_file_whose_place_is_not_committed_waits(case: Case, tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/1").write_bytes(b"made aside")
    case.shard.journals.adopt("pages/1", Sums(10, 0))
    assert case.shard.journals.to_upload() == []
    case.shard.commit()
    assert [entry.name for entry in case.shard.journals.to_upload()] == ["pages/1"]


def test_a_file_that_is_dropped_on_its_way_harms_nobody(case: Case) -> None:
    case.file("warc/1")
    case.shard.journals.drop("warc/1")
    case.shard.journals.mark("warc/1", "digest", Phase.AWAY)
    assert case.finish()
    assert case.shard.journals.uploads() == []


@pytest.mark.promise("Files and exports", "A local WARC file is deleted only after the commit that records its upload.")
@pytest.mark.parametrize("keep", [True, False])
def test_local_warc_files_go_only_after_the_commit(tmp_path: Path, keep: bool) -> None:
    case = Case(tmp_path, store_keep_warc=keep)
    case.file("warc/1")
    case.file("pages/1")
    asyncio.run(case.uploads._pass())
    assert (tmp_path / "warc/1").exists()
    case.shard.commit()
    assert (tmp_path / "warc/1").exists() == keep
    assert (tmp_path / "pages/1").exists()
    assert case.shard.journals.files(case.shard.journals.cut()) == (["pages/1", "warc/1"] if keep else ["pages/1"])
    assert case.finish()
    assert "warc/1" in case.store.held[MANIFEST].decode()


def test_a_crash_before_the_local_file_went_removes_it_later(tmp_path: Path) -> None:
    case = Case(tmp_path, store_keep_warc=False)
    case.file("warc/1")
    asyncio.run(case.uploads._pass())
    manifest = case.shard.journals.cut()
    case.shard.journals.sync()
    case.shard.manifest = manifest  # Committed; the kill comes before `settle`.
    later = case.crash()
    assert not (tmp_path / "warc/1").exists()
    assert later.shard.journals.to_upload() == []
    assert later.shard.journals.finals("warc/")[0].name == "warc/1", "its number is never given again"


def test_no_more_at_once_than_allowed(tmp_path: Path) -> None:
    case = Case(tmp_path, store_uploads_max=3)
    for number in range(10):
        case.file(f"warc/{number}")
    assert case.finish()
    assert case.store.at_once_max == 3


def test_a_store_that_comes_back_gets_everything_and_people_hear_of_it_once(case: Case) -> None:
    case.file("warc/1")
    case.file("warc/2")
    case.store.errors = [DOWN] * 7
    assert case.finish()
    assert case.store.held.keys() == {"warc/1", "warc/2", MANIFEST}
    assert case.said == [
        "Uploads to s3://b/p fail: nobody answers. The files are kept here, the crawl goes on.",
        "Uploads to s3://b/p work again.",
    ]
    assert case.uploads.counts.error == ""


def test_pauses_double_up_to_their_bound(tmp_path: Path) -> None:
    case = Case(tmp_path, store_retry_s_first=1.0, store_retry_s_max=10.0)
    pauses = []
    for _ in range(7):
        case.uploads._note_failure(DOWN)
        pauses.append(case.uploads._pause_s())
    for pause_s, wanted_s in zip(pauses, [1, 2, 4, 8, 10, 10, 10], strict=True):
        assert 0.8 * wanted_s <= pause_s <= 1.2 * wanted_s


@pytest.mark.parametrize(("error", "tried"), [(REFUSED, 1), (DOWN, None)])
def test_the_end_does_not_wait_for_ever(tmp_path: Path, error: StoreError, tried: int | None) -> None:
    case = Case(tmp_path, store_wait_s=0.05)
    case.file("warc/1")
    case.store.errors = [error] * 100_000
    assert not case.finish()
    used = 100_000 - len(case.store.errors)
    assert used == tried if tried else used > 1
    assert case.store.held == {}
    assert (case.uploads.counts.waiting_files, case.uploads.counts.error) == (1, str(error))
    assert (tmp_path / "warc/1").exists()
    assert len(case.said) == 1


def test_one_files_fault_is_not_the_others(case: Case, tmp_path: Path) -> None:
    for number in range(3):
        case.file(f"warc/{number}")
    case.store.errors_of["warc/1"] = StoreError("is there with other content", of_file=True)
    assert not case.finish()
    assert case.store.held.keys() == {"warc/0", "warc/2"}, "no manifest may say that this is all"
    assert case.said == ["warc/1 cannot be uploaded: is there with other content"]
    assert case.uploads.counts.waiting_files == 1
    del case.store.errors_of["warc/1"]
    assert case.crash().finish(), "the next run tries again"


def test_the_index_is_part_of_being_finished(case: Case, tmp_path: Path) -> None:
    (tmp_path / "index.cdxj").write_bytes(b"view")
    case.store.errors = [DOWN, DOWN]
    assert case.finish(("index.cdxj",))
    assert case.store.order == ["index.cdxj", MANIFEST]


def test_files_are_uploaded_while_the_crawl_goes_on(case: Case) -> None:
    async def main() -> None:
        case.store.let_go = asyncio.Event()
        running = asyncio.create_task(case.uploads.run())
        await case.store.began.wait()
        assert case.uploads.counts.waiting_files == 1, "it is not there before it is verified"
        case.store.let_go.set()
        await case.store.took.wait()
        await asyncio.sleep(0)
        assert (case.uploads.counts.waiting_files, case.uploads.counts.uploaded_files) == (0, 1)
        running.cancel()
        await asyncio.wait([running])

    case.file("warc/0")
    asyncio.run(main())


def test_the_end_hears_of_its_own_failure_although_uploads_go_on_beside_it(case: Case) -> None:
    async def main() -> bool:
        case.store.errors = [DOWN] * 2 * case.options.store_uploads_max  # A pass of either.
        running = asyncio.create_task(case.uploads.run())
        await case.store.began.wait()

        async def commit() -> None:
            case.store.began.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(0.05):  # Many times the pause between two tries.
                    await case.store.began.wait()
            await case.commit()

        try:
            return await case.uploads.finish(commit, ())
        finally:
            running.cancel()

    for number in range(3):
        case.file(f"warc/{number}")
    assert asyncio.run(main())
    assert case.store.held.keys() == {"warc/0", "warc/1", "warc/2", MANIFEST}


def test_whoever_leaves_at_once_leaves_a_crawl_that_can_go_on(case: Case) -> None:
    async def main() -> None:
        case.store.let_go = asyncio.Event()
        work = asyncio.create_task(case.uploads.finish(case.commit, ()))
        await case.store.began.wait()
        work.cancel()
        await asyncio.wait([work])
        assert work.cancelled()

    case.file("warc/1")
    asyncio.run(main())
    later = case.crash()
    assert later.finish()
    assert "warc/1" in later.store.held


def test_a_crawl_that_does_not_run_can_be_counted(case: Case) -> None:
    case.file("warc/1", b"one")
    assert case.finish()
    case.file("warc/2", b"three")
    case.file("state/x")
    case.shard.journals.create("warc/3")
    case.shard.commit()
    assert counts_of("s3://b/p", case.shard.manifest) == UploadCounts("s3://b/p", 1, 5, 1, 3)


def test_a_store_without_obstore_says_what_to_install(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    assert uploads_of(ArchiveOptions(), case.shard.journals, Dice(1), case.said.append) is None
    assert counts_of("", case.shard.manifest) is None
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "gossamer.stages.archive.objectstore", raising=False)
    with pytest.raises(ConfigError, match=r"archive\.store needs the package obstore .*pip install 'obstore"):
        uploads_of(case.options, case.shard.journals, Dice(1), case.said.append)
