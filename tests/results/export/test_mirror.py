"""Names of files in a mirror, and pages whose addresses are rewritten."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.config import Config
from gossamer.model.pages import Page
from gossamer.results.export.mirror import Names, file_of
from gossamer.results.export.opening import export_means
from gossamer.results.export.pages import hash_of
from gossamer.results.export.plan import COLUMNS, MORE
from gossamer.stages.process import html
from gossamer.stages.process.rewriting import HEAD, XML_HEAD, rewritten
from tests.results.export.conftest import Exporting

BASE = "http://www.test/a/b"


@pytest.mark.parametrize(
    ("path", "media_type", "name"),
    [
        ("", "text/html", "index.html"),
        ("a/", "text/html", "a/index.html"),
        ("a", "text/html", "a.html"),
        ("a.htm", "text/html", "a.htm"),
        ("a.php?id=3&x=/y", "text/html", "a.php-id-3-x-y.html"),
        ("A/B.PNG", "image/png", "a/b.png"),
        ("pic.jpeg", "image/jpeg", "pic.jpeg"),
        ("pic.png", "image/jpeg", "pic.png.jpg"),
        ("v1.2/x", "text/html", "v1.2/x.html"),
        ("dir.html/x", "text/html", "dir.html_/x.html"),
        ("..%2f..%2fetc/passwd", "text/plain", "_/_/etc/passwd.txt"),
        ("%2e%2e%5cx/.hidden", "", "x/hidden.bin"),
        ("con/nul.txt", "text/plain", "_con/_nul.txt"),
        ("-con/.nul", "text/html", "_con/_nul.html"),
        ("z.7z", "application/x-7z-compressed", "z.7z"),
        ("z.7z/w", "text/html", "z.7z_/w.html"),
        ("a.webmanifest/y", "text/html", "a.webmanifest_/y.html"),
        ("3.12/x", "text/html", "3.12/x.html"),
        ("caf%C3%A9", "text/html", "caf.html"),
        ("x" * 300, "text/html", "x" * 80 + ".html"),
        ("data", "application/x-of-its-own", "data.bin"),
        ("feed", "application/x-of-its-own+xml", "feed.xml"),
        ("feed.rss", "application/x-of-its-own+xml", "feed.rss"),
        ("?p=1", "text/html", "index-p-1.html"),
        ("setup.EXE", "application/octet-stream", "setup.exe"),
        ("f.woff2?v=1", "binary/octet-stream", "f-v-1.woff2"),
        ("p.html", "application/octet-stream", "p.html.bin"),
        ("download", "application/octet-stream", "download.bin"),
        ("a.ogg", "application/ogg", "a.ogg"),
        ("atom.xml", "application/atom+xml", "atom.xml"),
        ("sitemap.xml", "application/xml", "sitemap.xml"),
        ("a.mpg", "video/mpeg", "a.mpg"),
        ("a.ogg", "audio/ogg", "a.ogg"),
        ("a.c", "text/plain", "a.c.txt"),
        ("%E6%97%A5", "text/html", "_.html"),
    ],
)
def test_a_name_follows_the_url_and_is_safe(path: str, media_type: str, name: str) -> None:
    assert "".join(file_of("www.test", f"http://www.test/{path}", media_type)) == f"www.test/{name}"


@pytest.mark.parametrize("extension", ["7z", "webmanifest", "3gp", "mp3", "z", "1a", "x-bzip2", "html", "bin", "7Z"])
@pytest.mark.parametrize("media_type", ["", "text/html", "application/x-7z-compressed", "application/manifest+json"])
def test_no_file_has_the_name_of_a_directory(extension: str, media_type: str) -> None:
    """Also where the URL, its media type or a page below it chooses the name."""
    base = f"http://www.test/z.{extension}"
    files = ["".join(file_of("www.test", url, media_type)) for url in (base, f"{base}?a", f"{base}.", f"{base}/w")]
    folders = {str(folder) for name in files for folder in Path(name).parents}
    assert not folders & set(files)


def test_a_host_with_the_name_of_the_index_is_another_folder() -> None:
    assert "".join(file_of("index.html", "http://index.html/", "text/html")) == "index.html_/index.html"


def test_addresses_that_spell_the_hash_of_another_take_no_page_its_name(tmp_path: Path) -> None:
    victim = "http://www.test/a.html?"
    spelled = [f"http://www.test/a-{hash_of(victim * number)}.html" for number in (1, 2, 3)]
    keys = ["http://www.test/a.html", *spelled, victim]
    plan = _plan(tmp_path, keys)
    with Names.make(tmp_path / "names", plan, [], str) as names:
        files = [names.of_key(key) for key in keys]
    assert all(files)
    assert len(set(files)) == len(keys)


def _plan(folder: Path, keys: list[str]) -> Path:
    plan = folder / "plan.parquet"
    numbers = {"status": 200, "depth": 1, "body_bytes": 1, "at": 0, "offset": 0, "length": 1}
    tail = (
        "document",
        "anchors",
        "at",
        "file",
        "offset",
        "length",
        "original_file",
        "original_offset",
        "original_length",
    )
    blank = {name: numbers.get(name, "") for name in (*COLUMNS, *MORE, *tail)}
    rows = [blank | {"url": key, "key": key, "host": "www.test", "media_type": "text/html"} for key in keys]
    pq.write_table(pa.Table.from_pylist(rows), plan)
    return plan


def place(url: str) -> str:
    """Place what is on this host."""
    return "HERE/" + url.removeprefix("http://www.test/") if url.startswith("http://www.test/") else url


def body(text: str | bytes, media_type: str = "text/html", charset: str = "utf-8") -> str:
    content = text if isinstance(text, bytes) else text.encode()
    return rewritten(Page(BASE, media_type, charset, (), content), place).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<a href="c#d">', '<a href="HERE/a/c#d">'),
        ('<a href="#d">', '<a href="#d">'),
        ('<a href="?q=1&amp;r">', '<a href="HERE/a/b?q=1&amp;r">'),
        ('<a href="mailto:me@x.test">', '<a href="mailto:me@x.test">'),
        ('<a href="//other.test/x" ping="/p">', '<a href="http://other.test/x">'),
        ('<img src="/i" srcset="/i 1x,j 2x">', '<img src="HERE/i" srcset="HERE/i 1x, HERE/a/j 2x">'),
        ('<p data-bg="/i" data-background="url(/j)" data-setbg="#f"></p>',
         '<p data-bg="HERE/i" data-background="url(&quot;HERE/j&quot;)" data-setbg="#f"></p>'),
        ('<p data-bgset="/i 1x, j.png 2x"></p><p data-bgset="/i [(a)] | /j"></p>',
         '<p data-bgset="HERE/i 1x, HERE/a/j.png 2x"></p><p data-bgset="HERE/i [(a)] | HERE/j"></p>'),
        ('<img data-src="/i" data-srcset="j.{w}.png 1x">', '<img data-src="HERE/i" data-srcset="j.{w}.png 1x">'),
        ("<p style='x: url(/i)'>", '<p style="x: url(&quot;HERE/i&quot;)">'),
        ('<style>@import "/s"; p { x: url(i) }</style>', '<style>@import "HERE/s"; p { x: url("HERE/a/i") }</style>'),
        ('<script src="/s" integrity="sha256-x" crossorigin></script>', '<script src="HERE/s"></script>'),
        ('<meta http-equiv="refresh" content="3; url=/x">', '<meta http-equiv="refresh" content="3; url=HERE/x">'),
        ('<meta http-equiv="refresh" content="30; url=//w.test/">x', '<body><p><a href="http://w.test/">This'),
        ('<iframe sandbox src="/f"></iframe>', '<iframe sandbox=" allow-same-origin" src="HERE/f">'),
        ('<iframe sandbox="allow-scripts" src="/f"></iframe>', '<iframe sandbox="allow-scripts" src="HERE/f">'),
        ('<form action="/go">', '<form action="HERE/go">'),
        ('<button formaction="/b"></button>', '<button formaction="HERE/b">'),
        ('<input type=submit formaction="/b">', '<input type="submit" formaction="HERE/b">'),
        ('<link rel="preload stylesheet" href="/s" as=style>', 'href="HERE/s" as="style">'),
        ("<link rel=preload href='/s' onload=\"this.rel='stylesheet'\">", 'href="HERE/s" onload='),
        ("<pre>\n\nx</pre>", "<pre>\n\nx</pre>"),
        ('<svg><image xlink:href="/i"></image></svg>', '<svg><image xlink:href="HERE/i"></image></svg>'),
        ('<iframe srcdoc="<img src=/i>"></iframe>', 'img src=&quot;HERE/i&quot;'),
        ('<script>let a = "/b < c"</script>', '<script>let a = "/b < c"</script>'),
    ],
)  # fmt: skip
def test_addresses_of_a_page_are_placed(before: str, after: str) -> None:
    made = body(f"<!doctype html><title>t</title>{before}")
    assert after in made
    assert made.index(HEAD) < made.index("<title>")


@pytest.mark.parametrize(
    "dropped",
    [
        "<link rel=preconnect href=//x.test>", "<link rel=preload as=style href=//x.test/s>",
        "<link rel='dns-prefetch' href=//x.test>",
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">',
    ],
)  # fmt: skip
def test_what_requests_early_or_forbids_the_copy_is_left_out(dropped: str) -> None:
    made = body(f"<title>t</title>{dropped}")
    assert "x.test" not in made
    assert "none" not in made


@pytest.mark.parametrize(
    ("within", "after"),
    [
        (
            "<template shadowrootmode=open><link rel=icon href=s.ico><img src=i.png></template>x",
            '<template shadowrootmode="open"><link rel="icon" href="L:s.ico"><img src="L:i.png"></template>x',
        ),
        (
            "<template><a href=a>x</a><template><img src=i.png></template></template>",
            '<template><a href="L:a">x</a><template><img src="L:i.png"></template></template>',
        ),
        (
            "<table><template id='a>b'><tr><td>1</td></tr></template></table>",
            '<table><template id="a&gt;b"><tr><td>1</td></tr></template></table>',
        ),
        ("\ue0000\ue000<template></template>", "\ue0000\ue000<template></template>"),
        ("<svg><feImage href=f.png /></svg>", '<svg><feImage href="L:f.png"></feImage></svg>'),
        (
            "<table><tr background=t.png><td><img data-lazy=z.png>",
            '<table><tbody><tr background="L:t.png"><td><img data-lazy="L:z.png"></td></tr></tbody></table>',
        ),
    ],
)
def test_addresses_within_templates_and_drawings_are_placed(within: str, after: str) -> None:
    page = Page("http://h.test/", "text/html", "utf-8", (), b"<p>" + within.encode())
    copied = rewritten(page, lambda url: "L:" + url[14:]).decode()
    assert after in copied.partition("<body>")[2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<img src="data:," data-src="/i.png">', '<img src="HERE/i.png" data-src="HERE/i.png">'),
        ('<img src="/i.png" data-src="5">', '<img src="HERE/i.png" data-src="5">'),
        ('<img data-lazy-srcset="/i.png 1x, /j.png 2x">', ' srcset="HERE/i.png 1x, HERE/j.png 2x">'),
        ('<video data-poster="/i.png"></video>', ' poster="HERE/i.png">'),
        ('<map><area target="_top" href="/c"></map>', '<area href="HERE/c">'),
        ("<link rel=stylesheet href=/s media=print onload=\"this.media='all'\">", ' href="HERE/s" media="" onload='),
        ("<link rel=preload as=style href=/s onload=\"this.rel='stylesheet'\">", ' rel="stylesheet" as='),
        ('<base target="_blank"><a target="_blank" href="/c">', '<body><a href="HERE/c">'),
        ('<meta http-equiv="refresh" content="0; url=/x">', '<body><p><a href="HERE/x">This page leads to another'),
        ('<meta http-equiv="refresh" content="60; url=/x">', '60; url=HERE/x"></head><body></body>'),
    ],
)
def test_a_page_without_scripts_and_windows_shows_what_they_would_show(before: str, after: str) -> None:
    """Lazy images as lazysizes, WordPress and jQuery write them: `LAZY`."""
    page = Page(BASE, "text/html", "utf-8", (), before.encode())
    assert after in rewritten(page, place, is_still=True).decode()


def test_a_rendered_page_is_copied_without_scripts_and_what_is_for_browsers_without_them() -> None:
    sent = "\ufeff<p>made</p><script>document.body.innerHTML = ''</script><noscript>enable</noscript><img data-src=/i>"
    made = rewritten(Page(BASE, "text/html", "latin1", (), sent.encode(), is_rendered=True), place).decode()
    assert made.partition("<body>")[2] == '<p>made</p><img data-src="HERE/i" src="HERE/i"></body></html>'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<?xml version="1.0" encoding="latin1"?><!-- <a> --><!DOCTYPE s [<!ENTITY e "f">]><svg a=">">\xe9</svg>',
         '<!-- <a> --><!DOCTYPE s [<!ENTITY e "f">]><svg a=">">HEAD\xe9</svg>'),
        ('<?xml-stylesheet href="//w.t/s"?><?xml-stylesheet href="/s"?><r/>', '<?xml-stylesheet href="HERE/s"?><r/>'),
        ('<r xmlns:h="http://www.w3.org/1999/xhtml"><h:a href="c"/></r>',
         '<r xmlns:h="http://www.w3.org/1999/xhtml">HEAD<h:a href="HERE/a/c"/></r>'),
        ('<r><a href="c"/>\xe9</r>', '<r><a href="c"/>\xe9</r>'),
        ("<!-- no end <svg>", "<!-- no end <svg>"),
    ],
)  # fmt: skip
def test_xml_that_browsers_lay_out_has_the_policy_and_no_other_is_changed(before: str, after: str) -> None:
    kind = "image/svg+xml" if "svg" in before else "text/xml"
    made = rewritten(Page(BASE, kind, "", (), before.encode("latin-1")), place)
    assert made.decode("utf-8" if "svg" in before else "latin-1") == after.replace("HEAD", XML_HEAD)


def test_a_base_and_another_encoding_are_resolved() -> None:
    text = '<meta charset="iso-8859-1"><base href="/base/"><title>na\u00efve</title><a href="x?q=\u00e9">\u00e9</a>'
    made = body(text.encode("latin-1"), charset="iso-8859-1")
    assert '<a href="HERE/base/x?q=%E9">\u00e9</a>' in made
    assert "<base" not in made
    assert made.count("charset") == 1


def test_a_page_costs_one_tree_and_its_text_none(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(BASE, "text/html", "utf-8", (), b'<p>One <b>two</b> <a href="x">three</a>')
    trees: list[bytes] = []
    parser = html.LexborHTMLParser

    def parse(body: bytes, options: object) -> object:
        trees.append(body)
        return parser(body, options=options)

    monkeypatch.setattr(html, "LexborHTMLParser", parse)
    assert b'href="http://www.test/a/x"' in rewritten(page, str)
    assert len(trees) == 1
    assert export_means(Config()).text_of(page)[:2] == ("One two three", "two")
    assert len(trees) == 1


def test_an_address_that_returns_is_looked_up_once(tmp_path: Path) -> None:
    with Names.make(tmp_path / "names", _plan(tmp_path, ["http://www.test/new"]), [], str) as names:
        asked: list[str] = []
        names._database.set_trace_callback(asked.append)
        place = names.place("www.test")
        found = {url: place(f"http://www.test/{url}") for url in ("new", "no") * 50}
        assert found == {"new": "new.html", "no": "http://www.test/no"}
        assert len(asked) == 2


def test_addresses_of_a_stylesheet_and_of_an_image_are_placed() -> None:
    sheet = "@charset \"latin1\"; /* url(no) */ @import '/x.css'; p { a: url( 'i\\20 j' ); b: URL(data:x) }"
    assert body(sheet, "text/css") == ' @import "HERE/x.css"; p { a: url("HERE/a/i%20j"); b: url("data:x") }'.replace(
        " @import", "  @import"
    )
    svg = "<svg xmlns='http://www.w3.org/2000/svg'><image xlink:href='/i?a&amp;b'/><use href=\"#c\"/></svg>"
    assert body(svg, "image/svg+xml") == (
        f"<svg xmlns='http://www.w3.org/2000/svg'>{XML_HEAD}"
        '<image xlink:href="HERE/i?a&amp;b"/><use href="#c"/></svg>'
    )
    sheets = "<style/><style>a{b:url(/i?a&amp;b)}</style><style><![CDATA[a>b{c:url(/i?a&b)}]]></style>"
    drawn = f"<svg>{sheets}<g style='c:url(/i)'/>"
    assert body(drawn, "image/svg+xml") == (
        f"<svg>{XML_HEAD}"
        '<style/><style>a{b:url("HERE/i?a&amp;b")}</style><style><![CDATA[a>b{c:url("HERE/i?a&b")}]]></style>'
        '<g style="c:url(&quot;HERE/i&quot;)"/>'
    )
    assert rewritten(Page(BASE, "image/png", "", (), b"\xff\x00url(x)"), place) == b"\xff\x00url(x)"


def test_a_page_that_bears_no_tree_has_the_policy() -> None:
    assert body("<!doctype html>" + "<b>" * 60_000).startswith(f"<!doctype html>{HEAD}")
    assert body("<b>" * 60_000).startswith(f"{HEAD}<b>")


@pytest.mark.parametrize("doctype", ['<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 3.2//EN">', "<!doctype html>", ""])
def test_a_page_is_laid_out_by_the_rules_that_its_doctype_chooses(doctype: str) -> None:
    assert body(f"<!-- first -->{doctype}<p>x").startswith(f"<!-- first -->{doctype}<html>")


def test_a_mirror_has_a_file_for_each_page(exporting: Exporting, tmp_path: Path) -> None:
    done = exporting("mirror", tmp_path / "m")
    files = [path for path in (tmp_path / "m").rglob("*") if path.is_file()]
    assert len(files) == done.rows["pages"] + 1
    assert len({str(path).lower() for path in files}) == len(files)
    assert "<ul>" in (tmp_path / "m/index.html").read_text()
