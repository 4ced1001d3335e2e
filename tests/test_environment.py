"""Neither a crawl nor the tests depend on the environment of whoever runs them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

import gossamer
from tests.answering import Answering, serving
from tests.further import with_further

pytestmark = pytest.mark.promise(
    "Operation", "Neither a crawl nor the tests depend on the caller's environment variables."
)

REPOSITORY = Path(__file__).parents[1]
BARE = {"PATH": "/usr/bin:/bin"}
NOBODY = "http://127.0.0.1:9"
HOSTILE = {
    **BARE, "TERM": "dumb", "NO_COLOR": "1", "LANG": "C", "LC_ALL": "C", "COLUMNS": "40", "HOME": "/nonexistent",
    "http_proxy": NOBODY, "HTTP_PROXY": NOBODY, "https_proxy": NOBODY, "ALL_PROXY": NOBODY, "no_proxy": "",
    "PYTHONWARNINGS": "error", "PAGER": "false", "TZ": "Pacific/Kiritimati",
}  # fmt: skip
SELECTED = (
    "tests/cli/test_crawling.py::test_on_a_terminal_there_is_a_live_view_and_the_cursor_comes_back",
    "tests/cli/test_crawling.py::test_a_crawl_runs_to_its_end_and_says_where_it_lies",
    "tests/cli/test_progress.py",
    "tests/results/report/test_report.py",
)
ENVIRONMENTS = pytest.mark.parametrize("environment", with_further(HOSTILE, BARE))


class Site(Answering):
    def get(self) -> None:
        self.answer(404 if self.path == "/robots.txt" else 200, "<title>Ünïcode</title>".encode())


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/ü"


@pytest.mark.heavy
@ENVIRONMENTS
def test_a_crawl_is_the_same_in_every_environment(site: str, environment: dict[str, str], tmp_path: Path) -> None:
    for words in (["crawl", site, "--allow-private"], ["report", "crawl"]):
        done = subprocess.run(
            [sys.executable, "-m", "gossamer", *words],
            cwd=tmp_path, env={**environment, "PYTHONPATH": str(Path(gossamer.__file__).parents[1])}, umask=0o077,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert "1 page" in done.stdout


@pytest.mark.heavy
@ENVIRONMENTS
@pytest.mark.long
def test_the_tests_are_the_same_in_every_environment(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SELECTED],
        cwd=REPOSITORY, env=environment, umask=0o077, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3_000:]
    assert "passed" in done.stdout
