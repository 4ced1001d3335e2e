"""What a program hands in that is of another kind than is expected: one line, and nothing is begun."""

from __future__ import annotations

import asyncio
import inspect
import json
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import Crawler
from gossamer.api import ClusterCrawler, about_of, release_of, sample_of, scale_crawl, status_of, why_of
from gossamer.api.given import in_python
from gossamer.api.search import search_of
from gossamer.api.views import export_of
from gossamer.config import configure
from gossamer.config.flags import FLAGS, Options
from gossamer.model.errors import ConfigError

pytestmark = pytest.mark.promise(
    "Components and Python", "An argument of a wrong type is an error of one line, and starts nothing."
)

HERE = "http://127.0.0.1:1/"


class Reach(Enum):
    """An enum of a program."""

    HOST = "host"


def line_of(call: Callable[[], object]) -> str:
    with pytest.raises(ConfigError) as caught:
        call()
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize("kind", [Crawler, ClusterCrawler])
@pytest.mark.parametrize(
    ("seeds", "told"),
    [
        (None, "seeds is None: give an address, or a list"),
        (5, "seeds is 5"),
        (HERE.encode(), "seeds is b'http"),
        ({HERE: 1}, "seeds is {"),
        ([HERE, None], "seeds holds None"),
        ([HERE.encode()], "seeds holds b'http"),
        (HERE + "\ud800", "arguments: seeds.urls holds what is no text in UTF-8"),
    ],
)
def test_seeds_are_texts(kind: Any, seeds: object, told: str, tmp_path: Path) -> None:
    assert told in line_of(lambda: kind(seeds, output=tmp_path / "crawl", allow_private=True, workers=None))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [Crawler, ClusterCrawler])
@pytest.mark.parametrize("given", [None, 5, b"crawl", "a\0b", ["crawl"], ""])
def test_a_directory_is_a_text_or_a_path(kind: Any, given: object) -> None:
    assert "output is " in line_of(lambda: kind(HERE, output=given, allow_private=True))
    assert "output is " in line_of(lambda: kind.resume(given))


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [
        ("max_pages", np.int64(3), 3),
        ("max_pages", Decimal(3), 3),
        ("max_time", np.float64(0.5), 0.5),
        ("max_time", timedelta(minutes=5), 300.0),
        ("allow_private", np.bool_(True), True),
        ("scope", Reach.HOST, "host"),
        ("include", [re.compile("a")], ("a",)),
        ("include", {"a"}, ("a",)),
        ("include", (one for one in "ab"), ("a", "b")),
        ("include", np.array(["a"]), ("a",)),
        ("hosts", Path("/etc/hosts"), "/etc/hosts"),
    ],
)
def test_values_of_other_libraries_are_taken(name: str, given: object, taken: object, tmp_path: Path) -> None:
    options: Any = {"allow_private": True, name: given}
    key = next(flag.key for flag in FLAGS if flag.name == name)
    assert Crawler(HERE, output=tmp_path / "crawl", **options).config.value(key) == taken


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"config": "gossamer.toml"}, "config is 'gossamer.toml': give what gossamer.config.configure returns"),
        ({"config": {"limits": {"max_pages": 1}}}, "config is {"),
        ({"settings": ["crawl.commit_s=1"]}, "settings is ["),
        ({"settings": "crawl.commit_s=1"}, "settings is 'crawl"),
        ({"settings": {5: 1}}, "settings has the key 5"),
        ({"settings": {"commit_s": 1}}, "settings has the key 'commit_s': expected section.key"),
        ({"settings": {"limits.max_pages": object()}}, "limits.max_pages is <object"),
        ({"settings": {"operator.agent": b"x"}}, "operator.agent is b'x': give a text"),
        ({"settings": {"scope.include": [date(2026, 1, 1)]}}, "scope.include is datetime.date(2026, 1, 1): give"),
        ({"more_seeds": "seeds.txt"}, "more_seeds is 'seeds.txt': give a function"),
        ({"max_pages": object()}, "max_pages is <object"),
        ({"max_pages": "3"}, 'max_pages "3": expected a whole number'),
        ({"delay": "soon"}, 'delay "soon": expected a number of seconds, or a time with its unit, such as 500ms'),
        ({"max_time": "5MB"}, 'max_time "5MB": expected a number of seconds'),
        ({"max_bytes": "1h"}, 'max_bytes "1h": expected a whole number of bytes, or one with its unit'),
        ({"memory": "512"}, "did you mean 512MiB?"),
        ({"no_robots": "no"}, 'no_robots "no": expected True or False'),
        ({"json": 0}, "json 0: expected True or False"),
        ({"include": [5]}, "include"),
        ({"contact": 5}, "contact 5: expected a text"),
        ({"contact": "me\udcff@example.org"}, "contact holds what is no text in UTF-8"),
    ],
)
def test_what_else_is_given_is_of_its_kind(given: dict[str, Any], told: str, tmp_path: Path) -> None:
    assert told in line_of(lambda: Crawler(HERE, output=tmp_path / "crawl", **{"allow_private": True, **given}))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [Crawler, ClusterCrawler])
