"""`gossamer serve`: one crawl, running elsewhere or not at all; and a folder of crawls, whatever is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import openapi_spec_validator
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gossamer.console.access import FILE
from gossamer.console.fleet import CrawlSummary, Fleet
from gossamer.console.folder import OWN, Folder
from gossamer.console.service import Service
from gossamer.model.errors import ConfigError
from gossamer.model.verbs import VERBS, ConflictError, MissingError
from gossamer.world.process import DirectoryLock
from tests.console.conftest import QUICK, SMALL, Caller, Commands, until


def config_of(web: str, **sections: dict[str, object]) -> dict[str, Any]:
    """Return a crawl's configuration as JSON."""
    found: dict[str, Any] = {
        "seeds": {"urls": [web]},
        "resolve": {"allow_private": True},
        "politeness": {"delay_s_min": 0.1},
    }
    for text in SMALL:
        key, _, value = text.partition("=")
        section, _, name = key.partition(".")
        found.setdefault(section, {})[name] = json.loads(value)
    for section, values in sections.items():
        found.setdefault(section, {}).update(values)
    return found


def ended(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> int:
    process.send_signal(number)
    return process.wait(60)


# ---- one crawl


@pytest.mark.heavy
def test_a_crawl_that_runs_elsewhere_answers_by_its_socket(run: Commands, web: str) -> None:
    crawl = run.start("crawl", web, "--allow-private", "--delay", "0.1", "--quiet", *QUICK)
    until((run.directory / "crawl/state/control.sock").exists)
    call, server = run.served("serve", "crawl", "--port", "0")
    until(lambda: call.status().get("pages", 0) > 2)
    assert call.get("/api/hosts").json["active"][0]["host"] == "127.0.0.1"
    assert call.post("/api/pause").json["state"] == "paused"
    assert json.loads(run("status", "crawl", "--json")[1])["state"] == "paused"
    assert "has no scheme" in call.post("/api/seed", urls=["x"]).error
    assert call("POST", "/api/unpause", {}).status == 401
    assert b"gossamer_pages_total" in call.get("/metrics").body
    assert call.post("/api/stop").json["state"] == "stopping"
    assert crawl.wait(60) == 130
    until(lambda: call.status()["state"] == "stopped")
    assert ended(server) == 0


@pytest.mark.heavy
@pytest.mark.promise("Console", "Serving a crawl that does not run changes nothing.")
@pytest.mark.long
def test_of_a_crawl_that_does_not_run_it_reads_and_changes_nothing(run: Commands, web: str) -> None:
    assert run("crawl", web, "--allow-private", "--delay", "0", "--max-pages", "6", "--quiet", *QUICK)[0] == 0
    call, server = run.served("serve", "crawl", "--port", "0")
    status = call.status()
    assert (status["state"], status["pages"], status["ended"]) == ("finished", 6, "limit")
    assert status["ended_says"] == "limit of 6 pages reached"
    assert status["waiting_for"].startswith("limit of 6 pages reached; `gossamer resume ")
    assert status["waiting_for"].endswith(" --max-pages N` continues with a higher limit N")
    assert (status["eta_s"], status["watch"], status["shards"]) == (None, {}, [])
    text = run("status", "crawl")[1]
    assert "%" not in text
    assert " of 0 B" not in text
    assert "about " not in text
    assert call.get(f"/api/why?url={web}").json["state"] == "fetched"
    assert call.get("/api/report").json["attempts"] >= 6
    assert call.get("/api/config").json["keys"]
    assert call.get("/api/about").json["name"] == "crawl"
    assert call.get("/api/hosts").json["slowest"][0]["host"] == "127.0.0.1"
    assert "no search index" in call.get("/api/search?q=words").error
    assert b'gossamer_state{state="finished"} 1.0' in call.get("/metrics").body
    given = {
        "seed": {"urls": [web]},
        "exclude": {"hosts": ["x.example"]},
        "host": {"host": "x", "values": {"pages": 1}},
        "scale": {"workers": 2},
    }
    for name, verb in VERBS.items():
        if verb.changes and name != "release":
            fields: dict[str, Any] = given.get(name, {})
            answer = call.post(f"/api/{name}", **fields)
            assert answer.status == 409, name
            assert "gossamer resume" in answer.error
    assert call.post("/api/release", name="127.0.0.1").status == 409
    assert call.post("/api/seed", urls="x").status == 422
    # It holds nothing: the crawl can be resumed meanwhile, and is asked from then on.
    resumed = run.start("resume", "crawl", "--set", "limits.max_pages=none", "--delay", "0.2", "--quiet")
    until(lambda: call.status()["state"] == "running")
    assert call.post("/api/stop", now=True).status == 200
    assert resumed.wait(60) == 130
    assert ended(server, signal.SIGINT) == 0


@pytest.mark.heavy
def test_two_may_serve_one_crawl_but_not_at_one_port(run: Commands, web: str) -> None:
    assert run("crawl", web, "--allow-private", "--delay", "0", "--max-pages", "2", "--quiet", *QUICK)[0] == 0
    first, _ = run.served("serve", "crawl", "--port", "0")
    second, _ = run.served("serve", "crawl", "--port", "0")
    assert first.token == second.token == (run.directory / "crawl/state" / FILE).read_text().strip()
    told = [{**one.status(), "disk_bytes": 0} for one in (first, second)]
    assert told[0] == told[1], "but for the disk: a store writes files when it is opened"
    assert "name another port with --port" in run.mistake("serve", "crawl", "--port", str(first.port))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere",), "no directory nowhere"),
        (("empty",), "holds no crawl"),
        (("empty", "--port", "many"), "--port many: expected a number up to 65535"),
        (("--port", "65536"), "--port 65536"),
        (("--port", "-1"), "-1"),
        (("--address", "example.org"), "gossamer: --address example.org: expected an IP address"),
        (("--address", "203.0.113.7", "--port", "0"), "name an address of this machine with --set console.address=IP"),
        (("--folder", "/proc/nowhere"), "cannot write to /proc/nowhere"),
        (("--set", "console.crawls_max=0"), "console.crawls_max"),
        (("--config", "nowhere.toml"), "nowhere.toml"),
        (("empty", "--folder", "x"), "leave out DIR"),
        (("a", "b"), "b"),
    ],
)
def test_what_cannot_be_served_is_one_line(run: Commands, arguments: tuple[str, ...], says: str) -> None:
    (run.directory / "empty").mkdir()
    assert says in run.mistake("serve", *arguments)


