"""Items: what rules find on one page, what does not fit, what selectors refuse, and what hostile pages cost."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime

import pytest

from gossamer.model.errors import ConfigError
from gossamer.model.pages import Findings, Page
from gossamer.options import convert
from gossamer.stages.process.expressions import SelectError, compile_selector
from gossamer.stages.process.html import is_regular
from gossamer.stages.process.items import Follow, ItemPage, Items, date_of, extractor, number_of, truth_of
from gossamer.stages.process.options import ExtractOptions, ProcessOptions
from gossamer.stages.process.own import processing_module
from gossamer.stages.process.selectors import XPATH_ELEMENTS_MAX, SelectorSource

BOOKS = """<!doctype html><base href="/shop/"><title>Books</title>
<script type="application/ld+json">{"@type": "ItemList", "numberOfItems": 2, "open": true}</script>
<div class="book" data-sku="a1"><h2> The <b>first</b>\n one</h2><span class="price">£1,051.77</span>
 <a class="tag" href="t/x">x</a><a class="tag" href="t/y">y</a><time>2026-01-31</time></div>
<div class="book" data-sku="b2"><h2>Second</h2><span class="price">on request</span></div>
<div class="book"><h2>Third</h2></div>"""


def page(body: str, media_type: str = "text/html", url: str = "http://e.example/list") -> Page:
    return Page(url, media_type, "utf-8", (), body.encode())


def found(rules: str, body: str = BOOKS, media_type: str = "text/html", **options: int) -> Findings:
    module = Items(convert(ExtractOptions, tomllib.loads(rules)).rules, ProcessOptions(**options))
    findings = Findings()
    if module.wants(media_type):
        module.process(page(body, media_type), findings)
    return findings


RULES = """
[book]
urls = ["/list$"]
items = ".book"
identity = "sku"
[book.fields]
sku = { attribute = "data-sku", required = true }
title = "h2"
price = { css = ".price", type = "number" }
tags = { css = ".tag", list = true }
links = { css = ".tag", list = true, fields = { name = {}, to = { type = "url" } } }
added = { css = "time", type = "date" }
markup = { css = "b", type = "html" }
"""


def test_each_element_is_an_item_whose_fields_have_their_types() -> None:
    findings = found(RULES)
    first, second = findings.rows["items/book"]
    assert first == {
        "item": "a1", "sku": "a1", "title": "The first one", "price": 1051.77, "tags": ["x", "y"],
        "links": [{"name": "x", "to": "http://e.example/shop/t/x"}, {"name": "y", "to": "http://e.example/shop/t/y"}],
        "added": datetime(2026, 1, 31, tzinfo=UTC), "markup": "<b>first</b>",
    }  # fmt: skip
    assert second == {
        "item": "b2",
        "sku": "b2",
        "title": "Second",
        "price": None,
        "tags": [],
        "links": [],
        "added": None,
        "markup": None,
    }


def test_what_is_missing_or_does_not_fit_is_counted_by_field() -> None:
    findings = found(RULES)
    assert {one.module: one.error for one in findings.invalid} == {
        "items/book.sku": "missing",
        "items/book.price": "no number: 'on request'",
    }
    names = {"items/book", *(f"items/book.{name}" for name in tomllib.loads(RULES)["book"]["fields"])}
    assert (set(findings.fields), findings.matched) == (names, ["items/book"])
    assert found('[book]\nurls = ["/other"]\nfields = { a = "h2" }') == Findings(fields=["items/book"])


def test_a_page_is_one_item_by_xpath_json_and_regular_expressions() -> None:
    findings = found("""
        [list.fields]
        title = { xpath = "//title/text()" }
        skus = { xpath = "//div/@data-sku", list = true }
        count = { xpath = "count(//div)", type = "integer" }
        size = { jsonpath = "$[*].numberOfItems", type = "integer" }
        open = { jsonpath = "$[0].open", type = "boolean" }
        pound = { re = "£([0-9,.]+)", type = "number" }
        nowhere = { css = "aside" }
    """)
    assert findings.rows["items/list"] == [
        {
            "title": "Books", "skus": ["a1", "b2"], "count": 3, "size": 2, "open": True, "pound": 1051.77,
            "nowhere": None,
        }
    ]  # fmt: skip
    assert findings.invalid == []
    assert found('[list.fields]\nnowhere = "aside"').rows == {"items/list": []}


def test_a_json_document_has_items_too() -> None:
    body = '{"books": [{"name": "One", "price": {"amount": 5}}, {"name": "Two", "tags": [1, 2]}]}'
    rules = """
        [book]
        items = { jsonpath = "$.books[*]" }
        [book.fields]
        name = { jsonpath = "$.name" }
        amount = { jsonpath = "$.price.amount", type = "integer" }
        tags = { jsonpath = "$.tags[*]", type = "integer", list = true }
    """
    assert found(rules, body, "application/json").rows["items/book"] == [
        {"name": "One", "amount": 5, "tags": []},
        {"name": "Two", "amount": None, "tags": [1, 2]},
    ]
    assert found(rules, "no json", "application/json").invalid[0].error.startswith("no JSON")
    assert found(rules, body, "image/png") == Findings()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12), ("£51.77", 51.77), ("1,234", 1234), ("1.234", 1.234), ("1,5 %", 1.5), ("1.234.567", 1234567),
        ("1.234,50 €", 1234.5), ("1,234.50", 1234.5), ("1 234,5", 1234.5), ("1 234 567", 1234567),
        ("1 234 567,89 zł", 1234567.89), ("1 234,500 kg", 1234.5),
        ("1\N{NO-BREAK SPACE}234", 1234), ("-3", -3), ("-£3.50", -3.5), ("\N{MINUS SIGN} 2", -2), ("SKU-12", 12),
        ("12'500", 12500), (7, 7), (2.5, 2.5), ("1.5e6", 1_500_000), ("2,5E-3", 0.0025), ("-1e2", -100), ("3e rang", 3),
        (",89 €", 0.89), ("$.99", 0.99), ("-,50", -0.5), ("-.5", -0.5), ("0,123", 0.123), ("1234,567", 1234.567),
        ("Rs. 1,23,456.00", 123456), ("Rs.500", 500), ("kr.99,95", 99.95), ("12,34,567", 1234567), ("19,- €", 19),
        ("19.\N{EN DASH}", 19), ("\N{EN DASH}5", -5),
        ("\N{FULLWIDTH HYPHEN-MINUS}5", -5), ("$-5", -5), ("-US$ 5.00", -5),
        ("-EUR 5", -5), ("-kr. 99,95", -99.95), ("COVID-19", 19), ("(12)", 12), ("(1,234)", 1234), ("(4.5)", 4.5),
        ("(5 %)", 5), ("(-5.00)", -5), ("1.11000000000000009770", 1.1100000000000001), ("34.992001", 34.992001),
        ("2.109,00 €", 2109), ("MP3 player 12,50 €", 12.5), ("$ 1.144.000", 1144000),
        ("$1\N{NARROW NO-BREAK SPACE}298,00", 1298),
        ("\u0661\u0662", 12),
    ],
)  # fmt: skip
def test_a_number_is_read_as_it_is_written(text: object, number: float) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "", "none", "1_000", "3 of 5", "1" * 300, "1.2.3", "1,2,3.4", "1e400", 9**999, "(5.00)", "($5)",
        "USD (1,234.50)",        "(5 EUR)", "5.00-", "5\N{EN DASH}10", "Price - 5.00",
        "- EUR 5", "192.168.1.1", "10.20.2024", "1,234,56", "12,34,56",
        "0,123,456", "1.234,567.8", "12 34", "1 2345", "1,234 567", "v1.5", "10²", "35€99", "$119. 95",
        "5..10", "01,234.50",
    ],
)  # fmt: skip
def test_what_is_not_one_number_is_none(text: object) -> None:
    with pytest.raises(ValueError, match="number"):
        number_of(text)
    with pytest.raises(ValueError, match="whole"):
        number_of("2.5", whole=True)
    assert number_of("12,345", whole=True) == 12345
    assert number_of("1e3", whole=True) == 1000
    for much in (str(2**63), 2**63, "1e30"):
        with pytest.raises(ValueError, match="64 bits"):
            number_of(much, whole=True)


def test_dates_and_truth_values() -> None:
    assert date_of("Sat, 31 Jan 2026 12:00:00 GMT") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert date_of("March 14, 1879", "%B %d, %Y") == datetime(1879, 3, 14, tzinfo=UTC)
    assert truth_of("Yes")
    assert not truth_of(False)
    for wrong in ("31.1.", "x" * 300):
        with pytest.raises(ValueError, match="no date"):
            date_of(wrong)
    with pytest.raises(ValueError, match="neither true nor false"):
        truth_of("perhaps")


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("20241005T123000Z", "2024-10-05T12:30:00+00:00"), ("2024-W40-6", "2024-10-05T00:00:00+00:00"),
        ("2024-10-05T12:30:00.123456Z", "2024-10-05T12:30:00.123456+00:00"),
        ("2024-10-05 UTC", "2024-10-05T00:00:00+00:00"),
        ("2024-10-05T12:30:00,5 EST", "2024-10-05T12:30:00.500000-05:00"),
        ("2024/10/05 12:30", "2024-10-05T12:30:00+00:00"),
        ("2024-10-05t12:30:00z", "2024-10-05T12:30:00+00:00"), ("2024-10-05 12:30 +0200", "2024-10-05T12:30:00+02:00"),
        ("2024-10-05T12:30:00+02:00[Europe/Berlin]", "2024-10-05T12:30:00+02:00"),
        ("2024-10-05T12:30:00\N{MINUS SIGN}05:00", "2024-10-05T12:30:00-05:00"),
        ("Sat, 05 Oct 2024 12:30:00 +0200 [Europe/Berlin]", "2024-10-05T12:30:00+02:00"),
        ("2024-10-05 10:30 PM EST", "2024-10-05T22:30:00-05:00"),
        ("Oct 5, 2024, 10:30 p.m.", "2024-10-05T22:30:00+00:00"),
        ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37+00:00"),
        ("Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37+00:00"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59+00:00"),
    ],
)  # fmt: skip
def test_a_date_is_read_to_its_end(text: str, iso: str) -> None:
    assert date_of(text).isoformat() == iso


@pytest.mark.parametrize(
    "text",
    [
        "2024-10-05T12:30:00[Europe/Berlin]", "2024-10-05T12:30 and more", "2024-10-05 - 2024-10-07", "1710101012345",
        "2024-10-05T12:30:00Z or later", "Sat, 05 Oct 2024 12:30:00 FOO", "5 Oct 2024 12:30 Uhr", "2024-02-30",
        "Sat, 05 Oct 2024 12:30:00 (CEST)", "2024-10-05 10:30 PM FOO", "05/10/2024", "10", "2024-10",
    ],
)  # fmt: skip
def test_a_date_that_is_not_read_to_its_end_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="no date"):
        date_of(text)


def test_an_empty_reference_is_the_page() -> None:
    rules = "[a.fields]\nhref = { css = 'a', type = 'url' }"
    assert found(rules, "<a href=''>x</a>").rows["items/a"] == [{"href": "http://e.example/list"}]


@pytest.mark.parametrize(
    ("kind", "selector", "reason"),
    [
        ("css", "div[", "not a CSS selector"), ("css", "a::attr(href)", "attribute = .href"),
        ("xpath", "//div[", "not an XPath 1.0 expression"), ("xpath", "//a[//b]", "whole page for each element"),
        ("xpath", "//a/following::b", "following-sibling::"), ("xpath", "//a[b[.//c]]", "brackets within brackets"),
        ("jsonpath", "$[", "not a JSONPath query"), ("jsonpath", "$[?match(@.a, 'b')]", "not a JSONPath query"),
        ("re", "(", "not a regular expression"), ("css", "//h1", "looks like XPath"),
        ("css", "a::attr(href)", r'in Python css\("a"\)\.attribute\("href"\)'),
        ("css", "h1:contains('x')", "write :lexbor-contains"), ("css", "p:-soup-contains('x')", "write :lexbor-"),
        ("xpath", "//a[matches(., 'b')]", r"calls matches\(\), which XPath 1.0 lacks"),
        ("xpath", "//a[re:test(@href, '(x')]", r"calls re:test\(\)"), ("jsonpath", "", "does not begin with"),
        ("jsonpath", "//book", r"begin with \$$"), ("jsonpath", "$.a[", "not a JSONPath query"),
    ],
)  # fmt: skip
def test_a_wrong_or_costly_selector_is_refused(kind: str, selector: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        compile_selector(kind, selector)


@pytest.mark.parametrize(
    ("foreign", "ours"),
    [
        ("name", "$.name"), (".store.book[].title", "$.store.book[*].title"), (".[].a", "$[*].a"), ("[].a", "$[*].a"),
        ("..title", "$..title"), ("$.books.[0]", "$.books[0]"), ("$.books.0.title", "$.books[0].title"),
        ("$.a[(@.length-1)]", "$.a[-1]"), ("$.a[?(@.p>1.5 and @.p<2)]", "$.a[?(@.p>1.5 && @.p<2)]"),
    ],
)  # fmt: skip
def test_a_query_of_another_dialect_is_refused_with_ours(foreign: str, ours: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"; write {ours}") + "$"):
        compile_selector("jsonpath", foreign)
    compile_selector("jsonpath", ours)


def test_functions_of_xpath_1_are_not_taken_for_others() -> None:
    compile_selector("xpath", "//a[contains(., 'matches(') and not(self::node()[last()])]/parent::p[count(text()) = 1]")
    compile_selector("xpath", "//a[(@href) and (@id) or (@name)]")


def test_what_is_selected_shows_what_it_is() -> None:
    one = ItemPage.of(page("<p>one<p>two"))
    assert repr(one.css("p")) == "[<Selected '<p>one</p>'>, <Selected '<p>two</p>'>]"
    assert repr(one) == "<ItemPage 'http://e.example/list'>"


def test_a_module_that_must_be_awaited_is_refused() -> None:
    async def later(_page: Page, _findings: Findings) -> None: ...

    with pytest.raises(TypeError, match="later is called without await: write def"):
        processing_module()(later)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [
        b"<b>" * 30_000, b"<font size=1><p>" * 8_000, b"<p><font a></p>" * 8_000, b"<a" + b" b" * 50_000 + b">",
        b"<template>" + b"<i><p>" * 20_000, b"</x>" * 40_000 + b"<div>" * 30_000, b"<table><tr><p>" * 9_000,
    ],
)  # fmt: skip
def test_a_long_page_that_does_not_nest_in_order_gets_no_tree(body: bytes) -> None:
    findings = found('[one.fields]\na = "p"', body.decode())
    assert "no tree is made of it" in findings.invalid[0].error


def test_a_long_page_that_nests_in_order_is_searched() -> None:
    body = "<ul>" + '<li class="one"><a href="x">y</a><br><img src=z><script>"</ul>"</script>' * 3_000 + "</ul>"
    assert len(body) > ProcessOptions().tree_bytes_max
    rules = '[one]\nitems = ".one"\nfields = { a = "a" }'
    assert len(found(rules, body).rows["items/one"]) == 3_000
    assert "longer than" in found(rules, body, items_bytes_max=100_000).invalid[0].error
    assert is_regular(b"<table>" + b"<tr><td>1<td>2" * 10_000)


def test_xpath_takes_pages_of_bounded_size() -> None:
    source = SelectorSource(page("<i></i>" * (XPATH_ELEMENTS_MAX + 1)), ProcessOptions())
    with pytest.raises(SelectError, match="start tags"):
        source.select("xpath", "//i")
    deep = SelectorSource(page("<div>" * 15_000), ProcessOptions())
    assert len(deep.select("xpath", "//div//div//div")) < 256, "libxml2 goes no deeper"


def test_a_function_yields_items_and_pages_to_follow() -> None:
    @extractor("book", "/list$", columns={"price": "float"})
    def books(page: ItemPage):
        for book in page.css(".book"):
            yield {"title": book.css("h2").text, "tags": book.css(".tag").texts, "sku": book.attribute("data-sku")}
        yield from (Follow(url, priority=1) for url in page.css(".tag").urls)

    findings = Findings()
    books.process(page(BOOKS), findings)
    books.process(page(BOOKS, url="http://e.example/other"), findings)
    assert findings.rows["items/book"][0] == {"title": "The first one", "tags": ["x", "y"], "sku": "a1"}
    assert [(one.url, one.link_type, one.level) for one in findings.links] == [
        ("http://e.example/shop/t/x", "request", 1), ("http://e.example/shop/t/y", "request", 1),
    ]  # fmt: skip
    assert books.tables == {"items/book": {"price": "float"}}


def test_a_page_has_every_kind_of_selector() -> None:
    one = ItemPage.of(page(BOOKS))
    assert one.xpath("//h2").texts == ["The first one", "Second", "Third"]
    assert one.xpath("//div")[0].xpath(".//a/@href").texts == ["t/x", "t/y"]
    assert one.json_ld[0]["open"] is True
    assert one.jsonpath("$[0].numberOfItems").value == 2
    assert one.re(r'data-sku="(\w+)"') == ["a1", "b2"]
    assert one.css(".book")[0].re("[0-9,.]+") == ["1,051.77", "2026", "01", "31"]
    assert one.css("aside").text == ""
    assert one.css("aside").url is None
    assert one.css(".tag").attribute("class") == "tag"
    assert one.css("b").value == "first"
    assert one.css("b")[0].html == "<b>first</b>"
    assert ItemPage.of(page('{"a": [1]}', "application/json")).json == {"a": [1]}
    with pytest.raises(ConfigError, match=r"begin with \.//"):
        one.xpath("//div")[0].xpath("//a")


RSS = """<?xml version="1.0" encoding="iso-8859-1"?>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:media="http://search.yahoo.com/mrss/"><channel>
<title>Feed</title><item><title>One &nbsp;& two</title><link>http://e.example/1</link><dc:creator>A. Writer</dc:creator>
<pubDate>Sat, 05 Oct 2024 12:30:00 EST</pubDate><guid isPermaLink="false">g1</guid><media:content url="/1.jpg"/></item>
<item><title><![CDATA[<b>Two</b>]]></title><link>http://e.example/2</link><guid isPermaLink="true">g2</guid></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><title>Feed</title><link href="/"/>
<entry xml:lang="de"><title>One</title><link rel="alternate" href="1"/><updated>2024-10-05T12:30:00.5Z</updated>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">Text <b>of</b> it</div></content></entry></feed>"""
DATE = datetime(2024, 10, 5, 12, 30, 0, 500_000, tzinfo=UTC)
FEEDS = [
    (
        "css",
        RSS,
        "item",
        {"title": "title", "link": "link", "by": r"dc\:creator", "at": "pubDate", "image": r"media\:content"},
    ),
    (
        "xpath",
        RSS,
        "//item",
        {"title": "title", "link": "link", "by": "dc:creator", "at": "pubDate", "image": "media:content"},
    ),
    ("xpath", RSS, "/rss/channel/item", {"title": "title", "link": "./link", "by": "none|dc:creator"}),
    ("css", ATOM, "feed > entry", {"title": "title", "link": "link", "at": "updated", "text": "content"}),
    ("xpath", ATOM, "//entry", {"title": "title", "link": "link", "at": "updated", "text": "content"}),
]
KINDS = {"link": "url", "image": "url", "at": "date"}


