import html

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gossamer.stages.process.links import (
    BARE_BYTES_MAX,
    SRCDOC_DEPTH_MAX,
    Base,
    collapse_spaces,
    link_header,
    redirect_fragment,
    redirect_target,
    refresh_target,
)
from gossamer.stages.process.options import ProcessOptions
from gossamer.url.join import join

from .pages import SCAN, TREE, URL, findings, urls

D = "https://example.org/dir/"
READERS = pytest.mark.parametrize("options", [TREE, SCAN], ids=["tree", "scan"])

ODDITIES = {
    "relative": ("<a href=next.html>n</a>", [D + "next.html"]),
    "parent": ("<a href='../up'>n</a>", ["https://example.org/up"]),
    "rooted": ('<a href="/root/x">n</a>', ["https://example.org/root/x"]),
    "query only": ('<a href="?p=2">n</a>', [D + "page.html?p=2"]),
    "scheme relative": ('<a href="//other.example/x">n</a>', ["https://other.example/x"]),
    "dot segments": ('<a href="./a/./b/../c">n</a>', [D + "a/c"]),
    "escaped dots": ('<a href="%2e%2e/x">n</a>', ["https://example.org/x"]),
    "backslash": (r'<a href="a\b">n</a>', [D + "a/b"]),
    "uppercase": ("<A HREF=X.HTML>n</A>", [D + "X.HTML"]),
    "white space about": ("<a href=' \n x.html \t'>n</a>", [D + "x.html"]),
    "newline within": ("<a href='x\n.ht\tml'>n</a>", [D + "x.html"]),
    "spaces about the equals sign": ("<a href = 'x'>n</a>", [D + "x"]),
    "fragment dropped": ("<a href='x#y'>n</a>", [D + "x"]),
    "space before the fragment": ("<a href='x #y'>n</a><a href='x #z'>n</a>", [D + "x%20", D + "x%20"]),
    "fragment only names the page": ("<a href='#y'>n</a>", [URL]),
    "empty names the page": ("<a href=''>n</a><a href>m</a>", [URL, URL]),
    "no href": ("<a name=x>n</a>", []),
    "entity": ("<a href='?a=1&amp;b=2'>n</a>", [D + "page.html?a=1&b=2"]),
    "entity that is none": ("<a href='?a=1&copy=2&notit;'>n</a>", [D + "page.html?a=1&copy=2&notit;"]),
    "entity without semicolon": ("<a href='?a&amp'>n</a>", [D + "page.html?a&"]),
    "numeric entity": ("<a href='&#x41;&#66;'>n</a>", [D + "AB"]),
    "first of two attributes": ("<a href=one href=two>n</a>", [D + "one"]),
    "slash before the end": ("<a href='x'/>", [D + "x"]),
    "slash in unquoted value": ("<a href=x/>n</a>", [D + "x/"]),
    "no space between attributes": ("<a class='b'href='x'>n</a>", [D + "x"]),
    "apostrophe in unquoted value": ("<a title=it's href='x'>n</a><a href=y>", [D + "x", D + "y"]),
    "angle bracket in value": ("<a title='a>b' href=x>n</a>", [D + "x"]),
    "anchor in value": ("<div title='<a href=no>'><a href=x>n</a></div>", [D + "x"]),
    "anchor in value after bracket": ("<div title='a > b <a href=no>'><a href=x>n</a></div>", [D + "x"]),
    "tag in an unquoted value": ("<div x=<a href=no>><a href=x>", [D + "x"]),
    "comment": ("<!-- <a href=no>n</a> --><a href=x>n</a>", [D + "x"]),
    "comment with two dashes": ("<!-- a -- b <a href=no> --><a href=x>", [D + "x"]),
    "empty comments": ("<!--><a href=x>a</a><!---><a href=y>b</a>", [D + "x", D + "y"]),
    "comment ended by bang": ("<!-- a --!><a href=x>n</a>", [D + "x"]),
    "comment without end": ("<a href=x>n</a><!-- <a href=no>", [D + "x"]),
    "bogus comment": ("<?php <a href=no> ?><a href=x>", [D + "x"]),
    "declaration": ("<!doctype html><!x '><a href=x>n</a>", [D + "x"]),
    "end tag that is none": ("</ <a href=no>><a href=x>n</a>", [D + "x"]),
    "script": ("<script>'<a href=no>'; a</b</script><a href=x>", [D + "x"]),
    "style": ("<style><a href=no></style x><a href=x>", [D + "x"]),
    "textarea": ("<textarea><a href=no></TextArea\n><a href=x>", [D + "x"]),
    "title": ("<title><a href=no></title><a href=x>", [D + "x"]),
    "noscript": ("<noscript><a href=x></noscript>", [D + "x"]),
    "template": ("<template><a href=no></a><template></template><a href=no></template><a href=x>", [D + "x"]),
    "abbr is no a": ("<abbr href=no>n</abbr><article href=no><area2 href=no>", []),
    "less-than signs": ("1 < 2 <3 <<a href=x>n</a>", [D + "x"]),
    "tag without end": ("<a href=x>n</a><a href=no", [D + "x"]),
    "value without end": ("<a href=x>n</a><a href='no>n</a>", [D + "x"]),
    "plaintext": ("<a href=x>n</a><plaintext><a href=no>", [D + "x"]),
    "not to fetch": (
        "<a href='javascript:f()'><a href=mailto:a@b.c><a href=' JavaScript:x'><a href='java\nscript:x'><a href=tel:1>",
        [],
    ),
    "not to fetch, either": ("<a href='data:,x'>f</a><a href=about:blank>g</a>", []),
    # internetarchive/heritrix3 ExtractorHTML (on*, data-href); htmx, Unpoly; rows of tables and buttons of Wix.
    "rows that lead on": (
        "<tr data-href='/row'><td>x</td></tr><li class=k data-href=\"x?a=1&amp;b\">",
        ["https://example.org/row", D + "x?a=1&b"],
    ),
    "htmx": (
        "<div hx-get='/p2' hx-trigger=revealed></div><button class='b' data-hx-get=\"more\">",
        ["https://example.org/p2", D + "more"],
    ),
    "clicks": (
        (
            "<td onclick=\"window.location='/x'\"><b></b><button onclick='location.href=&quot;y&quot;; return false'>"
            "<a onclick=\"window.open('z.html', 'w')\" href='#'>n</a><p onclick='f(\"no\")'>"
        ),
        [URL, "https://example.org/x", D + "y", D + "z.html"],
    ),
    "clicks on other elements": (
        (
            "<input type=button onclick=\"location.href='k1'\"><area onclick=\"parent.location='k2'\">"
            "<label onclick=\"top.location.replace('k3')\"><li onclick='self.location=&quot;k4&quot;'>"
        ),
        [D + "k1", D + "k2", D + "k3", D + "k4"],
    ),
    "addresses of scripts": (
        (
            "<a href=\"javascript:window.open('j1','w','width=3')\">a</a>"
            "<a href=\"javascript:void(location.href='j2')\">"
            "<a href='JavaScript:location.assign(&quot;j3&quot;)'><a href=\"javascript:f('no.html', 'x')\">"
            "<a href=\"javascript:location='javascript:location=1'\"><a href=\"javascript:__doPostBack('a$b','2')\">"
        ),
        [D + "j1", D + "j2", D + "j3"],
    ),
    "scripts": (
        (
            "<a href=b></a><script>function go(){ window.open('s1'); }\n"
            "b.onclick = () => { location.assign('s2') }</script>"
            '<script type=module>document.location.href = "s3\\/x" + location.search;'
            "window.location=\"s4\"\nlocation='s5'"
            "</script>"
        ),
        [D + "b", D + "s1", D + "s2", D + "s3/x", D + "s4", D + "s5"],
    ),
    "scripts that invent nothing": (
        (
            "<a href=b></a><script>var a='/n1'; x.location='/n2/'; var location='n3'; location='/n4'+id; "
            "s.replace('/n5','/n6'); if(location=='/n7'){} location.hash='n8'; location.href.replace('http:','n9'); "
            "window.open('/n10?'+q); mylocation='/n11'; o={location:'/n12'}; places[0].location='n13'; "
            "location='{{n14}}'; location='n\\x41'</script><pre>window.location = \"/n15\"</pre>"
            "<!-- <script>location='n16'</script> -->"
        ),
        [D + "b"],
    ),
    "choices": (
        (
            "<select onchange='location=this.value'><option value=''>choose<option value='o1'>1<option value='#'>2"
            '<select onchange="window.location.href=this.options[this.selectedIndex].value">'
            "<option value='o2?a=1&amp;b'>"
            "</select><select name=size onchange='this.form.submit()'><option value=no></select>"
            '<select onChange="if(this.value) window.open(this.value)"><option value=o3><option>no</select>'
            "<select onchange=\"MM_jumpMenu('parent',this,0)\"><option value=o4></select>"
            "<select><option value=no></select>"
            "<select onchange=\"location='?size='+this.value\"><option value=no></select>"
        ),
        [D + "o1", D + "o2?a=1&b", D + "o3", D + "o4"],
    ),
    "clicks that lead nowhere": (
        (
            "<link data-href=a.css rel=x><style data-href='b.css'></style><div data-href='#x'>"
            "<div data-href='{{ url }}'>"
            "<a data-href='javascript:f()'>n</a><b onclick=\"window.open('https://s.example/?u=' + location)\">"
            "<!-- <p data-href='no'> --><script>'<p data-href=\"no\">'</script><template><p data-href='no'></template>"
        ),
        [],
    ),
    "not an address": ("<a href='http://'>n</a><a href='https://[::1'>n</a>", []),
    "host made ASCII": ("<a href='https://BÜCHER.example/ä?ö'>n</a>", ["https://xn--bcher-kva.example/%C3%A4?%C3%B6"]),
    "other scheme": ("<a href='ftp://ftp.example/x'>n</a>", ["ftp://ftp.example/x"]),
    "credentials kept as written": ("<a href='https://u:p@e.example/'>n</a>", ["https://u:p@e.example/"]),
    "base": ("<base href='/other/'><a href=x>n</a>", ["https://example.org/other/x"]),
    "base after a link": ("<a href=x>n</a><base href='https://b.example/c/d'>", ["https://b.example/c/x"]),
    "first base": ("<base target=_top><base href=/one/><base href=/two/><a href=x>", ["https://example.org/one/x"]),
    "bad base": ("<base href='https://['><a href=x>n</a>", [D + "x"]),
    "base that runs": ("<base href='javascript:x'><a href=x>n</a>", [D + "x"]),
    "each mention": ("<a href=x>n</a><a href=./x#y>m</a><a href=x>o</a>", [D + "x"] * 3),
    "nul": ("<a href='x\0y'>n</a>", [D + "x%EF%BF%BDy"]),
    "broken UTF-8": (b"<meta charset=utf-8><a href='x\xffy'>\xc3\xa9</a>", [D + "x%EF%BF%BDy"]),
}