def test_a_crawl_is_no_folder_of_crawls(run: Commands, web: str) -> None:
    assert run("crawl", web, "--allow-private", "--max-pages", "1", "--quiet", *QUICK)[0] == 0
    assert "is a crawl itself: gossamer serve crawl" in run.mistake("serve", "--folder", "crawl")


# ---- a folder of crawls


def crawl_of(call: Caller, name: str) -> Any:
    return call.get(f"/api/crawls/{name}").json


def counted(call: Caller) -> dict[str, float]:
    """Return the number of crawls by their states, and the bound, as `max`, from the metrics."""
    found = {family.name: family for family in text_string_to_metric_families(call.get("/metrics").body.decode())}
    states = {one.labels["state"]: one.value for one in found["gossamer_crawls"].samples}
    return states | {"max": found["gossamer_crawls_max"].samples[0].value}


@pytest.mark.heavy
@pytest.mark.long
def test_crawls_are_created_run_and_listed(run: Commands, web: str) -> None:
    call, server = run.served("serve", "--port", "0", "--set", "console.crawls_max=2")
    listed = call.get("/api/crawls").json
    assert listed.pop("zone").count("UTC") == 1
    assert listed == {"crawls": [], "running": 0, "crawls_max": 2, "unlisted": []}
    made = call.post("/api/crawls", name="one", config=config_of(web), start=False)
    assert (made.status, made.json["state"]) == (201, "created")
    assert call.get("/api/crawls/one/status").status == 409
    assert call.post("/api/crawls/one/resume").status == 409
    assert call.post("/api/crawls/one/start").status == 200
    until(lambda: crawl_of(call, "one")["pages"] > 2)
    assert crawl_of(call, "one")["runs"] is True
    assert "begun already" in call.post("/api/crawls/one/start").error
    assert "runs already" in call.post("/api/crawls/one/resume").error
    # All that one crawl has, it has here; also for the page, whose addresses are relative to its own.
    for prefix in ("/api/crawls/one/", "/crawls/one/api/"):
        assert call.status(prefix)["state"] == "running"
        assert call.post(f"{prefix}pause").json["state"] == "paused"
        assert crawl_of(call, "one")["state"] == "paused"
        assert call.post(f"{prefix}unpause").json["state"] == "running"
    assert call.get("/crawls/one/").headers["content-type"].startswith("text/html")
    assert b"gossamer_pages_total" in call.get("/crawls/one/metrics").body
    # A bound holds for how many run at once.
    assert call.post("/api/crawls", name="two", config=config_of(web)).status == 201
    assert "2 crawls run already" in call.post("/api/crawls", name="three", config=config_of(web)).error
    until(lambda: crawl_of(call, "two")["state"] == "running")
    until(lambda: counted(call)["running"] == 2)  # A list waits for a second alone.
    assert counted(call)["max"] == 2
    # One that is stopped stays stopped, and can be resumed with changes.
    assert call.post("/api/crawls/two/stop", now=True).json["state"] == "stopping"
    until(lambda: crawl_of(call, "two")["state"] == "stopped")
    assert crawl_of(call, "two")["runs"] is False
    assert call.post("/api/crawls/two/seed", urls=[web]).status == 409
    pages = crawl_of(call, "two")["pages"]
    assert "did you mean limits.max_pages" in call.post("/api/crawls/two/resume", values={"limits.max_page": 1}).error
    assert "max_pages: write section.key" in call.post("/api/crawls/two/resume", values={"max_pages": 1}).error
    assert "null may stand" in call.post("/api/crawls/two/resume", values={"scope.include": [None]}).error
    resumed = call.post("/api/crawls/two/resume", values={"limits.max_pages": pages + 1})
    assert resumed.status == 200
    assert {name: resumed.json[name] for name in ("state", "waiting_for", "ended")} == {
        "state": "starting", "waiting_for": "", "ended": "",
    }, "nothing of the run before"  # fmt: skip
    until(lambda: crawl_of(call, "two")["pages"] == pages + 1)
    until(lambda: call.get("/api/crawls").json["running"] == 1)
    assert ended(server) == 0
    assert json.loads(run("status", "one", "--json")[1])["ended"] == "stopped"
    assert run("status", "two")[0] == 0


