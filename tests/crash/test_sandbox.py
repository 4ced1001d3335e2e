"""The sandbox around the process that parses: what code of an attacker in it cannot open, and what still works."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gossamer.world.sandbox import landlock_version
from tests.commands import run
from tests.crash.crawls import Crawl, environment, until
from tests.crash.harvest import Harvest
from tests.crash.site import Site, linked

ESCAPING = Path(__file__).with_name("escaping.py")
NEEDED = 6
"""Version of Landlock from which on signals and abstract sockets are bounded too; CI has it."""
NETWORK = {"tcp", "udp"}


class Outside:
    """What is there to be attacked: a secret in a home directory, listeners, and a process."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        home.mkdir()
        (home / "secret").write_text("private key")
        (home / "victim").write_text("kept")
        self.home = home
        path = str(home / "socket")
        for family, address in (
            (socket.AF_UNIX, path), (socket.AF_UNIX, "\0" + path), (socket.AF_INET, ("127.0.0.1", 0))
        ):  # fmt: skip
            line = stack.enter_context(socket.socket(family))
            line.bind(address)
            line.listen(64)
        command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        self.process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE))
        self.environment = {
            "ESCAPE": str(home), "ESCAPE_SOCKET": path, "ESCAPE_PORT": str(line.getsockname()[1]),
            "ESCAPE_PID": str(self.process.pid),
        }  # fmt: skip

    def is_intact(self) -> bool:
        """Say whether all is as it was."""
        names = {path.name for path in self.home.iterdir()}
        return (
            names == {"secret", "victim", "socket"}
            and (self.home / "secret").read_text() == "private key"
            and self.process.poll() is None
        )


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    assert landlock_version() >= NEEDED, "this kernel cannot show it"
    with ExitStack() as stack:
        found = Outside(tmp_path / "home", stack)
        for name, value in {**found.environment, "ESCAPE_CRAWL": str(tmp_path / "crawl")}.items():
            monkeypatch.setenv(name, value)
        yield found


def crawl_of(site: Site, directory: Path, *settings: str) -> Crawl:
    arguments = [site.url("/"), "--politeness", "own", "--allow-private"]
    for setting in ("crawl.commit_s=0.1", *settings):
        arguments += ["--set", setting]
    return Crawl(directory / "crawl", arguments)


def escaped(crawl: Crawl) -> set[str]:
    """Return what worked on any page; every page was tried on."""
    found = [str(row["escaped"]) for row in Harvest(crawl.directory).rows if row["outcome"] == "fetched"]
    assert len(found) == PAGES
    return set(" ".join(found).split())


AUTO = "process.sandbox=auto"
SITE = linked({}, 6)
PAGES = len(SITE)


def module(name: str, sandbox: str) -> tuple[str, str]:
    return f'process.modules=["{ESCAPING}:{name}"]', f"process.sandbox={sandbox}"


@pytest.mark.promise(
    "Bounds", "With process.sandbox, code that took a parser over opens no file that the crawl does not need (Linux)."
)
def test_a_parser_that_was_taken_over_opens_nothing_outside(outside: Outside, tmp_path: Path) -> None:
    with Site(SITE).serving() as site:
        crawl = crawl_of(site, tmp_path, *module("Escaping", "on"))
        assert crawl.finish() == 0, crawl.complaints
    assert escaped(crawl) == NETWORK  # Which a crawler needs.
    assert outside.is_intact()
    assert Harvest(crawl.directory).check_archives() == []


def test_without_it_all_of_that_works(outside: Outside, tmp_path: Path) -> None:
    """Otherwise the test above would show nothing."""
    with Site(SITE).serving() as site:
        crawl = crawl_of(site, tmp_path, *module("Escaping", "off"))
        crawl.finish()
    tries = {"read", "list", "write", "truncate", "remove", "link", "symlink", "signal", "memory", "child", "run"}
    assert escaped(crawl) == tries | {"unix", "abstract"} | NETWORK
    assert not outside.is_intact()