@READERS
@pytest.mark.parametrize("case", ODDITIES)
def test_what_an_anchor_names(case: str, options: ProcessOptions) -> None:
    body, expected = ODDITIES[case]
    assert urls(findings(body, options), "anchor") == expected


@READERS
def test_links_of_svg_are_anchors(options: ProcessOptions) -> None:
    body = (
        "<svg><a href=x xlink:href=no></a><a class='c' xlink:href=y>t</a><a xlink:href='a>b'></a></svg><a xlink:href=z>"
    )
    assert urls(findings(body, options), "anchor") == [D + "x", D + "y", D + "a%3Eb", D + "z"]


@READERS
def test_elements_without_content_hide_no_links_where_a_page_is_xml(options: ProcessOptions) -> None:
    body = "<title/><script src='s.js' /><style/><a href='x'>n</a>"
    assert urls(findings(body, options, media_type="application/xhtml+xml"), "anchor") == [D + "x"]
    assert urls(findings(body, options), "anchor") == []


@READERS
def test_every_link_type(options: ProcessOptions) -> None:
    found = findings(
        "<head><link rel='NEXT nofollow' href=n><link rel=previous href=p><link rel='alternate stylesheet' href=no>"
        "<link rel=alternate href=alt><link rel=amphtml href=amp>"
        "<link rel='canonical next' href=c><link rel=icon href=no><link rel=next>"
        "<link rel='Search' href=find><link rel=search type=application/opensearchdescription+xml href=no>"
        "<link rel='license' type='text/html; charset=utf-8' href=law><link rel='index up' href=all>"
        # HTML5 Boilerplate #1895 and fess #786: sitemaps; `feed` is of microformats and of the first drafts of HTML5.
        "<link rel=sitemap type=application/xml href=sm><link rel=feed href=f>"
        "<meta http-equiv=Refresh content='5; URL=r'></head>"
        "<map><area href=ar alt=' An \n area '></map><iframe src=if></iframe><iframe></iframe><iframe srcdoc=x>",
        options,
    )
    assert [(link.url.removeprefix(D), link.link_type, link.anchor_text) for link in found.links] == [
        ("n", "next", ""),
        ("p", "prev", ""),
        ("alt", "alternate", ""),
        ("amp", "alternate", ""),
        ("c", "canonical", ""),
        ("c", "next", ""),
        ("find", "related", ""),
        ("law", "related", ""),
        ("all", "related", ""),
        ("sm", "related", ""),
        ("f", "feed_file", ""),
        ("r", "meta_refresh", ""),
        ("ar", "area", "An area"),
        ("if", "iframe", ""),
    ]


