"""Memory of an import: what is held does not depend on the size of the archives."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gossamer
from gossamer.results.imports.importing import Importer
from tests.results.imports.archives import HOST, Stored, do_import, page, write_warc

MARKS = (400, 1_200)
BLOCKS_MAX = 60
"""Of memory that 800 pages may add: points of the rate over time, of which there is a bounded number."""
PROGRAM = """
from gossamer.cli.entry import main
try:
    main(["import", "--help"])
except SystemExit:
    import pyarrow
    print("\\n" + pyarrow.default_memory_pool().backend_name)
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


def test_tables_are_written_with_the_allocator_that_gives_memory_back() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ARROW_")}
    path = str(Path(gossamer.__file__).parent.parent)
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60,
        env={**environment, "PYTHONPATH": path},
    )  # fmt: skip
    assert answer.stdout.splitlines()[-1] == "system"