@pytest.mark.heavy
def test_an_isolated_module_has_no_network_either(outside: Outside, tmp_path: Path) -> None:
    with Site(SITE).serving() as site:
        crawl = crawl_of(site, tmp_path, *module("Alone", "on"))
        assert crawl.finish() == 0, crawl.complaints
    assert escaped(crawl) == set()
    assert outside.is_intact()


@pytest.mark.heavy
def test_a_crawl_that_starts_again_has_the_rights_that_it_began_with(outside: Outside, tmp_path: Path) -> None:
    """A page that takes the process over can write the configuration, and then end it. It is examined alone."""
    with Site(SITE).serving() as site:
        crawl = crawl_of(site, tmp_path, *module("Widening", "on"))
        assert crawl.finish() == 0, crawl.complaints
    assert (crawl.directory / "died").exists()
    assert escaped(crawl) == NETWORK
    assert [row["escaped"] for row in Harvest(crawl.directory).rows if row["url"] == site.url("/page-3.html")] == [""]
    assert outside.is_intact()


ENFORCED = ["files", "truncation", "devices", "signals", "abstract_sockets", "sockets"]


def log_of(crawl: Crawl) -> str:
    file = crawl.directory / "logs/info.log"
    return file.read_text() if file.exists() else ""


def events(crawl: Crawl) -> list[dict[str, object]]:
    lines = log_of(crawl).splitlines()
    return [event for line in lines if (event := json.loads(line))["event"] == "sandbox"]


def test_the_status_and_the_log_say_what_is_in_force(tmp_path: Path) -> None:
    with Site(SITE).serving() as site:
        crawl = crawl_of(site, tmp_path, AUTO)
        assert crawl.finish() == 0, crawl.complaints
    assert crawl.events[-1]["sandbox"] == {"in_force": True, "says": "", "enforced": ENFORCED}
    [event] = events(crawl)
    assert (event["in_force"], event["enforced"]) == (True, ENFORCED)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ((), 'process.sandbox is "off"'),
        ((AUTO, f"process.modules=['{ESCAPING}:Quiet']"), "a component of your own"),
        ((AUTO, "frontier.hosts_min=1", "frontier.more_seeds_command=['true']"), "runs a program of yours"),
    ],
)
def test_where_there_is_none_the_status_says_why(settings: tuple[str, ...], why: str, tmp_path: Path) -> None:
    with Site(SITE).serving() as site:
        crawl = crawl_of(site, tmp_path, *settings)
        assert crawl.finish() == 0, crawl.complaints
    sandbox = crawl.events[-1]["sandbox"]
    assert isinstance(sandbox, dict)
    assert not sandbox["in_force"]
    assert why in sandbox["says"]
    assert sandbox["says"] == events(crawl)[0]["says"]


def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path / "crawl", ["http://127.0.0.1:9/", "--allow-private"])
    crawl.arguments += ("--set", "process.sandbox=on", "--set", "frontier.more_seeds_command=['true']")
    assert crawl.finish() == 2
    assert crawl.complaints == (
        'gossamer: process.sandbox = "on" is not possible: frontier.more_seeds_command runs a program of yours; '
        'set it to "auto" or "off"\n'
    )
    assert not crawl.directory.exists()


WITHOUT_LANDLOCK = """
import errno, os, sys
from gossamer.world import sandbox
load, equal, leave = 0x20, 0x15, 0x06
program = [(load, 0, 0, 0), (equal, 1, 0, 444), (leave, 0, 0, 0x7FFF0000), (leave, 0, 0, 0x00050000 | errno.ENOSYS)]
assert sandbox._apply_filter(program)
os.execv(sys.executable, [sys.executable, "-m", "gossamer", *sys.argv[1:]])
"""


