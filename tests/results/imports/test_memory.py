"""Memory of an import: what is held does not depend on the size of the archives."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from gossamer.results.imports.importing import Importer
from tests.results.imports.archives import HOST, Stored, do_import, page, write_warc

MARKS = (400, 1_200)
BLOCKS_MAX = (MARKS[1] - MARKS[0]) // 2
"""Of memory that these pages may add: one object held of each page would be twice as many. Points of the rate over
time, of which there is a bounded number, are some 10 for each second that the import takes.
"""


@pytest.mark.heavy
def test_nothing_of_a_page_is_held_after_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [Stored(f"{HOST}/p{number}", page(number, 0, 1)) for number in range(MARKS[1] + 50)]
    archive = write_warc(tmp_path / "site.warc.gz", pages)  # Links that are new are remembered, up to a bound.
    held: list[int] = []
    take = Importer._take

    async def take_and_count(importer: Importer, *arguments: object) -> None:
        await take(importer, *arguments)  # type: ignore[arg-type]
        if importer.status().done in MARKS:
            await importer._committer.commit()
            gc.collect()
            held.append(sys.getallocatedblocks())

    monkeypatch.setattr(Importer, "_take", take_and_count)
    do_import(tmp_path / "crawl", archive)
    assert len(held) == len(MARKS)
    assert held[1] - held[0] < BLOCKS_MAX
