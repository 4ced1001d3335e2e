"""Embeds beyond the table of oddities: stylesheets and SVG as documents, hostile markup, cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from gossamer.model.pages import Findings, Page
from gossamer.stages.process.embeds import BACKGROUNDS, EmbedExtractor, addresses, resources_in, srcset, with_addresses
from gossamer.stages.process.options import ProcessOptions
from tests.growth.measuring import is_linear

D = "https://example.org/css/"


def of(body: bytes, media_type: str, charset: str = "") -> list[str]:
    found = Findings()
    EmbedExtractor().process(Page(D + "a.css", media_type, charset, (), body), found)
    assert {link.link_type for link in found.links} <= {"embed"}
    return [link.url for link in found.links]


def test_a_stylesheet_names_from_where_it_is() -> None:
    sheet = b"""@charset "utf-8"; @import url("b.css") screen; @IMPORT 'c.css'; /* url(no) */
    @font-face { src: url(../f.woff2) format("woff2"), URL( 'f.woff' ) }
    p { background: url(data:image/png;base64,AA) }"""
    assert of(sheet, "text/css") == [D + "b.css", D + "c.css", "https://example.org/f.woff2", D + "f.woff"]


SETS = """p { background: image-set("a.avif" type("image/avif"), 'b.png' 1x, url(c.png) 2x, url("d.png") 3x) }
    q { background: -webkit-IMAGE-SET( "e(.png" 1x,linear-gradient(rgb(1,2,3), #fff) 2x /* "no" */, 'f\\.png');
    content: "no" }
    @import "g.css";"""


def test_the_strings_of_an_image_set_are_addresses() -> None:
    named = ["a.avif", "b.png", "c.png", "d.png", "e(.png", "f.png", "g.css"]
    assert list(addresses(SETS)) == named
    assert list(addresses('i{background:image-set("a" 1x')) == ["a"]
    assert list(addresses(with_addresses(SETS, lambda address: f"/{address}"))) == [f"/{one}" for one in named]
    assert 'type("image/avif")' in with_addresses(SETS, str.upper)
    page = "<p style=\"background: image-set('1.png' 1x)\"><i style='b:image-set(&quot;2.png&quot; 1x)'>"
    assert [address for address, _ in resources_in(page.encode())] == ["1.png", "2.png"]
    assert [address for address, _ in resources_in(b"<style>i{b:image-set('3.png' 1x)}</style>")] == ["3.png"]


@pytest.mark.parametrize(
    ("sheet", "expected"),
    [
        ('a:before{content:"/*"} b{background:url(x)} /* c */ d{background:url(y)}', ["x", "y"]),
        ("a:before{content:'/*'} /* url(no) */ b{background:url(x)}", ["x"]),
        ('b{background:url("a/*b*/c")}', ["a/*b*/c"]),
        ("b{background:url(a/*b*/c)} /* url(no) */", ["a/*b*/c"]),
        ("b{background:URL( /*b*/c )}", ["/*b*/c"]),
        ("@import url('https://h.test/*');b{background:url(x)}", ["https://h.test/*", "x"]),
        ("@import/* c */'x'; @import/**/url(y);", ["x", "y"]),
        ("/* \" */ b{background:url(x)} /* ' */ c{background:url(y)}", ["x", "y"]),
        ('a{content:"a\\"/*"} b{background:url(x)} /**/', ["x"]),
        ('.a\\"b{background:url(x)} /* url(no) */ .c\\"{background:url(y)}', ["x", "y"]),
        ('a{content:"not ended /*\n} b{background:url(x)} /* url(no) */', ["x"]),
        ('a{content:"goes \\\n on /*"} b{background:url(x)}', ["x"]),
        ("a{content:'goes \\\r\n on url(no)'} b{background:url(x)}", ["x"]),
        ("b{background:url(x)} /* not ended url(no)", ["x"]),
        ("b{background:url(x\\)/*y)} c{background:url(z)}", ["x)/*y", "z"]),
        ('a{content:"url(no)"} b{background:url(x)}', ["x"]),
        ("a{content:'@import \\'no\\''} b{background:url(x)}", ["x"]),
        ("@namespace url(http://www.w3.org/1999/xhtml); b{background:url(x)}", ["x"]),
        ("@namespace svg 'no'; @import 'x';", ["x"]),
        ("b{background:url(a b)} c{background:url(x)}", ["x"]),
        ("b{background:url(a'b)} c{background:url(x)} d{content:'e'}", ["x"]),
        ("b{background:url(a(b) } c{background:url(x)}", ["x"]),
        ("b{background:url(x", ["x"]),
        ("b{background:url('x", ["x"]),
        ('@import "x', ["x"]),
        ("b{background:url(\\78\\79 z)}", ["xyz"]),
        ("@import url(x) layer(a) supports(display: grid) screen;", ["x"]),
        ("u/**/rl(no) b{background:url/**/(no)}", []),
        ("a/*/ b{background:url(no)} /* */ c{background:url(x)}", ["x"]),
    ],
)
def test_a_comment_begins_only_where_one_can(sheet: str, expected: list[str]) -> None:
    assert list(addresses(sheet)) == expected
    placed = with_addresses(sheet, lambda address: "/" + address)
    assert list(addresses(placed)) == ["/" + one for one in expected]


def test_a_sheet_with_other_addresses_says_the_same() -> None:
    sheet = 'a/* c */.b:after{content:"url(no) /* no */"} @namespace url(n); .c/**/d{background:url( x ) }'
    expected = 'a.b:after{content:"url(no) /* no */"} @namespace url(n); .c/**/d{background:url("y") }'
    assert with_addresses(sheet, lambda _: "y") == expected


def test_a_stylesheet_in_another_encoding_has_addresses_in_utf_8() -> None:
    assert of("p{b:url('ж?ж')}".encode("cp1251"), "text/css", "windows-1251") == [D + "%D0%B6?%D0%B6"]


def test_a_stylesheet_declares_its_encoding() -> None:
    sheet = '@charset "windows-1251"; a{b:url(ж.png)}'.encode("cp1251")
    assert of(sheet, "text/css") == [D + "%D0%B6.png"]
    assert of(sheet, "text/css", "iso-8859-1") == [D + "%C3%A6.png"], "the header is stronger"
    assert of(b"@charset 'windows-1251'; a{b:url(\xe6.png)}", "text/css") != [D + "%D0%B6.png"], "no declaration"


def test_an_svg_image_is_a_document_of_its_own() -> None:
    svg = b"""<?xml version="1.0"?><?xml-stylesheet type="text/css" href="s.css"?>
    <svg xmlns="http://www.w3.org/2000/svg"><image href="i.png"/><filter id="f"><feImage xlink:href="e.png"/></filter>
    <style>p{fill:url(p.svg#x)}</style><use href="#y"/></svg>"""
    assert of(svg, "image/svg+xml") == [D + "s.css", D + "i.png", D + "e.png", D + "p.svg"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<b.css>; rel=stylesheet", ["b.css"]),
        ('<b.js>; rel="preload"; as=script, <c.woff2>; rel=preload; as=font', ["b.js", "c.woff2"]),
        ('<i.png>; rel="shortcut icon"', ["i.png"]),
        ("<m.mjs>; rel=ModulePreload", ["m.mjs"]),
        ('<next>; rel=next, <b.css>; rel=stylesheet; anchor="/other", <data:,>; rel=preload', []),
    ],
)
def test_link_headers_name_resources(value: str, expected: list[str]) -> None:
    for media_type in ("text/html", "text/css", "image/svg+xml"):
        found = Findings()
        EmbedExtractor().process(Page(D + "a", media_type, "", (("Link", value),), b"<p>"), found)
        assert [(link.url, link.link_type) for link in found.links] == [(D + name, "embed") for name in expected]


def test_it_wants_what_can_embed() -> None:
    module = EmbedExtractor()
    wanted = ("text/html", "application/xhtml+xml", "text/css", "image/svg+xml")
    assert all(module.wants(kind) for kind in wanted)
    assert not module.wants("text/plain")


def test_alternative_texts_stand_with_their_images() -> None:
    assert list(resources_in(b"<img src=a alt=Words srcset='b 2x'>")) == [("a", "Words"), ("b", "Words")]


def test_what_a_script_loads_late_is_found() -> None:
    page = b"""<img src=data:, data-src=a.png data-srcset="b.png 1x, c.png 2x"><img data-original=/d.png>
    <img data-lazy-src=e.png data-lazy-srcset=f.png><picture><source data-srcset=g.webp></picture>
    <video data-src=h.mp4 data-poster=i.png></video><iframe data-src=/player></iframe>
    <img data-src=7><img data-src="h_{width}x.jpg"><img data-srcset="j_{width}.jpg 1x"><img data-src="a. b">"""
    names = ("a.png", "b.png", "c.png", "/d.png", "e.png", "f.png", "g.webp", "i.png", "h.mp4", "/player")
    assert sorted(address for address, _ in resources_in(page) if address != "data:,") == sorted(names)


@pytest.mark.parametrize("name", sorted(BACKGROUNDS - {"data-bgset"}))
def test_backgrounds_that_a_script_loads_late_are_found(name: str) -> None:
    page = f"""<div {name}="a.png?b=1&amp;c=2"></div><p {name.upper()}='url("d.png")'><i {name}=/e.png></i>
    <td {name}="url(f.png)"></td><div {name}="#fff" x-{name}=g.png></div><b {name}="rgba(0,0,0,.5)"></b>
    <img {name}=h.png><template><p {name}=i.png></template>"""
    assert [one for one, _ in resources_in(page.encode())] == ["a.png?b=1&c=2", "d.png", "/e.png", "f.png", "h.png"]


def test_sets_of_backgrounds_are_found() -> None:
    page = b"""<div class=lazyload data-bgset="a.png 1x, b.png 2x"><p data-bgset='c.png [(max-width: 9px)] | d.png'>"""
    assert [one for one, _ in resources_in(page)] == ["a.png", "b.png", "c.png", "d.png"]


def test_elements_of_amp_and_of_old_pages_embed() -> None:
    page = b"""<amp-img src=a.png srcset="b.png 2x"></amp-img><amp-video src=c.mp4 poster=d.png></amp-video>
    <amp-anim src=e.gif></amp-anim><amp-audio src=f.mp3></amp-audio><bgsound src=g.mid>"""
    names = ("a.png", "b.png", "c.mp4", "d.png", "e.gif", "f.mp3", "g.mid")
    assert [address for address, _ in resources_in(page)] == list(names)


def test_the_bound_on_links_holds_for_embeds_too() -> None:
    found = Findings()
    body = b"".join(b"<img src=%d>" % number for number in range(100))
    EmbedExtractor(ProcessOptions(links_max=10)).process(Page(D, "text/html", "", (), body), found)
    assert len(found.links) == 10


HOSTILE: dict[str, Callable[[int], object]] = {
    "url( without end": lambda size: list(addresses("url(" * (size // 4))),
    "url( and spaces": lambda size: list(addresses("url(" + " " * size)),
    "quotes without end": lambda size: list(addresses("url('" * (size // 5))),
    "imports and spaces": lambda size: list(addresses(("@import" + " " * 20) * (size // 27))),
    "comments without end": lambda size: list(addresses("/*" * (size // 2))),
    "sets": lambda size: list(addresses("image-set(" * (size // 10))),
    "strings of a set": lambda size: list(addresses("image-set(" + "'a'" * (size // 3))),
    "escapes": lambda size: list(addresses("url(" + "\\a" * (size // 2))),
    "brackets in a srcset": lambda size: list(srcset("a " + "(" * size)),
    "commas in a srcset": lambda size: list(srcset("," * size)),
    "candidates of a srcset": lambda size: list(srcset("a," * (size // 2))),
    "tags without end": lambda size: list(resources_in(b"<img " * (size // 5))),
    "quotes in tags": lambda size: list(resources_in(b'<p "' * (size // 4))),
    "comment openings": lambda size: list(resources_in(b"<!--" * (size // 4))),
    "templates": lambda size: list(resources_in(b"<template>" * (size // 10))),
    "styles without end": lambda size: list(resources_in(b"<style>" * (size // 7))),
    "style attributes": lambda size: list(resources_in(b" style='url(" * (size // 12))),
    "images": lambda size: list(resources_in(b"<img src=x>" * (size // 11))),
}


@pytest.mark.heavy
@pytest.mark.parametrize("case", HOSTILE)
def test_cost_is_linear_whatever_is_written(case: str) -> None:
    """Eight times as much may take twenty times as long, for noise; the square would be sixty-four."""

    assert is_linear(lambda size: partial(HOSTILE[case], size), 100_000, factor=20.0)