@READERS
def test_pages_within_object_and_embed_are_iframes(options: ProcessOptions) -> None:
    body = (
        "<object type='text/html' data=a></object><embed src=b type='Application/XHTML+XML; charset=utf-8'>"
        "<object data=no></object><object type=image/png data=no></object><embed src=no type=application/pdf>"
    )
    assert urls(findings(body, options), "iframe") == [D + "a", D + "b"]


@READERS
def test_pages_that_turbo_and_github_show_within_a_page_are_iframes(options: ProcessOptions) -> None:
    """Turbo (hotwired/turbo, handbook, Frames) and github/include-fragment-element load `src` in their place."""
    body = "<turbo-frame id=f src=a loading=lazy><a href=x>x</a></turbo-frame><turbo-frame id=g></turbo-frame>"
    found = findings(body + "<include-fragment src=b></include-fragment><p>y", options)
    assert urls(found, "iframe") == [D + "a", D + "b"]
    assert urls(found, "anchor") == [D + "x"]


@READERS
def test_frames(options: ProcessOptions) -> None:
    found = findings("<frameset><frame src=a><FRAME SRC='b'></frameset>", options)
    assert urls(found, "frame") == [D + "a", D + "b"]


@READERS
@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<a href=x> The \n  <b>bo</b>ld&nbsp;&amp;&eacute; </a>", "The bold &é"),
        ("<a href=x><img src=y alt='A  picture'></a>", "A picture"),
        ("<a href=x> <span><img src=y><img alt=Two></span></a>", "Two"),
        ("<a href=x><img alt=no>yes</a>", "yes"),
        ("<a href=x><!-- no -->yes<!-- no --> yes</a>", "yes yes"),
        ("<a href=x><h3>Title</h3><p>one<br>two</p></a>", "Title one two"),
        ("<a href=x>a<script>no()</script><STYLE>no{}</style> b<SCRIPT >no</a>", "a b"),
        ("<a href=x aria-label='A &amp; \"B\"' title=no><i class=icon></i></a>", 'A & "B"'),
        ("<a title=Home href=x><img src=y alt=''></a>", "Home"),
        ('<a href="x" title="no"><img alt="yes"></a>', "yes"),
        ('<a href="x" title="no">yes</a>', "yes"),
        ("<a href=x>first</a><a href=x>second</a>", "first"),
        ("<a href=x>one<a href=y>two", "one"),
        ("<a href=x>" + "é" * 2000 + "</a>", "é" * 500),
    ],
)
def test_anchor_text(body: str, text: str, options: ProcessOptions) -> None:
    assert findings(body, options).links[0].anchor_text == text


