"""Every command and every snippet of the documentation runs, or is checked as far as this machine allows."""

from __future__ import annotations

import re
import shlex
import tomllib
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from gossamer.cli.crawl import with_port
from gossamer.cli.main import tree
from gossamer.config import configure
from gossamer.config.sections import sections
from gossamer.options import keys_of
from tests.docs.shown import PAGES, ROOT, Block, Place, blocks, served

LANGUAGES = {"sh", "console", "python", "toml", "text", "json", "nginx", "sql", "yaml"}
RUN_ELSEWHERE = {
    "README.md": "tests/api/test_docs.py",
    "docs/explanation/revisits.md": "tests/ring/test_revisits.py",
    "docs/how-to/cluster.md": "tests/acceptance/test_workers_features.py",
    "docs/how-to/components.md": "tests/api/test_docs.py",
    "docs/how-to/priorities.md": "tests/api/test_docs.py",
    "docs/reference/fetching.md": "tests/ring/test_own_protocol.py",
    "docs/reference/processing.md": "tests/ring/test_modules.py",
    "docs/reference/python.md": "tests/api/test_docs.py",
}
"""Pages whose Python is run by a test of its own, which looks at what it does."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def of(*languages: str) -> list[Path]:
    return [page for page in PAGES if any(block.language in languages for block in blocks(page))]


def file_of(block: Block) -> str:
    """Return the name of the file that a block shows, or nothing."""
    found = re.match(r"# ([\w-]+\.(?:py|toml))\n", block.text)
    return found[1] if found else ""


def runs() -> list[object]:
    """Return the pages whose commands run: tutorials always, the others, some of which need curl, with acceptance."""
    pages = [(page, page.name == "README.md" or page.parent.name == "tutorials") for page in of("sh")]
    return [pytest.param(page, marks=() if always else pytest.mark.acceptance, id=name(page)) for page, always in pages]


@pytest.mark.heavy
@pytest.mark.parametrize("page", runs())
@pytest.mark.timeout(900)  # Many processes, one after the other.
@pytest.mark.long
def test_the_commands_of_a_page_run_in_order(page: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with served() as port:
        place = Place(tmp_path / "work", port)
        found = blocks(page)
        for block, following in zip(found, [*found[1:], None], strict=True):
            if block.language in ("python", "toml") and (file := file_of(block)):
                place.write(file, block.text)
            elif block.language == "sh":
                said = place.run(block.text)
                if following and following.language == "text" and following.line == block.ends + 2:
                    assert shows(place.local(following.text), said), f"{page}:{following.line}: not in\n{said}"


def shows(text: str, said: str) -> bool:
    """Tell whether the output has the text, in order; `…` stands for anything, and instants differ."""
    instant = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)")
    wanted, said = (" ".join(instant.sub("INSTANT", one).split()) for one in (text, said))
    return re.search(".*?".join(re.escape(part.strip()) for part in wanted.split("…")), said) is not None


def commands(block: Block) -> list[list[str]]:
    """Return the words of each `gossamer` command of a block of shell or of a shown terminal."""
    prompt = "$ " if block.language == "console" else ""
    found: list[list[str]] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        if not line.startswith(prompt) or "gossamer " not in line:
            continue
        words = shlex.shlex(line.removeprefix(prompt), posix=True, punctuation_chars=True)
        words.whitespace_split = True
        parts = groupby(words, lambda word: bool(set(word) <= set("();<>|&")))
        found += [list(part) for between, part in parts if not between]
    return [part[1:] for part in found if part[0] == "gossamer"]


@cache
def top() -> TyperGroup:
    """Return the command line with all its commands: 0.1 s."""
    made = typer.main.get_command(tree())
    assert isinstance(made, TyperGroup)
    return made


def parse(words: list[str]) -> dict[str, object]:
    """Parse the words as the command line does, and return the options; nothing runs."""
    command: Any = top()
    while True:
        context = command.make_context("gossamer", with_port(words), resilient_parsing=isinstance(command, TyperGroup))
        if not isinstance(command, TyperGroup):
            return context.params
        _, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None


KEYS = {f"{section}.{key}" for section, model in sections().items() for key in keys_of(model)}


@pytest.mark.parametrize("page", of("sh", "console"), ids=name)
def test_the_commands_of_a_page_exist_with_their_options(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.cli.arguments.require_crawl", lambda _: None)
    for block in blocks(page):
        for words in commands(block) if block.language in ("sh", "console") else ():
            try:
                options = parse(words)
            except TyperException as error:
                pytest.fail(f"{page}:{block.line}: gossamer {shlex.join(words)}: {error.format_message()}")
            if words[0] in ("crawl", "resume", "set") and isinstance(sets := options.get("sets"), (list, tuple)):
                assert {str(one).partition("=")[0] for one in sets} <= KEYS, f"{page}:{block.line}"


@pytest.mark.parametrize("words", [["crawl", "--no-such-option"], ["segment", "show", "--no-such-option"]])
def test_what_does_not_exist_is_found(words: list[str]) -> None:
    with pytest.raises(TyperException):
        parse(words)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_says_what_its_blocks_are(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES
    if any(block.language == "python" and not file_of(block) for block in blocks(page)):
        test = ROOT / RUN_ELSEWHERE[name(page)]
        assert Path(name(page)).name in test.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", of("toml"), ids=name)
def test_the_configurations_of_a_page_are_right(page: Path, tmp_path: Path) -> None:
    for number, block in enumerate(blocks(page)):
        if block.language != "toml" or "project" in tomllib.loads(block.text):
            continue
        path = tmp_path / f"{number}.toml"
        path.write_text(block.text)
        for listed in re.findall(r'"([\w-]+\.txt)"', block.text):
            (tmp_path / listed).touch()
        configure(path)


def test_commands_named_in_the_text_exist() -> None:
    known = set(top().commands) | {"COMMAND", "help"}
    for page in PAGES:
        named = set(re.findall(r"`(?:\$ )?gossamer ([a-z]+)", page.read_text(encoding="utf-8")))
        assert named <= known, name(page)


ADVICE = ROOT / "src/gossamer/config/synonyms.toml"
NAMED = re.compile(r"gossamer ((?:[a-z]+ ){1,2})((?:[^`;:,\n]|, (?=--))*)")
"""Matches a command in a sentence with the words behind it, up to what ends the clause."""


@pytest.mark.parametrize("page", [*PAGES, ADVICE], ids=name)
def test_options_and_keys_named_in_the_text_exist(page: Path) -> None:
    """Those in the advice that answers a wrong word, too: what it says can be typed."""
    text = page.read_text(encoding="utf-8")
    spans = [text] if page == ADVICE else re.findall(r"`[^`\n]+`", text)
    for named, rest in (found for span in spans for found in NAMED.findall(span)):
        command: Any = top()
        for word in named.split():
            command = command.commands.get(word) if isinstance(command, TyperGroup) else command
            if command is None:
                break
        known = {option for one in getattr(command, "params", []) for option in one.opts} | {"--help"}
        typed = set(re.findall(r"(?<![\w'])--[a-z][a-z-]+", rest.partition(" and ")[0]))
        assert command is None or isinstance(command, TyperGroup) or typed <= known, f"gossamer {named}{rest}"
    assert set(re.findall(r"--set '?((?!section)(?:[a-z]+)\.[a-z_]+)=", text)) <= KEYS | simulated(text)


def simulated(text: str) -> set[str]:
    """Return the keys of a model that a text sets, which are no keys of a crawl."""
    return set(re.findall(r"--set '?((?:web|machine|simweb|revisits)\.\w+)=", text))


def test_only_the_page_on_installing_shows_what_needs_a_package_index() -> None:
    """No package index has Gossamer yet: these commands fail, and say so where they are shown."""
    from_index = re.compile(r"(?:pip|pipx|tool) install '?gossamer\b")
    pages = [*PAGES, *ROOT.glob("deploy/*.*"), *ROOT.glob("examples/*")]
    shown = [name(page) for page in pages if page.is_file() and from_index.search(page.read_text(encoding="utf-8"))]
    assert shown == ["docs/how-to/install.md"]
    published = (ROOT / shown[0]).read_text(encoding="utf-8").partition("## Once Gossamer is published")[2]
    assert len(from_index.findall(published)) == 2


def test_the_site_lists_every_page_once() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    listed = [place for entry in nav for part in entry.values() for place in places(part)]
    assert len(listed) == len(set(listed))
    expected = {name(page).removeprefix("docs/") for page in PAGES if page.name != "README.md"}
    assert {place for place in listed if place.partition("/")[0] not in ("decisions", "promises.md")} == expected


def places(part: object) -> list[str]:
    if isinstance(part, str):
        return [part]
    assert isinstance(part, list)
    return [place for entry in part for value in entry.values() for place in places(value)]


def test_messages_and_comments_name_pages_that_exist() -> None:
    files = [*ROOT.glob("src/**/*.py"), *(one for one in ROOT.glob("deploy/**/*") if one.is_file())]
    named = {(path, file) for file in files for path in re.findall(r"\bdocs/[\w/-]+\.md", file.read_text("utf-8"))}
    assert named
    assert [pair for pair in named if not (ROOT / pair[0]).exists()] == []
