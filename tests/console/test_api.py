"""What a running crawl can be asked and told over HTTP, and by whom."""

from __future__ import annotations

import http.client
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import openapi_spec_validator
import pytest
import typer
from prometheus_client.parser import text_string_to_metric_families

from gossamer.cli.main import tree
from gossamer.console.access import FILE, token_of
from gossamer.model.verbs import VERBS
from tests.console.conftest import QUICK, Caller, Commands, until

KEYS = ("--set", "console.request_s_max=5", "--set", "console.body_bytes_max=20000", "--set", "search.enabled=true")
CRAWL = ("--allow-private", "--delay", "0.2", *QUICK, *KEYS)
CHANGES = [name for name, verb in VERBS.items() if verb.changes]


@pytest.fixture(scope="module")
def call(commands: Commands, web: str) -> Iterator[Caller]:
    """A crawl that runs, served, and who may call it."""
    caller, process = commands.served("crawl", web, "-o", "crawl", "--serve", "0", *CRAWL)
    until(lambda: caller.status().get("pages", 0) > 3)
    yield caller
    assert process.poll() is None, process.communicate()
    assert caller.post("/api/stop", now=True).json["state"] == "stopping"
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")


@pytest.fixture
def directory(commands: Commands, call: Caller) -> Path:
    return commands.directory / "crawl"


# ---- what it says and does


def test_what_it_is_asked_it_says(call: Caller, directory: Path, web: str) -> None:
    status = call.status()
    assert status["state"] == "running"
    assert "hosts" not in status
    assert call.get("/api/status?detail=true").json["hosts"]["limits"]
    why = call.get(f"/api/why?url={web}").json
    assert (why["url"], why["state"]) == (web, "fetched")
    hosts = call.get("/api/hosts?n=1").json
    assert [host["host"] for host in hosts["active"]] == ["127.0.0.1"]
    assert call.get("/api/report").json["attempts"] >= 0
    keys = {key["key"]: key for key in call.get("/api/config").json["keys"]}
    assert keys["seeds.urls"]["value"] == [web]
    assert (keys["seeds.urls"]["live"], keys["crawl.concurrency"]["live"]) == (False, True)
    assert keys["politeness.delay_s_min"]["text"] == "0.2"
    assert keys["politeness.delay_s_min"]["says"]


def test_a_search_says_what_it_found_or_why_it_cannot(call: Caller) -> None:
    answer = call.get("/api/search?q=words&n=2")
    assert answer.status in (200, 409)  # Nothing is in the index before the first tables are finished.
    assert "no search index" in answer.error if answer.status == 409 else answer.json["query"] == "words"
    assert call.get("/api/search").status == 422
    assert call.get("/api/search?q=x&n=many").status == 422
    assert call.get("/api/search?q=x&n=1000").status == 422


def test_the_archive_is_read_while_the_crawl_runs(call: Caller, web: str) -> None:
    found = call.get(f"/api/versions?url={web}").json
    [one] = found["versions"]
    assert (one["outcome"], one["content"]) == ("fetched", "first")
    page = Caller(found["replay_port"], "").get(f"/{one['replay']}")
    assert b"Page &lt;0&gt;" in page.body
    assert call.get("/api/history?host=127.0.0.1").json["outcomes"]["fetched"] > 0
    assert call.get("/api/items").json["kinds"] == []


def test_prometheus_reads_it(call: Caller) -> None:
    answer = call.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {family.name: family for family in text_string_to_metric_families(answer.body.decode())}
    assert found["gossamer_pages"].samples[0].value > 3
    assert [name for name, family in found.items() if not family.documentation] == []
    assert {sample.labels["state"] for sample in found["gossamer_state"].samples if sample.value} <= {
        "running",
        "paused",
    }