@READERS
@pytest.mark.parametrize(
    ("rel", "nofollow"),
    [
        ("nofollow", True),
        ("noopener NoFollow", True),
        ("ugc", False),
        ("sponsored", False),
        ("x-nofollow", False),
        ("nofollow,noopener", True),
        ("ugc, nofollow", True),
        ("sponsored,ugc", False),
        ("x,-nofollow", False),
    ],
)
def test_nofollow_of_a_link(rel: str, nofollow: bool, options: ProcessOptions) -> None:
    found = findings(f"<a href=x rel='{rel}'>n</a><area href=y rel='{rel}'>", options)
    assert [link.nofollow for link in found.links] == [nofollow, nofollow]


@READERS
def test_each_mention_has_its_text_and_its_nofollow(options: ProcessOptions) -> None:
    found = findings("<a href=x rel=nofollow>1</a><a href=x>2</a><a href=y>3</a><a href=./x></a>", options)
    assert [(link.url, link.anchor_text, link.nofollow) for link in found.links] == [
        (D + "x", "1", True),
        (D + "x", "2", False),
        (D + "y", "3", False),
        (D + "x", "", False),
    ]


@READERS
def test_of_anchors_into_the_page_one_that_may_be_followed_is_kept(options: ProcessOptions) -> None:
    page = "<a href='#a' rel=nofollow>a</a><a href='#b'>b</a><a href='#c'>c</a>"
    found = findings(page, options=options).links
    assert [(link.url, link.anchor_text, link.nofollow) for link in found] == [(URL, "a", True), (URL, "b", False)]


