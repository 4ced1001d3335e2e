from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess

SMALL = SimwebOptions(
    seed=7, hosts=40, pages=300, bytes_median=2_000, oversized_bytes=500_000, bomb_bytes=1_000_000, slow_s_median=0.002,
    drip_s=0.05, retry_after_s=1,
)  # fmt: skip


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimwebProcess]:
    """A small web with every behaviour; whoever asks for pages that heal, heals them for all."""
    with SimwebProcess(SMALL, tmp_path_factory.mktemp("simweb")) as process:
        yield process


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[SimwebProcess]:
    """The same web, untouched."""
    with SimwebProcess(SMALL, tmp_path) as process:
        yield process
