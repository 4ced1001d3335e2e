"""The guide "Move a Scrapy spider": its spiders and their replacements give the same items, in fewer lines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from gossamer.config.toml import to_toml
from tests.ring.crawls import OWN, Crawled, rows
from tests.ring.crawls import crawl as crawl_sets
from tests.ring.hostile import HostileServer, whole

PAGE = Path(__file__).parents[2] / "docs/how-to/from-scrapy.md"
BLOCKS = {
    name: text
    for text, name in re.findall(
        r"^```(?:python|toml)\n(# (\S+)\n.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
}
"""The files that the guide shows."""
PAGES, QUOTES = 3, 4


def quote(number: int) -> str:
    author = f"Author {number % 3}"
    return (
        f'<div class="quote"><span class="text">\N{LEFT DOUBLE QUOTATION MARK}Quote {number}</span>'
        f'<span>by <small class="author">{author}</small> <a href="/author/{number % 3}/">(about)</a></span>'
        f'<div class="tags">Tags: <a class="tag" href="/tag/a/">a</a> <a class="tag" href="/tag/b/">t{number}</a>'
        "</div></div>"
    )


def pages() -> dict[str, bytes]:
    found: dict[str, str] = {}
    for n in range(1, PAGES + 1):
        listed = "".join(quote(10 * n + i) for i in range(QUOTES))
        following = f'<li class="next"><a href="/page/{n + 1}/">Next</a></li>' if n < PAGES else ""
        found[f"/page/{n}/"] = f"<title>Quotes</title>{listed}<ul class=pager>{following}</ul>"
        shown = "".join(
            f'<article class="product_pod"><h3><a href="/catalogue/book-{n}{i}/index.html">Book</a></h3></article>'
            for i in range(QUOTES)
        )
        more = f'<li class="next"><a href="/shelf-{n + 1}.html">next</a></li>' if n < PAGES else ""
        found[f"/shelf-{n}.html"] = f"<title>Shelf {n}</title>{shown}<ul>{more}</ul>"
        for i in range(QUOTES):
            stock = f"<p class='instock availability'>In stock ({n * i} available)</p>" if i else ""
            found[f"/catalogue/book-{n}{i}/index.html"] = (
                f"<title>Book</title><h1>Book {n}{i}</h1><p class='price_color'>£{n}.{i}5</p>{stock}"
                f"<table><tr><th>UPC</th><td>upc{n}{i}</td></tr><tr><th>Tax</th><td>£0.00</td></tr></table>"
            )
    for n in range(3):
        found[f"/author/{n}/"] = (
            f'<h3 class="author-title">Author {n}\n</h3><p>Born: <span class="author-born-date">March 1{n}, 1879</span>'
            f'</p><div class="author-description">\n  He wrote {n}.\n</div>'
        )
    return {path: text.encode() for path, text in found.items()}


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer({path: whole(body) for path, body in pages().items()}) as server:
        yield server


CASES = [
    ("quotes_spider.py", "quotes.toml", "page/1/", "quote"),
    ("author_spider.py", "authors.toml", "page/1/", "author"),
    ("book_spider.py", "books.toml", "shelf-1.html", "book"),
]


def crawl(server: HostileServer, tmp_path: Path, config: str, seed: str, monkeypatch: pytest.MonkeyPatch) -> Crawled:
    (tmp_path / "books.py").write_text(BLOCKS["books.py"])
    monkeypatch.chdir(tmp_path)
    tables = tomllib.loads(BLOCKS[config])
    return crawl_sets((server.root + seed,), tmp_path / "c", *OWN, *assignments(tables))


def assignments(tables: dict[str, dict[str, object]]) -> list[str]:
    return [f"{section}.{key}={to_toml(value)}" for section, table in tables.items() for key, value in table.items()]


def items(directory: Path, name: str) -> list[dict[str, object]]:
    places = ("url", "key", "fetched_at", "item")
    found = [{key: row[key] for key in row if key not in places} for row in rows(directory / "items" / name)]
    return sorted(found, key=json.dumps)


def scrapy(server: HostileServer, tmp_path: Path, spider: str, seed: str) -> list[dict[str, object]]:
    """Run a spider of the guide with Scrapy itself on the local pages."""
    file = tmp_path / spider
    file.write_text(re.sub(r"start_urls = \[.*\]", f'start_urls = ["{server.root}{seed}"]', BLOCKS[spider]))
    target = tmp_path / "scrapy.jsonl"
    command = [sys.executable, "-m", "scrapy", "runspider", str(file), "-o", str(target), "-s", "LOG_LEVEL=ERROR"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=100, capture_output=True)
    return sorted((json.loads(line) for line in target.read_text().splitlines()), key=json.dumps)


EXPECTED: dict[str, list[dict[str, object]]] = {
    "quote": [
        {"text": f"\N{LEFT DOUBLE QUOTATION MARK}Quote {10 * n + i}", "author": f"Author {(10 * n + i) % 3}",
         "tags": ["a", f"t{10 * n + i}"]}
        for n in range(1, PAGES + 1) for i in range(QUOTES)
    ],
    "author": [{"name": f"Author {n}", "birthdate": f"March 1{n}, 1879", "bio": f"He wrote {n}."} for n in range(3)],
    "book": [
        {"title": f"Book {n}{i}", "price": float(f"{n}.{i}5"), "stock": n * i if i else None, "upc": f"upc{n}{i}"}
        for n in range(1, PAGES + 1) for i in range(QUOTES)
    ],
}  # fmt: skip


@pytest.mark.parametrize(("spider", "config", "seed", "name"), CASES)
def test_the_replacement_of_a_spider_gives_its_items(
    server: HostileServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spider: str,
    config: str,
    seed: str,
    name: str,
) -> None:
    crawled = crawl(server, tmp_path, config, seed, monkeypatch)
    assert crawled.critical() == ""
    found = items(tmp_path / "c", name)
    assert found == sorted(EXPECTED[name], key=json.dumps)
    if find_spec("scrapy") is not None:
        assert found == scrapy(server, tmp_path, spider, seed)


def test_the_replacements_have_fewer_lines() -> None:
    ours = {"quotes_spider.py": ["quotes.toml"], "author_spider.py": ["authors.toml"],
            "book_spider.py": ["books.py", "books.toml"]}  # fmt: skip

    def lines(name: str) -> int:
        return len([line for line in BLOCKS[name].splitlines() if line.strip() and not line.startswith("#")])

    assert {name: sum(map(lines, files)) < lines(name) for name, files in ours.items()} == dict.fromkeys(ours, True)


def test_what_a_function_asks_for_first_is_fetched_first(
    server: HostileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "order.py").write_text(
        "from gossamer import Follow, extractor\n\n\n@extractor('none')\ndef order(page):\n"
        "    for i, level in enumerate((6, 2, 5, 3)):\n"
        "        yield Follow(page.css('h3 a').urls[i], priority=level)\n"
    )
    monkeypatch.chdir(tmp_path)
    crawled = crawl_sets(
        (server.root + "shelf-3.html",), tmp_path / "c", *OWN, 'process.types={"text/html"=[]}',
        'process.modules=["order.py:order"]', "politeness.per_host=1", "frontier.level_bias=1000000",
    )  # fmt: skip
    assert [str(row["url"]).rpartition("book-")[2][:2] for row in crawled.rows[1:]] == ["31", "33", "32", "30"]
    assert {row["link_type"] for row in crawled.rows[1:]} == {"request"}
