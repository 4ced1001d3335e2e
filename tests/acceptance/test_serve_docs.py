"""The commands that the page about operation shows do what it says, as a shell runs them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.console import conftest
from tests.console.conftest import QUICK, Caller, Commands, until

pytestmark = pytest.mark.acceptance
run, web = conftest.run, conftest.web
PAGE = Path(__file__).parents[2] / "docs/how-to/monitoring.md"
SHELL = 'set -eu\ncurl() { command curl --silent --show-error --fail-with-body "$@"; echo; }\n'


def shown(beginning: str) -> str:
    """Return the block of commands that begins so."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^    {re.escape(beginning)}.*\n(?:    .*\n)*", text, re.MULTILINE)
    assert found is not None
    return found[0]


def done(script: str, call: Caller, directory: Path, web: str) -> list[str]:
    script = script.replace("8817", str(call.port)).replace("https://example.org/", web)
    script = script.replace("https://docs.example.org/", web)
    ran = subprocess.run(["sh", "-c", SHELL + script], cwd=directory, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return ran.stdout.splitlines()


def test_what_is_shown_of_one_crawl(run: Commands, web: str) -> None:
    call, _ = run.served("crawl", web, "-o", "DIR", "--serve", "0", "--allow-private", "--delay", "0.2", *QUICK)
    until(lambda: call.status().get("pages", 0) > 1)
    status, why, paused, changed = done(shown("TOKEN=$(cat DIR/"), call, run.directory, web)
    assert json.loads(status)["pages"] > 1
    assert json.loads(why)["state"] == "fetched"
    assert json.loads(paused)["state"] == "paused"
    assert json.loads(changed)["changed"][0]["after"] == "64"


def test_what_is_shown_of_many(run: Commands, web: str) -> None:
    (run.directory / "FOLDER").mkdir()
    call, _ = run.served("serve", "--folder", "FOLDER", "--port", "0")
    private = shown("TOKEN=$(cat FOLDER/").replace('{"seeds"', '{"resolve": {"allow_private": true}, "seeds"')
    made, listed = done(private, call, run.directory, web)
    assert json.loads(made)["name"] == "docs"
    assert [one["name"] for one in json.loads(listed)["crawls"]] == ["docs"]
    assert call.post("/api/crawls/docs/stop", now=True).status == 200
    until(lambda: call.get("/api/crawls").json["running"] == 0)
