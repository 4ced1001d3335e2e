"""Properties are tested without a clock, and the same ones each time: a busy machine is no failure.

GOSSAMER_EXAMPLES=2000 looks further, at random.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from gossamer.state.store import Store

settings.register_profile("quick", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
if "GOSSAMER_EXAMPLES" in os.environ:
    settings.register_profile(
        "deep",
        deadline=None,
        max_examples=int(os.environ["GOSSAMER_EXAMPLES"]),
        suppress_health_check=list(HealthCheck),
    )

Open = Callable[[Path], Store]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Open stores that are closed after the test."""
    stores = []

    def open_store(path: Path) -> Store:
        stores.append(Store(path, 1 << 20, 1 << 20))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()
