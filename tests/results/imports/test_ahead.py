"""Processes that read ahead: the tables are those of an import in one process, and what kills them costs one page."""

from __future__ import annotations

import asyncio
import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from gossamer.config import Config
from gossamer.model.pages import Findings, Page
from gossamer.results.imports import ahead, importing
from gossamer.results.imports.ahead import (
    Ahead,
    ArchiveStretch,
    Borders,
    StretchAnswer,
    StretchQuestion,
    StretchReader,
    ranges_of,
    together,
)
from gossamer.results.imports.capture import Capture, CapturePlace, ImportRequest, Refused, Room, Source
from gossamer.results.imports.reading import captures_of
from gossamer.results.imports.sources import find_sources
from gossamer.world.process import birth_of
from gossamer.world.spill import Spills
from tests.commands import run
from tests.results.imports.archives import HOST, Stored, do_import, packed, page, record, rows, site, write_warc

PAGES = 90
DEADLY = f"{HOST}/p33"
END_S_MAX = 100.0
START = """
import sys
from gossamer.results.imports import importing
importing.AHEAD_BYTES_MIN = 0
from gossamer.cli.main import status_of_command
sys.exit(status_of_command(sys.argv[1:]))
"""


class Deadly:
    """A module whose native code crashes at one page, in processes that read ahead and in those of the quarantine."""

    name = "deadly"

    def wants(self, media_type: str) -> bool:
        return media_type == "text/html"

    def process(self, page: Page, findings: Findings) -> None:
        findings.columns["was_seen"] = True
        if page.url == DEADLY:
            os.kill(os.getpid(), signal.SIGSEGV)


@pytest.fixture
def archives(tmp_path: Path) -> list[Path]:
    """Return archives with records of other kinds, a large body, a damaged record, and requests before responses."""
    records: list[Stored | bytes] = []
    for one in site(PAGES):
        records += [Stored(one.url, b"GET / HTTP/1.1\r\n\r\n", one.date, "request"), one]
    large = Stored(f"{HOST}/large", page(400, 401, text="x" * (2 << 20)), "2026-01-01T01:00:00Z")
    damaged = write_warc(tmp_path / "part", [site(1)[0]]).read_bytes()
    records[60:60] = [large, damaged[:60] + b"\0" * 40 + damaged[100:]]
    records += [Stored(f"{HOST}/gone", b"gone", status="404 Not Found"), Stored(f"{HOST}/cut", b"\xff\xd8\x00")]
    return [
        write_warc(tmp_path / "first.warc.gz", records[:100]),
        write_warc(tmp_path / "other.warc.gz", records[100:]),
    ]


@pytest.fixture
def reads_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "AHEAD_BYTES_MIN", 0)
    monkeypatch.setattr(ahead, "STRETCH_RECORDS", 8)