def test_options_of_a_resume_are_of_their_kind(kind: Any, tmp_path: Path) -> None:
    (tmp_path / "crawl.toml").touch()
    assert line_of(lambda: kind.resume(tmp_path, max_pages="3")) == 'max_pages "3": expected a whole number'


@pytest.mark.parametrize("names", [[], ["notes.txt"]])
def test_a_crawl_that_is_refused_when_it_runs_leaves_nothing(names: list[str], tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("nonsense\n")
    directory = tmp_path / "deep" / "crawl"
    for name in names:
        directory.mkdir(parents=True)
        (directory / name).touch()
    crawler = Crawler(HERE, output=directory, allow_private=True, hosts=tmp_path / "hosts")
    assert "expected ADDRESS NAME" in line_of(lambda: asyncio.run(crawler.run()))
    if names:
        assert [path.name for path in directory.iterdir()] == names
    else:
        assert not (tmp_path / "deep").exists()


class Typed:
    """An address as yarl, httpx and furl have it: an object whose text is the address."""

    def __str__(self) -> str:
        return HERE


def test_any_number_of_seeds_of_any_kind_of_list_will_do(tmp_path: Path) -> None:
    for number, seeds in enumerate([[HERE], (HERE,), {HERE}, iter([HERE]), HERE, Typed(), [Typed()]]):
        crawler = Crawler(seeds, output=tmp_path / str(number), allow_private=True)
        assert crawler.config.seeds.urls == (HERE,)
    with pytest.raises(ConfigError, match="callback is 5: give a function"):
        crawler.on_note(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "asking",
    [
        status_of, about_of, lambda given: why_of(given, HERE), lambda given: release_of(given, "trap"),
        lambda given: sample_of(given, 5), lambda given: scale_crawl(given, 2), lambda given: search_of(given, "words"),
        lambda given: export_of(given, "csv", "made.csv"),
    ],
)  # fmt: skip
def test_a_crawl_is_named_by_a_text_or_a_path(asking: Callable[[Any], object], tmp_path: Path) -> None:
    assert "directory is None: name a directory" in line_of(lambda: asking(None))
    for given in (tmp_path, str(tmp_path)):
        assert str(tmp_path) in line_of(lambda given=given: asking(given))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ("add --allow-private to visit those", "add allow_private=True to visit those"),
        ("it is for an offline crawl: add --mode offline", 'it is for an offline crawl: add mode="offline"'),
        ("visit all hosts with --scope domain", 'visit all hosts with scope="domain"'),
        ("set 512 MiB (--memory 512MiB)", 'set 512 MiB (memory="512MiB")'),
        ("add --workers N, or leave out --cluster", "add workers=N, or leave out cluster"),
        ("if it lists seeds, write --seeds a.txt", 'if it lists seeds, write settings={"seeds.file": "a.txt"}'),
        ("name another with -o DIR", "name another with output=DIR"),
        ("crawl with --set archive.links=true", 'crawl with settings={"archive.links": True}'),
        ("--set 'scope.schemes=[\"http\"]' has it visited", 'settings={"scope.schemes": ["http"]} has it visited'),
        ("--max-time or --max-pages ends it", "max_time or max_pages ends it"),
        ("add --contact with a URL of yours", "add contact with a URL of yours"),
        ("`gossamer scale DIR --workers 2` goes on", "`gossamer scale DIR --workers 2` goes on"),
        ("gossamer verify DIR --accept-loss; or --quiet", "gossamer verify DIR --accept-loss; or quiet=True"),
        ('--max-pages "3": expected a whole number', 'max_pages "3": expected a whole number'),
    ],
)
def test_advice_is_what_a_program_types(typed: str, given: str) -> None:
    assert in_python(typed) == given