def test_what_it_is_reported_it_does(call: Caller, directory: Path, web: str) -> None:
    assert call.post("/api/pause").json["state"] == "paused"
    assert call.status()["state"] == "paused"
    assert call.post("/api/unpause").json["state"] == "running"
    far = [f"{web}{number}" for number in (10**9, 10**9 + 1)]  # The crawl does not come there in the time of a test.
    assert call.post("/api/seed", urls=far).json == {"added": 2, "known": 0, "rejected": 0}
    assert call.get(f"/api/why?url={far[0]}").json["depth"] == 0
    assert call.post("/api/exclude", hosts=["a.example", ".b.example"]).json == {
        "excluded": ["a.example", ".b.example"]
    }
    assert "excluded" in call.get("/api/why?url=http://x.b.example/").json["reason"]
    [changed] = call.post("/api/set", values={"crawl.concurrency": 7}).json["changed"]
    assert (changed["key"], changed["after"]) == ("crawl.concurrency", "7")
    assert call.post("/api/set", assignments=["crawl.concurrency=7"]).json == {"changed": []}
    assert call.status()["concurrency"] == 7
    assert "crawl.concurrency" in call.post("/api/set").json["live"]
    assert call.post("/api/host", host="c.example", values={"delay_s": 2, "pages": None}).json["changed"]
    assert "delay_s" in (directory / "crawl.toml").read_text().partition("c.example")[2]
    assert Path(directory.parent / call.post("/api/checkpoint").json["checkpoint"]).is_dir()


def test_several_are_taken_or_none(call: Caller) -> None:
    assert "is not a host" in call.post("/api/exclude", hosts=["d.example", "e/f"]).error
    assert "excluded" not in call.get("/api/why?url=http://d.example/").json["reason"]
    before = call.status()["concurrency"]
    assert call.post("/api/set", values={"crawl.concurrency": 9, "crawl.concurency": 9}).status == 422
    assert call.status()["concurrency"] == before