@READERS
def test_links_of_a_page_have_a_bound(options: ProcessOptions) -> None:
    bounded = replace(options, links_max=10)
    assert len(findings("".join(f"<a href={i}>" for i in range(100)), bounded).links) == 10


@READERS
def test_the_text_of_a_link_has_a_bound(options: ProcessOptions) -> None:
    bounded = replace(options, anchor_bytes_max=5)
    [link] = findings("<a href=x>" + "é" * 10 + "</a>", bounded).links
    assert link.anchor_text == "éé"


@READERS
def test_repeats_have_a_bound_of_their_own(options: ProcessOptions) -> None:
    """What is repeated without end takes no room from other links, and hides no mention that may be followed."""
    bounded = replace(options, links_max=10)
    body = "<a href=x rel=nofollow>n</a>" * 100 + "<a href=x>m</a>" + "".join(f"<a href={i}>" for i in range(100))
    found = findings(body, bounded).links
    assert urls(findings(body, bounded)) == [D + "x"] * 12 + [f"{D}{i}" for i in range(9)]
    assert [link.nofollow for link in found[:12]] == [True] * 11 + [False]


def test_a_refresh_header_is_a_meta_refresh() -> None:
    for value, target in (
        ("0; url=/next", "https://example.org/next"),
        ("5;URL='n?a=1'", D + "n?a=1"),
        ("0", None),
        ("soon; url=/x", None),
        ("0; url=javascript:x", None),
    ):
        found = findings(b"x", headers=(("Refresh", value),), media_type="text/plain")
        assert [(link.url, link.link_type) for link in found.links] == ([(target, "meta_refresh")] if target else [])


@READERS
def test_documents_in_attributes_nest_so_deep(options: ProcessOptions) -> None:
    body = "<a href=5>"
    for level in range(4, -1, -1):
        body = f'<a href={level}><iframe srcdoc="{html.escape(body)}"></iframe>'
    assert urls(findings(body, options)) == [f"{D}{level}" for level in range(SRCDOC_DEPTH_MAX + 1)]