@pytest.mark.heavy
def test_a_crawl_is_deleted_once_it_is_over_and_its_name_confirmed(run: Commands, web: str) -> None:
    call, server = run.served("serve", "--port", "0")
    assert call.post("/api/crawls", name="one", config=config_of(web)).status == 201
    until(lambda: crawl_of(call, "one")["pages"] > 0)
    assert call.post("/api/crawls", name="two", config=config_of(web), start=False, when="every day at 3").status == 201
    assert "'one' runs; stop it first" in call.post("/api/crawls/one/delete", name="one").error
    assert "nothing is deleted" in call.post("/crawls/two/api/delete", name="one").error
    assert call("POST", "/api/crawls/two/delete", {"name": "two"}).status == 401
    assert call.post("/api/crawls/two/delete").status == 422
    assert [one["name"] for one in call.post("/crawls/two/api/delete", name="two").json["crawls"]] == ["one"]
    assert call.post("/api/crawls/one/stop", now=True).status == 200
    until(lambda: crawl_of(call, "one")["state"] == "stopped")
    until(lambda: call.post("/api/crawls/one/delete", name="one").status == 200)  # Its status may just be read.
    assert call.get("/api/crawls/one").status == call.get("/crawls/one/").status == 404
    assert call.get("/api/crawls").json["crawls"] == []
    assert call.post("/api/crawls", name="one", config=config_of(web), start=False).status == 201
    assert ended(server) == 0
    assert sorted(path.name for path in (run.directory / OWN).glob("*.*")) == ["console.token", "one.json", "one.toml"]