def test_a_mistake_that_shows_while_it_crawls_names_arguments(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    crawl = gossamer.crawl(HERE, output=tmp_path / "crawl", allow_private=True, hosts_store=tmp_path / "file" / "store")
    assert line_of(lambda: list(crawl)).endswith("name another with hosts_store")


def test_a_cluster_for_one_shard_is_refused_and_not_left_out_of_account(tmp_path: Path) -> None:
    says = line_of(lambda: Crawler(HERE, output=tmp_path, allow_private=True, cluster="10.0.0.1:6379"))
    assert (
        says == "cluster.address: a crawl of one shard runs here and without Ray; set cluster.workers, or leave it out"
    )


PUBLIC = "https://docs.example.org/"


@pytest.mark.parametrize(
    ("seeds", "given", "told"),
    [
        (PUBLIC, {}, "add contact with a URL or mail address of yours"),
        (HERE, {}, "is at a private address; add allow_private=True to visit those"),
        ((), {}, "no seeds: give an address, or a list of them: "),
        (HERE, {"max_page": 3}, "no option 'max_page'; did you mean max_pages?"),
        (HERE, {"allow_private": True, "memory": "10MiB"}, 'set 192 MiB or more (memory="192MiB")'),
        (HERE, {"allow_private": True, "scope": "subdomain"}, "or 'any'; did you mean 'domain'?"),
        (HERE, {"callback": print}, "no option 'callback'; pages come in a loop"),
        (HERE, {"settings": {"crawl": {"commit_s": 2}}}, 'expected section.key; write {"crawl.commit_s": …}'),
        (HERE, {"settings": {"follow": True}}, "a crawl always follows links; scope and max_depth bound it"),
    ],
)
def test_an_error_names_arguments_and_no_options(seeds: Any, given: dict[str, Any], told: str, tmp_path: Path) -> None:
    said = line_of(lambda: Crawler(seeds, output=tmp_path / "crawl", **given))
    assert told in said
    assert "--" not in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", [Crawler, Crawler.resume, ClusterCrawler, gossamer.crawl])
def test_a_signature_names_every_option(call: Callable[..., object]) -> None:
    parameters = inspect.signature(call).parameters
    assert Options.__annotations__.keys() <= parameters.keys()
    assert not [one for one in parameters.values() if one.kind is one.VAR_KEYWORD]
    assert parameters["max_time"].annotation == "float | str | timedelta | None"


def test_help_shows_the_function_and_its_options() -> None:
    shown = pydoc.plain(pydoc.render_doc(gossamer.crawl))
    assert "crawl(seeds: " in shown
    assert "    max_pages: Stop after this many pages." in shown
    assert "--" not in shown.partition("Options:")[2]
    assert dir(gossamer) == sorted(gossamer.__all__)


def test_the_wrong_loop_names_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"a plain `for` reads gossamer\.crawl"):
        list(Crawler(HERE, output=tmp_path / "crawl", allow_private=True))

    async def loop() -> None:
        async for _ in gossamer.crawl(HERE, output=tmp_path / "crawl", allow_private=True):
            pass

    with pytest.raises(TypeError, match=r"a coroutine uses `async with gossamer\.Crawler"):
        asyncio.run(loop())
    several = ClusterCrawler(HERE, output=tmp_path / "crawl", allow_private=True, workers=2)
    with pytest.raises(TypeError, match=r"a plain `for` reads gossamer\.crawl"), several:  # type: ignore[attr-defined]
        pass
    with pytest.raises(ConfigError, match=r"under trio, read gossamer\.crawl"):
        several.run().send(None)  # As a loop of another kind does.
    with pytest.raises(ConfigError, match=r"under trio, read gossamer\.crawl"):
        several.__aenter__().send(None)
    assert not list(tmp_path.iterdir())


def test_an_output_that_is_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "crawl"
    file.touch()
    told = line_of(lambda: gossamer.crawl(HERE, output=file, allow_private=True))
    assert told == f"output {file} is a file: name a directory"


def test_a_crawler_runs_once_and_in_asyncio(tmp_path: Path) -> None:
    crawler = Crawler(HERE, output=tmp_path / "crawl", allow_private=True, no_robots=True)
    with pytest.raises(ConfigError, match=r"under trio, read gossamer\.crawl\(\.\.\.\) in a thread"):
        crawler.run().send(None)  # As a loop of another kind does.
    assert not list(tmp_path.iterdir())

    async def twice() -> None:
        crawler.stop()
        assert await crawler.run() == "stopped"
        with pytest.raises(ConfigError, match=r"this crawl was read before; Tables\("):
            await crawler.run()
        with pytest.raises(ConfigError, match=r"Crawler\.resume\("):
            await crawler.__aenter__()

    asyncio.run(twice())


