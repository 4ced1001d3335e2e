"""Items in crawls: their tables, exports, counts and changes, and the same items from the archive without a request."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer import Crawler
from gossamer.api.extracting import extract_of
from gossamer.api.reading import FieldChange, changes
from gossamer.api.status import status_of
from gossamer.config import configure
from gossamer.config.gather import reopen
from gossamer.features.revisit.revisiting import items_digest
from gossamer.model.errors import ConfigError
from gossamer.model.pages import Findings
from tests import commands
from tests.ring.crawls import OWN, Crawled, crawl, rows
from tests.ring.hostile import HostileServer, whole
from tests.ring.test_revisits import QUICK, Site

RULES = """
[extract.book]
urls = ["/book/"]
[extract.book.fields]
title = "h1"
price = { css = ".price", type = "number" }
isbn = { jsonpath = "$[*].isbn", type = "integer", required = true }
tags = { css = ".tag", list = true }
links = { css = ".tag", list = true, fields = { name = {}, to = { type = "url" } } }
home = { xpath = "//a[last()]/@href", type = "url" }
[extract.tag]
urls = ["/book/"]
items = ".tag"
identity = "name"
fields = { name = {}, size = { attribute = "data-size", type = "integer" } }
"""


def book(number: int, price: str, isbn: str = "") -> bytes:
    isbn = isbn or str(number)
    return (
        f'<!doctype html><script type="application/ld+json">{{"isbn": "{isbn}"}}</script><h1>Book {number}</h1>'
        f'<p class=price>{price}</p><a class=tag href="t" data-size="{number}">a</a><a href="/">home</a>'
    ).encode()


PAGES = {
    "/": b"<a href=/book/1>1</a><a href=/book/2>2</a><a href=/book/3>3</a><a href=/book/4>4</a><a href=/x.png>x</a>",
    "/book/1": book(1, "£51.77"), "/book/2": book(2, "1.234,50 EUR"), "/book/3": book(3, "on request"),
    "/book/4": book(4, "1", "none"),
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    answers = {path: whole(body) for path, body in PAGES.items()}
    with HostileServer({**answers, "/x.png": whole(b"no picture", "image/png")}) as server:
        yield server


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("rules") / "books.toml"
    file.write_text(RULES)
    return file


@pytest.fixture(scope="module")
def crawled(server: HostileServer, rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    directory = tmp_path_factory.mktemp("crawled") / "crawl"
    config = configure(rules, options={"allow_private": True}, sets=OWN, seeds=(server.root,))
    crawler = Crawler(output=directory, config=config)
    found = Crawled(directory)
    found.end = asyncio.run(crawler.run())
    found.status = crawler.status()
    assert found.critical() == ""
    return found


@pytest.mark.promise(
    "Files and exports", "Rules extract items into tables of their own, with the columns of their fields."
)
def test_items_are_a_table_with_the_columns_of_their_fields(crawled: Crawled, server: HostileServer) -> None:
    found = sorted(rows(crawled.directory / "items/book"), key=lambda row: str(row["url"]))
    assert [row["title"] for row in found] == ["Book 1", "Book 2", "Book 3"], "the fourth lacks what is required"
    assert [row["price"] for row in found] == [51.77, 1234.5, None]
    first = found[0]
    assert (first["url"], first["key"], first["item"]) == (f"{server.root}book/1", f"{server.root}book/1", "0")
    assert (first["isbn"], first["tags"], first["home"]) == (1, ["a"], server.root)
    assert json.loads(str(first["links"])) == [{"name": "a", "to": f"{server.root}book/t"}]
    pages = {row["url"]: row["fetched_at"] for row in crawled.rows}
    assert all(pages[row["url"]] == row["fetched_at"] for row in found)
    schema = pq.read_schema(next((crawled.directory / "items/book").glob("*.parquet")))
    assert [str(schema.field(name).type) for name in ("title", "price", "isbn", "tags")] == [
        "string", "double", "int64", "list<element: string>",
    ]  # fmt: skip
    assert {(row["item"], row["name"], row["size"]) for row in rows(crawled.directory / "items/tag")} >= {("a", "a", 1)}


def test_status_and_report_count_what_fails_by_field(crawled: Crawled) -> None:
    modules = crawled.status["modules"]
    assert isinstance(modules, dict)
    assert (modules["items/book.price"]["pages"], modules["items/book.price"]["failed"]) == (4, 1)
    assert modules["items/book.isbn"]["error"] == "no number: 'none'"
    assert modules["items/book.title"]["failed"] == 0
    told = commands.run("report", str(crawled.directory))[1]
    assert re.search(r"items/book\.price +1 +4 +", told), "of a module: failures, and pages"
    log = [json.loads(line) for line in (crawled.directory / "logs/info.log").read_text().splitlines()]
    assert {(one["field"], one["error"]) for one in log if one["event"] == "field_invalid"} >= {
        ("items/book.price", "no number: 'on request'")
    }


def test_a_rule_that_never_matches_is_named(server: HostileServer, tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(
        "[extract.none]\nitems = '.nothing'\nfields = { a = 'b' }\n"
        "[extract.elsewhere]\nurls = ['/nowhere/']\nfields = { a = 'h1' }\n"
        "[extract.book]\nurls = ['/book/']\nfields = { title = 'h1' }\n"
    )
    config = configure(file, options={"allow_private": True}, sets=OWN, seeds=(server.root,))
    crawler = Crawler(output=tmp_path / "crawl", config=config)
    asyncio.run(crawler.run())
    said = ["rule items/none found no item on 5 pages", "rule items/elsewhere found no item on 5 pages"]
    modules = crawler.status()["modules"]
    assert isinstance(modules, dict)
    named = [str(one["unmatched"]) for one in modules.values() if one["unmatched"]]
    assert sorted(named) == sorted(f"{one}: see its selector and urls" for one in said)
    directory = str(tmp_path / "crawl")
    for told in (commands.run("status", directory)[1], commands.run("report", directory)[1]):
        assert all(one in told for one in said)
        assert "rule items/book" not in told
    page = tmp_path / "report.html"
    commands.run("report", directory, "--html", str(page))
    assert said[0] in page.read_text()


def test_every_export_takes_the_table(crawled: Crawled, tmp_path: Path) -> None:
    directory = str(crawled.directory)
    status, out, _ = commands.run("export", directory, "--to", "jsonl", "--table", "items/book", "-o", "-")
    assert status == 0
    assert {json.loads(line)["price"] for line in out.splitlines()} == {51.77, 1234.5, None}
    target = tmp_path / "books.csv"
    assert commands.run("export", directory, "--to", "csv", "--table", "items/book", "-o", str(target))[0] == 0
    assert target.read_text().startswith("url,key,fetched_at,item,title,price,isbn,")
    assert commands.run("export", directory, "--to", "parquet", "-o", str(tmp_path / "all"))[0] == 0
    assert len(rows(tmp_path / "all/items/book")) == 3
    status, _, told = commands.run("export", directory, "--to", "jsonl", "--table", "items/bok", "-o", "-")
    assert (status, "items/book" in told) == (2, True)
    assert "sound" in commands.run("verify", directory, "--deep")[1]


@pytest.mark.promise(
    "Files and exports", "`gossamer extract` gives the items that a crawl gives, from its archive alone."
)
def test_extract_gives_the_same_items_without_a_request(
    crawled: Crawled, server: HostileServer, rules: Path, tmp_path: Path
) -> None:
    before = server.counts.total()
    status, _, told = commands.run("extract", str(crawled.directory), "-c", str(rules), "-o", str(tmp_path))
    assert status == 0
    assert "field items/book.price is missing or invalid on 1 of 4 pages" in told
    assert f"{tmp_path} has 3 rows of items/book, 4 rows of items/tag, from 5 pages" in told
    assert server.counts.total() == before
    for name in ("book", "tag"):
        [ours] = (crawled.directory / "items" / name).glob("*.parquet")
        again = tmp_path / "items" / name / "extracted.parquet"
        assert pq.read_schema(again) == pq.read_schema(ours)
        assert sorted(map(str, rows(again.parent))) == sorted(map(str, rows(ours.parent)))


def test_a_crawl_without_rules_gets_tables_later(server: HostileServer, rules: Path, tmp_path: Path) -> None:
    directory = tmp_path / "c"
    crawl((server.root,), directory, *OWN)
    assert not (directory / "items").exists()
    status, _, told = commands.run("extract", str(directory))
    assert (status, "add [extract.NAME]" in told) == (2, True)
    for _ in range(2):  # A second run replaces what the first one wrote.
        assert commands.run("extract", str(directory), "-c", str(rules), "--quiet")[0] == 0
    out = commands.run("export", str(directory), "--to", "jsonl", "--table", "items/book", "-o", "-")[1]
    assert len(out.splitlines()) == 3
    assert "sound" in commands.run("verify", str(directory), "--deep")[1]


def test_extract_does_not_write_into_a_table_of_the_crawl(crawled: Crawled, rules: Path) -> None:
    with pytest.raises(ConfigError, match="is a table of the crawl itself"):
        extract_of(crawled.directory, configure(rules))


def test_a_wrong_rule_is_one_line_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('[seeds]\n[extract.book]\nfields = { title = { css = "h1[" } }\n')
    with pytest.raises(ConfigError) as told:
        configure(file)
    assert str(told.value) == (
        f"{file} line 3: extract.book.fields.title: css: 'h1[' is not a CSS selector that lexbor knows"
    )


@dataclass
class Repricing(Site):
    """Another price from the second visit on; `seen` when the page is requested once more."""

    seen: asyncio.Event = field(default_factory=asyncio.Event)

    def reply(self, path: str, headers: dict[str, str]) -> bytes:
        answer = super().reply(path, headers)
        if path == "/book/1":
            self.pages[path] = book(1, "£12.50")
            if sum(asked == path for asked, _, _ in self.asked) > 2:
                self.seen.set()
        return answer


@pytest.mark.promise(
    "Continuous crawls", "`gossamer changes` lists the fields of items that changed, with both values."
)
@pytest.mark.promise(
    "Continuous crawls", "A page with another field of an item has changed, also if its words are the same."
)
def test_changed_fields_are_listed_with_both_values(rules: Path, tmp_path: Path) -> None:
    site = Repricing({"/": b"<a href=/book/1>1</a>", "/book/1": book(1, "£10.00")})
    directory = tmp_path / "c"

    async def run() -> None:
        server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
        site.port = server.sockets[0].getsockname()[1]
        config = configure(rules, options={"allow_private": True}, sets=QUICK, seeds=(f"{site.origin}/",))
        crawler = Crawler(output=directory, config=config)
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            task = group.create_task(crawler.run())
            await site.seen.wait()
            crawler.stop()
            await task
        server.close()

    asyncio.run(run())
    assert reopen(directory / "crawl.toml").extract == configure(rules).extract
    found = [one for one in changes(directory) if isinstance(one, FieldChange)]
    assert [(one.items, one.item, one.field, one.before, one.after) for one in found] == [
        ("book", "0", "price", "10.0", "12.5")
    ]
    _, out, _ = commands.run("changes", str(directory))
    assert f"field     {site.origin}/book/1  book 0: price changed from 10.0 to 12.5" in out
    _, out, _ = commands.run("changes", str(directory), "--json")
    assert {"field", "appeared"} <= {json.loads(line)["change"] for line in out.splitlines()}
    seen = [row["change"] for row in rows(directory / "pages") if str(row["url"]).endswith("/book/1")]
    assert seen[:2] == ["appeared", "changed"], "only a digit differs"
    revisits = status_of(directory)["revisits"]
    assert isinstance(revisits, dict)
    assert revisits["changes_seen"] == seen.count("changed")
    assert not list(changes(directory, since="2100-01-01"))


def items_of(rows: list[dict[str, object]], *fields: str) -> Findings:
    return Findings(rows={"items/book": rows, "tags": [{"tag": "a"}]}, fields=list(fields))


def test_items_are_compared_by_their_fields_and_values() -> None:
    name, price = "items/book.name", "items/book.price"
    one = items_digest(items_of([{"name": "a", "price": 1.0}, {"name": "b", "price": 2.0}], name, price))
    assert one == items_digest(items_of([{"name": "a", "price": 1.0}, {"name": "b", "price": 2.0}], name, price))
    dearer = items_digest(items_of([{"name": "a", "price": 1.5}, {"name": "b", "price": 2.0}], name, price))
    assert (dearer[0], dearer[1] == one[1]) == (one[0], False)
    gone = items_digest(items_of([], name, price))
    assert (gone[0], gone[1] == one[1]) == (one[0], False)
    assert items_digest(items_of([{"name": "a"}, {"name": "b"}], name))[0] != one[0]
    # Functions yield items without naming their fields; a table without items does not exist then.
    two = items_digest(Findings(rows={"items/a": [{"x": 1}], "items/b": [{"x": 1}]}))
    less = items_digest(Findings(rows={"items/a": [{"x": 1}]}))
    assert (two[0], two[1] == less[1]) == (less[0], False)
    assert items_digest(Findings(rows={"tags": []})) == items_digest(None) == (0, 0)


def test_items_with_an_identity_may_change_places() -> None:
    rows: list[dict[str, object]] = [{"name": "a", "item": "a"}, {"name": "\ud800", "item": "b"}]
    assert items_digest(items_of(rows)) == items_digest(items_of(rows[::-1]))
    numbered: list[dict[str, object]] = [{"name": "a"}, {"name": "b"}]
    assert items_digest(items_of(numbered)) != items_digest(items_of(numbered[::-1]))


def test_pages_of_a_crawler_have_the_selectors(server: HostileServer, tmp_path: Path) -> None:
    async def titles() -> dict[str, object]:
        found: dict[str, object] = {}
        config = configure(options={"allow_private": True}, sets=OWN, seeds=(f"{server.root}book/1",))
        async with Crawler(output=tmp_path / "c", config=config) as crawler:
            async for page in crawler:
                if "/book/1" in page.url:
                    found = {"css": page.css("h1").text, "xpath": page.xpath("//h1").text, "re": page.re("£([0-9.]+)"),
                             "jsonpath": page.jsonpath("$[0].isbn").value, "json_ld": page.json_ld}  # fmt: skip
        return found

    assert asyncio.run(titles()) == {
        "css": "Book 1", "xpath": "Book 1", "re": ["51.77"], "jsonpath": "1", "json_ld": [{"isbn": "1"}]
    }  # fmt: skip
