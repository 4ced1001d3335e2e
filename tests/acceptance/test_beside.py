"""Every behavior of the synthetic web beside an innocent host, which keeps at least 90 % of its pace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.lab.simweb.behaviors import BEHAVIORS
from gossamer.lab.simweb.conformance import showcase
from tests.ring.beside import LAG_S_P99_MAX, PACE_MIN, PAGES, Beside, beside, beside_web

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.paced,
    pytest.mark.promise("Bounds", "A host keeps its pace beside any hostile behavior of the synthetic web."),
]
HOSTILE = ("floods", "hangs", "hostile", "bodies", "dead_ports", "schemes", "walls", "ttl_0")
"""Those that are tried on several hosts at once."""
RUN_S_MAX = 36


def judge(look: Callable[[Path], Beside], folder: Path) -> Beside:
    """Judge a crawl, or a second one where the first missed the pace: what else a machine does only takes from it."""
    seen = look(folder / "first")
    if not keeps_pace(seen):
        seen = look(folder / "second")
    assert seen.innocent.requests >= PAGES
    assert seen.hostile >= seen.innocent.requests
    assert seen.crawled.critical() == ""
    assert keeps_pace(seen), (seen.innocent, seen.lag_s_p99)
    return seen


def keeps_pace(seen: Beside) -> bool:
    return round(seen.innocent.utilisation, 2) >= PACE_MIN and seen.lag_s_p99 <= LAG_S_P99_MAX


@pytest.mark.parametrize("behaviour", HOSTILE)
@pytest.mark.long
def test_beside_hosts_that_show_one_behavior(tmp_path: Path, behaviour: str) -> None:
    judge(lambda folder: beside(folder, (behaviour,), 4, f"limits.max_time_s={RUN_S_MAX}"), tmp_path)


@pytest.mark.long
def test_beside_hosts_that_show_all_behaviors(tmp_path: Path) -> None:
    options = showcase(links_per_page=10, pages=2_000, zipf_exponent=0.0)
    limits = (f"limits.max_time_s={RUN_S_MAX}", "scope.trap_maze_pages_max=1000")
    seen = judge(lambda folder: beside_web(folder, options, *limits), tmp_path)
    shown = {name for host in seen.hosts for name in (host.robots, *host.behaviors)}
    missing = {each.name for each in BEHAVIORS} - shown
    assert missing <= {"slow", "mirror", "compressed"}, "traits, which hosts have beside their pages"
