"""The examples of components keep the contracts of their ports, and a crawl with all of them survives kills."""

from __future__ import annotations

import asyncio
import json
import socketserver
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from gossamer.config.sections import ComponentsOptions
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.pages import Page
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.resolve.options import ResolveOptions
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals
from gossamer.state.store import Store
from gossamer.testing import (
    FakeClock,
    FakeGates,
    check_archive,
    check_bias,
    check_content_seen,
    check_filter,
    check_frontier,
    check_middleware,
    check_prioritizer,
    check_processing_module,
    check_protocol_module,
    check_resolver,
    check_revisit_policy,
    check_url_seen,
)
from gossamer.world.clock import WallClock
from gossamer.world.dice import Dice
from tests.crash.crawls import Crawl, crawl_of, until
from tests.crash.harvest import Harvest, differences
from tests.crash.killing import Reached, killed, undisturbed
from tests.docs.shown import ROOT

EXAMPLES = ROOT / "examples"
CLASSES = {
    "filter": "NoCalendars",
    "prioritizer": "ByPast",
    "bias": "MostlyFirst",
    "frontier": "LastFirst",
    "url_seen": "StoredUrls",
    "content_seen": "OfHost",
    "resolver": "SystemResolver",
    "protocol": "Finger",
    "module": "Headings",
    "archive": "Attempts",
    "revisit_policy": "HalfOrDouble",
    "middleware": "SlowPath",
}
"""By file, the class that a crawl is started with."""
METHODS = {
    "filter": "rejects",
    "prioritizer": "level_by_history",
    "bias": "choose",
    "frontier": "offer",
    "url_seen": "offer",
    "content_seen": "find",
    "resolver": "resolve",
    "protocol": "fetch",
    "module": "process",
    "archive": "add",
    "revisit_policy": "rate",
    "middleware": "judge",
}
"""By file, a method whose call shows that the component took part."""
WATCHED = '''\
"""The class of an example, which notes that its method was called."""
import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location("example_{file}", "{path}")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)


class {name}(module.{name}):
    def {method}(self, *given):
        Path("{marks}", "{file}").touch()
        return super().{method}(*given)
'''


def example(file: str) -> ModuleType:
    """Return an example as a module, without a file of its bytecode beside it."""
    path = EXAMPLES / f"{file}.py"
    module = ModuleType(f"example_{file}")
    sys.modules[module.__name__] = module
    exec(compile(path.read_text(), path, "exec"), module.__dict__)
    return module


