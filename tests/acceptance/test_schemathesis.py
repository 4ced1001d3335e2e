"""Schemathesis finds nothing: no answer that is not described, no change without the token, no internal error."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.console import conftest
from tests.console.conftest import QUICK, Caller, Commands, until

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.promise(
        "Console", "Commands, socket, HTTP API and its description offer the same verbs, for any number of shards."
    ),
]
run, web = conftest.run, conftest.web
NOT_MEANT = {
    # What fits the schema is not all accepted: a crawl refuses seeds that are no addresses.
    True: "positive_data_acceptance",
    # Who has no token is told that before he is told that there is no such method.
    False: "positive_data_acceptance,unsupported_method",
}


@pytest.mark.parametrize("with_token", [True, False])
@pytest.mark.long
def test_of_a_crawl_that_runs(run: Commands, web: str, with_token: bool, tmp_path: Path) -> None:
    call, _ = run.served("crawl", web, "--serve", "0", "--allow-private", "--delay", "1", *QUICK)
    until(lambda: call.status().get("pages", 0) > 1)
    before = call.status()["epoch"]
    assert tried(call, NOT_MEANT[with_token], tmp_path, with_token=with_token) > 200
    call.post("/api/unpause")
    until(lambda: call.status()["epoch"] > before)


@pytest.mark.long
def test_of_a_crawl_that_does_not_run(run: Commands, web: str, tmp_path: Path) -> None:
    assert run("crawl", web, "--allow-private", "--delay", "0", "--max-pages", "6", "--quiet", *QUICK)[0] == 0
    call, _ = run.served("serve", "crawl", "--port", "0")
    assert tried(call, NOT_MEANT[True], tmp_path, with_token=True) > 200


@pytest.mark.long
def test_of_a_server(run: Commands, tmp_path: Path) -> None:
    call, _ = run.served("serve", "--port", "0")
    assert tried(call, NOT_MEANT[True], tmp_path, with_token=True) > 300


def tried(call: Caller, not_meant: str, folder: Path, *, with_token: bool) -> int:
    """Have schemathesis try all that is described, and return how much it tried."""
    given = ["-H", f"Authorization: Bearer {call.token}"] if with_token else []
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{call.port}/api/openapi.json", *given,
            "--checks", "all", "--exclude-checks", not_meant, "--max-examples", "8", "--seed", "9",
            "--phases", "coverage,fuzzing", "--exclude-path-regex", "/(stop|report)$",
            "--generation-database", "none", "--no-color",
        ],
        cwd=folder, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-1_000:]
    counts = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert counts is not None
    return int(counts[2])