@pytest.mark.heavy
def test_a_crawl_that_starts_is_not_said_to_be_stopped(run: Commands, web: str) -> None:
    call, _ = run.served("serve", "--port", "0")
    assert call.post("/api/crawls", name="one", config=config_of(web)).json["state"] == "starting"
    assert "runs already" in call.post("/api/crawls/one/resume").error
    paused = call.post("/api/crawls/one/pause")
    assert paused.status == 200 or paused.error == "'one' is starting; try again in a moment"


def test_mistakes_name_keys_and_addresses(folder: Caller, web: str) -> None:
    config = config_of(web, resolve={"allow_private": False})
    assert "add resolve.allow_private to visit" in folder.post("/api/crawls", name="one", config=config).error
    config = config_of("https://example.org/")
    assert "add operator.contact with a URL" in folder.post("/api/crawls", name="one", config=config).error
    for fields in ({"url": web}, {"seeds": [web]}, {"config": {"max_pages": 1}}):
        wrong = folder.post("/api/crawls", name="one", **fields)
        assert wrong.status == 422
        assert '"config": {"seeds": {"urls": ["https://docs.example.org/"]}}' in wrong.error
    assert "/api/openapi.json lists" in folder.get("/api").error
    assert (folder.get("/crawls/one/").status, folder.get("/crawls/one/").error) == (404, "no crawl is called 'one'")
    answer = folder.get("/crawls/one")
    assert (answer.status, answer.headers["location"]) == (307, "one/")


@pytest.mark.heavy
def test_a_crawl_can_be_resumed_at_once_after_a_stop(run: Commands, web: str) -> None:
    call, _ = run.served("serve", "--port", "0")
    assert call.post("/api/crawls", name="one", config=config_of(web)).status == 201
    until(lambda: crawl_of(call, "one")["pages"] > 2)
    assert call.post("/api/crawls/one/stop", now=True).status == 200
    resumed = call.post("/api/crawls/one/resume")
    assert resumed.status == 200, resumed.json
    pages = crawl_of(call, "one")["pages"]
    until(lambda: crawl_of(call, "one")["pages"] > pages)


@pytest.mark.heavy
def test_a_crawl_that_stops_to_start_again_is_still_to_run(run: Commands, web: str) -> None:
    call, _ = run.served("serve", "--port", "0")
    assert call.post("/api/crawls", name="one", config=config_of(web)).status == 201
    until(lambda: crawl_of(call, "one")["pages"] > 2)
    before = json.loads((run.directory / "one/state/lock").read_text())
    assert call.post("/api/crawls/one/stop", again=True).status == 200
    until(lambda: json.loads((run.directory / "one/state/lock").read_text() or "0") not in {0, before})
    until(lambda: crawl_of(call, "one")["state"] == "running")
    assert crawl_of(call, "one")["runs"]


@pytest.mark.heavy
def test_a_crawl_can_be_resumed_while_its_status_is_read(run: Commands, web: str) -> None:
    call, _ = run.served("serve", "--port", "0")
    assert call.post("/api/crawls", name="one", config=config_of(web)).status == 201
    until(lambda: crawl_of(call, "one")["pages"] > 2)
    assert call.post("/api/crawls/one/stop", now=True).status == 200
    until(lambda: crawl_of(call, "one")["state"] == "stopped")
    lock = DirectoryLock(run.directory / "one/state/lock")
    assert lock.acquire(60.0)
    reader = threading.Timer(0.3, lock.release)
    reader.start()
    resumed = call.post("/api/crawls/one/resume")
    reader.join()
    assert resumed.status == 200, resumed.json