@READERS
def test_addresses_have_a_bound(options: ProcessOptions) -> None:
    assert findings(f"<a href={'x' * 10_000}>n</a><a href=y>", options).links[0].url == D + "y"


def test_a_query_is_sent_in_the_encoding_of_its_page() -> None:
    body = "<meta charset=windows-1251><a href='/ж?q=ж&a=1'>n</a><a href='?q=中'>n</a>"
    found = findings(body.replace("中", "&#20013;").encode("windows-1251"))
    assert urls(found) == ["https://example.org/%D0%B6?q=%E6&a=1", D + "page.html?q=%26%2320013%3B"]


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("5; url=x", "x"),
        ("0;URL='x y'", "x y"),
        ('0 ; Url = "x"', "x"),
        ("0;url=x", "x"),
        ("0,url=x", "x"),
        ("0 url=x", "x"),
        ("0; x", "x"),
        ("0;'x'", "x"),
        ("0;url='x", "x"),
        ("0;url='x'y", "x"),
        ("1.5;url=x", "x"),
        (".5;url=x", "x"),
        ("0;urls", "urls"),
        ("0;url x", "url x"),
        ("0; url=https://e.example/?a='b'", "https://e.example/?a='b'"),
        ("  0;url=x", "x"),
        ("5", None),
        ("5;", None),
        ("url=x", None),
        ("x;url=y", None),
        ("5x;url=y", None),
        ("", None),
    ],
)
def test_meta_refresh(content: str, target: str | None) -> None:
    assert refresh_target(content) == target


@READERS
@pytest.mark.parametrize(
    ("body", "target"),
    [
        ("<script>location = '/a'</script>", "/a"),
        ('<script>window.location.href="https:\\/\\/example.org\\/a";</script>', "/a"),
        ("<script>\n<!--\ntop.location.replace( 'a/' )\n//--></script>Wait", "/dir/a/"),
        ("<body onload=\"document.location='/a'\">", "/a"),
        ('<script>location.assign("/a?x=1" + window.location.search + window.location.hash)</script>', "/a?x=1"),
        ("<script>if (mobile) location.href='/m'\nelse location.href='/d'</script>", "/m"),
        ("<link rel=canonical href=/c><script>location='/a'</script>", "/a"),
        ("<script>location.href = '/a/' + id</script>", None),
        ("<script>location.href = target; mylocation = '/a'; if (location.href == '/b') {}</script>", None),
        ("<script>location.reload(); location.hash = '/a'</script>", None),
        ("<a href=/b>n</a><script>location='/a'</script>", None),
        ("<meta http-equiv=refresh content='0;url=/b'><script>location='/a'</script>", "/b"),
        (f"<script>location='/a'</script><!--{'x' * BARE_BYTES_MAX}-->", None),
    ],
)
def test_where_a_small_page_without_links_a_script_leads(
    body: str, target: str | None, options: ProcessOptions
) -> None:
    """Sites whose first page is nothing else: other crawlers' users see their crawls end after one page."""
    found = urls(findings(body, options), "meta_refresh")
    assert found == ([] if target is None else [f"https://example.org{target}"])


@pytest.mark.parametrize(
    ("value", "links"),
    [
        ('<x>; rel="next"', [("next", "x")]),
        ("<x>;rel=prev", [("prev", "x")]),
        ('<x>; rel="foo canonical"', [("canonical", "x")]),
        ('<x>; title="a, b; rel=no"; rel=next, <y>; REL=alternate', [("next", "x"), ("alternate", "y")]),
        ('<x>; title="q\\"uote"; rel=next', [("next", "x")]),
        ("<x>, <y>; rel=next", [("next", "y")]),
        ("<x>; rel='next', <y>;rel = 'prev'", [("next", "x"), ("prev", "y")]),
        (" , <x> ; rel = next ,", [("next", "x")]),
        ("<x>; rel=stylesheet", []),
        ("<x>; rel=next; rel=prev", [("next", "x")]),
        ('<x>; rel=next; anchor="#part"', []),
        ("<x,y>; rel=next", [("next", "x,y")]),
        ("x; rel=next", []),
        ("<x; rel=next", []),
        ("<x>; rel=next; garbage=;;; <y>; rel=prev", [("next", "x")]),
        ("", []),
    ],
)
def test_link_header(value: str, links: list[tuple[str, str]]) -> None:
    assert list(link_header(value)) == links


