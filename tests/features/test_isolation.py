"""Modules in processes of their own: what hangs, dies or grows there harms nothing but its own findings."""

from __future__ import annotations

import asyncio
import functools
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gossamer.features import isolation
from gossamer.features.isolation import PAGES_WAITING_MAX, IsolatedModules, LimitedModules, merge
from gossamer.model.links import Announcement, Found
from gossamer.model.pages import Findings, Page
from gossamer.stages.process.chain import Modules
from gossamer.stages.process.options import ProcessOptions
from gossamer.world.pool import PoolSeat
from gossamer.world.process import birth_of, limit_memory
from gossamer.world.spill import Spills

HERE = Path(__file__).parents[2]
COMMAND = (
    sys.executable,
    "-c",
    f"""import sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE / "src")!r}]
from tests.features.test_isolation import answer
answer()
""",
)
LIMIT_S = 0.5
"""Of processor time, as the processes keep it."""
MEMORY_MAX = 1 << 30


class Obedient:
    """Does what the page says."""

    name = "obedient"

    def wants(self, media_type: str) -> bool:
        return media_type == "text/html"

    def process(self, page: Page, findings: Findings) -> None:
        findings.columns["pid"] = os.getpid()
        findings.columns["size"] = page.body_bytes
        if b"size" in page.body:
            with page.open() as reader:
                findings.columns["read"] = len(reader.read())
            findings.columns["hashed"] = page.file.digest.hex() if page.file is not None else ""
        elif b"die" in page.body:
            os.kill(os.getpid(), signal.SIGSEGV)
        elif b"exit" in page.body:
            os._exit(3)
        elif b"sleep" in page.body:
            time.sleep(3600)
        elif b"blind" in page.body:
            re.match(r"(a+)+$", "a" * 60 + "b")
        elif b"grow" in page.body:
            bytearray(MEMORY_MAX)
        elif b"raise" in page.body:
            raise ZeroDivisionError("its own mistake")
        elif b"print" in page.body:
            print("what nobody asked for", flush=True)


class Second:
    name = "second"

    def wants(self, media_type: str) -> bool:
        return media_type == "text/html"

    def process(self, page: Page, findings: Findings) -> None:
        findings.links.append(Found("https://e.example/second", "anchor"))
        findings.columns["seen"] = [findings.title, os.getpid() == findings.columns.get("pid")]


def answer() -> None:
    isolation.WALL_FACTOR = float(os.environ.get("WALL_FACTOR", isolation.WALL_FACTOR))
    seat = PoolSeat(sys.stdout.buffer)
    sys.stdout = sys.stderr
    limits = LimitedModules(LIMIT_S, seat)
    modules = Modules([Obedient(), Second()], ProcessOptions(), watch=limits)
    limit_memory(MEMORY_MAX)
    limits.answer_questions(modules)


@asynccontextmanager
async def asking(folder: Path, limit_s: float = 20.0, processes: int = 1) -> AsyncIterator[IsolatedModules]:
    chosen = Modules([Obedient(), Second()], ProcessOptions()).modules_for
    isolated = IsolatedModules(COMMAND, chosen, limit_s, processes, {**os.environ, "SPILL": str(folder)})
    try:
        async with asyncio.timeout(60):
            yield isolated
    finally:
        await isolated.close()


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(**given: object) -> None:
        asyncio.run(test(**given))

    return run


def html(body: bytes) -> Page:
    return Page("https://e.example/", "text/html", "", (), body)


async def look(isolated: IsolatedModules, body: bytes) -> tuple[Findings, list[str]]:
    findings = Findings()
    return findings, [str(error) for error in (await isolated.process(html(body), findings)).errors]


@in_loop
async def test_one_process_answers_for_many_pages(tmp_path: Path) -> None:
    async with asking(tmp_path) as isolated:
        assert isolated.wants("text/html")
        assert not isolated.wants("image/png")
        seen = [await look(isolated, b"x" * size) for size in (0, 10, 100)]
        assert [errors for _, errors in seen] == [[], [], []]
        assert [findings.columns["size"] for findings, _ in seen] == [0, 10, 100]
        assert len({findings.columns["pid"] for findings, _ in seen}) == 1
        assert seen[0][0].columns["pid"] != os.getpid()
        assert seen[0][0].links == [Found("https://e.example/second", "anchor")]


@pytest.mark.heavy
@pytest.mark.promise(
    "Components and Python", "A processing module that raises, hangs or crashes harms its own findings alone."
)
@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"die", "obedient: its process died (signal 11)"),
        (b"exit", "obedient: its process died (exit status 3)"),
        (b"raise", "obedient: ZeroDivisionError: its own mistake"),
        (b"grow", "obedient: MemoryError: "),
    ],
)
@in_loop
async def test_a_module_that_fails_harms_only_itself(tmp_path: Path, body: bytes, error: str) -> None:
    async with asking(tmp_path) as isolated:
        findings, errors = await look(isolated, body)
        assert errors == [error]
        assert [link.url for link in findings.links] == ["https://e.example/second"]
        assert (await look(isolated, b"fine"))[1] == []


