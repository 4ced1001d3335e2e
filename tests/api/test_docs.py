"""What the documentation shows is run, against a site on loopback."""

from __future__ import annotations

import ast
import asyncio
import re
import types
from pathlib import Path
from typing import Any

import pytest

import gossamer
from gossamer import Crawler
from gossamer.api import iterating
from gossamer.config import configure, effective_toml
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.model.verbs import VERBS
from gossamer.options import to_table
from tests.api.site import Site, page

pytestmark = pytest.mark.promise("Operation", "The examples in the documentation run.")

ROOT = Path(__file__).parents[2]
SHOWN = "https://docs.example.org/"
PAGES = {"/": page("/a", "/b", title="Docs", text="Words to read"), "/a": page(title="A"), "/b": page(title="B")}


def fenced(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class Local(Crawler):
    """Goes to the site on loopback, as fast as it answers, whatever is shown."""

    root = ""

    def __init__(self, seeds: Any = (), **options: Any) -> None:
        assert options.get("resuming") or SHOWN in seeds
        if not options.get("resuming"):
            options |= {"allow_private": True, "politeness": "own"}
        settings = {"crawl.commit_s": 0.05, **(options.pop("settings", None) or {})}
        super().__init__([self.root] if seeds else (), settings=settings, **options)


def run(code: str) -> None:
    """Run statements, `await` and `async with` among them, as at the top of a script."""
    compiled = compile(code, "<documentation>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def whole() -> None:
        async with asyncio.timeout(60), Site(PAGES) as site:
            Local.root = site.root
            made = await asyncio.to_thread(types.FunctionType(compiled, {"__name__": "__main__"}))
            if made is not None:
                await made

    asyncio.run(whole())


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(gossamer, "Crawler", Local, raising=False)
    monkeypatch.setattr(iterating, "Crawler", Local)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_the_readmes_example_crawls(local: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = fenced((ROOT / "README.md").read_text(encoding="utf-8"))
    run(code)
    lines = [line for line in capsys.readouterr().out.splitlines() if " 200 " in line]
    assert len(lines) == 3
    assert " 200 Docs 2 " in lines[0]
    assert "Words to read" in lines[0]


def test_the_examples_of_the_page_about_python_run_in_order(local: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for code in fenced((ROOT / "docs/reference/python.md").read_text(encoding="utf-8")):
        if code.startswith("# words.py"):
            (local / "words.py").write_text(code)
            continue
        if 'output="crawl"' in code and (local / "crawl").exists():
            (local / "crawl").rename(local / f"crawl{len(said)}")
        run(code)
        said.append(capsys.readouterr().out)
    first, looped, options, resumed, asked, imported, counted, tested = said
    assert first.count(" 200 ") == 3
    assert [line.rpartition(" ")[2] for line in looped.splitlines()] == ["Docs", "A", "B", "3"]
    assert options.splitlines() == ["finished", "3"]
    assert resumed == ""
    assert asked.splitlines()[0] == "3"
    assert imported.splitlines()[1:] == ["3", "0 URLs are not in the archives; Crawler.resume fetches them"]
    assert [line.rpartition(" ")[2].isdigit() for line in counted.splitlines()] == [True, True, True]
    assert tested == ""


def test_the_page_about_the_socket_names_every_verb() -> None:
    _, _, text = (ROOT / "docs/reference/control.md").read_text(encoding="utf-8").partition("## Verbs")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(VERBS)


def test_the_examples_of_the_page_about_priorities_run(local: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs/how-to/priorities.md").read_text(encoding="utf-8")
    for code in fenced(text):
        if code.startswith("# news_first.py"):
            (local / "news_first.py").write_text(code)
        else:
            run(code)
    assert capsys.readouterr().out == "finished\n"
    (local / "whole.toml").write_text('[components]\nprioritizer = "news_first.py:NewsFirst"\n')
    assert configure(local / "whole.toml").components.prioritizer == f"{local}/news_first.py:NewsFirst"


def test_the_components_of_their_page_crawl_and_are_resumed(local: Path) -> None:
    text = (ROOT / "docs/how-to/components.md").read_text(encoding="utf-8")
    filtering, frontier = fenced(text)
    (local / "mine.py").write_text(filtering)
    (local / "last_first.py").write_text(frontier)
    named = re.findall(r"--set '?(components\.\w+=[^'\n]+)'?$", text, re.MULTILINE)
    assert [one.partition("=")[0] for one in named] == ["components.filters", "components.frontier"]
    pages = {"/": page("/a", "/b?print=1", "/b"), "/a": page("/c"), "/b": page(), "/c": page()}

    async def crawled(*sets: str, resuming: bool = False) -> dict[str, object]:
        if resuming:
            crawler = Crawler.resume(local / "crawl", config=reopen(local / "crawl/crawl.toml", sets=sets))
        else:
            options = {"allow_private": True, "politeness": "own"}
            config = configure(options=options, sets=[*named, *sets], seeds=[site.root])
            crawler = Crawler(output=local / "crawl", config=config)
        await crawler.run()
        return crawler.status()

    async def whole() -> None:
        first = await crawled("limits.max_pages=2", "crawl.concurrency=1")
        assert (first["ended"], first["pages"]) == ("limit", 2)
        last = await crawled("limits.max_pages=100", resuming=True)
        assert (last["ended"], last["pages"], last["rejected"]) == ("finished", 4, {"no_print_pages": 1})
        with pytest.raises(ConfigError, match="began with LastFirst and keeps it"):
            await crawled("components.frontier=", resuming=True)

    site = Site(pages)

    async def served() -> None:
        async with asyncio.timeout(60), site:
            await whole()

    asyncio.run(served())


def test_the_configurations_on_the_page_about_priorities_are_right_and_are_kept(tmp_path: Path) -> None:
    text = (ROOT / "docs/how-to/priorities.md").read_text(encoding="utf-8")
    found = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(found) == 4
    for number, shown in enumerate(found):
        (tmp_path / f"{number}.toml").write_text(shown)
        config = configure(tmp_path / f"{number}.toml")
        (tmp_path / "again.toml").write_text(effective_toml(config))
        assert to_table(reopen(tmp_path / "again.toml")) == to_table(config)
    scored, *_ = configs = [configure(tmp_path / f"{number}.toml") for number in range(4)]
    [budgeted] = [config for config in configs if config.budget.overrides]
    assert scored.frontier.scores == {"/docs/": 2, "[?&](sort|print)=": -3}
    assert budgeted.budget.overrides[".example.com"].pages == 100_000
