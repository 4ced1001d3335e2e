"""A server of many crawls is killed, and they are, in every order: none is lost, none that ended begins anew."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.console import conftest
from tests.console.conftest import Commands
from tests.console.test_serve import alive, config_of, crawl_of, ended, until, wish_of

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.promise("Console", "Crawls outlive a killed server, and the next server finds them."),
]
run, web = conftest.run, conftest.web


@pytest.mark.long
def test_crawls_outlive_a_server_that_is_killed_and_the_next_one_finds_them(run: Commands, web: str) -> None:
    call, server = run.served("serve", "--port", "0")
    assert call.post("/api/crawls", name="one", config=config_of(web)).status == 201
    until(lambda: crawl_of(call, "one")["pages"] > 2)
    pid = wish_of(run, "one")["pid"]
    assert ended(server, signal.SIGKILL) == -signal.SIGKILL
    pages = json.loads(run("status", "one", "--json")[1])["pages"]
    # It goes on meanwhile.
    until(lambda: json.loads(run("status", "one", "--json")[1])["pages"] > pages)
    again, server = run.served("serve", "--port", "0")
    assert again.token == call.token
    assert again.get("/api/crawls").json["running"] == 1
    assert wish_of(run, "one")["pid"] == pid
    assert "runs already" in again.post("/api/crawls/one/resume").error
    # Told to end, the server ends also what another one began.
    assert ended(server) == 0
    assert not alive(pid)
    assert json.loads(run("status", "one", "--json")[1])["ended"] == "stopped"
    # It was to run: the next server resumes it.
    third, server = run.served("serve", "--port", "0")
    until(lambda: crawl_of(third, "one")["state"] == "running")
    assert third.post("/api/crawls/one/stop", now=True).status == 200
    until(lambda: third.get("/api/crawls").json["running"] == 0)
    assert ended(server) == 0


@pytest.mark.long
def test_a_crawl_that_died_with_its_server_is_resumed_and_one_that_ended_is_not(run: Commands, web: str) -> None:
    call, server = run.served("serve", "--port", "0")
    assert call.post("/api/crawls", name="lasting", config=config_of(web)).status == 201
    short = config_of(web, limits={"max_pages": 30})
    assert call.post("/api/crawls", name="short", config=short).status == 201
    until(lambda: crawl_of(call, "lasting")["pages"] > 2)
    until(lambda: crawl_of(call, "short")["pages"] > 2)
    ended(server, signal.SIGKILL)
    os.kill(wish_of(run, "lasting")["pid"], signal.SIGKILL)
    until(lambda: not alive(wish_of(run, "lasting")["pid"]))
    until(lambda: not alive(wish_of(run, "short")["pid"]))
    before = json.loads(run("status", "lasting", "--json")[1])
    assert before["ended"] == ""
    again, server = run.served("serve", "--port", "0")
    until(lambda: crawl_of(again, "lasting")["pages"] > before["pages"])
    until(lambda: not crawl_of(again, "short")["runs"])
    assert crawl_of(again, "short")["pages"] == 30
    # And one whose process is killed while the server lives.
    os.kill(wish_of(run, "lasting")["pid"], signal.SIGKILL)
    before = wish_of(run, "lasting")["pid"]
    until(lambda: wish_of(run, "lasting")["pid"] not in (0, before))
    until(lambda: crawl_of(again, "lasting")["state"] == "running")
    assert ended(server) == 0
    assert not alive(wish_of(run, "lasting")["pid"])


@pytest.mark.long
def test_no_more_are_resumed_than_may_run(run: Commands, web: str) -> None:
    call, server = run.served("serve", "--port", "0")
    for name in ("a", "b"):
        assert call.post("/api/crawls", name=name, config=config_of(web)).status == 201
    for name in ("a", "b"):
        until(lambda name=name: crawl_of(call, name)["pages"] > 1)  # type: ignore[misc]
    assert ended(server) == 0
    again, server = run.served("serve", "--port", "0", "--set", "console.crawls_max=1")
    assert again.get("/api/crawls").json["running"] == 1
    assert "not resumed" in crawl_of(again, "b")["problem"]
    assert again.post("/api/crawls/b/resume").status == 409
    until(lambda: crawl_of(again, "a")["state"] == "running")
    assert again.post("/api/crawls/a/stop", now=True).status == 200
    until(lambda: again.get("/api/crawls").json["running"] == 0)
    assert again.post("/api/crawls/b/resume").status == 200
    assert ended(server) == 0