def test_a_callback_that_must_be_awaited_is_refused(tmp_path: Path) -> None:
    async def later(_: str) -> None: ...

    crawler = Crawler(HERE, output=tmp_path / "crawl", allow_private=True)
    with pytest.raises(ConfigError, match="give a function without async"):
        crawler.on_note(later)  # type: ignore[arg-type]


@pytest.mark.heavy
def test_or_resume_continues_and_begins(tmp_path: Path) -> None:
    def attempt(**more: Any) -> int:
        seeds = more.pop("seeds", HERE)
        again = gossamer.crawl(
            seeds, output=tmp_path / "crawl", allow_private=True, no_robots=True, or_resume=True,
            settings={"frontier.attempts_max": 1}, **more,
        )  # fmt: skip
        return len(list(again))

    assert attempt() == 1
    assert attempt(max_pages=5) == 0, "it has ended, and is not fetched again"
    with pytest.raises(ConfigError, match="holds a crawl of other seeds: name another output"):
        attempt(seeds="http://127.0.0.1:2/")


@pytest.mark.acceptance
@pytest.mark.long
def test_types_hold_outside_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(USE)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "use.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    wrong = re.findall(r"use.py:(\d+): error: .* \[([a-z-]+)\]", done.stdout)
    assert [(_mark(int(number)), code) for number, code in wrong] == [
        ("wrong form", "attr-defined"), ("wrong form", "attr-defined"), ("wrong name", "attr-defined"),
        ("wrong name", "attr-defined"),
        ("wrong", "arg-type"), ("wrong", "call-arg"),
    ], done.stdout  # fmt: skip


@pytest.mark.acceptance
def test_types_hold_for_pyright_too(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(USE)
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--level", "error", "--pythonpath", sys.executable, "--outputjson", "."],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert [(_mark(one["range"]["start"]["line"] + 1), one["rule"]) for one in found] == [
        ("wrong form", "reportGeneralTypeIssues"), ("wrong form", "reportGeneralTypeIssues"),
        ("wrong name", "reportAttributeAccessIssue"), ("wrong name", "reportAttributeAccessIssue"),
        ("wrong", "reportArgumentType"), ("wrong", "reportCallIssue"),
    ], done.stdout  # fmt: skip


def _mark(line: int) -> str:
    """Return the comment of a line of `USE`, counted from 1."""
    return USE.splitlines()[line - 1].partition("# ")[2]


USE = """\
import asyncio
import inspect
import pydoc
import re
import subprocess
import sys
from datetime import timedelta

import gossamer
import gossamer.api
from gossamer import Crawler


async def main() -> None:
    seeds = ["https://docs.example.org/"]
    async with Crawler(seeds, max_time="1h", delay=timedelta(seconds=1), memory="1GiB", or_resume=True) as crawler:
        async for page in crawler:
            title: str = page.title
            print(title, [link.url for link in page.links])


for page in gossamer.crawl("https://docs.example.org/", max_pages=3, settings={"crawl.commit_s": 2.0}):
    print(page.url.upper(), page.status)
asyncio.run(main())
async def wrong() -> None:
    async for page in gossamer.crawl("https://docs.example.org/"):  # wrong form
        print(page)


for page in Crawler("https://docs.example.org/"):  # wrong form
    print(page)
print(gossamer.Spider)  # wrong name
print(gossamer.api.Spider)  # wrong name
Crawler("https://docs.example.org/", max_pages="three")  # wrong
gossamer.crawl("https://docs.example.org/", max_page=3)  # wrong
"""


@pytest.mark.parametrize("beside", [{"max_pages": 3}, {"settings": {"limits.max_pages": 3}}, {"seeds": [HERE]}])
def test_what_a_configuration_replaces_is_refused_beside_it(tmp_path: Path, beside: dict[str, Any]) -> None:
    """It was dropped: a limit beside a configuration held for nothing."""
    config = configure(options={"contact": "me@example.org"}, seeds=["https://docs.example.org/"])
    with pytest.raises(ConfigError, match=r"config replaces seeds, settings and options: give them to configure"):
        gossamer.crawl(config=config, output=tmp_path / "crawl", **{"seeds": (), **beside})
    again = Crawler(config.seeds.urls, config=config, output=tmp_path / "crawl")
    assert again.config.seeds.urls == config.seeds.urls, "said twice"
