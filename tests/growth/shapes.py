"""Shapes: what is repeated within what, for each kind of input. A new one is a line here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Shape(NamedTuple):
    """An input of any size: a beginning, a piece that is repeated, an end."""

    name: str
    before: bytes
    piece: bytes
    after: bytes

    def of(self, size: int) -> bytes:
        """Return an input of about `size` bytes."""
        return self.before + self.piece * max(1, size // len(self.piece)) + self.after


Construct = tuple[str, str]
"""What is before and after the repeated piece."""

_MARKUP = (
    "/", " ", "\n", "<", ">", '"', "'", "&", "a", "=", "1", ";", "\\", "(", "a=", "a='b' ", "<a ", "<a href=/x>",
    "<b>", "</b>",
    "<!--", "--", "&#1", "&amp;", "<p>", "<svg>", "_a", "$$",
    "location='", "<p hidden>", "</div>", ".a{display:none}", "transform:", "left:-", ".png?",
)  # fmt: skip
_TAGS: tuple[Construct, ...] = (
    ("", ""), ("<p>", "</p>"), ("<link ", ">"), ("<a href=/x ", ">t</a>"), ('<a href="', '">t</a>'), ("<a href='",
    ""),
    ("<a href=", ">t</a>"), ("<!--", "-->"), ("x<!--", ""), ("<title>", "</title>"), ("<svg><title>", "</svg>x"),
    ('<script type="application/ld+json">{"@type":', '"Article"}</script>'), ("<meta name=", ">"),
    ('<meta http-equiv="refresh" content="', '">'), ('<meta http-equiv="refresh" content="0;url=', '">'),
    ('<img srcset="', '">'), ('<p>t <img data-x="/x', ' "> t</p>'),
    ('<p style="background:url(', ')">'), ("<style>@import ", "</style>"),
    ("<math><annotation encoding=", "</annotation></math>"), ("<table><tr><td>", "</table>"), ("<ul><li>", "</ul>"),
    ("<pre><code>", "</code></pre>"), ("<html ", "><p>"), ("<!doctype ", ">"), ("<textarea>", ""), ("<template>", ""),
    ("<p hidden>", "</p>x"), ("<p style='", "display:none'>t</p>x"), ("<style>", "{display:none}</style><p hidden>"),
    ("<style>p{", "display:none}</style><p>t"),
    ("<script>location='/x';", "</script><select onchange='location=this.value'>"),
)  # fmt: skip
_WORDS = (
    " ",
    "a",
    "=",
    ";",
    ",",
    '"',
    "\\",
    '\\"',
    "<",
    "1",
    "\t",
    "a=b",
    'a="',
    ", ",
    "digest ",
    "charset=",
    "é",
    "%41",
    "/",
    "sid",
)
_FIELDS: tuple[Construct, ...] = (
    ("", ""), ("a", ""), ('a; b="', ""), ("<", ""), ("</x>; rel=", ""), ('</x>; rel="', '"'), ("1", ""),
    ("text/html;", ""),
    ('text/html; charset="', ""), ("Digest ", ""), ('Digest nonce="', ""), (",", "x"),
)  # fmt: skip
_ADDRESSES = (
    "/", "a", "a/", "../", "?", "&", "a=b&", "=", "#", "%41", "%", "@", ":", ".", ";sid", "(s(", "(a)/", "é", "\\",
    "1", "-",
    "cfid=1&", "index.html/", "a.",
)  # fmt: skip
_URLS: tuple[Construct, ...] = (
    ("http://x.test/", ""),
    ("http://", "/"),
    ("http://x.test/?", ""),
    ("http://x.test/a;", "!"),
    ("", "://"),
)
_XML = (
    "<a>", "</a>", "<a ", " ", "a", "&", "&#1;", "&amp", "<!--", "-->", "<![CDATA[", "]]>", "<?xml ", '"', "<",
    ">", "=",
    "<url><loc>/a</loc></url>", "<item><link>/a</link></item>",
)  # fmt: skip
_DOCUMENTS: tuple[Construct, ...] = (
    ("", ""), ("x<!--", ""), ("<?xml ", "?><urlset>"), ("<urlset><url><loc>", "</loc></url></urlset>"),
    ("<rss><channel><item><link>", ""),
    ('<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="', '"/></entry></feed>'), ("<urlset><![CDATA[",
    ""),
)  # fmt: skip
_LINES = (
    "\n",
    "a",
    " ",
    "*",
    "$",
    "/*",
    "%",
    "a: b\n",
    ":",
    "#",
    "Disallow: /a*b\n",
    "User-agent: a\n",
    "\0",
    "1 ",
    "\r",
    "-",
    "\t",
    "a=b;",
)
_CSS = (
    '"',
    "'",
    "\\",
    '\\"',
    "(",
    ")",
    "url(",
    "/*",
    "*/",
    " ",
    "a",
    "@import ",
    'url("',
    "image-set(",
    ",",
    "{",
    ";",
    "\n",
)

_ARCHIVES = (
    "\n", "\r\n", "\0", "a", '"', "\\", "{", "[]", ",", "0\r\n", "1\r\na\r\n", "X: y\r\n", "WARC/1.0\r\n",
    "WARC/1.0\r\n\r\n",
    "WARC/1.0\r\nContent-Length: 1\r\n\r\n", "WARC/1.0\r\nContent-Length: 9999\r\n\r\n",
    "\nhttp://a 1 20260101000000 a 0\n",
    "\x1f\x0b\x08", "HTTP/1.1 100 Continue\r\n\r\n",
)  # fmt: skip
RECORD = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a/\r\n"

_KINDS: dict[str, tuple[tuple[str, ...], tuple[Construct, ...]]] = {
    "markup": (_MARKUP, _TAGS),
    "field": (_WORDS, _FIELDS),
    "address": (_ADDRESSES, _URLS),
    "xml": (_XML, _DOCUMENTS),
    "robots": (_LINES, (("", ""), ("User-agent: *\nDisallow: /", "\nAllow: /"), ("User-agent: *\nCrawl-delay: ",
        ""), ("Content-Usage: ", ""))),
    "listing": (_LINES, (("", "\n"), ("-rwxrwxrwx 1 a b 1", "x\n"), ("drwxr-xr-x 1 a 1 Jan", "\n"), ("a=b;", "\n"),
        ("01-01-20 01:01AM", "\n"), ("A;1 ", "\n"), ("d [RWCEAFMS] a 1", "\n"), ("A 1 01/01/20 01:01 *A ", "\n"))),
    "mail": (_LINES, (("", ""), ("Subject: ", "\n\nx"), ("Content-Type: multipart/mixed; boundary=a\n\n", ""),
        ("From a\nDate: ", "\n\nx"))),
    "json-ld": (
        ('"', "\\", '\\"', "/", "//", "/*", "*/", "<!--", "-->", "<![CDATA[", "]]>", "[", "]", "{", "}", ",", " ",
            "\n", "a"),
        (("", ""), ('{"a":"', '",}'), ("[", ",]"), ("/* ", ""), ("//", "{}"), ("<!-- ", "-->{}"), ("{},", "")),
    ),
    "css": (_CSS, (("", ""), ('a{b:url("', ""), ("@import ", ""), ("a{b:image-set(", ")}"), ("image-set(url(", ""))),
    "status": (_WORDS, (("HTTP/1.1 200", ""), ("HTTP/1.1 200 ", "\r\nx"), ("HTTP/1.1", ""), ("HTTP/1.1 200 OK\r\n",
        "\r\n\r\n"))),
    "archive": (_ARCHIVES, (("", ""), (RECORD, "\r\n\r\n"), (f"{RECORD}WARC-Date: ", "\r\nContent-Length: 0\r\n\r\n"),
        ("http://a 1 20260101000000 a ", "\n"), ('{"log":{"entries":[', "]}}"), ('{"log":{"entries":[{"a":"', '"}]}}'),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ""))),
    "text": ((*_WORDS, "http://a ", "a@b ", "_", "http://"), (("", ""), ("http://", ""), ("$$", ""), ("\\(", ""))),
}  # fmt: skip


def shapes(kind: str) -> Iterator[Shape]:
    """Yield the shapes of a kind: each piece within each construct."""
    pieces, constructs = _KINDS[kind]
    for before, after in constructs:
        for piece in pieces:
            name = f"{before}{{{piece}}}{after}"
            yield Shape(name, before.encode(), piece.encode(), after.encode())
