"""Outlines: what they keep of a page, that they nest, and that they cost a page's length."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.stages.process import outline, tokens
from gossamer.stages.process.content import Markdown
from gossamer.stages.process.outline import Outline, attributes, outline_of
from gossamer.stages.process.tokens import VOID
from tests.growth.measuring import is_linear

from .test_content_modules import found


def written(made: Outline | None) -> str:
    """Return the events of an outline as markup."""
    assert made is not None
    out = []
    for event in made.events:
        if isinstance(event, str):
            out.append(event.replace("<", "&lt;"))
        else:
            name, rest = event
            out.append(f"<{name}{rest}>" if name != "math" else "<math>")
    return "".join(out)


KEPT = [
    # markup, what comes of it
    ("<p>a<p>b", "<p>a</p><p>b</p>"),
    ("<p>a<div>b</div>c", "<p>a</p><div>b</div>c"),
    ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>"),
    ("<dl><dt>a<dd>b<dt>c</dl>", "<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>"),
    ("<table><tr><td>a<td>b<tr><td>c</table>", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>"),
    ("<div><span>a</div>b", "<div><span>a</span></div>b"),
    ("<span><div>a</span>b</div>", "<span><div>ab</div></span>"),
    ("<td><div>a</td>b</div>", "<td><div>a</div></td>b"),
    ("<div><table><td></div>a</table>", "<div><table><td>a</td></table></div>"),
    ("<b>a<i>b</b>c</i>", "<b>a<i>b</i></b>c"),
    ("<h1>a</h2>b", "<h1>a</h1>b"),
    ("<a href=1>a<a href=2>b</a>", "<a href=1>a</a><a href=2>b</a>"),
    ("a<br>b</br>", "a<br>b"),
    ("a<script>if (a<b) '</div>'</script>b<!-- <p> -->c", "abc"),
    ("<svg><g><svg/><title>x</title></g></svg>a<svg>b", "ab"),
    ("<select><option>a</select>b<template><p>c</template>d", "bd"),
    ("a < b <3 <<b>div>c", "a &lt; b &lt;3 &lt;<b>div>c</b>"),
    ("<p title='a>b' class=x>c", "<p title='a>b' class=x>c</p>"),
    ("<p>a<b title='>'>b</b>c", "<p>a<b title='>'>b</b>c</p>"),
    ("<DIV>a</Div>b", "<div>a</div>b"),
    ("a</div></p></table>b", "ab"),
    ("a<div", "a"),
    ("a<p class='x", "a"),
    ("a<plaintext>b", "a"),
    ("a &amp; b&lt;c", "a & b&lt;c"),
    ("<p>a<math><mi>x</mi></math>b", "<p>a<math>b</p>"),
    ("<!doctype html><html><head><title>t</title></head><body>a</body></html>",
     "<html><head></head><body>a</body></html>"),
]  # fmt: skip


@pytest.mark.parametrize(("markup", "expected"), KEPT)
def test_each_element_is_closed_in_order(markup: str, expected: str) -> None:
    assert written(outline_of(markup, 100)) == expected


def test_blocks_are_what_no_edge_divides() -> None:
    made = outline_of("<title> A  b</title><h1>One <b>two</b></h1><p><a href=x>three</a> four<br>five<div>six", 100)
    assert made is not None
    assert [block.text for block in made.blocks] == ["One two", "three four five", "six"]
    assert [(block.words, block.link_words, block.links) for block in made.blocks] == [(2, 0, 0), (3, 1, 1), (1, 0, 0)]
    assert [made.tags[block.node][0] for block in made.blocks] == ["h1", "p", "div"]
    assert made.title == "A b"


def test_attributes_are_read_as_the_standard_has_them() -> None:
    written = ' a=1 B=\'2 "\' c="x&amp;y" d e = f a=3'
    assert attributes(written) == {"a": "1", "b": '2 "', "c": "x&y", "d": "", "e": "f"}


def test_more_open_elements_than_allowed_are_refused_and_no_fewer() -> None:
    assert outline_of("<div>" * 100, 100) is not None
    assert outline_of("<div>" * 101, 100) is None
    assert outline_of("<div>a</div>" * 5_000 + "<p>a" * 5_000 + "<li>a" * 5_000, 100) is not None
    assert outline_of("<svg/>" * 200 + "<br>" * 200, 100) is not None


def test_elements_in_all_and_work_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline, "EVENTS_MAX", 2_000)
    assert outline_of("<p>a" * 600, 100) is not None
    assert outline_of("<p>a" * 1_001, 100) is None
    monkeypatch.setattr(outline, "WORK_MAX", 100_000)
    assert outline_of("<div>" * 90 + "<hr>" * 900, 100) is not None
    monkeypatch.setattr(outline, "WORK_MAX", 1_000)
    assert outline_of("<div><table><td>" + "<span>" * 90 + "</div>" * 20, 200) is None
    monkeypatch.setattr(outline, "BLOCKS_MAX", 10)
    made = outline_of("<p>a" * 20, 100)
    assert made is not None
    assert len(made.blocks) == 10


@pytest.mark.parametrize(
    "tag",
    [  # newspaper4k's thai_article.html, and pages of WCXB: a quote is one only after an equals sign.
        '<input type="text="" placeholder="x" />',
        '<img alt="5" screen" src="x">',
        '<img alt="a "b" c">',
        "<img title='it's'>",
        '<img width=5">',
        '<img ">',
        "<img alt = 'a>\"b' x>",
    ],
)
def test_quotes_that_do_not_pair_end_with_their_tag(tag: str) -> None:
    made = outline_of(f"<p>one</p>{tag}<p>two</p><p class='k'>\"three\" it's</p>", 100)
    assert made is not None
    assert [block.text for block in made.blocks] == ["one", "two", '"three" it\'s']


@pytest.mark.parametrize("characters", [1, 7, 60])
def test_where_markup_is_split_changes_nothing(monkeypatch: pytest.MonkeyPatch, characters: int) -> None:
    odd = "<!-- a<b>c --><svg><svg></svg><p></svg><script>if (a<b) '</div'</SCRIPT >d"
    odd += "<p title='a>b' x=\"<\">e<P<Q>f<a b<i>g"
    bodies = [odd, *(body for body, _ in KEPT), *(soup(random.Random(seed), 200) for seed in range(10))]
    whole = [outline_of(body, 100) for body in bodies]
    monkeypatch.setattr(tokens, "CHARACTERS", characters)
    for body, expected in zip(bodies, whole, strict=True):
        made = outline_of(body, 100)
        assert written(made) == written(expected)
        assert made is not None
        assert expected is not None
        assert (made.blocks, made.tags, made.within) == (expected.blocks, expected.tags, expected.within)


def test_what_is_within_an_element_is_numbered_behind_it() -> None:
    made = outline_of("<html><body><ul><li>a<p>b<li>c</ul><div>", 100)
    assert made is not None
    inside = [
        [other for other in range(len(made.parents)) if element in _around(made, other)]
        for element in range(len(made.parents))
    ]
    assert inside == [list(range(element, made.within[element])) for element in range(len(made.parents))]
    assert made.tags == [(name, "") for name in ("html", "html", "body", "ul", "li", "p", "li", "div")]


def _around(made: Outline, element: int) -> list[int]:
    """Return an element and those around it."""
    return [element] if element == 0 else [element, *_around(made, made.parents[element])]


_NAMES = re.findall(
    r"\w+",
    "div p span a b font i ul li dl dt dd table tr td th tbody caption select option button form h1 h2 pre object svg "
    "math title style script template noscript body html head br img section textarea iframe foreignObject g",
)


def soup(dice: random.Random, length: int) -> str:
    """Return random tags, most of them misnested."""
    pieces = []
    for number in range(length):
        tag = dice.choice(_NAMES)
        pieces.append(
            dice.choice((f"<{tag}>", f"<{tag} class=c{number}>", f"</{tag}>", f"</{tag}>", f"<{tag}/>", "x", " y "))
        )
    return "".join(pieces)


def nests(made: Outline, open_tags_max: int) -> bool:
    stack: list[str] = []
    for event in made.events:
        if isinstance(event, str) or event[0] in VOID or event[0] == "math":
            continue
        if event[0][0] != "/":
            stack.append(event[0])
        elif stack.pop() != event[0][1:]:
            return False
        if len(stack) > open_tags_max:
            return False
    return not stack


@pytest.mark.parametrize("seed", range(100))
def test_any_soup_nests_no_deeper_than_allowed(seed: int) -> None:
    dice = random.Random(seed)
    body = soup(dice, 5) + soup(dice, dice.randint(2, 12)) * 50
    for open_tags_max in (5, 20, 60):
        made = outline_of(body, open_tags_max)
        assert made is None or nests(made, open_tags_max)


@given(st.text(max_size=300))
def test_any_text_has_an_outline(body: str) -> None:
    made = outline_of("<p>" + body, 400)
    assert made is not None
    assert nests(made, 400)


HOSTILE = {
    "nested": lambda n: "<div>" * n,
    "fonts": lambda n: "".join(f"<font size={i}><p>x" for i in range(n)),
    "hidden end tags": lambda n: "<div><object></div></object>" * n,
    "links": lambda n: "<a href=x><div>" * n,
    "attributes": lambda n: "<p " + "".join(f"a{i}=1 " for i in range(n)) + ">x",
    "spaces": lambda n: "<p class=x" + " " * n * 4 + "><a " + " " * n * 4 + "href=x>x</a>",
    "paragraph far up": lambda n: "<p>" + "<span>" * 900 + "<div></div>" * n,
    "open svg": lambda n: "<svg>" * n,
    "svg that end late": lambda n: "<svg>" * n + "</svg>",
    "open comment": lambda n: "<!-- <p>" * n,
    "odd quotes": lambda n: "<p a='>" * n,
    "breaks": lambda n: "<p>" + "<br>" * n + "x" + "<br>" * n,
    "bold": lambda n: "<p>" + "<b>x</b>" * n,
    "formulas": lambda n: "<p>" + "\\( x \\[ $$ " * n,
    "annotations": lambda n: "<p>" + ("<math>" + "<annotation " * 500 + "</math>") * (n // 500),
    "lists": lambda n: "<ul><li>x" * 300 + "<li>y" * n,
    "quotations": lambda n: "<blockquote>" * 300 + "<p>y" * n,
    "cells": lambda n: "<table>" + "<tr><td rowspan=999 colspan=999>x" * n,
    "underscores": lambda n: "<p>" + "_a" * n + "_" * n,
    "references": lambda n: "<p>&#" + "1" * n + ";",
    "footnotes": lambda n: "".join(f"<p id=f{at}>x<sup><a href=#f{at}>{at}</a></sup></p>" for at in range(n)),
    "listed footnotes": lambda n: "<ol>" + "".join(f"<li id=f{at}>x y <a href=#f{at}>{at}</a>" for at in range(n)),
}


@pytest.mark.heavy
@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.long
def test_a_hostile_page_costs_its_length(kind: str) -> None:
    """Eight times the page may cost eight times the work, with room for noise; a square would cost 64 times."""

    def prepare(n: int) -> Callable[[], object]:
        body = HOSTILE[kind](n)
        return lambda: found(Markdown(), body)

    assert is_linear(prepare, 2_000, floor_s=0.004)