@pytest.mark.heavy
@pytest.mark.promise(
    "Components and Python", "A processing module that raises, hangs or crashes harms its own findings alone."
)
@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"sleep", "obedient: took longer than 5 s in its isolated process"),
        (b"blind", "obedient: took more than 0.5 s of processor time"),
    ],
)
@in_loop
async def test_a_module_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes, error: str
) -> None:
    if body == b"blind":  # A busy machine may give it less than a tenth of its time.
        monkeypatch.setattr(isolation, "WALL_FACTOR", 100.0)
        monkeypatch.setenv("WALL_FACTOR", "100.0")
    async with asking(tmp_path, limit_s=LIMIT_S) as isolated:
        await look(isolated, b"begin")
        findings, errors = await look(isolated, body)
        assert errors == [error]
        assert [link.url for link in findings.links] == ["https://e.example/second"]


@in_loop
async def test_what_a_module_prints_is_no_answer(tmp_path: Path) -> None:
    async with asking(tmp_path) as isolated:
        assert (await look(isolated, b"print"))[1] == []


@in_loop
async def test_large_content_goes_through_in_pieces(tmp_path: Path) -> None:
    spill = Spills(tmp_path, "sha1").make()
    spill.write(b"size" + b"y" * 3_000_000)
    page = Page("https://e.example/", "text/html", "", (), b"size", spill)
    async with asking(tmp_path) as isolated:
        findings = Findings()
        assert (await isolated.process(page, findings)).errors == ()
        assert findings.columns["size"] == findings.columns["read"] == 3_000_004
        assert findings.columns["hashed"] == spill.digest.hex()


@in_loop
async def test_a_page_goes_to_one_process_with_what_was_found_of_it(tmp_path: Path) -> None:
    async with asking(tmp_path, processes=2) as isolated:
        findings = Findings(
            links=[Found("a", "anchor")], title="T", text="words", text_method="visible", charset="utf-8"
        )
        seen = await isolated.process(html(b"x"), findings)
        assert findings.columns["seen"] == ["T", True]
        assert [link.url for link in findings.links] == ["a", "https://e.example/second"]
        assert (findings.text, findings.text_method, findings.charset) == ("words", "visible", "utf-8")
        assert seen.ran == ("obedient", "second")


@in_loop
async def test_few_pages_are_decoded_while_they_wait(tmp_path: Path) -> None:
    async with asking(tmp_path, processes=2) as isolated, asyncio.TaskGroup() as group:
        for _ in range(2 * (1 + PAGES_WAITING_MAX)):
            assert not isolated.is_full
            await isolated.enter()
        assert isolated.is_full
        waiting = group.create_task(isolated.enter())
        await asyncio.sleep(0)
        assert not waiting.done()
        isolated.leave()
        await waiting


@in_loop
async def test_processes_are_bounded_and_work_side_by_side(tmp_path: Path) -> None:
    async with asking(tmp_path, processes=2) as isolated:
        seen = await asyncio.gather(*[look(isolated, b"x") for _ in range(12)])
        assert len({findings.columns["pid"] for findings, _ in seen}) <= 2


@in_loop
async def test_a_cancelled_question_leaves_no_process(tmp_path: Path) -> None:
    async with asking(tmp_path) as isolated:
        pid = int(str((await look(isolated, b"x"))[0].columns["pid"]))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await look(isolated, b"sleep")
        while birth_of(pid):  # noqa: ASYNC110 - no event reports it; `asking` has the deadline
            await asyncio.sleep(0.01)


def test_findings_are_merged_with_every_link() -> None:
    one = Findings(links=[Found("a", "anchor")], title="T", columns={"x": 1}, rows={"t": [{"a": 1}]})
    merge(one, Findings(
        links=[Found("a", "anchor", "again"), Found("a", "embed")], title="T", text="words", nofollow=True,
        columns={"y": 2}, rows={"t": [{"a": 2}]}, announcement=Announcement("feed", ttl_s=60.0),
    ))  # fmt: skip
    merge(one, Findings(title="T", text_method="main"))
    assert one.announcement == Announcement("feed", ttl_s=60.0)
    assert one.links == [Found("a", "anchor"), Found("a", "anchor", "again"), Found("a", "embed")]
    assert (one.title, one.text, one.nofollow, one.noindex) == ("T", "", True, False), "the later module's text"
    assert one.columns == {"x": 1, "y": 2}
    assert one.rows == {"t": [{"a": 1}, {"a": 2}]}