def of(file: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(example(file), CLASSES[file])
    return found


@pytest.fixture
def epochs(tmp_path: Path) -> Iterator[Callable[[], Epochs]]:
    stores: list[Store] = []

    def make() -> Epochs:
        stores.append(Store(tmp_path / f"store{len(stores)}", 1 << 20, 1 << 20))
        return Epochs(stores[-1])

    yield make
    for store in stores:
        store.close()


def test_every_key_of_a_component_has_an_example() -> None:
    keys = {*ComponentsOptions.__struct_fields__, "revisit_policy", "modules"}
    assert keys == {file if f"{file}s" not in keys else f"{file}s" for file in CLASSES}
    listed = (EXAMPLES / "README.md").read_text()
    assert [file for file in CLASSES if f"| [{file}.py]({file}.py) |" not in listed] == []


def test_filter() -> None:
    good = ["http://a.example/", "http://a.example/2024/report", "http://a.example/?printer=1"]
    check_filter(of("filter")(), good, ["http://a.example/2024/05/", "http://a.example/b?print=1"])


def test_prioritizer_and_bias() -> None:
    check_prioritizer(of("prioritizer")())
    check_bias(lambda: of("bias")(bias=2.0, dice=Dice(1)))


def test_frontier(epochs: Callable[[], Epochs]) -> None:
    state = epochs()

    def make(gates: FakeGates) -> Any:
        return of("frontier")(gates=gates, epochs=state, name_url=lambda _: None, dice=Dice(1))

    check_frontier(make)


def test_url_seen_and_content_seen(epochs: Callable[[], Epochs]) -> None:
    check_url_seen(lambda: of("url_seen")(epochs=epochs()))
    check_content_seen(lambda: of("content_seen")(epochs=epochs()))
    seen = of("url_seen")(epochs=epochs())
    check_url_seen(lambda: seen.cut(1.0) or of("url_seen")(epochs=epochs()))


def test_resolver(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("192.0.2.7 a.example\n")
    options = ResolveOptions(hosts_file=str(tmp_path / "hosts"))
    make = of("resolver")
    known = ["a.example", "127.0.0.1"]
    asyncio.run(check_resolver(lambda: make(options=options, clock=FakeClock()), known, ["a..example"]))


def test_protocol() -> None:
    async def run() -> None:
        bodies = {b"ann\r\n": b"Ann is in.\r\n" * 2_000, b"\r\n": b"Nobody else.\r\n"}

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(bodies.get(await reader.readline(), b""))
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        served = {f"finger://127.0.0.1:{port}/ann": bodies[b"ann\r\n"], f"finger://127.0.0.1:{port}/": bodies[b"\r\n"]}
        make = of("protocol")
        await check_protocol_module(lambda: make(options=FetchOptions(), agent="", clock=WallClock()), served)
        server.close()

    asyncio.run(run())


def test_module_and_middleware(epochs: Callable[[], Epochs]) -> None:
    page = Page("http://a.example/", "text/html", "", (), b"<H1>a</H1><h2 class=x>b</h2><header>")
    check_processing_module(of("module")(), [page])
    module = example("middleware")
    given = {"epochs": epochs(), "name_url": lambda _: None, "unpark": lambda *_: None}
    for name in ("SessionProxies", "SlowPath"):
        check_middleware(getattr(module, name)(**given))


def test_archive(tmp_path: Path) -> None:
    numbers = count()
    opened: list[Journals] = []

    def make() -> Any:
        opened.append(Journals(tmp_path / str(next(numbers))))
        return of("archive")(journals=opened[-1], directory=tmp_path)

    check_archive(make)
    for journals in opened:
        journals.close_files()


def test_revisit_policies() -> None:
    module = example("revisit_policy")
    check_revisit_policy(module.ByRoot())
    check_revisit_policy(module.HalfOrDouble())


WEB = SimwebOptions.plain(hosts=4, pages=80, latency_s=0.05, bytes_median=3_000)


@pytest.fixture
def watched(tmp_path: Path) -> dict[str, str]:
    """Return by file the name of its class, which leaves a mark in `marks` when it is used."""
    marks = tmp_path / "marks"
    marks.mkdir()
    names = {}
    for file, name in CLASSES.items():
        path = tmp_path / f"watched_{file}.py"
        copy = tmp_path / f"{file}.py"
        copy.write_text((EXAMPLES / copy.name).read_text())
        values = {"file": file, "name": name, "method": METHODS[file], "marks": marks, "path": copy}
        path.write_text(WATCHED.format(**values))
        names[file] = f"{path}:{name}"
    return names


def marks_of(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "marks").iterdir()}


def attempts_of(directory: Path) -> Counter[tuple[str, str]]:
    assert list((directory / "attempts").glob("*.open")) == []
    lines = [line for path in (directory / "attempts").iterdir() for line in path.read_text().splitlines()]
    return Counter((row["url"], row["outcome"]) for row in map(json.loads, lines))


@pytest.mark.heavy
@pytest.mark.promise(
    "Components and Python", "The example of each component takes part in a crawl that is killed and resumed."
)
def test_a_crawl_of_all_examples_that_is_killed_ends_as_an_undisturbed_one(
    watched: dict[str, str], tmp_path: Path
) -> None:
    settings = (
        f'components.filters=["{watched["filter"]}"]',
        f"components.prioritizer={watched['prioritizer']}",
        f"components.bias={watched['bias']}",
        f"components.frontier={watched['frontier']}",
        f"components.url_seen={watched['url_seen']}",
        f"components.content_seen={watched['content_seen']}",
        f"components.resolver={watched['resolver']}",
        f'components.protocols={{finger = "{watched["protocol"]}"}}',
        f'components.middleware=["{watched["middleware"]}"]',
        f'components.archives=["{watched["archive"]}"]',
        f'process.modules=["{watched["module"]}"]',
    )
    calm, web = undisturbed(WEB, tmp_path / "calm", *settings)
    assert (calm.status, calm.harvest.faults()) == (0, []), calm.crawl.complaints
    assert marks_of(tmp_path) == {*CLASSES} - {"protocol", "revisit_policy"}
    story = killed(web, tmp_path / "killed", 3, calm.asked, *settings)
    assert story.status == 0, story.crawl.complaints
    assert story.harvest.faults() == []
    assert differences(story.harvest, calm.harvest) == []
    for harvest in (calm.harvest, story.harvest):
        assert attempts_of(harvest.directory) == Counter((str(row["url"]), str(row["outcome"])) for row in harvest.rows)
        html = [row for row in harvest.rows if row["media_type"] == "text/html"]
        assert html
        assert all(row["headings"] is not None for row in html)


class Finger(socketserver.StreamRequestHandler):
    """Answers with the name of the user, and notes it."""

    names: ClassVar[list[str]] = []

    def handle(self) -> None:
        name = self.rfile.readline().decode().strip()
        self.names.append(name)
        self.wfile.write(f"{name} is in.\n".encode())


@pytest.mark.heavy
def test_a_crawl_by_the_example_of_a_protocol_is_killed_and_resumed(watched: dict[str, str], tmp_path: Path) -> None:
    users = [f"user{number}" for number in range(20)]
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Finger) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        seeds = [f"finger://127.0.0.1:{server.server_address[1]}/{user}" for user in users]
        sets = (
            f'components.protocols={{finger = "{watched["protocol"]}"}}',
            'scope.schemes=["finger"]',
            "politeness.delay_s_min=0.1",
            "crawl.commit_s=0.1",
        )
        arguments = [*seeds, "--politeness", "own", "--allow-private", *(x for one in sets for x in ("--set", one))]
        crawl = Crawl(tmp_path / "crawl", arguments)
        try:
            crawl.start()
            until(lambda: len(Finger.names) >= 5 or not crawl.runs)
            crawl.kill("both")
            assert len(set(Finger.names)) < len(users)
            crawl.start()
            assert crawl.finish() == 0, crawl.complaints
        finally:
            crawl.close()
            server.shutdown()
    rows = Harvest(tmp_path / "crawl").rows
    assert Counter((row["url"], row["outcome"]) for row in rows) == Counter((seed, "fetched") for seed in seeds)
    assert "protocol" in marks_of(tmp_path)


@pytest.mark.heavy
def test_a_continuous_crawl_with_the_examples_is_killed_and_goes_on(watched: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "marks" / "revisit_policy").unlink(missing_ok=True)
    settings = (
        "crawl.mode=continuous",
        f"revisit.policy={watched['revisit_policy']}",
        "revisit.interval_s_min=1",
        "revisit.interval_s_mean=2",
        f"components.prioritizer={watched['prioritizer']}",
        f"components.bias={watched['bias']}",
        f'components.archives=["{watched["archive"]}"]',
    )
    with SimwebProcess(WEB, tmp_path / "web") as web:
        reached = Reached(web.log)
        crawl = crawl_of(web, tmp_path / "crawl", *settings)
        try:
            crawl.start()
            until(lambda: reached.count() >= 40 and "revisit_policy" in marks_of(tmp_path))
            crawl.kill("both")
            (tmp_path / "marks" / "revisit_policy").unlink()
            crawl.start()
            until(lambda: "revisit_policy" in marks_of(tmp_path))
        finally:
            crawl.close()
    assert {"prioritizer", "bias", "archive"} <= marks_of(tmp_path)