@pytest.mark.parametrize("media_type", ["application/rss+xml", "application/atom+xml", "application/xml", "text/xml"])
@pytest.mark.parametrize(("kind", "body", "items", "fields"), FEEDS)
def test_items_of_feeds(kind: str, body: str, items: str, fields: dict[str, str], media_type: str) -> None:
    lines = [f"{name} = {{ {kind} = '{one}', type = '{KINDS.get(name, 'text')}' }}" for name, one in fields.items()]
    rules = "\n".join([f"[a]\nitems = {{ {kind} = '{items}' }}\n[a.fields]", *lines])
    findings = found(rules, body, media_type)
    assert not findings.invalid
    first = findings.rows["items/a"][0]
    wanted = {
        "title": "One & two", "link": "http://e.example/1", "by": "A. Writer",
        "at": DATE.replace(hour=17, microsecond=0), "image": "http://e.example/1.jpg",
    } if body is RSS else {"title": "One", "link": "http://e.example/1", "at": DATE, "text": "Text of it"}  # fmt: skip
    assert first == {name: wanted[name] for name in fields}
    assert len(findings.rows["items/a"]) == (2 if body is RSS else 1)


@pytest.mark.parametrize("kind", ["css", "xpath"])
def test_attributes_of_feeds(kind: str) -> None:
    items = "//item" if kind == "xpath" else "item"
    one = "{ css = 'guid', attribute = 'isPermaLink' }" if kind == "css" else "{ xpath = 'guid/@isPermaLink' }"
    rules = f"[a]\nitems = {{ {kind} = '{items}' }}\nfields = {{ p = {one} }}"
    assert [row["p"] for row in found(rules, RSS, "application/rss+xml").rows["items/a"]] == ["false", "true"]
    items = "//entry" if kind == "xpath" else "entry"
    one = "{ attribute = 'xml:lang' }" if kind == "css" else "{ xpath = '@xml:lang' }"
    rules = f"[a]\nitems = {{ {kind} = '{items}' }}\nfields = {{ p = {one} }}"
    assert [row["p"] for row in found(rules, ATOM, "application/atom+xml").rows["items/a"]] == ["de"]


