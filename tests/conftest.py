"""What all tests share: an environment that does not depend on the caller's, and no modules left behind."""

from __future__ import annotations

import gc
import os
import re
import signal
import socketserver
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.costs import pytest_runtest_call, pytest_runtest_setup, pytest_terminal_summary  # noqa: F401 - hooks
from tests.sampled import EVERY, FIRST

KEPT = (
    "PATH",
    "HOME",
    "TMPDIR",
    "REPLAY",
    "GOSSAMER_DAY",
    "GOSSAMER_DRILL_S",
    "GOSSAMER_EVERY",
    "GOSSAMER_EXAMPLES",
    "GOSSAMER_SCALINGS",
    "PYTHONHASHSEED",
    "PYTEST_",
    "COV_",
    "COVERAGE_",
)
"""Names of variables that tests may see of the caller's, or beginnings of such names."""
ACCEPTANCE = Path(__file__).parent / "acceptance"
MARKED = {
    "acceptance": re.compile("mark.acceptance|with_further"),
    "heavy": re.compile("mark.heavy"),
    "alone": re.compile("mark.alone"),
    "paced": re.compile("mark.paced"),
}
"""What marks tests for a run of `make acceptance`, in their file or in the conftest.py beside it, by the first word of
the marks that it selects.
"""
LONG_S = 100.0
"""Below all timeouts that tests set for themselves."""
SET = {"LANG": "C.UTF-8", "TERM": "xterm-256color", "TZ": "UTC"}

if settings.get_current_profile_name() == "default":  # Properties are tested without a clock: machines are busy.
    settings.register_profile("gossamer", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("gossamer")


def pytest_configure() -> None:
    """Give tests, and all processes that they start, the same environment wherever they run: a terminal, cron, an
    editor or a CI system; behind a proxy, without colors, without a home.
    """
    for name in set(os.environ) - set(SET):
        if not name.startswith(KEPT):
            del os.environ[name]
    os.environ.update(SET)
    if not os.path.isdir(os.environ.get("HOME", "")):  # noqa: PTH112 - empty is no path
        os.environ["HOME"] = tempfile.gettempdir()
    os.umask(0o022)
    # With the default of 5 a kernel that is busy refuses connections, which come again a second later, or never.
    socketserver.TCPServer.request_queue_size = 256
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` and background jobs of scripts have them ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a compressed body by its argument: its bytes hold a time, and all workers need the same names of tests."""
    return argname if isinstance(val, bytes) and val.startswith(b"\x1f\x8b") else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of which no test is selected: what tests import takes long."""
    wanted = config.option.markexpr
    if "not acceptance" in wanted and collection_path == ACCEPTANCE:
        return True
    marked = MARKED.get(wanted.partition(" ")[0])
    if marked is None or not collection_path.match("test_*.py"):
        return None
    markers = (collection_path, collection_path.with_name("conftest.py"))
    return None if any(path.exists() and marked.search(path.read_text()) for path in markers) else True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without searching for garbage, and leave them out of later searches, those of pytest at its end
    too: they are a million objects that stay.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark those of the long tests `today` that CI runs today: all have their day. Of the selected tests, begin with
    those that take longest, so that no processor waits at the end for another's.
    """
    long = sorted((item for item in items if item.get_closest_marker("long")), key=lambda item: item.nodeid)
    apart = [item for item in long if not item.get_closest_marker("together")]
    modules = sorted({item.path for item in long if item.get_closest_marker("together")})[FIRST::EVERY]
    for item in (*apart[FIRST::EVERY], *(one for one in long if one.path in modules)):
        item.add_marker("today")
    yield
    slow = _deal(items, getattr(config, "workerinput", {}).get("workercount", 1))
    others = [item for item in items if not _patience_s(item)]
    # Each worker gets a part of the list. Tests of a module stay together: they share what it makes.
    total = len(items)
    items.clear()
    for number, first in enumerate(slow):
        room = max((total - len(items)) // (len(slow) - number) - len(first), 0)
        items += [*first, *others[:room]]
        del others[:room]
    items += others


def _deal(items: list[pytest.Item], workers: int) -> list[list[pytest.Item]]:
    """Return for each worker the tests that take long, those with the longest first; one has all of a module that is
    marked `together`.
    """
    groups: dict[object, list[pytest.Item]] = {}
    for item in sorted(filter(_patience_s, items), key=_patience_s, reverse=True):
        groups.setdefault(item.path if item.get_closest_marker("together") else item.nodeid, []).append(item)
    dealt: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for group in groups.values():
        min(dealt, key=len).extend(group)
    return dealt


def _patience_s(item: pytest.Item) -> float:
    timeout = item.get_closest_marker("timeout")
    is_long = item.get_closest_marker("long") and not item.get_closest_marker("further")
    return float(timeout.args[0]) if timeout else LONG_S if is_long else 0.0


@pytest.fixture(autouse=True)
def _modules_are_forgotten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget modules that a test wrote and imported: another test's may have the same name."""
    before = set(sys.modules)
    yield
    written = str(tmp_path_factory.getbasetemp())
    for name in sys.modules.keys() - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(written):
            del sys.modules[name]
