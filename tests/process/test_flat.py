"""Flat markup: what it keeps, and that a parser's tree of it is no deeper than was counted."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from resiliparse.extract.html2text import extract_plain_text
from selectolax.lexbor import LexborHTMLParser, LexborNode

from gossamer.process import flat
from gossamer.process.flat import flattened

DOCUMENTATION = Path("/usr/share/doc/python3-doc/html")


def depth_of(markup: bytes) -> int:
    """Return how deep the deepest element lies below the root."""
    root = LexborHTMLParser(markup).root
    assert root is not None
    deepest, level = 0, [root]
    while level:
        level = [child for node in level for child in _children(node)]
        deepest += bool(level)
    return deepest


def _children(node: LexborNode) -> list[LexborNode]:
    return [child for child in node.iter(include_text=False) if child.tag not in ("-comment", "!doctype")]


KEPT = [
    # markup, what comes of it
    (b"<p>a<p>b", b"<p>a</p><p>b"),
    (b"<p>a<div>b</div>c", b"<p>a</p><div>b</div>c"),
    (b"<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", b"<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>"),
    (b"<dl><dt>a<dd>b<dt>c</dl>", b"<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>"),
    (b"<table><tr><td>a<td>b<tr><td>c</table>",
     b"<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>"),
    (b"<div><span>a</div>b", b"<div><span>a</span></div>b"),
    (b"<span><div>a</span>b</div>", b"<span><div>ab</div>"),
    (b"<td><div>a</td>b</div>", b"<td><div>a</div></td>b"),
    (b"<div><table><td></div>a</table>", b"<div><table><td>a</td></table>"),
    (b"<b>a<i>b</b>c</i>", b"abc"),
    (b"<h1>a</h2>b", b"<h1>a</h1>b"),
    (b"<a href=1>a<a href=2>b</a>", b"<a href=1>a</a><a href=2>b</a>"),
    (b"<a href=1><div>a</a>b</div>", b"<a href=1><div>a</a>b</div>"),
    (b"<br>a</br>b<img src=x>", b"<br>a<br>b<img src=x>"),
    (b"a<script>if (a<b) '</div>'</script>b<!-- <p> -->c", b"abc"),
    (b"<svg><g><svg/><title>x</title></g></svg>a<svg>b", b"ab"),
    (b"<select><option>a</select>b<template><p>c</template>d", b"bd"),
    (b"a < b <3 <<b>div>c", b"a &lt; b &lt;3 &lt;div>c"),
    (b"<p title='a>b' class=x>c", b'<p class="x">c'),
    (b"<p class=\"a'b\" title=\'>\'>c", b'<p class="a&#x27;b">c'),
    (b"<p a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s class=x>c", b'<p class="x">c'),
    (b"<p class=x data-x='" + b"x" * 3_000 + b"'>c", b'<p class="x">c'),
    (b"<DIV>a</Div>b", b"<div>a</div>b"),
    (b"a</div></p></table>b", b"ab"),
    (b"a<div", b"a"),
    (b"a<p class='x", b"a"),
    (b"a<plaintext>b", b"a"),
    (b"<!doctype html><html><head><title>t</title></head><body>a</body></html>", b"<html><head><body>a"),
]  # fmt: skip


@pytest.mark.parametrize(("markup", "expected"), KEPT)
def test_each_element_is_closed_in_order(markup: bytes, expected: bytes) -> None:
    assert flattened(markup, 100) == expected


def test_more_open_elements_than_allowed_are_refused_and_no_fewer() -> None:
    assert flattened(b"<div>" * 100, 100) is not None
    assert flattened(b"<div>" * 101, 100) is None
    assert flattened(b"<div>a</div>" * 5_000 + b"<p>a" * 5_000 + b"<li>a" * 5_000, 100) is not None
    assert flattened(b"<svg/>" * 200 + b"<b>" * 200 + b"<br>" * 200, 100) is not None


def test_elements_in_all_and_work_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat, "NODES_MAX", 1_000)
    assert flattened(b"<p>a" * 1_000, 100) is not None
    assert flattened(b"<p>a" * 1_001, 100) is None
    assert flattened(b"<p class=x id=y>a" * 334, 100) is None
    assert flattened(b"<p a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s>" * 100, 100) is None
    monkeypatch.setattr(flat, "WORK_MAX", 100_000)
    assert flattened(b"<div>" * 90 + b"<i>x</i><hr>" * 900, 100) is not None
    assert flattened(b"<div>" * 90 + b"<div><p></div>" * 900, 100) is None


_TAGS = re.findall(
    r"\w+",
    "div p span a b font i ul li dl dt dd table tr td th tbody caption select option button form h1 h2 pre object svg "
    "math title style script template noscript body html head br img section textarea iframe foreignObject g",
)


def soup(dice: random.Random, length: int) -> bytes:
    """Return random tags, most of them misnested."""
    pieces = []
    for number in range(length):
        tag = dice.choice(_TAGS)
        pieces.append(
            dice.choice((f"<{tag}>", f"<{tag} class=c{number}>", f"</{tag}>", f"</{tag}>", f"<{tag}/>", "x", " y "))
        )
    return "".join(pieces).encode()


@pytest.mark.parametrize("seed", range(300))
def test_the_tree_of_any_soup_is_as_deep_as_was_counted(seed: int) -> None:
    """Fragments are repeated: what the parser nests a little further each time shows."""
    dice = random.Random(seed)
    fragment = soup(dice, dice.randint(2, 12))
    for open_tags_max in (5, 20, 60):
        made = flattened(soup(dice, 5) + fragment * 100, open_tags_max)
        if made is not None:
            # The root, html, body; a tbody that is implied in each table, and a link that is opened anew within.
            assert depth_of(made) <= 2 * open_tags_max + 6, fragment


@given(st.binary(max_size=300))
def test_any_bytes_can_be_flattened(body: bytes) -> None:
    made = flattened(b"<p>" + body, 50)
    assert made is not None
    assert depth_of(made) <= 110


HOSTILE = {
    "nested": lambda n: b"<div>" * n,
    "fonts": lambda n: b"".join(b"<font size=%d><p>x" % i for i in range(n)),
    "fonts in blocks": lambda n: b"".join(b"<div><font size=%d>x</div>" % i for i in range(n)),
    "hidden end tags": lambda n: b"<div><object></div></object>" * n,
    "end tags in comments": lambda n: b"<div><!-- </div> -->" * n,
    "selects": lambda n: b"<div><select><title></select></div></title>" * n,
    "links": lambda n: b"<a href=x><div>" * n,
    "attributes": lambda n: b"<p " + b"".join(b"a%d=1 " % i for i in range(n)) + b">x",
    "paragraph far up": lambda n: b"<p>" + b"<span>" * 900 + b"<div></div>" * n,
    "open svg": lambda n: b"<svg>" * n,
    "open comment": lambda n: b"<!-- <p>" * n,
    "odd quotes": lambda n: b"<p a='>" * n,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_page_costs_its_length(kind: str) -> None:
    """Eight times the page may cost eight times the work, with room for noise; a square would cost 64 times."""

    def cost_s(n: int) -> float:
        body, spent = HOSTILE[kind](n), []
        for _ in range(2):
            started = time.process_time()
            made = flattened(body, 1_000)
            if made is not None:
                extract_plain_text(made.decode(), main_content=True)
            spent.append(time.process_time() - started)
        return min(spent)

    assert cost_s(16_000) < 30 * max(cost_s(2_000), 0.002)


def test_ordinary_pages_lose_nothing() -> None:
    pages = [path.read_bytes() for path in sorted(DOCUMENTATION.glob("library/*.html"))[::12]]
    if not pages:
        pages = [
            b"<!doctype html><title>t</title><div class=body><h1>a</h1><p>b <code>c</code><p>d<ul><li>e</ul></div>"
        ]
    for page in pages:
        made = flattened(page, 1_000)
        assert made is not None
        main, of_flat = (
            extract_plain_text(markup.decode(), main_content=True, preserve_formatting="minimal_html", links=True)
            for markup in (page, made)
        )
        assert of_flat == main
        assert main
