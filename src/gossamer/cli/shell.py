"""Shell: the commands `fetch` and `shell`: one page as a crawl fetches it, printed or explored at a prompt."""

from __future__ import annotations

import asyncio
import json
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer, echo

from gossamer.cli.arguments import ConfigFile, Sets
from gossamer.cli.crawl import with_flags
from gossamer.cli.output import Exit, complain, harmless
from gossamer.config import configure
from gossamer.config.lists import check_lists
from gossamer.config.seeds import check_addresses, seed
from gossamer.model.errors import ConfigError
from gossamer.model.words import count, counted
from gossamer.world.loop import loop_factory

if TYPE_CHECKING:
    from gossamer.api.fetching import Fetched
    from gossamer.config import Config

commands = Typer()
FLAGS = ("contact", "hosts", "dns", "allow_private", "no_robots", "hosts_store", "scope", "include", "exclude")
"""Options of `crawl` that apply to one page."""
SHOWN_MAX = 50
"""Links or elements that the shell lists at most."""
Url = Annotated[str, Argument(metavar="URL", help="The page.")]
Css = Annotated[list[str] | None, Option("--css", metavar="SELECTOR", help="Try a CSS selector (repeatable).")]
XPath = Annotated[list[str] | None, Option("--xpath", metavar="EXPR", help="Try an XPath expression (repeatable).")]
HELP = (pkgutil.get_data("gossamer.cli", "shell.txt") or b"").decode()


@commands.command("fetch")
@with_flags(*FLAGS)
def fetch(
    url: Url,
    headers: Annotated[bool, Option("--headers", help="Print status and headers.")] = False,
    text: Annotated[bool, Option("--text", help="Print the main text.")] = False,
    markdown: Annotated[bool, Option("--markdown", help="Print the main content as Markdown.")] = False,
    links: Annotated[bool, Option("--links", help="Print links, and why one would not be followed.")] = False,
    config: ConfigFile = None,
    sets: Sets = None,
    **options: object,
) -> int:
    """Fetch one page as a crawl does, and print it.

    Robots.txt, delays and the configuration apply. Nothing is saved.
    """
    fetched = fetch_page(url, configure_page(config, options, sets))
    if not (headers or text or markdown or links):
        sys.stdout.flush()
        _write_body(fetched)
    wanted = ((headers, _headers), (text, _text), (markdown, _markdown), (links, _links))
    for lines in (lines for asked, lines in wanted if asked):
        for line in lines(fetched):
            echo(line)
    return _status(fetched)


@commands.command("shell")
@with_flags(*FLAGS)
def shell(
    url: Url,
    run: Annotated[bool, Option("--run", help="Print all sections instead of a prompt.")] = False,
    css: Css = None,
    xpath: XPath = None,
    config: ConfigFile = None,
    sets: Sets = None,
    **options: object,
) -> int:
    """Fetch one page as a crawl does, and explore it.

    Without a terminal it prints headers, links, main text and what the selectors find.
    """
    rules = configure_page(config, options, sets)
    fetched = fetch_page(url, rules)
    tried = [("css", one) for one in css or ()] + [("xpath", one) for one in xpath or ()]
    if run or not (sys.stdin.isatty() and sys.stdout.isatty()):
        for title, lines in (("Headers", _headers), ("Links", _links), ("Main text", _text)):
            _section(title, lines(fetched))
        for kind, selector in tried:
            _section(f"{kind} {selector}", _select(fetched, kind, selector))
        if rules.extract.rules:
            _section("Items", _items(fetched, rules))
        return _status(fetched)
    import readline  # noqa: F401 - lines can be edited and repeated

    echo(f"{harmless(fetched.page.url)} {fetched.page.status or fetched.page.outcome}; help lists the commands")
    return prompt(fetched, rules, lambda: input("> "))


def prompt(fetched: Fetched, config: Config, read: Callable[[], str]) -> int:
    """Carry out lines until `quit` or the end of input."""
    while True:
        try:
            word, _, rest = read().strip().partition(" ")
        except (EOFError, KeyboardInterrupt):
            return Exit.FINISHED
        if word in ("quit", "exit"):
            return Exit.FINISHED
        try:
            if word == "fetch":
                fetched = fetch_page(rest.strip(), config)
                echo(f"{harmless(fetched.page.url)} {fetched.page.status or fetched.page.outcome}")
            else:
                for line in _command_lines(word, rest.strip(), fetched, config):
                    echo(line)
        except (ConfigError, ValueError) as error:
            echo(harmless(error))