@pytest.mark.parametrize(
    "name", ["../x", "..", ".", ".gossamer", "a/b", "/etc", "a\\b", "x" * 65, "é", "a b", "-x", "a\0", "a\n"]
)
def test_names_lead_nowhere_else(folder: Caller, web: str, name: str) -> None:
    before = sorted(path.name for path in Path(folder.token_path).parent.iterdir())
    assert "is no name" in folder.post("/api/crawls", name=name, config=config_of(web)).error
    quoted = "".join(f"%{byte:02x}" for byte in name.encode())
    for path in (f"/api/crawls/{quoted}", f"/api/crawls/{quoted}/status", f"/crawls/{quoted}/api/config"):
        assert folder.get(path).status == 404
    assert folder.post(f"/api/crawls/{quoted}/start").status == 404
    assert sorted(path.name for path in Path(folder.token_path).parent.iterdir()) == before


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({}, "no seeds"),
        ({"seeds": {"url": ["http://a.example/"]}}, "no key seeds.url; did you mean seeds.urls?"),
        ({"seeds": {"urls": ["http://127.0.0.1/"]}, "limits": {"max_pages": "many"}}, "limits.max_pages"),
        ({"seeds": {"urls": ["http://127.0.0.1/"]}, "limits": {"max_pages": None}}, "null is no value"),
        ({"seeds": {"urls": ["http://127.0.0.1/"]}, "output": {"directory": "/tmp/x"}}, "the server says that"),
        ({"seeds": {"urls": ["http://127.0.0.1/"]}, "console": {"port": 1}}, "the server says that"),
        ({"seeds": {"urls": ["http://127.0.0.1/"]}, "scope": {"include": [None]}}, "null may stand for a key"),
        ({"preset": "nonsense", "seeds": {"urls": ["http://127.0.0.1/"]}}, "nonsense"),
        ({"seeds": {"file": "-"}}, "no standard input"),
        ({"seeds": {"file": "/nonexistent"}}, "/nonexistent"),
        ({"seeds": {"urls": ["http://a.example/"]}}, "add operator.contact"),
        ({'x"]\n[seeds': {}}, "no section ["),
        ({"seeds": {"urls": ["http://127.0.0.1/"]}, "limits": {"max_pages": "1.000"}}, "; write 1000"),
        (
            {"seeds": {"urls": ["http://127.0.0.1/"]}, "limits": {"max_pages": 0, "max_bytes": "x"}},
            'leave it out for no limit; limits.max_bytes is "x"',
        ),
    ],
)
def test_a_configuration_that_is_none_makes_no_crawl(folder: Caller, config: dict[str, Any], says: str) -> None:
    answer = folder.post("/api/crawls", name="wrong", config=config)
    assert answer.status == 422
    assert says in answer.error
    assert "draft" not in answer.error
    assert " line " not in answer.error, "the file that is checked is not what was sent"
    assert folder.get("/api/crawls").json["crawls"] == []


def test_what_is_no_request_makes_no_crawl(folder: Caller) -> None:
    assert folder("POST", "/api/crawls", {"name": "x", "config": {}}).status == 401
    assert folder("POST", "/api/crawls", {"name": "x", "config": {}}, {"Origin": "http://evil.example"}).status == 403
    assert folder.post("/api/crawls", name="x").status == 422
    assert folder.post("/api/crawls", name=1, config={}).status == 422
    assert folder.post("/api/crawls", name="x", config={"seeds": 1}).status == 422
    assert folder.post("/api/crawls", name="x", config={}, more=1).status == 422
    assert folder.get("/api/crawls/nobody").status == 404
    assert folder.get("/api/crawls/nobody/status").status == 404
    assert folder.get("/crawls/nobody/metrics").status == 404
    assert folder.get("/crawls/nobody/api/events").status == 404
    assert folder.post("/api/crawls/nobody/stop").status == 404
    assert folder.post("/api/crawls/nobody/resume").status == 404


def test_the_description_of_a_server_is_one(folder: Caller) -> None:
    described = folder.get("/api/openapi.json").json
    openapi_spec_validator.validate(described)
    assert {"/api/crawls", "/api/crawls/{name}", "/api/crawls/{name}/start", "/api/crawls/{name}/seed"} <= set(
        described["paths"]
    )
    assert "201" in described["paths"]["/api/crawls"]["post"]["responses"]


def test_a_crawl_that_cannot_go_on_says_why(run: Commands, web: str) -> None:
    call, _ = run.served("serve", "--port", "0")
    assert call.post("/api/crawls", name="one", config=config_of(web), start=False).status == 201
    (run.directory / OWN / "one.toml").write_text("[nonsense]\n")
    assert call.post("/api/crawls/one/start").status == 200
    until(lambda: crawl_of(call, "one")["problem"])
    told = crawl_of(call, "one")
    assert (told["state"], told["runs"], told["begun"]) == ("failed", False, False)
    assert "nonsense" in told["problem"]
    (run.directory / "two").mkdir()
    (run.directory / "two/crawl.toml").write_text("[[[")
    told = crawl_of(call, "two")
    assert (told["state"], told["begun"], told["waiting_for"]) == ("failed", True, "")
    assert "two/crawl.toml is not TOML" in told["problem"]


