"""The odd ways in which pages write links, as one table: what each names, whichever way the page is read.

A row is what the page holds, as sent, and all that it names: `type address`, addresses relative to the page's folder.
Anchors come first, then other links, then what is embedded. `test_links` has more about anchors alone.
"""

from __future__ import annotations

import codecs

import pytest

from gossamer.model.pages import Page
from gossamer.stages.process.chain import Modules
from gossamer.stages.process.embeds import EmbedExtractor
from gossamer.stages.process.options import ProcessOptions
from tests.stages.process.pages import standard_modules

from .pages import SCAN, TREE

pytestmark = pytest.mark.promise(
    "What is fetched", "Both HTML readers find the same links, except for the differences that the documentation lists."
)

HERE = "https://example.org/dir/"
URL = HERE + "page.html"

TABLE: dict[str, tuple[str | bytes, list[str]]] = {
    # --- how an address is written
    "unquoted": ("<a href=x/y>n</a>", ["anchor x/y"]),
    "single quotes": ("<a href='x y'>n</a>", ["anchor x%20y"]),
    "upper case": ("<A HREF=X><IMG SRC=Y><LINK REL=STYLESHEET HREF=Z>", ["anchor X", "embed Y", "embed Z"]),
    "white space about": ("<a href=' \n x\t'>n</a><img src=' y '>", ["anchor x", "embed y"]),
    "white space within": ("<a href='a\n\tb'>n</a>", ["anchor ab"]),
    "entities": ("<a href='?a=1&amp;b=&#50;&#x33;'>n</a>", ["anchor page.html?a=1&b=23"]),
    "entity that is a parameter": ("<a href='?a=1&copy=2'>n</a>", ["anchor page.html?a=1&copy=2"]),
    "entity without semicolon": ("<a href='?x&lt'>n</a>", ["anchor page.html?x%3C"]),
    "not ASCII": ("<a href='ä?ö'>n</a>", ["anchor %C3%A4?%C3%B6"]),
    "backslashes": (r"<a href='\x\y'>n</a>", ["anchor https://example.org/x/y"]),
    "fragment": ("<a href='x#y'>n</a><svg><use href='s.svg#i'/><use href='#j'/></svg>", ["anchor x", "embed s.svg"]),
    "twice": (
        "<a href=x>n</a><a href='./x'>m</a><img src=x><img src=./x>",
        ["anchor x", "anchor x", "embed x", "embed x"]),
    # --- quotations, edits
    "cites": (
        "<blockquote cite=a>t</blockquote><q cite='b'>t</q><INS CITE='c'>t</INS><del cite=d>t</del><q>t</q>",
        ["cite a", "cite b", "cite c", "cite d"]),
    "cites among others": (
        "<a href=x>n<q cite=y>m</q></a><blockquote title='>' cite=z><p cite=no></blockquote><q cite=''>e</q>",
        ["anchor x", "cite y", "cite z"]),
    "cite in a comment, a script, a template": (
        "<!-- <q cite=no> --><script>'<q cite=no>'</script><template><q cite=no></q></template>", []),
    # --- documents in attributes
    "srcdoc": (
        "<a href=x>n</a><iframe srcdoc='<a href=y>m</a><area href=z><q cite=c>q</q>'></iframe><a href=v>o</a>",
        ["anchor x", "anchor v", "anchor y", "area z", "cite c"]),
    "srcdoc with a source": (
        "<iframe src=s srcdoc=\"<a href='y'>m</a>\"></iframe>", ["iframe s", "anchor y", "embed s"]),
    "srcdoc escaped": (
        "<iframe srcdoc='&lt;a href=&quot;y?a=1&amp;amp;b=2&quot;>m&lt;/a>'></iframe>", ["anchor y?a=1&b=2"]),
    "srcdoc with the page's base": (
        "<base href=b/><iframe srcdoc='<a href=y>'></iframe><a href=z>", ["anchor b/z", "anchor b/y"]),
    "srcdoc with a base": (
        "<base href=b/><iframe srcdoc='<base href=../c/><a href=y>'></iframe><a href=z>", ["anchor b/z", "anchor c/y"]),
    "srcdoc in a srcdoc": (
        """<iframe srcdoc="<a href=1><iframe srcdoc='<a href=2>'></iframe>"></iframe>""", ["anchor 1", "anchor 2"]),
    "srcdoc with images": (
        "<iframe srcdoc='<img src=i><style>p{background:url(j)}</style>'></iframe>", ["embed i", "embed j"]),
    "srcdoc with a refresh": (
        "<iframe srcdoc='<meta http-equiv=refresh content=\"0; url=r\">'></iframe>", ["meta_refresh r"]),
    "srcdoc in a comment": ("<!-- <iframe srcdoc='<a href=no>'></iframe> -->", []),
    # --- what is no link
    "javascript": ("<a href='javascript:go()'>n</a><iframe src=' JavaScript:x'></iframe><img src=javascript:y>", []),
    "data": ("<a href='data:text/html,x'>n</a><img src='data:image/gif;base64,R0lGOD'><img src=' DATA:x'>", []),
    "mail and telephone": ("<a href=mailto:a@b.example>n</a><a href=tel:+1>m</a>", []),
    "comment": ("<!-- <a href=no>n</a><img src=no><style>@import 'no'</style> --><a href=x>n</a>", ["anchor x"]),
    "comment left open": ("<a href=x>n</a><!-- <a href=no>n</a><img src=no>", ["anchor x"]),
    "comment at once closed": ("<!--><a href=x>n</a><!---><img src=y>", ["anchor x", "embed y"]),
    "script": ("<script>s='<a href=no><img src=no>'</script><a href=x>n</a>", ["anchor x"]),
    "script left open": ("<a href=x>n</a><script>'<a href=no><img src=no>'", ["anchor x"]),
    "template": (
        "<template><a href=no>n</a><img src=no></template><a href=x>n</a><img src=y>",
        ["anchor x", "embed y"]),
    "nested templates": ("<template><template></template><img src=no></template><img src=y>", ["embed y"]),
    "textarea and title": ("<title><a href=no></title><textarea><img src=no></textarea><img src=y>", ["embed y"]),
    "within an attribute": ("<p title='<a href=no><img src=no>'><a href=x>n</a>", ["anchor x"]),
    "tag left open": ("<a href=x>n</a><img src=no", ["anchor x"]),
    "plaintext": ("<a href=x>n</a><plaintext><img src=no>", ["anchor x"]),
    # --- where addresses start from
    "base": (
        "<base href=/b/><a href=x>n</a><img src=y>",
        ["anchor https://example.org/b/x", "embed https://example.org/b/y"]),
    "base after the link": ("<a href=x>n</a><base href=/b/>", ["anchor https://example.org/b/x"]),
    "base with a target only": ("<base target=_blank><a href=x>n</a>", ["anchor x"]),
    "base with a target, then one": (
        "<base target=_blank><base href=/b/><a href=x>n</a>",
        ["anchor https://example.org/b/x"]),
    "base that is no address": ("<base href='https://['><a href=x>n</a><img src=y>", ["anchor x", "embed y"]),
    # --- elements
    "noscript": ("<noscript><a href=x>n</a><img src=y></noscript>", ["anchor x", "embed y"]),
    "frames": ("<frameset><frame src=f></frameset>", ["frame f", "embed f"]),
    "inline frame": ("<iframe src=f><a href=no></iframe><iframe></iframe>", ["iframe f", "embed f"]),
    "late frames": (  # lazysizes, WP Rocket; heritrix3's testDataSrc has them for images
        "<iframe data-src='f.html'></iframe><iframe src=about:blank data-lazy-src=/g></iframe><iframe data-src=1>",
        ["iframe f.html", "iframe https://example.org/g", "embed f.html", "embed https://example.org/g"]),
    "area": ("<map><area href=x alt=n><area></map>", ["area x"]),
    "meta refresh": ("<meta http-equiv=refresh content=\"0;url='x'\">", ["meta_refresh x"]),
    "relations": ("<link rel='next' href=x><link rel='shortcut icon' href=y>", ["next x", "embed y"]),
    "svg": ("<svg><image href=x></image><image xlink:href=y></image></svg>", ["embed x", "embed y"]),
    "svg anchor": ("<svg><a href=x><text>n</text></a></svg>", ["anchor x"]),
    "object and embed": ("<object data=x><embed src=y></object>", ["embed x", "embed y"]),
    "media": (
        "<video src=a poster=b><source src=c><track src=d></video><audio src=e></audio>",
        ["embed a", "embed b", "embed c", "embed d", "embed e"],
    ),
    "image button": ("<input type=IMAGE src=x><input type=text src=no>", ["embed x"]),
    "background attribute": ("<body background=x><table background=y>", ["embed x", "embed y"]),
    "preloads": ("<link rel='preload' as=font href=x><link rel=modulepreload href=y><link rel=preconnect href=no>",
                 ["embed x", "embed y"]),
    # --- srcset
    "srcset": ("<img srcset='a.png 1x, b.png 2x'>", ["embed a.png", "embed b.png"]),
    "srcset with commas in addresses": (
        "<img srcset='a,b.png 1x,c.png,d.png 2x'>",
        ["embed a,b.png", "embed c.png,d.png"]),
    "srcset without descriptors": ("<img srcset='a.png, b.png'>", ["embed a.png", "embed b.png"]),
    "srcset, odd": ("<img srcset=' ,, a.png 1x (x, y) , b.png,'>", ["embed a.png", "embed b.png"]),
    "picture": (
        "<picture><source srcset='a.webp 1x, b.webp 2x'><img src=c.png></picture>",
        ["embed a.webp", "embed b.webp", "embed c.png"],
    ),
    # --- stylesheets within
    "style element": ("<style>@import 'a.css'; p{background:url(b.png)}</style>", ["embed a.css", "embed b.png"]),
    "style attribute": ("<p style=\"background:url('x')\">t</p>", ["embed x"]),
    "style attribute, quotes as entities": ("<p style='background:url(&quot;x&quot;)'>t</p>", ["embed x"]),
    "style attribute, bracket within": ("<p title='>' style='background:url(x)'>t</p>", ["embed x"]),
    "css comment": ("<style>/* url(no) @import 'no' */ p{x:url(y)}</style>", ["embed y"]),
    "css escapes": (r"<style>p{x:url(a\29 b)} q{x:url('c\'d')}</style>", ["embed a)b", "embed c'd"]),
    "css string with a fragment only": ("<style>p{filter:url(#f)}</style>", []),
    # --- encodings
    "UTF-16, little": (codecs.BOM_UTF16_LE + "<a href='ж'>n</a>".encode("utf-16-le"), ["anchor %D0%B6"]),
    "UTF-16, big": (codecs.BOM_UTF16_BE + "<img src='ж'>".encode("utf-16-be"), ["embed %D0%B6"]),
    "windows-1251": (
        "<meta charset=windows-1251><a href='ж?ж'>n</a><img src='я?я'>".encode("cp1251"),
        ["anchor %D0%B6?%E6", "embed %D1%8F?%FF"],
    ),
    "windows-1251 by http-equiv": (
        "<meta http-equiv=content-type content='text/html; charset=cp1251'><a href='ж'>n</a>".encode("cp1251"),
        ["anchor %D0%B6"],
    ),
    "undeclared and not UTF-8": (b"<a href='\xe4'>n</a>", ["anchor %C3%A4"]),
    "Shift_JIS": ("<meta charset=sjis><a href='表?'>n</a>".encode("cp932"), ["anchor %E8%A1%A8?"]),
    "broken UTF-8": (b"<meta charset=utf-8><a href='x\xff'>\xc3\xa9</a>", ["anchor x%EF%BF%BD"]),
    "no UTF-8, as declared": (b"<meta charset=utf-8><a href='\xe4?\xe4'>\xfc</a>", ["anchor %C3%A4?%E4"]),
    "byte order mark against meta": (
        codecs.BOM_UTF8 + "<meta charset=cp1251><a href='ж'>n</a>".encode(),
        ["anchor %D0%B6"]),
    # --- scripts, SVG
    "foreign CDATA": ("<svg><![CDATA[ > <a href=no>n</a>]]></svg><a href=x>n</a>", ["anchor x"]),
    "script with a script in a comment": (
        "<script><!--<script></script><a href=no></script>--></script><a href=x>n</a>", ["anchor x"]),
}  # fmt: skip


def named(body: str | bytes, options: ProcessOptions) -> list[str]:
    modules = Modules([*standard_modules(options), EmbedExtractor(options)], options)
    data = body.encode() if isinstance(body, str) else body
    processed = modules.process(Page(URL, "text/html", "", (), data))
    assert processed.errors == ()
    return [f"{found.link_type} {found.url.removeprefix(HERE)}" for found in processed.findings.links]


@pytest.mark.parametrize("options", [TREE, SCAN], ids=["tree", "scan"])
@pytest.mark.parametrize("case", TABLE)
def test_what_a_page_names(case: str, options: ProcessOptions) -> None:
    body, expected = TABLE[case]
    assert named(body, options) == expected