def test_link_headers_of_any_type() -> None:
    headers = (("link", "<n>; rel=next"), ("LINK", "</c>; rel=canonical"))
    found = findings(b"%PDF", headers=headers, media_type="application/pdf")
    assert [(link.url, link.link_type) for link in found.links] == [
        (D + "n", "next"),
        ("https://example.org/c", "canonical"),
    ]


def test_link_headers_start_from_the_page() -> None:
    body = "<base href=/b/><link rel=next href=n>"
    assert urls(findings(body, headers=(("Link", "<n>; rel=next"),))) == ["https://example.org/b/n", D + "n"]


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/x", "https://example.org/x"),
        ("x#y", D + "x"),
        ("  https://other.example ", "https://other.example/"),
        ("//other.example/x", "https://other.example/x"),
        ("/caf\u00c3\u00a9", "https://example.org/caf%C3%A9"),
        ("/caf\u00e9", "https://example.org/caf%E9"),
        ("/\u00d3\u00ee?\u00c3\u00a9=\u00ff", "https://example.org/%D3%EE?%C3%A9=%FF"),
        ("caf%e9\u00e9#\u00e9", D + "caf%e9%E9"),
        ("http://other.example/\u00e9", "http://other.example/%E9"),
        ("", "https://example.org/second"),
        (" \t ", "https://example.org/second"),
        ("#x", URL),
        ("a b\tc", D + "a%20bc"),
        (r"\\other.example\x", "https://other.example/x"),
        ("HTTPS:/x", "https://example.org/x"),
        ("https:///other.example/x", "https://other.example/x"),
        ("javascript:x", None),
        ("https://[", None),
    ],
)
def test_redirect_target(location: str, target: str | None) -> None:
    assert redirect_target(URL, (("Date", "x"), ("lOcAtion", location), ("Location", "/second"))) == target


def test_no_location_is_no_redirect() -> None:
    assert redirect_target(URL, (("Link", "x"),)) is None


@pytest.mark.parametrize(
    ("location", "fragment"),
    [("/a", ""), ("/a#", ""), ("/a#b", "#b"), ("#b#c", "#b#c"), (" /a#b c\xc3\xa9%41 ", "#b%20c%C3%A9%41"), ("", "")],
)
def test_redirect_fragment(location: str, fragment: str) -> None:
    assert redirect_fragment((("Location", location),)) == fragment
    assert redirect_target(URL, (("Location", ""),)) is None
    assert redirect_target(URL, (("Location", " "), ("location", "\t"))) is None


@given(
    st.text(alphabet="ab.~-/?=&:@#%2eE \\\t", max_size=30)
    | st.lists(st.sampled_from(["../", "a/", "b", "./"])).map("".join)
)
def test_the_quick_join_is_the_join(href: str) -> None:
    for url in (URL, "http://h.example:8080/", "http://h.example/a/b/?/c", "http://h.example//a//b"):
        joined = join(url, href)
        if joined is not None and not joined.startswith("http"):
            continue
        assert Base(url).join(href) == joined


@given(st.text(max_size=200), st.integers(0, 50))
def test_collapsed_text_is_within_its_bound(text: str, bytes_max: int) -> None:
    kept = collapse_spaces(text, bytes_max)
    assert len(kept.encode("utf-8", "replace")) <= bytes_max
    assert " ".join(text.split()).startswith(kept) or any("\ud800" <= c <= "\udfff" for c in text)