def test_a_folder_has_one_server(run: Commands) -> None:
    run.served("serve", "--port", "0")
    assert "is another server's" in run.mistake("serve", "--port", "0")
    assert "is another server's" in run.mistake("serve", "--folder", ".", "--port", "0")


def test_a_stop_while_it_starts_is_heard(run: Commands, web: str) -> None:
    call, server = run.served("serve", "--port", "0")
    assert call.post("/api/crawls", name="one", config=config_of(web)).status == 201
    stopped = call.post("/api/crawls/one/stop")
    assert (stopped.status, stopped.json) == (200, {"state": "stopping"})
    until(lambda: call.get("/api/crawls").json["running"] == 0)
    assert crawl_of(call, "one")["runs"] is False
    assert ended(server) == 0


def wish_of(run: Commands, name: str) -> Any:
    return json.loads((run.directory / OWN / f"{name}.json").read_text())


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_root_leaves_nothing_in_a_folder_of_another_user(tmp_path: Path) -> None:
    owner = 12_345
    whose = f"{tmp_path} belongs to user {owner}, and files of root would shut out its owner; run this as that user"
    crawl = tmp_path / "one/crawl.toml"
    crawl.parent.mkdir()
    crawl.touch()
    os.chown(crawl, owner, owner)
    with pytest.raises(ConfigError) as refused:
        Folder(tmp_path)
    assert (str(refused.value), (tmp_path / OWN).exists()) == (whose, False)
    os.chown(crawl, 0, 0)
    Folder(tmp_path).close()
    os.chown(crawl, owner, owner)
    Folder(tmp_path).close()  # It served here before.
    os.chown(tmp_path / OWN, owner, owner)
    with pytest.raises(ConfigError) as refused:
        Folder(tmp_path)
    assert str(refused.value) == whose


