"""Suspects are examined in a process of their own, which may die, hang, or clear them."""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
from pathlib import Path

import msgspec
import pytest

from gossamer.engine.examine import Examiner, NoSlots
from gossamer.engine.quarantine import examine_alone
from gossamer.stages.fetch.decoding import BoundedDecoder
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.process.chain import Modules
from gossamer.stages.process.options import ProcessOptions
from gossamer.state.slots import Suspect
from gossamer.testing import page, reply
from gossamer.world import pool
from gossamer.world.clock import WallClock
from gossamer.world.pool import PoolSeat
from gossamer.world.spill import Spills
from tests.engine.ring import Ring, url_of
from tests.stages.process.pages import standard_modules

ROOT = "http://a.example/"
HERE = Path(__file__).parents[2]
PAGES = {ROOT: page("/a", title="Suspect"), ROOT + "a": page(title="Innocent")}
DIES = (sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
FAILS = (sys.executable, "-c", "raise SystemExit(3)")
HANGS = (sys.executable, "-c", "import time; time.sleep(1000)")
CLEARS = (
    sys.executable,
    "-c",
    f"""import sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE / "src")!r}]
from tests.engine.test_quarantine import alone
alone()
""",
)


def alone() -> None:
    process = ProcessOptions()
    modules = Modules(standard_modules(process), process)
    examiner = Examiner(BoundedDecoder(FetchOptions()), modules.process_in_slices, WallClock(), NoSlots())
    examine_alone(PoolSeat.of_process(), examiner)


def accused(*urls: str) -> list[Suspect]:
    return [Suspect(url_of(url).fingerprint, "process", 1) for url in urls]


@pytest.mark.parametrize("command", [DIES, FAILS, HANGS], ids=["dies", "fails", "hangs"])
def test_a_second_death_condemns_a_page_and_the_crawl_goes_on(
    tmp_path: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "START_S_MAX", 5.0)
    limit = {"process_s_max": 0.3 if command is HANGS else 20.0}
    with Ring(tmp_path, PAGES, accused=accused(ROOT), command=command, crawl=limit) as ring:
        ring.crawl(ROOT, ROOT + "a")
        assert ring.outcomes == {ROOT: "process_crashed", ROOT + "a": "fetched"}
        (crashed,) = [visited for visited in ring.archive.added if visited.row.url == ROOT]
        assert crashed.reply is not None
        assert crashed.row.warc_file
        assert crashed.links == []
        assert ring.quarantine.suspects(url_of(ROOT).fingerprint)
        assert ring.explainer.why(ROOT)["state"] == "process_crashed"


def test_a_page_that_is_harmless_alone_is_cleared(tmp_path: Path) -> None:
    with Ring(tmp_path, PAGES, accused=accused(ROOT), command=CLEARS) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes == {ROOT: "fetched", ROOT + "a": "fetched"}
        assert ring.rows[0].title == "Suspect"
        assert not ring.quarantine.suspects(url_of(ROOT).fingerprint)


@pytest.mark.parametrize("encoded", [False, True])
def test_a_large_page_that_is_cleared_keeps_its_file_where_that_is_its_content(tmp_path: Path, encoded: bool) -> None:
    file = Spills(tmp_path, "sha1").make()
    file.write(PAGES[ROOT].body if not encoded else gzip.compress(PAGES[ROOT].body))
    file.flush()
    headers = (("Content-Type", "text/html"), *([("Content-Encoding", "gzip")] if encoded else []))
    large = msgspec.structs.replace(PAGES[ROOT], url=ROOT, body=b"", file=file, headers=headers)
    with Ring(tmp_path, accused=accused(ROOT), command=CLEARS) as ring:
        examined = asyncio.run(ring.quarantine.examine(large, url_of(ROOT).fingerprint))
    assert examined is not None
    assert examined.content.file is (None if encoded else file)


def test_suspects_are_remembered_with_the_commit(tmp_path: Path) -> None:
    with Ring(tmp_path, PAGES, accused=accused(ROOT)) as ring:
        asyncio.run(ring.committer.commit())
    with Ring(tmp_path, PAGES) as ring:
        assert ring.quarantine.suspects(url_of(ROOT).fingerprint)
        assert not ring.quarantine.suspects(url_of(ROOT + "a").fingerprint)


def test_a_suspect_robots_txt_is_not_decoded_and_allows_nothing(tmp_path: Path) -> None:
    pages = {**PAGES, ROOT + "robots.txt": reply(b"User-agent: *\nAllow: /", media_type="text/plain")}
    with Ring(tmp_path, pages, obey=True, accused=accused(ROOT + "robots.txt")) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes[ROOT] == "robots_unreachable"
    with Ring(tmp_path / "cleared", pages, obey=True) as ring:
        ring.crawl(ROOT)
        assert ring.outcomes[ROOT] == "fetched"


def test_who_leaves_takes_the_process_with_him(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"""import os, time
with open({str(pid)!r} + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename({str(pid)!r} + ".new", {str(pid)!r})
time.sleep(1000)
"""
    command = (sys.executable, "-c", script)
    with Ring(tmp_path, PAGES, accused=accused(ROOT), command=command) as ring:
        ring.seed(ROOT)

        async def leave() -> None:
            task = asyncio.create_task(ring.turns())
            while not pid.exists():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.005)
            task.cancel()
            await asyncio.wait([task])

        asyncio.run(leave())
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)