def _command_lines(word: str, rest: str, fetched: Fetched, config: Config) -> Iterator[str]:
    if word in ("css", "xpath", "jsonpath", "re"):
        yield from _select(fetched, word, rest)
    elif word == "links":
        yield from (line for line in _links(fetched) if rest in line)
    elif word == "items":
        yield from _items(fetched, config)
    elif word in (plain := {"headers": _headers, "text": _text, "markdown": _markdown}):
        yield from plain[word](fetched)
    elif word:
        yield from HELP.splitlines()


def configure_page(file: Path | None, options: dict[str, object], sets: list[str] | None) -> Config:
    """Return the configuration of a page's crawl. Raises ConfigError."""
    config = configure(file, options=options, sets=sets or ())
    check_lists(config)
    return config


def fetch_page(url: str, config: Config) -> Fetched:
    """Fetch one page. Raises ConfigError: it could not be requested."""
    from gossamer.api.fetching import fetch_of
    from gossamer.cli.checking import advise_login

    advise_login([url])
    address = seed(url, "URL")
    check_addresses(config, [address])  # Before `Crawler`, whose errors name keywords of Python.
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(fetch_of(address, config))


def _status(fetched: Fetched) -> int:
    page = fetched.page
    if page.outcome == "fetched":
        return Exit.FINISHED
    complain(f"{page.url}: {page.outcome}{f': {page.row.error}' if page.row.error else ''}")
    return Exit.NOTHING


def _section(title: str, lines: Iterator[str]) -> None:
    echo(f"== {title}")
    for line in lines:
        echo(line)
    echo("")


def _headers(fetched: Fetched) -> Iterator[str]:
    page = fetched.page
    yield from (f"{harmless(url)} redirects" for url in fetched.redirects)
    yield f"{harmless(page.url)} {page.outcome} {page.status or ''}".rstrip()
    yield from (f"{harmless(name)}: {harmless(value)}" for name, value in page.headers)


def _links(fetched: Fetched) -> Iterator[str]:
    yield f"{counted(len(fetched.links), 'link')}, {sum(not one.reason for one in fetched.links)} to follow"
    for one in fetched.links:
        link = one.link
        words = f"  {harmless(one.link.anchor_text)}" if one.link.anchor_text else ""
        yield f"{'skip  ' if one.reason else 'follow'}  {link.link_type}  {harmless(link.url)}{words}"
        if one.reason:
            yield f"          {harmless(one.reason)}"


def _text(fetched: Fetched) -> Iterator[str]:
    text = fetched.page.columns.get("main_text")
    yield from _printable(text if isinstance(text, str) and text else fetched.page.text)


def _markdown(fetched: Fetched) -> Iterator[str]:
    yield from _printable(str(fetched.page.columns.get("markdown") or fetched.page.text))


def _printable(text: str) -> Iterator[str]:
    """Yield the lines of a text without control characters for a terminal."""
    for line in text.splitlines():
        yield "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in line)


def _write_body(fetched: Fetched) -> None:
    if sys.stdout.isatty():
        for line in _printable(fetched.page.body.decode("utf-8", "replace")):
            echo(line)
        return
    with fetched.page.open() as body:
        while piece := body.read(1 << 20):
            sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _select(fetched: Fetched, kind: str, selector: str) -> Iterator[str]:
    page = fetched.page
    try:
        found = page.re(selector) if kind == "re" else getattr(page, kind)(selector)
    except ValueError as error:  # The page is not of that kind.
        yield harmless(error)
        return
    yield f"{count(len(found))} found"
    for one in found[:SHOWN_MAX]:
        yield harmless(one) if isinstance(one, str) else f"{harmless(one.text)}  {harmless(one.html)}"


def _items(fetched: Fetched, config: Config) -> Iterator[str]:
    from gossamer.api.fetching import items_of

    for table, rows, problems in items_of(fetched.page, config):
        yield f"{table}: {counted(len(rows), 'item')}"
        yield from (harmless(json.dumps(row, default=str, ensure_ascii=False)) for row in rows[:SHOWN_MAX])
        yield from (f"{harmless(one.module)}: {harmless(one.error)}" for one in problems)