def test_crawls_in_folders_of_other_names_are_listed_or_named(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    listed = ["-first", "a" * 65, "crawl", "crawl-10", "my crawl", "R\u00e4der", "x<y", "\U0001f578"]
    others = ["two\nlines", "a\u202eb", "\u5c71" * 81, os.fsdecode(b"R\xe4der")]
    for name in (*listed, *others, ".hidden"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "crawl.toml").touch()
    folder.config_file("crawl").touch()  # Named as the file that marks a crawl's directory.
    (tmp_path / "photos").mkdir()
    assert folder.names() == sorted(listed)
    assert {folder.directory(name) for name in listed} == {tmp_path / name for name in listed}
    assert set(folder.unlisted(folder.names())) == {*others[:3], "R\ufffdder"}
    for name in ("", ".", "..", ".hidden", "crawl/../crawl", "photos", *others):
        with pytest.raises(MissingError):
            folder.directory(name)
    folder.close()


def test_deleting_a_crawl_leaves_the_others_and_what_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere/state").mkdir(parents=True)
    (tmp_path / "elsewhere/crawl.toml").touch()
    folder = Folder(tmp_path / "many")
    begun = ("one", "one.2026-01-01-0300")
    for name in begun:
        (folder.path / name / "state").mkdir(parents=True)
        (folder.path / name / "crawl.toml").touch()
    (folder.path / "linked").symlink_to("../elsewhere")
    for name in (*begun, "linked", "made"):
        folder.config_file(name).touch()
        folder.keep(name, folder.target(name))
    for name in ("one", "made", "linked"):
        folder.delete(name)
        with pytest.raises(MissingError):
            folder.delete(name)
    assert folder.names() == ["one.2026-01-01-0300"]
    left = ["lock", "linked.deleted", "one.2026-01-01-0300.json", "one.2026-01-01-0300.toml"]
    assert sorted(one.name for one in folder.own.iterdir()) == sorted(left)
    folder.sweep()  # As the next server does.
    assert sorted(one.name for one in folder.own.iterdir()) == sorted(left[:1] + left[2:])
    assert (tmp_path / "elsewhere/crawl.toml").exists()
    folder.close()


@pytest.mark.promise("Console", "A crawl that runs or is read is not deleted.")
@pytest.mark.parametrize("how", ["runs", "is read", "is forgotten from"])
def test_a_crawl_that_runs_or_is_read_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr("gossamer.console.folder.READING_S_MAX", 0.0)
    folder = Folder(tmp_path)
    (tmp_path / "one/warc").mkdir(parents=True)
    (tmp_path / "one/crawl.toml").touch()
    (tmp_path / "one/warc/a.warc.gz").touch()
    if how == "is read":
        with (tmp_path / "one/warc/a.warc.gz").open(), pytest.raises(ConflictError, match="a program reads 'one'"):
            folder.delete("one")
    else:
        monkeypatch.setattr("gossamer.console.folder.is_open", lambda _: False)  # As where the system does not tell.
        with DirectoryLock(tmp_path / "one/state" / ("lock" if how == "runs" else "maintenance")) as lock:
            assert lock.acquire(0.0)
            with pytest.raises(ConflictError, match="a program works on 'one'"):
                folder.delete("one")
    assert (tmp_path / "one/warc/a.warc.gz").exists()
    assert folder.names() == ["one"]
    folder.close()


class SlowFleet(Fleet):
    """Reads the crawl `slow` once its gate is open, and cannot read the crawl `broken`."""

    gate: asyncio.Event

    async def summary(self, name: str) -> CrawlSummary:
        if name == "slow":
            await self.gate.wait()
        if name == "broken":
            raise PermissionError(13, "Permission denied", name)
        return await super().summary(name)


def test_a_list_waits_for_no_crawl_and_no_broken_one_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.console.fleet.LIST_S_MAX", 0.2)

    async def list_them() -> list[dict[str, str]]:
        folder = Folder(tmp_path)
        for name in ("broken", "quick", "slow"):
            folder.config_file(name).touch()
        states = []
        async with asyncio.timeout(60), asyncio.TaskGroup() as group, Service(4, 1.0) as service:
            fleet = SlowFleet(folder, 4, lambda _: None, group, service)
            fleet.gate = asyncio.Event()
            while not states or "reading" in states[-1].values():
                states.append({one.name: one.state for one in (await fleet.summaries()).crawls})
                if (states[-1]["broken"], states[-1]["quick"]) == ("failed", "created"):
                    fleet.gate.set()
            folder.config_file("quick").unlink()
            states.append({one.name: one.state for one in (await fleet.summaries()).crawls})
            fleet.leave()
        folder.close()
        return states

    states = asyncio.run(list_them())
    assert {"broken": "failed", "quick": "created", "slow": "reading"} in states
    assert states[-2:] == [
        {"broken": "failed", "quick": "created", "slow": "created"}, {"broken": "failed", "slow": "created"},
    ]  # fmt: skip


def test_a_pid_that_was_given_to_another_is_not_taken_for_a_crawl(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    wish = folder.target("one")
    wish.pid, wish.born = os.getpid(), 1
    folder.keep("one", wish)
    assert folder.target("one") == wish
    assert not folder.is_held("one", wish)
    lock = DirectoryLock(tmp_path / "one/state/lock")
    assert lock.acquire(0.0)
    assert folder.is_held("one", wish)
    lock.release()
    assert not folder.is_held("one", wish)
    folder.close()


@pytest.fixture(scope="module")
def folder(commands: Commands) -> Caller:
    """A server of a folder that is empty, and stays so."""
    call, _ = commands.served("serve", "--port", "0")
    call.token_path = str(commands.directory / OWN)
    return call


def test_the_port_that_is_taken_is_named(run: Commands) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}: Address already in use; name another port with --port" in run.mistake(
            "serve", "--port", str(port)
        )


def test_a_resume_of_a_crawl_that_runs_says_so_and_not_that_its_port_is_taken(run: Commands, web: str) -> None:
    call, _ = run.served("crawl", web, "--allow-private", "--delay", "1", "--serve", "0")
    until(lambda: call.status().get("pages", 0) > 0)
    says = run.mistake("resume", "crawl", "--serve", str(call.port))
    assert "crawl is in use by another crawl; `gossamer status crawl` shows it" in says