@pytest.mark.parametrize(
    ("verb", "fields", "says"),
    [
        ("seed", {"urls": ["nonsense"]}, "has no scheme"),
        ("seed", {"urls": []}, "not empty"),
        ("seed", {"urls": "http://a.example/"}, "urls: expected a list"),
        ("seed", {}, "urls: it is missing"),
        ("seed", {"urls": [1]}, "urls.0: expected a text"),
        ("seed", {"urls": ["http://a.example/"], "extra": 1}, "extra: there is no such key"),
        ("seed", {"urls": ["x" * 9_000]}, "8192 or less characters"),
        ("exclude", {"hosts": ["a b"]}, "is not a host"),
        ("release", {"name": "x"}, "no trap is called 'x'"),
        ("set", {"values": {"crawl.concurency": 1}}, "did you mean crawl.concurrency"),
        ("set", {"values": {"seeds.urls": []}}, "cannot change while the crawl runs"),
        ("set", {"values": {"scope.include": [None]}}, "null may stand for a key"),
        ("set", {"values": {"crawl.concurrency": "many"}}, "crawl.concurrency"),
        ("set", {"assignments": ["x"]}, "write section.key=value"),
        ("host", {"host": "a.example", "values": {}}, "not empty"),
        ("host", {"host": "a.example", "values": {"delay": 1}}, "delay"),
        ("stop", {"now": "yes"}, "now: expected true or false"),
        ("pause", {"now": True}, "now: there is no such key"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(call: Caller, verb: str, fields: dict[str, object], says: str) -> None:
    answer = call.post(f"/api/{verb}", **fields)
    assert answer.status == 422
    assert says in answer.error


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/api/seed", b"{", {}, 400),
        ("/api/seed", b"\xff\xfe", {}, 400),
        ("/api/seed", b"[" * 19_000, {}, 400),
        ("/api/seed", b'{"urls": ["\\ud800"]}', {}, 400),
        ("/api/seed", b"[]", {}, 422),
        ("/api/seed", b"null", {}, 422),
        ("/api/seed", b'{"urls": ["http://a.example/"]}', {"Content-Type": "text/plain"}, 415),
        ("/api/seed", b"urls=http://a.example/", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ("/api/pause", b"", {"Content-Type": "multipart/form-data"}, 415),
        ("/api/seed", b" " * 20_001, {}, 413),
        ("/api/nothing", b"{}", {}, 404),
        ("/api/status", b"{}", {}, 405),
        ("/api/seed/", b"{}", {}, 404),
        ("/api/%2e%2e/%2e%2e/etc/passwd", b"{}", {}, 404),
        ("/websub/../api/stop", b"{}", {}, 404),
        ("/websub/%2e%2e%2fapi%2fstop", b"{}", {}, 404),
        ("//api/pause", b"{}", {}, 404),
        ("/crawls/../api/pause", b"{}", {}, 404),
    ],
)
def test_what_is_no_request_is_refused(
    call: Caller, path: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    answer = call("POST", path, body, headers, token=call.token)
    assert answer.status == status
    assert answer.error or path.startswith("/websub/")
    assert call("GET", "/api/stop").status == 405
    assert call("DELETE", "/api/status", token=call.token).status == 405


def test_a_field_stands_in_a_question_once(call: Caller) -> None:
    assert "once" in call.get("/api/why?url=http://a.example/&url=http://b.example/").error
    assert "uri: there is no such key" in call.get("/api/why?url=http://a.example/&uri=x").error


def test_a_body_that_does_not_come_is_not_waited_for(call: Caller) -> None:
    line = http.client.HTTPConnection("127.0.0.1", call.port, timeout=60)
    line.putrequest("POST", "/api/seed")
    for name, value in (("Content-Type", "application/json"), ("Content-Length", "100"),
                        ("Authorization", f"Bearer {call.token}")):  # fmt: skip
        line.putheader(name, value)
    line.endheaders()
    line.send(b'{"urls"')
    answer = line.getresponse()
    assert answer.status == 408
    assert "within 5 s" in json.loads(answer.read())["error"]
    line.close()


def test_a_body_without_end_is_not_read_on(call: Caller) -> None:
    line = http.client.HTTPConnection("127.0.0.1", call.port, timeout=60)
    line.putrequest("POST", "/api/seed")
    for name, value in (("Content-Type", "application/json"), ("Transfer-Encoding", "chunked"),
                        ("Authorization", f"Bearer {call.token}")):  # fmt: skip
        line.putheader(name, value)
    line.endheaders()
    line.send(b"5dc0\r\n" + b" " * 24_000)
    assert line.getresponse().status == 413
    line.close()


# ---- who may


@pytest.mark.promise("Console", "Nothing changes over HTTP without the token, which only its owner can read.")
@pytest.mark.parametrize("verb", CHANGES)
@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic {token}", "Bearer {token}x", "{token}", "Bearer é"],
)
def test_nothing_changes_without_the_token(call: Caller, verb: str, authorization: str | None) -> None:
    before = call.status()["state"]
    given = {} if authorization is None else {"Authorization": authorization.format(token=call.token)}
    answer = call("POST", f"/api/{verb}", {"urls": ["http://a.example/"]} if verb == "seed" else {}, given)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "token" in answer.error
    assert call.token not in answer.error
    assert call.status()["state"] == before


def test_the_token_of_another_crawl_is_none(call: Caller, tmp_path: Path) -> None:
    other = token_of(tmp_path)
    assert other != call.token
    assert call("POST", "/api/pause", {}, token=other).status == 401
    # Who presents a wrong one is told so, also where none is needed.
    assert call("GET", "/api/status", token=other).status == 401
    assert call("GET", "/api/status", token=call.token).status == 200


@pytest.mark.promise("Console", "Requests from other sites and for other host names are refused.")
@pytest.mark.parametrize("path", ["/", "/api/status", "/api/openapi.json", "/metrics", "/api/pause", "/static/main.js"])
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:1", "localhost.evil.example", "", "0.0.0.0"])
def test_other_names_are_not_served(call: Caller, path: str, host: str) -> None:
    method = "POST" if path.endswith("pause") else "GET"
    assert call(method, path, None, {"Host": host}, token=call.token).status == 421


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1"},
    {"Origin": "http://localhost:1"},
    {"Origin": "file://"},
    {"Origin": "http://[::1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
]


@pytest.mark.promise("Console", "Requests from other sites and for other host names are refused.")
@pytest.mark.parametrize("headers", FOREIGN)
def test_other_sites_may_not_ask(call: Caller, headers: dict[str, str]) -> None:
    for method, path in (
        ("POST", "/api/pause"),
        ("GET", "/api/status"),
        ("GET", "/metrics"),
        ("OPTIONS", "/api/pause"),
    ):
        answer = call(method, path, None, headers, token=call.token)
        assert answer.status == 403, (method, path)
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert call.status()["state"] == "running"


def test_its_own_page_may_ask_and_a_link_may_lead_to_it(call: Caller) -> None:
    own = {"Origin": f"http://127.0.0.1:{call.port}", "Sec-Fetch-Site": "same-origin"}
    assert call("POST", "/api/unpause", {}, own, token=call.token).status == 200
    linked = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    page = call("GET", "/", None, linked)
    assert page.status == 200
    assert page.headers["x-frame-options"] == "DENY"
    assert call("GET", "/", None, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}).status == 403


def test_nothing_is_kept_shared_or_guessed_at(call: Caller) -> None:
    for answer in (call.get("/api/status"), call.get("/metrics"), call.get("/api/nothing"), call("POST", "/api/pause")):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in answer.headers


@pytest.mark.promise("Console", "Nothing changes over HTTP without the token, which only its owner can read.")
def test_the_token_is_its_owners_alone_and_nowhere_else(call: Caller, directory: Path) -> None:
    path = directory / "state" / FILE
    assert path.read_text().strip() == call.token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    call("GET", f"/api/status?token={call.token}")
    for log in (directory / "logs").iterdir():
        assert call.token not in log.read_text()
    assert call.token not in call.get("/api/config").body.decode()
    assert call.token not in (directory / "crawl.toml").read_text()


def test_a_token_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    first = token_of(tmp_path)
    assert token_of(tmp_path) == first
    (tmp_path / FILE).chmod(0o640)
    second = token_of(tmp_path)
    assert second != first
    (tmp_path / FILE).write_text("short\n")
    third = token_of(tmp_path)
    assert third not in (first, second)
    (tmp_path / FILE).rename(tmp_path / "elsewhere")
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    assert token_of(tmp_path) != third
    assert not (tmp_path / FILE).is_symlink()
    assert (tmp_path / "elsewhere").read_text().strip() == third


def test_root_takes_the_token_of_a_crawls_owner_and_leaves_none(tmp_path: Path) -> None:
    """The owner could not read one of root, and what reads the owner's, such as Prometheus, would be refused."""
    theirs = token_of(tmp_path)
    for path in (tmp_path, tmp_path / FILE):
        os.chown(path, 12_345, 12_345)
    assert token_of(tmp_path) == theirs
    (tmp_path / FILE).unlink()
    assert token_of(tmp_path) not in {theirs, token_of(tmp_path)}, "one for this server alone"
    assert list(tmp_path.iterdir()) == []


def test_a_request_to_two_hosts_is_refused(call: Caller) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", call.port, timeout=60)
    connection.putrequest("GET", "/api/status", skip_host=True)
    for host in ("localhost", "evil.test"):
        connection.putheader("Host", host)
    connection.endheaders()
    assert connection.getresponse().status == 400
    connection.close()


def test_a_url_is_explained_as_it_is_typed(call: Caller, web: str) -> None:
    assert call.get(f"/api/why?url=%20{web.replace('http', 'HTTP')}%23part").json["url"] == web


@pytest.mark.promise("Console", "Beyond loopback nothing is read without the token.")
def test_elsewhere_than_on_loopback_every_request_needs_the_token(run: Commands, web: str) -> None:
    caller, process = run.served(
        "crawl", web, "--serve", "0", "--set", 'console.address="0.0.0.0"', "--allow-private", "--delay", "0.2", *QUICK
    )
    until(lambda: caller("GET", "/api/status", token=caller.token).json.get("pages"))
    for path in ("/api/status", "/api/openapi.json", "/metrics", "/api/events", "/api/nothing", f"/api/why?url={web}"):
        assert caller("GET", path).status == 401, path
        assert caller("HEAD", path).status == 401, path
    assert caller("OPTIONS", "/api/status").status == 401
    assert caller("GET", "/metrics", token=caller.token).status == 200
    # The page itself is the same for everybody, and has the token in its address, where no server sees it.
    assert caller("GET", "/").status == 200
    assert caller("POST", "/").status == 401
    described = caller("GET", "/api/openapi.json", token=caller.token).json
    assert all(one["security"] == [{"token": []}] for path in described["paths"].values() for one in path.values())
    caller.post("/api/stop", now=True)
    assert process.wait(60) == 130


# ---- the description


@pytest.mark.promise(
    "Console", "Commands, socket, HTTP API and its description offer the same verbs, for any number of shards."
)
def test_the_description_is_one_and_all_that_is_there(call: Caller) -> None:
    described = call.get("/api/openapi.json").json
    openapi_spec_validator.validate(described)
    assert {f"/api/{name}" for name in VERBS if name != "metrics"} <= set(described["paths"])
    for name, verb in VERBS.items():
        if name != "metrics":
            [(method, operation)] = described["paths"][f"/api/{name}"].items()
            assert method == ("post" if verb.changes else "get")
            assert operation["security"] == ([{"token": []}] if verb.changes else [])
            assert operation["summary"] == verb.says


def test_what_changes_a_crawl_is_a_command_too() -> None:
    commands = typer.main.get_command(tree()).commands  # type: ignore[attr-defined]
    assert {name for name, verb in VERBS.items() if verb.changes} <= set(commands)
    assert {"status", "metrics", "why"} <= set(commands)
