"""Readers: what reads each kind of input. A new one is a line here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Literal

from gossamer.model.pages import Findings, Page
from gossamer.model.usage import content_signal, content_usage
from gossamer.model.visits import content_type, http_date, max_age_s
from gossamer.ports import ProcessingModule
from gossamer.results.imports.capture import Room, Source
from gossamer.results.imports.har import captures_of_har
from gossamer.results.imports.warc import captures_of_warc
from gossamer.results.search.documents import language_of
from gossamer.results.search.parse import QueryParser
from gossamer.results.search.snippets import Snippets
from gossamer.results.search.words import loose_terms, terms_of
from gossamer.stages.archive.surt import surt
from gossamer.stages.archive.unpack import Unpacked
from gossamer.stages.fetch.cookies import cookie_date, parse_cookie
from gossamer.stages.fetch.digest import best_challenge
from gossamer.stages.fetch.ftp import place
from gossamer.stages.fetch.gopher import item_of
from gossamer.stages.fetch.headers import parse_head
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.fetch.tolerant import ReplyReader, TolerantTransfer
from gossamer.stages.process.announcements import Announcements
from gossamer.stages.process.audit import Audit
from gossamer.stages.process.charset import to_utf8
from gossamer.stages.process.content import MainText, Markdown
from gossamer.stages.process.embeds import EmbedExtractor, candidates
from gossamer.stages.process.facts import moment
from gossamer.stages.process.hidden import without_hidden
from gossamer.stages.process.html import is_regular
from gossamer.stages.process.inline import escape, line_safe
from gossamer.stages.process.jsonld import roots
from gossamer.stages.process.links import HeaderLinks, LinkExtractor, refresh_target
from gossamer.stages.process.listings import ListingLinks
from gossamer.stages.process.mail import Mail
from gossamer.stages.process.metadata import Metadata, TagCounter
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.scripted import signal_of, text_bytes
from gossamer.stages.process.text import TextLinks, TitleAndText
from gossamer.stages.process.usage import Directives
from gossamer.stages.process.walls import Walls
from gossamer.stages.robots.rules import RobotsRules
from gossamer.stages.scope.templates import templates_of
from gossamer.url.join import join
from gossamer.url.name import Namer
from gossamer.world.spill import Spills
from tests.growth.measuring import Read
from tests.growth.shapes import RECORD

BASE = "http://x.test/d/"
_SCAN = ProcessOptions(tree_tags_max=0, tree_bytes_max=0, text=True)
_HOME = Namer().name(BASE)
assert _HOME is not None
_WALLS = Walls.ours()


def _module(module: ProcessingModule, media_type: str, link_type: str = "") -> Read:
    return lambda data: module.process(Page(BASE, media_type, "", (), data, link_type=link_type), Findings())


def _text(read: Callable[[str], object]) -> Read:
    return lambda data: read(data.decode("latin-1"))


def _header(name: str) -> Read:
    module = HeaderLinks(_SCAN) if name in ("Link", "Refresh") else Directives(_SCAN)
    return lambda data: module.process(Page(BASE, "text/html", "", ((name, data.decode("latin-1")),), b""), Findings())


def _reply(data: bytes) -> None:
    """Read a reply in two pieces."""
    transfer = TolerantTransfer(FetchOptions(), [])
    reader = ReplyReader(transfer, "GET")
    reader.feed(data[:1_000])
    reader.feed(data[1_000:])
    reader.close()


def _archive(form: Literal["warc", "arc", "har"], before: bytes = b"") -> Read:
    """Return a reader of an archive; with `before`, of the block of a record."""

    def read(data: bytes) -> None:
        if before:
            data = b"%bContent-Length: %d\r\n\r\n%b\r\n\r\n" % (before, len(data), data)
        source = Source(0, "", "", len(data), form)
        unpacked = Unpacked(BytesIO(data), len(data), "")
        room = Room(Spills(Path(), "sha1"))
        deque(
            captures_of_har(source, unpacked, None, str.encode)
            if form == "har"
            else captures_of_warc(source, unpacked, room, None),
            0,
        )

    return read


def _list_members(data: bytes) -> None:
    unpacked = Unpacked(BytesIO(data.replace(b"\x1f\x0b", b"\x1f\x8b")), len(data), "gzip")
    at = 0
    while unpacked.search(lambda begin: begin.startswith(b"WARC/"), at):
        at = unpacked.end


READERS: Mapping[str, Mapping[str, Read]] = {
    "archive": {
        "warc": _archive("warc"),
        "warc block": _archive("warc", RECORD.encode() + b"WARC-Date: 2026\r\n"),
        "arc": _archive("arc"),
        "har": _archive("har"),
        "gzip": _list_members,
    },
    "markup": {
        "links": _module(LinkExtractor(_SCAN), "text/html"),
        "title_and_text": _module(TitleAndText(_SCAN), "text/html"),
        "directives": _module(Directives(_SCAN), "text/html"),
        "embeds": _module(EmbedExtractor(_SCAN), "text/html"),
        "metadata": _module(Metadata(_SCAN), "text/html"),
        "tags": _module(TagCounter(_SCAN), "text/html"),
        "audit": _module(Audit(_SCAN), "text/html"),
        "main_text": _module(MainText(_SCAN), "text/html"),
        "markdown": _module(Markdown(_SCAN), "text/html"),
        "charset": lambda data: to_utf8(data, ""),
        **{f"charset {name}": partial(to_utf8, header_charset=name) for name in ("big5", "euc-jp", "iso-2022-jp")},
        "scripted": lambda data: (signal_of(data, 0), text_bytes(data)),
        "regular": is_regular,
        "hidden": without_hidden,
        "walls": lambda data: _WALLS.in_page(BASE, "", data),
        "search language": lambda data: language_of(data, ()),
    },
    "field": {
        "Link": _header("Link"),
        "Refresh": _header("Refresh"),
        "X-Robots-Tag": _header("X-Robots-Tag"),
        "Set-Cookie": _text(lambda text: parse_cookie(text, _HOME, 0.0)),
        "cookie date": _text(cookie_date),
        "challenge": _text(lambda text: best_challenge([text])),
        "Content-Type": _text(lambda text: content_type((("Content-Type", text),))),
        "Cache-Control": _text(lambda text: max_age_s((("Cache-Control", text),))),
        "HTTP date": _text(http_date),
        "Content-Usage": content_usage,
        "Content-Signal": _text(content_signal),
        "refresh target": _text(refresh_target),
        "srcset": _text(lambda text: list(candidates(text))),
        "date of a page": _text(lambda text: moment(text[:200])),
    },
    "address": {
        "join": _text(lambda text: join(BASE, text)),
        "name": _text(lambda text: Namer().name(text)),
        "surt": _text(lambda text: surt((join(BASE, text) or BASE)[:8_192])),
        "templates": _text(templates_of),
        "ftp": _text(lambda text: place("ftp" + text.removeprefix("http"))),
        "gopher": _text(lambda text: item_of("gopher" + text.removeprefix("http"))),
    },
    "xml": {
        "sitemap": _module(Announcements(_SCAN), "text/xml", "sitemap_file"),
        "feed": _module(Announcements(_SCAN), "application/rss+xml", "feed_file"),
    },
    "robots": {"robots": lambda data: RobotsRules.parse(data).allows("/" + "a" * 200)},
    "listing": {
        "ftp listing": _module(ListingLinks(_SCAN), "text/x-ftp-listing"),
        "gopher menu": _module(ListingLinks(_SCAN), "application/gopher-menu"),
    },
    "json-ld": {"json-ld": lambda data: list(roots(data))},
    "mail": {"mail": _module(Mail(_SCAN), "message/rfc822"), "mbox": _module(Mail(_SCAN), "application/mbox")},
    "css": {"stylesheet": _module(EmbedExtractor(_SCAN), "text/css")},
    "status": {
        "head": lambda data: parse_head(data.splitlines(keepends=True)),
        "tolerant head": lambda data: _reply(data + b"\r\n\r\nbody"),
        "tolerant body": lambda data: _reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + data),
    },
    "text": {
        "text_links": _module(TextLinks(_SCAN), "text/plain"),
        "search terms": _text(lambda text: loose_terms(terms_of(text), "en")),
        "search snippet": _text(lambda text: Snippets(QueryParser("a* b").parse(), ()).of(text, "en")),
        "markdown text": _text(escape),
        "markdown line": _text(line_safe),
    },
}
"""By kind of input and name of the reader."""
