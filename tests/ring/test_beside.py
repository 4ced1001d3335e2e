"""An innocent host beside hostile ones keeps its pace, and the event loop answers in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ring.beside import PAGES, beside

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.paced,
    pytest.mark.promise("Bounds", "A host keeps its pace beside any hostile behavior of the synthetic web."),
]

UTILISATION_MIN = 0.6
"""Other tests run beside this one; `tests/acceptance/test_beside.py` demands 0.9 of a quiet machine."""


@pytest.mark.parametrize(
    "behaviours",
    [
        ("floods",),
        pytest.param(("schemes", "ttl_0"), marks=pytest.mark.long),
        pytest.param(("walls",), marks=pytest.mark.long),
    ],
)
def test_an_innocent_host_keeps_its_pace(tmp_path: Path, behaviours: tuple[str, ...]) -> None:
    seen = beside(tmp_path, behaviours, 2, "limits.max_time_s=20", delay_s=0.25)
    assert seen.innocent.requests >= PAGES
    assert seen.hostile >= seen.innocent.requests
    assert seen.innocent.utilisation >= UTILISATION_MIN
    assert seen.crawled.critical() == ""