@pytest.mark.parametrize("wanted", ["on", "auto"])
def test_a_kernel_without_landlock(wanted: str, tmp_path: Path) -> None:
    """By a filter that answers as such a kernel does."""
    with Site(SITE).serving() as site:
        words = ["crawl", site.url("/"), "--politeness", "own", "--allow-private", "-o", str(tmp_path / "crawl")]
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_LANDLOCK, *words, "--set", f"process.sandbox={wanted}", "--json"],
            capture_output=True, text=True, check=False, timeout=60, env=environment(),
        )  # fmt: skip
    if wanted == "on":
        assert done.returncode == 2
        assert done.stderr.startswith('gossamer: process.sandbox = "on" is not possible: this system has no Landlock')
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "crawl").exists()
    else:
        assert (done.returncode, done.stderr) == (0, "")
        sandbox = json.loads(done.stdout.splitlines()[-1])["sandbox"]
        assert (sandbox["in_force"], sandbox["enforced"]) == (False, [])
        assert "no Landlock" in sandbox["says"]


def test_what_the_configuration_names_is_there(tmp_path: Path) -> None:
    """Lists, seeds, components, roots of `file:` addresses, a store, and a folder that is on another disk."""
    for name in ("lists", "root", "elsewhere", "crawl", "own"):
        (tmp_path / name).mkdir()
    (tmp_path / "root/page.html").write_text("<title>of a file</title>")
    (tmp_path / "lists/hosts").write_text("excluded.example\n")
    (tmp_path / "own/mine.py").write_text("class Mine:\n    name = 'mine'\n    rejects = lambda self, link: False\n")
    (tmp_path / "crawl/warc").symlink_to(tmp_path / "elsewhere")
    with Site(SITE).serving() as site:
        (tmp_path / "lists/seeds").write_text(f"{site.url('/')}\n{(tmp_path / 'root/page.html').as_uri()}\n")
        crawl = Crawl(
            tmp_path / "crawl", ["--seeds", str(tmp_path / "lists/seeds"), "--politeness", "own", "--allow-private"]
        )
        for setting in (
            "process.sandbox=on", 'scope.schemes=["http", "file"]', f"fetch.file_roots=['{tmp_path / 'root'}']",
            f"scope.exclude_hosts_file={tmp_path / 'lists/hosts'}", f"archive.store={(tmp_path / 'store').as_uri()}",
            f"state.hosts_store={tmp_path / 'hosts'}", f"components.filters=['{tmp_path / 'own/mine.py'}:Mine']",
        ):  # fmt: skip
            crawl.arguments += ("--set", setting)
        (tmp_path / "store").mkdir()
        (tmp_path / "hosts").mkdir()
        assert crawl.finish() == 0, crawl.complaints
    harvest = Harvest(crawl.directory)
    assert {row["outcome"] for row in harvest.rows} == {"fetched"}
    assert len(harvest.rows) == PAGES + 1
    assert list((tmp_path / "elsewhere").glob("*.warc.gz"))
    assert list((tmp_path / "store").rglob("*.warc.gz"))
    assert harvest.check_archives() == []


@pytest.mark.heavy
def test_a_crawl_is_stopped_and_resumed_within_it(tmp_path: Path) -> None:
    with Site(linked({}, 60)).serving() as site:
        crawl = crawl_of(site, tmp_path, "process.sandbox=on", "politeness.delay_s_min=0.02", "limits.max_pages=10")
        assert crawl.finish() == 0, crawl.complaints
        crawl.start("--max-pages", "1000")
        assert crawl.wait() == 0, crawl.complaints
    assert [event["in_force"] for event in events(crawl)] == [True, True]
    assert len(Harvest(crawl.directory).finals) == 61


def test_a_crawl_that_becomes_several_shards_ends_and_says_how_it_continues(tmp_path: Path) -> None:
    """Its number of shards is in a file that a page which took it over can write: that must not end the sandbox."""
    with Site(linked({}, 60)).serving() as site:
        crawl = crawl_of(site, tmp_path, AUTO, "politeness.delay_s_min=2")
        crawl.start()
        until(lambda: '"sandbox"' in log_of(crawl) and crawl.ask("status")["state"] == "running")
        status, _, complaints = run("scale", str(crawl.directory), "--workers", "2", "--quiet")
        assert status == 0, complaints
        assert crawl.wait() == 2
    assert crawl.complaints == (
        "gossamer: this crawl has 2 shards now, which run without a sandbox: "
        f"gossamer resume {crawl.directory} starts them\n"
    )