@pytest.mark.parametrize("kind", ["css", "xpath"])
def test_xml_that_is_not_read_completely_is_named(kind: str) -> None:
    items = "//a" if kind == "xpath" else "a"
    rules = f"[a]\nitems = {{ {kind} = '{items}' }}\nfields = {{ p = {{ {kind} = 'b' }} }}"
    bomb = '<!DOCTYPE a [<!ENTITY b "c">]><a><b>&b;</b></a>'
    for body, said in [
        ("<a><b>", "XML: "), (bomb, "declares entities"), ("<a>" * 200, "nested deeper"), ("no XML", "XML: "),
        ("<a>" + "<b/>" * 200_001 + "</a>", "too many elements"), ("<a><b>1</b>" + " " * 5_000_000 + "</a>", "longer"),
    ]:  # fmt: skip
        [problem] = found(rules, body, "application/xml").invalid
        assert said in problem.error
    assert found(rules, "<a><b c:d:e='1' :f='2'>1</b></a>", "image/svg+xml").rows["items/a"] == [{"p": "1"}]


def test_a_selector_may_name_its_element() -> None:
    body = "<div class=a><p>1<section><p>2</section></div><p>3"
    for selector, wanted in [
        (":scope > p", ["1"]), (":SCOPE>section > p, :scope > p", ["1", "2"]), ("p", ["1", "2"]), (":scope", []),
    ]:  # fmt: skip
        rules = f"[a]\nitems = '.a'\nfields = {{ p = {{ css = '{selector}', list = true }}, h = {{ type = 'html' }} }}"
        [row] = found(rules, body).rows["items/a"]
        assert row["p"] == wanted
        assert "scope" not in str(row["h"])
    rules = "[a]\nfields = { p = { css = ':scope > body > p', list = true } }"
    assert found(rules, body).rows["items/a"] == [{"p": ["3"]}]
    assert found("[a]\nfields = { p = '[title=\":scope\"]' }", "<p title=':scope'>x").rows["items/a"] == [{"p": "x"}]
