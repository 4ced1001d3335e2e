"""The scan against the tree, and both against pages that mean ill."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.model.pages import Page
from gossamer.stages.process import html
from gossamer.stages.process.bylines import clean_name
from gossamer.stages.process.html import Markup, TreeMarkup, bears_tree
from gossamer.stages.process.inline import formula
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.rewriting import rewritten
from gossamer.stages.process.scan import (
    _BREAKER,
    _NAMED,
    ANCHORS_MAX,
    ATTRIBUTES_MAX,
    ELEMENTS_MAX,
    PLAIN_TAG,
    STEPS_MAX,
    ScannedMarkup,
    attributes,
    reference_free,
)
from tests.growth.measuring import is_linear

from .pages import SCAN, TREE, findings

OPTIONS = ProcessOptions()

PAGES = [
    b"",
    b"text alone",
    b"<!doctype html><title> A  page </title><p>One <a href=x>two</a> three",
    b'<html><head><meta charset=utf-8><base href=/b/><link rel=\'next\' href="n"></head><body class="x y">',
    b"<ul><li><a href='1' class=c>One</a><li><a class=c href=\"2\">Two</a></ul>",
    b"<table><tr><td><a href=a>A</a><td><a href=b><img src=i alt='B'></a></table>",
    b"<script>if (a < b) document.write('<a href=no>')</script><a href=yes>y</a>",
    b"<style>a > b { } /* <a href=no> */</style><A HREF='yes'>y</A>",
    b"<!-- <a href=no> --><a href=yes><!-- no -->y</a><!-- <a href=no> -->",
    b"<textarea><a href=no></textarea><iframe src=f><a href=no></iframe><a href=yes>y",
    b"<template><a href=no></a></template><noscript><a href=yes>y</a></noscript>",
    b'<div data-x=\'<a href=no>\' data-y="a > b"><a href=yes title="1 > 0">y</a></div>',
    b"<a href=one>1<a href=two>2</a>3</a><a href=three>4",
    b"<a href='?a=1&amp;b=2&copy=3'>&lt;b&gt; &eacute;&nbsp;&#233;</a>",
    "<title>Ünï &amp; cödé</title><a href='é?ü'>日本語</a>".encode(),
    b"<a href=x>\xff\xfe broken</a><title>\xe9</title>",
    b"<a\nhref\n=\n'x'\n>n</a\n><a/href=y/>n</a/><a href=z/ >",
    b"<frameset cols=1,2><frame src=a name=b><frame src=c></frameset>",
    b"<map><area shape=rect href=a alt=one><area nohref></map><meta name=robots content='none'>",
    b"<p title=it's><a href=x title=it's>n</a><a title=that's href=y>m</a>",
    b"<xmp><a href=no></xmp><noembed><a href=no></noembed><a href=yes>",
    b"<![CDATA[<a href=no>]]><?xml version='1.0'?><a href=yes>",
    b"<a href=x>a</a><a href='y",
    b"<a href=x>a</a><script><a href=no>",
    b"<a href=1><code class=x><span class=y>a b</span></code></a><a href=2><b>B</b> c</a><a href=3><i>I<br>J</i></a>",
    b"<a href=4><em>e &amp; f</em></a><a href=5><TT>g</TT></a><a href=6><code >h</code></a>",
    b"<a href=7><i>j</i><p>k</p></a><a href=8><strong></strong></a>",
    b"<a href=9 title=t><b></b></a><a href=10><bdi>l</bdi></a><a><tt>m</tt>",
    *(
        b"<p>No other <%b=x>" % start
        for start in b"AREA HREF|Iframe src|blockquote cite|Q CITE|ins cite|DEL CITE|embed src|Object data".split(b"|")
    ),
    b"<turbo-frame SRC=x></turbo-frame>",
    b"<INCLUDE-fragment src=x></INCLUDE-fragment>",
]


def facts(markup: Markup) -> tuple[object, ...]:
    return (
        [(href, rel, " ".join(markup.anchor_text(within).split())) for href, rel, within in markup.anchors],
        [(tag, {name: value or "" for name, value in found.items()}) for tag, found in markup.elements],
        " ".join((markup.title or "").split()),
    )


@pytest.mark.parametrize("body", PAGES)
def test_the_scan_finds_what_the_tree_holds(body: bytes) -> None:
    assert facts(ScannedMarkup(body)) == facts(TreeMarkup(body))


def test_a_tree_says_that_a_page_has_links_where_its_frames_are_missing() -> None:
    assert TreeMarkup(b"<NoFrames><a href=x>y</a></NoFrames>").hides


PIECES = """<p>|</p>|<div class='a b'>|</div>|<br>|<b>|</b>|<li>|<span title="x > y '">|</span>|<h1 id=x>|</h1>|
|<img src=i alt='Alt'>|text |&amp; |é |1 < 2 |<!-- <a href=no> -->|<script>'<a href=no>'</script>|<style><b></style>
|<meta name=x content=y>|<link rel=next href=n>|<area href=r>|<iframe src=f><a href=no></iframe>|<DIV\nID=Y>
|<title>T &amp; t</title>|<div data-x='<a href=no>'>|<template><a href=no></a></template>|</x y='>'>|</>
|<textarea><a href=no></textarea>"""
BLOCKS = st.sampled_from(PIECES.split("|"))
ANCHOR = st.builds(
    "<{}{}{}={}{}{}>{}</{}>".format,
    st.sampled_from(["a", "A"]),
    st.sampled_from([" ", "\n", " class='c' ", ' data-x="1" ', " disabled ", "/"]),
    st.sampled_from(["href", "HREF", "href ", "name"]),
    st.sampled_from(["'", '"']).flatmap(
        lambda q: st.sampled_from([q + "x.html" + q, q + "?a&amp;b" + q, q + q, "bare"])
    ),
    st.sampled_from(["", " rel=nofollow", ' title="a > b"', " title='it\"s'", ' class="d"']),
    st.sampled_from(["", " ", " /"]),
    st.sampled_from(["", "text", "<b>bold</b>", "<img alt='A'>", " a <i>b</i>\n c", "&lt;", "<span></span>"]),
    st.sampled_from(["a", "A", "a "]),
)


@given(st.lists(BLOCKS | ANCHOR, max_size=30).map("".join))
@settings(max_examples=300, deadline=None)
def test_the_scan_finds_the_links_of_any_plain_page(body: str) -> None:
    tree, scan = TreeMarkup(body.encode()), ScannedMarkup(body.encode())
    # Unclosed formatting is repeated by the tree, never around anchors' addresses.
    assert [anchor[:2] for anchor in scan.anchors] == [anchor[:2] for anchor in tree.anchors]
    assert facts(scan)[1:] == facts(tree)[1:]


@given(st.text(alphabet="<>/!-?a \"'=hrefstyl&;tiemp", max_size=80))
@settings(max_examples=500, deadline=None)
def test_noise_is_no_error(body: str) -> None:
    ScannedMarkup(body.encode()).text()
    assert findings(body, TREE).charset == findings(body, SCAN).charset


@given(st.binary(max_size=300))
def test_bytes_are_no_error(body: bytes) -> None:
    findings(body, TREE)
    findings(body, SCAN)


@pytest.mark.parametrize(
    ("tag", "expected", "rest"),
    [
        (b" a=1 b='2' c=\"3\" d>x", {"a": "1", "b": "2", "c": "3", "d": ""}, b"x"),
        (b" a='>' b>x", {"a": ">", "b": ""}, b"x"),
        (b" a = '\"' b>x", {"a": '"', "b": ""}, b"x"),
        (b" =a=b '=c>x", {"=a": "b", "'": "c"}, b"x"),
        (b" a=b'c\"d>x", {"a": "b'c\"d"}, b"x"),
        (b" a=>x", {"a": ""}, b"x"),
        (b" A=1 a=2>x", {"a": "1"}, b"x"),
        (b"/a=1/>x", {"a": "1/"}, b"x"),
        (b">x", {}, b"x"),
    ],
)
def test_attributes(tag: bytes, expected: dict[str, str], rest: bytes) -> None:
    found, end = attributes(tag, 0)
    assert found == expected
    assert tag[end:] == rest


@pytest.mark.parametrize("tag", [b" a='x>", b" a=\"x'>", b" a=x", b"", b" a='>\"'"])
def test_a_tag_that_the_page_cuts_is_none(tag: bytes) -> None:
    assert attributes(tag, 0) == ({}, -1) or attributes(tag, 0)[1] == -1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a&amp;b", "a&b"),
        ("a&ampb", "a&ampb"),
        ("a&amp=b", "a&amp=b"),
        ("a&amp", "a&"),
        ("&copy;&copy=1", "©&copy=1"),
        ("&nosuch;&", "&nosuch;&"),
        ("&#65;&#x42;&#x43", "ABC"),
        ("&#" + "9" * 5000 + ";", "&#" + "9" * 5000 + ";"),
    ],
)
def test_references_in_attributes(value: str, expected: str) -> None:
    if len(value) < 100:
        assert reference_free(value) == expected
    else:
        reference_free(value)  # No error is all we ask.


ENDLESS = "&#" + "9" * 5000 + ";"
"""Python refuses to read a number of more than 4,300 digits."""
SVG = Page("http://h.test/", "image/svg+xml", "utf-8", (), f'<svg><image href="a.png?{ENDLESS}"/></svg>'.encode())


@pytest.mark.parametrize(
    "read",
    [
        lambda: clean_name(f"Ann {ENDLESS} Lee"),
        lambda: formula(f"\0<annotation encoding='application/x-tex'>x {ENDLESS}</annotation>"),
        lambda: formula(f"\0<mi>{ENDLESS}</mi>"),
        lambda: rewritten(SVG, lambda url: url).decode(),
    ],
    ids=["author", "TeX", "MathML", "drawing"],
)
def test_a_reference_of_thousands_of_digits_is_no_error(read: Callable[[], str]) -> None:
    assert "999" in read()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<title>no</title><p>One<p>Two <b>b</b>old<br>Three", "One\nTwo bold\nThree"),
        ("a<script>no</script>b<!-- no -->c<style>no</style>d", "abcd"),
        ("<template>no<p>no</template>yes &amp; <i>yes</i>", "yes & yes"),
        ("<li>a  b\n c</li>\n\n<li>d", "a b\nc\nd"),
        ("", ""),
    ],
)
def test_text(body: str, text: str) -> None:
    assert findings(body, SCAN).text == text


def nested(n: int) -> bytes:
    return b"<div>" * n


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "drawings within drawings": lambda n: b"<svg><title>" * (n // 4),
    "drawings that do not end": lambda n: b"<svg><path a='b'>" * (n // 4),
    "styles of drawings that do not end": lambda n: b"<svg><style>" * (n // 4),
    "drawings with CDATA": lambda n: b"<svg><![CDATA[<a>]]>" * (n // 4),
    "scripts with comments": lambda n: b"<script><!--<script></script>" * (n // 4),
    "nested": nested,
    "nested and closed": lambda n: b"<div>" * n + b"</div>" * n,
    "wrong end tags": lambda n: b"<x></y>" * n,
    "ends that do not reach": lambda n: b"<div><object></div></object>" * n,
    "distinct formatting": lambda n: b"".join(b"<font size=%d><p>" % i for i in range(n)) + b"</font>" * n,
    "attributes of one tag": lambda n: b"<a " + b" ".join(b"x%d" % i for i in range(n)) + b" href=y>z</a>",
    "one long attribute": lambda n: b"<a title='" + b"x" * 20 * n + b"' href=y>z</a>",
    "one long href": lambda n: b"<a href='" + b"x" * 20 * n + b"'>z</a>",
    "links": lambda n: b"".join(b"<a href='/%d.html'>link</a> " % i for i in range(n)),
    "links unclosed": lambda n: b"<a href=x>" * n,
    "links nested": lambda n: b"<a href=x><object>" * n + b"text",
    "links that break lines": lambda n: b"<a href=x><!-- -->" * n,
    "one link that many comments break": lambda n: b"<a href=x>" + b"<!-- -->" * n,
    "comments unclosed": lambda n: b"<!--" * n,
    "comments nearly closed": lambda n: b"<!-- --" * n,
    "scripts unclosed": lambda n: b"<script>" * n,
    "less-than signs": lambda n: b"<" * 5 * n,
    "tags unclosed": lambda n: b"<a " * n,
    "tags with quotes unclosed": lambda n: b'<a x="' * n,
    "tags with both quotes": lambda n: b"<a x='\" " * n,
    "quotes that never end": lambda n: b"<a x=' y=\">" * n,
    "bogus comments": lambda n: b"<!" * n + b"<?" * n,
    "end tags": lambda n: b"</a" * n,
    "ampersands": lambda n: b"<a href='" + b"&" * 5 * n + b"'>" + b"&amp" * n + b"</a>",
    "templates": lambda n: b"<template>" * n,
    "titles": lambda n: b"<title>" * n,
    "images without alt": lambda n: b"<a href=x>" + b"<img>" * n + b"</a>",
    "spaces": lambda n: b"<a" + b" " * 20 * n + b"href=x>" + b" " * 20 * n,
    "bases": lambda n: b"<base href=x>" * n,
    "refreshes": lambda n: b"<meta http-equiv=refresh content='0;url=x'>" * n,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_pages_cost_a_line(kind: str) -> None:
    """Eight times the page may cost eight times the work, with room for noise; a square would cost 64 times."""

    def prepare(n: int) -> Callable[[], object]:
        body = HOSTILE[kind](n)
        return lambda: findings(body, TREE)

    assert is_linear(prepare, 5_000)


BOUNDED = {
    "comments": b"<!-->",
    "declarations": b"<!x>",
    "end tags without a name": b"</1>",
    "templates": b"<template>",
    "raw texts": b"<xmp></xmp>",
    "quotes within quotes": b"<p a='<'>",
    "bases": b"<base href=x>",
    "cites": b"<q cite=x>",
    "links": b"<link rel=next href=x>",
    "metas": b"<meta name=robots content=none>",
    "documents within": b"<iframe srcdoc='<a href=x>'></iframe>",
    "attributes": b""" a='"<'""",
    "anchors": b"<a href=x>y</a>",
    "anchors into the page": b"<a href=#x>y</a>",
}


@pytest.mark.heavy
@pytest.mark.parametrize("kind", BOUNDED)
@pytest.mark.long
def test_what_one_page_costs_is_bounded(kind: str) -> None:
    """A body of 32 MB may be all tags: beyond some number of them a page costs hardly more than its bytes."""

    def prepare(times: int) -> Callable[[], object]:
        body = (b"<q" if kind == "attributes" else b"<a href=first>z</a>") + BOUNDED[kind] * times

        def run() -> None:
            found = findings(body, ProcessOptions())
            assert kind == "attributes" or found.links[0].url.endswith("/first")

        return run

    assert is_linear(prepare, 150_000, times=4, factor=3.0, floor_s=0.005)


def test_what_is_beyond_the_bounds_is_left() -> None:
    markup = ScannedMarkup(b"<link href=x>" * 30_000 + b"<!-->" * STEPS_MAX + b"<a href=y>z</a><link href=last>")
    assert (len(markup.elements), len(markup.anchors)) == (ELEMENTS_MAX, 0)
    found, _ = attributes(b"".join(b" a%d" % n for n in range(5_000)) + b">", 0)
    assert len(found) == ATTRIBUTES_MAX
    anchors = ScannedMarkup(b"<a href=x>y</a>" * (ANCHORS_MAX + 10)).anchors
    assert len(anchors) == ANCHORS_MAX


def test_pages_that_could_nest_are_not_given_to_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(body: bytes) -> None:
        raise AssertionError(f"a tree of {len(body)} bytes")

    monkeypatch.setattr(html, "TreeMarkup", refuse)
    for kind in ("nested", "nested and closed", "wrong end tags", "ends that do not reach", "distinct formatting"):
        findings(HOSTILE[kind](40_000))
    found = findings(nested(40_000) + b"<a href=x>deep</a>")
    assert [link.anchor_text for link in found.links] == ["deep"]


def test_ordinary_pages_are_given_to_the_tree() -> None:
    paragraphs = b"<p>One<br>two<li>three <a href=x>four</a> <img src=y>" * 150
    assert bears_tree(paragraphs, OPTIONS)
    assert not bears_tree(paragraphs * 5, OPTIONS)
    assert not bears_tree(b"x" * 100_000, OPTIONS)


def test_a_hundred_thousand_links() -> None:
    options = ProcessOptions(links_max=200_000)
    assert len(findings(HOSTILE["links"](100_000), options).links) == 100_000


AT_ONCE = re.compile(
    rf"<(?:(?:{'|'.join(_NAMED)})(?=[\t\n\f\r />])|!--|[!?]|/[^a-z>]|[a-z/]{PLAIN_TAG}(?:[^>]|(?<=\Z)))".encode()
)
"""What breaks the line, as `re` can say it: all that a plain tag may hold is taken, and then there is no bracket."""


@settings(max_examples=1_000, deadline=None)
@given(st.lists(st.sampled_from([b"<", b">", b'"', b"'", b"=", b"/", b" ", b"a", b"\xe9", b"!--", b"<link ", b"<p"])))
@pytest.mark.heavy
def test_what_breaks_the_line_is_found_whole(pieces: list[bytes]) -> None:
    page = b"".join(pieces) + b"<!"  # A tag that the page's end cuts off is told from one that is not plain.
    ours = _BREAKER.search(page)
    other = AT_ONCE.search(page)
    assert ours is not None
    assert other is not None
    assert (ours.start(), ours[0][:2]) == (other.start(), other[0][:2])


@pytest.mark.parametrize(
    ("tag", "href"),
    [
        ('class="b" href="/x"', "/x"),
        ('class="b" id="c" title="d" href="/x" data-e="f"', "/x"),
        ("class='b' href='/x'", "/x"),
        ('class="b" href="/x?a&amp;b"', "/x?a&b"),
        ('href="/x" class=b', "/x"),
    ],
)
def test_an_anchor_has_its_text_after_any_attributes(tag: str, href: str) -> None:
    """Possessive repeats of groups, which Python 3.11.2 without Debian's update matches wrongly, gave it another."""
    scan = ScannedMarkup(f'<p>x</p><p><a {tag}>one</a> two <a href="/y" class="c">three</a> four</p>'.encode())
    assert [(anchor[0], scan.anchor_text(anchor[2])) for anchor in scan.anchors] == [(href, "one"), ("/y", "three")]


@pytest.mark.parametrize("end", ["/", " ", "\n", "/ ", "= ", "a="])
def test_a_tag_ends_in_any_run_of_characters(end: str) -> None:
    scan = ScannedMarkup(f'<link rel=next href="/n" {end * 50_000}><a href=/x>t</a>'.encode())
    assert (scan.elements[0][1]["href"], scan.anchors[0][0]) == ("/n", "/x")
