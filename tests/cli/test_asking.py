"""Asking: of a running crawl by its socket, of a stopped one by its store; and the commands that need no crawl."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from gossamer.cli.main import tree
from gossamer.cli.output import Exit, table
from gossamer.cli.status_text import summary_of
from gossamer.cli.status_view import status_text
from gossamer.model.status import Status, read_status
from tests.cli.conftest import Gossamer, Real, until

REPOSITORY = Path(__file__).parents[2]
STOPPED, RUNNING = "http://127.0.0.1/pages/3", "http://127.0.0.1/forever"


@pytest.fixture
def stopped(run: Gossamer) -> Gossamer:
    assert run("crawl", STOPPED, "--allow-private", "--quiet")[0] == 0
    return run


@pytest.fixture
def running(run: Gossamer) -> Gossamer:
    run.start("crawl", RUNNING, "--allow-private", "--quiet")
    until((run.directory / "crawl/state/pid").exists)
    return run


def test_status_of_a_stopped_crawl_comes_from_its_store(stopped: Gossamer) -> None:
    status, out, _ = stopped("status", "crawl", "--json")
    assert status == 0
    assert json.loads(out)["state"] == "finished"
    assert json.loads(out)["pages"] == 3
    _, out, _ = stopped("status", "crawl")
    for part in ("state        finished", "timeout 2", "scope.host 7", "12 known, 3 active"):
        assert part in out


def test_status_of_a_running_crawl_comes_from_itself(running: Gossamer) -> None:
    _, out, _ = running("status", "crawl", "--json")
    assert json.loads(out)["state"] == "running"


def test_status_has_a_row_for_each_shard_where_there_are_several() -> None:
    """Of one alone it said that it had no pages and none queued: those stand above."""
    shards = [{"shard": number, "state": "running", "pages": 7, "queued": 5, "pages_s": 1.0} for number in range(2)]
    rows = status_text(read_status({"state": "running", "pages": 14, "shards": shards})).splitlines()
    for number in range(2):
        assert [row for row in rows if row.startswith(f"shard        {number}:")] == [
            f"shard        {number}: running, 7 pages, 5 queued, 1.0/s"
        ]
    assert "0 queued" not in status_text(
        read_status({"state": "running", "queued": 7, "shards": [{"shard": 0, "state": "running"}]})
    )


def test_warnings_are_in_the_status_and_among_the_last_words() -> None:
    status = Status(state="finished", warnings=["1 of 2 shards\x1b[2J has nothing"])
    assert "warning      1 of 2 shards\\x1b[2J has nothing" in status_text(status).splitlines()
    assert "Warning: 1 of 2 shards\\x1b[2J has nothing." in summary_of(status, "crawl", "finished").splitlines()


@pytest.mark.heavy
def test_why_tells_the_story_of_a_url(stopped: Gossamer) -> None:
    _, out, _ = stopped("why", "crawl", "http://a.test/x")
    assert "url " in out
    assert "http://a.test/x" in out
    assert "  outcome fetched, status 200" in out
    _, out, _ = stopped("why", "crawl", "http://a.test/x", "--json")
    assert json.loads(out)["state"] == "fetched"
    assert "has no scheme" in stopped.mistake("why", "crawl", "a.test")


def test_why_of_a_running_crawl_comes_from_itself(running: Gossamer) -> None:
    _, out, _ = running("why", "crawl", "http://a.test/x", "--json")
    assert json.loads(out) == {"verb": "why", "url": "http://a.test/x"}


@pytest.mark.heavy
def test_report_is_text_or_json(stopped: Gossamer) -> None:
    assert stopped("report", "crawl")[1].strip() == "REPORT pages 3, refused 7, 100 wide"
    assert json.loads(stopped("report", "crawl", "--json")[1]) == {"pages": 3}


@pytest.mark.heavy
def test_report_is_a_page_where_one_is_asked_for(stopped: Gossamer, tmp_path: Path) -> None:
    assert stopped("report", "crawl", "--html", "page.html")[:2] == (0, "The report is in page.html\n")
    assert (tmp_path / "page.html").read_text() == "<h1>crawl</h1> pages 3"
    status, _, error = stopped("report", "crawl", "--html", "none/page.html")
    assert (status, error) == (
        2, "gossamer: cannot write none/page.html: No such file or directory; name another with --html FILE\n"
    )  # fmt: skip


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (["seed", "crawl", "http://a/", "http://b/x"], ["seed", "http://a/", "http://b/x"]),
        (["pause", "crawl"], ["paused; ", " s: 0 pages"]),
        (["unpause", "crawl"], ["unpause"]),
        (["checkpoint", "crawl"], ["checkpoint"]),
        (["stop", "crawl", "--now"], ["stop", "True"]),
    ],
)
def test_verbs_reach_a_running_crawl(running: Gossamer, arguments: list[str], sent: list[str]) -> None:
    status, out, err = running(*arguments)
    assert (status, err) == (0, "")
    for part in sent:
        assert part in out


def test_a_crawl_may_refuse(running: Gossamer) -> None:
    assert running.mistake("exclude", "crawl", "nonsense") == "gossamer: no such host\n"


@pytest.mark.heavy
def test_verbs_need_a_running_crawl(stopped: Gossamer) -> None:
    for arguments in (["pause", "crawl"], ["seed", "crawl", "http://a/"], ["stop", "crawl"]):
        assert "gossamer resume crawl continues it" in stopped.mistake(*arguments)


def test_init_writes_what_check_accepts(tmp_path: Path) -> None:
    run = Real(tmp_path)
    assert run("init")[0] == 0
    status, out, _ = run("config", "check", "gossamer.toml")
    assert status == 0
    assert "gossamer.toml is valid: 0 of" in out
    assert "exists" in run.mistake("init")
    assert "cannot write" in run.mistake("init", "absent/x.toml")


def test_check_names_the_line(run: Gossamer) -> None:
    (run.directory / "x.toml").write_text("[limits]\nmax_page = 1\n")
    assert run.mistake("config", "check", "x.toml") == (
        "gossamer: x.toml line 2: no key limits.max_page; did you mean limits.max_pages?\n"
    )


def test_schema_is_json_schema(run: Gossamer) -> None:
    schema = json.loads(run("config", "schema")[1])
    assert "LimitsOptions" in schema["$defs"]


@pytest.mark.heavy
def test_demo_crawls_a_made_web_and_reports(run: Gossamer) -> None:
    status, out, err = run("demo")
    assert (status, err) == (0, "")
    assert "REPORT pages 3" in out
    assert f"Output: {run.directory / 'demo'}" in out
    assert (run.directory / "demo/web/closed").exists()
    assert run("demo")[0] == 0  # The last one is made way for.


def test_a_size_that_is_none_is_refused(run: Gossamer) -> None:
    assert "--size huge: expected small or large" in run.mistake("simweb", "--size", "huge")


def test_demo_removes_nothing_but_a_demo(run: Gossamer) -> None:
    (run.directory / "demo").mkdir()
    (run.directory / "demo/thesis").touch()
    assert "holds something else" in run.mistake("demo")
    assert (run.directory / "demo/thesis").exists()
    assert run("crawl", STOPPED, "--allow-private", "--quiet")[0] == 0
    assert "holds something else" in run.mistake("demo", "-o", "crawl")
    assert (run.directory / "crawl/crawl.toml").exists()


def test_simweb_serves_until_a_signal(run: Gossamer) -> None:
    process = run.start("simweb")
    assert process.stdout is not None
    process.stdout.readline()
    assert "--hosts" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(100) == 0
    assert (run.directory / "simweb/closed").exists()


def test_help_and_version(run: Gossamer) -> None:
    assert "crawl" in run("--help")[1]
    assert run()[1] == run("--help")[1]
    assert run("--version")[1].strip()


def test_exit_statuses_are_in_the_help_and_on_their_page(run: Gossamer) -> None:
    assert table() in (REPOSITORY / "docs/reference/commands.md").read_text(encoding="utf-8")
    for words in (["--help"], ["crawl", "--help"], ["resume", "--help"]):
        shown = " ".join(run(*words)[1].split())
        for one in Exit:
            assert f"{one.value} {one.meaning}" in shown, words


def commands() -> list[tuple[str, list[str]]]:
    """Return every command with its options."""
    top = typer.main.get_command(tree())
    assert isinstance(top, TyperGroup)
    found = []
    for name, command in top.commands.items():
        inner = command.commands.items() if isinstance(command, TyperGroup) else [("", command)]
        for under, leaf in inner:
            public = [parameter for parameter in leaf.params if not getattr(parameter, "hidden", False)]
            options = [option for parameter in public for option in parameter.opts if option.startswith("-")]
            found.append((f"{name} {under}".strip(), options))
    return found


@pytest.mark.promise("Operation", "Every command, option and key is documented.")
@pytest.mark.parametrize(("command", "options"), commands())
def test_every_command_and_option_is_documented(command: str, options: list[str]) -> None:
    page = (REPOSITORY / "docs/reference/commands.md").read_text(encoding="utf-8")
    _, found, section = page.partition(f"## `gossamer {command}")
    assert found
    section = section.partition("\n## ")[0]
    for option in options:
        assert f"`{option}" in section, option
