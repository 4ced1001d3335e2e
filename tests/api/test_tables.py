"""Tables: every reader names a table of which one byte changed, and reads a running crawl at its last commit."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import pytest

from gossamer import Crawler
from gossamer.api.reading import changes
from gossamer.api.views import export_of
from gossamer.assembly import integrity
from gossamer.cli import exporting, inspecting
from gossamer.config import configure
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import DamagedError
from gossamer.results.export.export import Exported
from gossamer.results.export.opening import crawl_in
from gossamer.results.export.source import pieces_of
from gossamer.world.process import DirectoryLock
from tests.api.faults import flip
from tests.results.export.test_views import rows as table
from tests.ring.crawls import OWN

WEB = SimwebOptions.plain(seed=5, hosts=3, pages=90, bytes_median=1500)
SETS = (*OWN, "crawl.commit_s=0.05", "crawl.commit_pages=10", "crawl.concurrency=2")
OFFSETS = 20
"""Of each table."""


class Made(msgspec.Struct):
    """A crawl that ended, and what was read of it while it ran."""

    directory: Path
    attempts: int = 0
    running: list[Exported] = []
    changed: int = 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    made = Made(tmp_path_factory.mktemp("made") / "crawl")
    with SimwebProcess(WEB, made.directory.parent / "web") as web:
        asyncio.run(_crawl(web, made))
    return made


async def _crawl(web: SimwebProcess, made: Made) -> None:
    options = {"allow_private": True, "hosts": str(web.hosts_file), "scope": "any"}
    async with Crawler(output=made.directory, config=configure(options=options, sets=SETS, seeds=web.seeds)) as crawler:
        pages = 0
        async for _ in crawler:
            pages += 1
            if pages == 12:
                assert (await crawler.ask({"verb": "pause"}))["ok"]
                while crawler.status()["in_flight"]:  # noqa: ASYNC110 - what is under way ends without an event
                    await asyncio.sleep(0.01)
                assert (await crawler.ask({"verb": "checkpoint"}))["ok"]  # It commits what is done.
                made.attempts = cast("dict[str, int]", (await crawler.ask({"verb": "status"}))["result"])["attempts"]
                await asyncio.to_thread(_read, made)
                assert (await crawler.ask({"verb": "unpause"}))["ok"]


def _read(made: Made) -> None:
    assert not list(made.directory.glob("*/*.parquet")), "no table is finished yet"
    for to in ("jsonl", "wacz", "markdown", "parquet"):
        made.running.append(export_of(made.directory, to, made.directory.parent / to))
    made.changed = len(list(changes(made.directory)))


@pytest.mark.heavy
def test_an_export_of_a_running_crawl_holds_its_last_commit(made: Made) -> None:
    jsonl, wacz, markdown, parquet = made.running
    assert 12 <= made.attempts < len(table(made.directory, "pages"))
    assert all(one.running and not one.unread for one in made.running)
    assert jsonl.rows == wacz.rows == {"pages": made.attempts}
    assert parquet.rows["pages"] == made.attempts
    assert parquet.rows["links"] == len(table(made.directory.parent / "parquet", "links")) > 0
    pages = list((made.directory.parent / "markdown").rglob("*.md"))
    assert 0 < len(pages) == markdown.rows["pages"] <= made.attempts
    assert 12 <= made.changed <= made.attempts


def _offsets(path: Path) -> list[int]:
    """Return where to flip a bit: the ends of a file, its footer, and anywhere."""
    size = path.stat().st_size
    dice = random.Random(size)
    footer = int.from_bytes(path.read_bytes()[-8:-4], "little")
    return [0, 3, size - 8, size - 1, size - 8 - footer, *(size - 9 - dice.randrange(footer) for _ in range(5))] + [
        dice.randrange(4, size - 8 - footer) for _ in range(OFFSETS - 10)
    ]


def _said(read: Callable[[], object]) -> str:
    with pytest.raises(DamagedError) as error:
        read()
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["pages", "links", "epochs"])
def test_one_changed_byte_of_a_table_is_reported_by_every_reader(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    directory = tmp_path / "crawl"
    shutil.copytree(made.directory, directory)
    [path] = (directory / name).glob("*.parquet")
    readers: list[Callable[[], object]] = [
        lambda: inspecting.report(directory, None, as_json=True),
        lambda: export_of(directory, "csv", tmp_path / "csv", table=name),
        lambda: export_of(directory, "parquet", tmp_path / "parquet"),
    ]
    if name == "pages":
        readers += [
            lambda: list(changes(directory)),
            lambda: export_of(directory, "wacz", tmp_path / "wacz"),
            lambda: export_of(directory, "markdown", tmp_path / "markdown"),
        ]
    sound, recorded = path.read_bytes(), {name: entry.crc for name, entry in (crawl_in(directory).files or {}).items()}
    for number, at in enumerate(_offsets(path)):
        flip(path, at)
        assert _said(lambda: pieces_of([path], recorded)).startswith(f"{path} cannot be read: it was damaged"), at
        if number % 3 == 0:  # Each reader asks for these pieces first.
            assert _said(readers[number // 3 % len(readers)]).startswith(f"{path} cannot be read: it was damaged"), at
        path.write_bytes(sound)
    assert capsys.readouterr().out == ""
    for read in readers:
        read()


@pytest.mark.heavy
def test_without_the_crawls_state_a_changed_byte_of_the_rows_is_reported_or_harmless(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "crawl"
    shutil.copytree(made.directory, directory)
    shutil.rmtree(directory / "state")

    def read() -> str:
        inspecting.report(directory, None, as_json=True)
        return capsys.readouterr().out

    expected = read()
    for name in ("pages", "links", "epochs"):
        [path] = (directory / name).glob("*.parquet")
        sound, told = path.read_bytes(), 0
        for at in _offsets(path)[-4:]:
            flip(path, at)
            try:
                assert read() == expected, f"{name} at {at}"
            except DamagedError as error:
                assert str(error).startswith(f"{path} cannot be read: it was damaged")  # noqa: PT017
                told += 1
            path.write_bytes(sound)
        assert told


@pytest.mark.heavy
def test_a_report_without_a_readable_store_lacks_nothing_where_all_tables_are_finished(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "crawl"
    shutil.copytree(made.directory, directory)
    (directory / "state/store/CURRENT").write_bytes(b"x")
    inspecting.report(directory, None, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["incomplete"] == ""
    assert "state/store is damaged" in found["damage"][0]
    assert found["attempts"] == len(table(directory, "pages"))


def test_an_export_says_when_the_last_commit_of_a_running_crawl_cannot_be_read(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "crawl"
    shutil.copytree(made.directory, directory)
    (directory / "state/store/CURRENT").write_bytes(b"x")
    monkeypatch.setattr(integrity, "TRIES", 2)
    lock = DirectoryLock(directory / "state/lock")
    assert lock.acquire(0.0)
    try:
        exporting.export(directory, "jsonl", str(tmp_path / "jsonl"))
    finally:
        lock.release()
    said = capsys.readouterr().err
    assert "is still crawling, and its last commit could not be read (cannot open the store" in said
    assert "the export holds its finished files only" in said
    assert len((tmp_path / "jsonl").read_text().splitlines()) == len(table(directory, "pages"))
