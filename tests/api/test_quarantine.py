"""A page that a process died of, from the accusation to its verdict, through the real command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gossamer import Crawler
from gossamer.state.slots import STAGES, ShardSlots, accuse
from gossamer.url.name import Namer
from tests.api.conftest import Make, Run
from tests.api.site import Site, page

MODULE = """
import os, signal

class Marks:
    name = "marks"

    def wants(self, media_type):
        return media_type == "text/html"

    def process(self, page, findings):
        findings.columns["pid"] = os.getpid()
        if b"deadly" in page.body:
            os.kill(os.getpid(), signal.SIGSEGV)
"""


@pytest.mark.heavy
def test_a_suspect_is_examined_alone_with_the_modules_that_we_have(
    run: Run, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`marks_of_ours` is on our path only; the process of its own must find it there."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/marks_of_ours.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))

    async def scenario() -> None:
        pages = {"/": page("/harmless", "/worse"), "/harmless": page(title="Harmless"), "/worse": page(text="deadly")}
        async with Site(pages) as site:
            settings: dict[str, object] = {"process.modules": ["marks_of_ours:Marks"]}
            crawler = make(site.root, max_pages=1, settings=settings)
            assert await crawler.run() == "limit"
            state = crawler.directory / "state"
            slots = ShardSlots(state)
            for slot, path in enumerate(("harmless", "worse")):
                url = Namer().name(site.root + path)
                assert url is not None
                slots.enter(slot, url.fingerprint, STAGES.index("process"), 0.0)
            slots.close()
            assert accuse(state) == 2

            ours = {}
            async with Crawler.resume(crawler.directory, settings={"limits.max_pages": None}) as resumed:
                async for one in resumed:
                    ours[one.url.removeprefix(site.root)] = one
            assert {path: one.outcome for path, one in ours.items()} == {
                "harmless": "fetched", "worse": "process_crashed",
            }  # fmt: skip
            assert ours["harmless"].title == "Harmless"
            assert ours["harmless"].columns["pid"] not in {None, os.getpid()}
            assert ours["worse"].row.warc_file

    run(scenario())