@pytest.mark.heavy
@pytest.mark.parametrize("how", ["--link", "--copy"])
def test_tables_are_the_same_for_any_number_of_processes(
    archives: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    do_import(tmp_path / "whole", *archives, how)
    monkeypatch.setattr(importing, "AHEAD_BYTES_MIN", 0)
    monkeypatch.setattr(ahead, "STRETCH_RECORDS", 8)
    monkeypatch.setattr(ahead, "RANGE_BYTES", 3_000)
    # There is one process with little memory, and none on a single processor.
    for processes, memory in ((1, "1GiB"), (2, "256MiB"), (3, "1GiB")):
        monkeypatch.setattr(ahead, "processors", lambda processes=processes: processes)
        directory = tmp_path / f"{processes}"
        do_import(directory, *archives, how, "--memory", memory)
        # The records of copies name the moment of the import, and so have other lengths.
        but = "*" if how == "--link" else "* EXCLUDE (warc_offset, warc_length)"
        for table, columns in (("pages", but), ("links", "*")):
            assert rows(directory, columns, table) == rows(tmp_path / "whole", columns, table)
        assert run("verify", str(directory), "--deep")[0] == 0


def stored(one: Stored, body: bytes) -> bytes:
    return gzip.compress(record(one._replace(body=body)), 0)


RANGES: dict[str, Callable[[], bytes]] = {
    "members": lambda: packed(site(PAGES)),
    "an archive in the archive": lambda: (
        packed(site(20)) + stored(Stored(f"{HOST}/in"), packed(site(90)[60:])) + packed(site(PAGES)[20:60])
    ),
    "one member": lambda: gzip.compress(b"".join(map(record, site(PAGES)))),
    "three records a member": lambda: b"".join(
        gzip.compress(b"".join(map(record, site(PAGES)[at : at + 3]))) for at in range(0, PAGES, 3)
    ),
    "members that a search does not find": lambda: b"".join(
        gzip.compress((b"\r\n" if at % 3 else b"") + record(one)) for at, one in enumerate(site(PAGES))
    ),
    "damage": lambda: packed(site(40)) + bytes(range(256)) * 20 + packed(site(PAGES)[40:]),
}


@pytest.mark.heavy
@pytest.mark.parametrize("kind", RANGES)
def test_records_are_counted_in_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A range may begin in a member that holds another archive as it is, or have no beginning of a member."""
    path = tmp_path / "a.warc.gz"
    path.write_bytes(RANGES[kind]())
    monkeypatch.setattr(importing, "AHEAD_BYTES_MIN", 0)
    monkeypatch.setattr(ahead, "RANGE_BYTES", 900)
    found = []
    for processes in (1, 2):
        monkeypatch.setattr(ahead, "processors", lambda processes=processes: processes)
        directory = tmp_path / f"{processes}"
        status, out, err = run("import", str(path), "-o", str(directory))
        # As above: copies are as long as the name of the moment.
        tables = [rows(directory, "* EXCLUDE (warc_offset, warc_length)"), rows(directory, "*", "links")]
        found.append((status, out.replace(str(directory), "DIR"), err, tables))
    assert found[0] == found[1]


def test_ranges_of_one_address_are_read_twice_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "RANGE_BYTES", 2_000)
    (tmp_path / "a.warc.gz").write_bytes(packed([Stored(HOST, b"text")]) * 400)
    (source,) = find_sources([str(tmp_path / "a.warc.gz")])
    reader = StretchReader(Room(Spills(tmp_path, "sha1")), None)  # type: ignore[arg-type]
    encode = msgspec.msgpack.encode
    read = 0
    for stretch in ranges_of(source):
        question = encode(StretchQuestion(stretch, ImportRequest()), enc_hook=str)
        answer = msgspec.msgpack.decode(reader.answer(question, lambda _: None), type=StretchAnswer)
        read += len(answer.items)
    assert 400 <= read <= 2.2 * 400


@pytest.mark.heavy
@pytest.mark.usefixtures("reads_ahead")
def test_copies_of_an_archive_are_imported_once(tmp_path: Path) -> None:
    archive = write_warc(tmp_path / "site.warc.gz", site(PAGES))
    (tmp_path / "copy.warc.gz").write_bytes(archive.read_bytes())
    assert f"Imported {PAGES} captures" in do_import(tmp_path / "again", archive)
    do_import(tmp_path / "crawl", archive, tmp_path / "copy.warc.gz")
    assert rows(tmp_path / "crawl", "url, depth") == rows(tmp_path / "again", "url, depth")


@pytest.mark.heavy
@pytest.mark.usefixtures("reads_ahead")
def test_a_page_that_kills_its_process_is_quarantined(tmp_path: Path) -> None:
    archive = write_warc(tmp_path / "site.warc.gz", site(PAGES))
    directory = tmp_path / "crawl"
    module = f"{Deadly.__module__}:{Deadly.__name__}"
    out = do_import(directory, archive, "--set", f'process.modules=["{module}"]')
    assert f"Imported {PAGES} captures" in out
    found = rows(directory, "url, outcome, error, was_seen")
    assert [row for row in found if row[1] != "fetched"] == [
        (DEADLY, "process_crashed", "a process died of it twice; archived unparsed", None)
    ]
    assert all(row[3] for row in found if row[0] != DEADLY)
    assert DEADLY in (directory / "logs" / "info.log").read_text()


@pytest.mark.heavy
def test_processes_end_with_the_import(archives: list[Path], tmp_path: Path) -> None:
    command = [sys.executable, "-c", START, "import", *map(str, archives), "-o", str(tmp_path / "crawl")]
    whole = tmp_path / "whole"
    do_import(whole, *archives)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children: list[int] = []
    ends_at = time.monotonic() + END_S_MAX
    while not children and process.poll() is None and time.monotonic() < ends_at:
        children = [int(one) for one in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    births = {child: birth_of(child) for child in children}
    process.kill()
    process.wait()
    assert children, "it starts processes"
    while any(birth and birth_of(child) == birth for child, birth in births.items()):
        assert time.monotonic() < ends_at, "they end with it"
        time.sleep(0.01)
    do_import(tmp_path / "crawl", *archives)
    assert rows(tmp_path / "crawl", "*") == rows(whole, "*")


@pytest.mark.parametrize("after", [0, 1, 7, 50])
def test_stretches_have_all_items_once(
    archives: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """They are found where bodies are skipped. None begins with a response whose request is in the one before."""
    monkeypatch.setattr(ahead, "STRETCH_RECORDS", 8)
    room = Room(Spills(tmp_path, "sha1"), held_bytes_max=4 << 20)
    (source, *_) = find_sources([str(archives[0])])
    whole = list(captures_of(source, room))
    borders = Borders()
    for item in captures_of(source, replace(room, counts=True)):
        borders.note(item)
    last = whole[after]
    assert not isinstance(last, Refused)
    stretches = list(borders.stretches(source, None))
    assert len(stretches) > 5
    parts = [list(stretch.items(room)) for stretch in stretches]
    assert [item for part in parts for item in part] == whole
    assert not any(isinstance(part[0], Capture) and part[0].method and part[0].request_head for part in parts)
    again = [item for stretch in borders.stretches(source, last.place) for item in stretch.items(room)]
    assert again == list(captures_of(source, room, last.place))


def test_few_items_and_bytes_are_read_together() -> None:
    """The bodies that the importing process holds are bounded."""
    place = CapturePlace(0, 0)
    small = Capture(place, "response", f"{HOST}/small", 1.0, 200, (), b"x")
    large = replace(small, body=bytes(ahead.TOGETHER_BYTES))
    items = [small] * (2 * ahead.TOGETHER_MAX + 1) + [large] * 4 + [small]
    assert [item for some in together(iter(items)) for item in some] == items
    assert [len(some) for some in together(iter(items))] == [ahead.TOGETHER_MAX] * 2 + [2, 2, 2]


def test_no_more_stretches_are_held_than_processes_can_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory does not depend on the size of archives: nothing is taken from them before there is a place for it."""
    taken = 0

    def stretches() -> Iterator[ArchiveStretch]:
        nonlocal taken
        for number in range(200):
            taken += 1
            yield ArchiveStretch(Source(number, "", "", 0, "warc"))

    async def ask(_: Ahead, question: StretchQuestion) -> StretchAnswer:
        return StretchAnswer(is_whole=question.stretch.source.number % 2 == 0)

    async def read_all() -> None:
        done = 0
        async for stretch, answer in Ahead(Config(), tmp_path, is_on=True).answers(
            stretches(), ImportRequest(), asyncio.Event()
        ):
            assert stretch.source.number == done
            assert answer.is_whole == (done % 2 == 0)
            done += 1
            assert taken - done < 2 * (1 + ahead.STRETCHES_WAITING)
        assert done == taken

    monkeypatch.setattr(ahead, "processors", lambda: 2)
    monkeypatch.setattr(Ahead, "_ask", ask)
    asyncio.run(read_all())


def test_an_order_to_stop_waits_for_no_page_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = asyncio.Event()

    async def ask(_: Ahead, question: StretchQuestion) -> StretchAnswer:
        stop.set()
        await asyncio.sleep(3_600)
        return StretchAnswer()

    async def read_all() -> list[ArchiveStretch]:
        stretches = iter([ArchiveStretch(Source(0, "", "", 0, "warc"))])
        reading = Ahead(Config(), tmp_path, is_on=True).answers(stretches, ImportRequest(), stop)
        async with asyncio.timeout(60):
            return [stretch async for stretch, _ in reading]

    monkeypatch.setattr(ahead, "processors", lambda: 2)
    monkeypatch.setattr(Ahead, "_ask", ask)
    assert asyncio.run(read_all()) == []
