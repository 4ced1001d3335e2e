"""Targets: a hypothesis test for each reader of bytes. Each compares with an independent reader where there is one."""

from __future__ import annotations

import asyncio
import gzip
import io
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from fastwarc.warc import ArchiveIterator
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from gossamer.cluster.frames import decode_batch, decode_frame
from gossamer.config.gather import reopen_text
from gossamer.config.toml import effective_toml
from gossamer.engine.control import answer_of
from gossamer.engine.history import read_page_record
from gossamer.engine.logs import Logs
from gossamer.model.errors import ConfigError
from gossamer.model.pages import Findings, Page
from gossamer.model.verbs import VERBS, InvalidError, read
from gossamer.model.visits import Failure, Reply, Request
from gossamer.results.search.index import IndexWriter
from gossamer.results.search.query import search
from gossamer.results.search.question import QueryError, SearchQuestion
from gossamer.stages.archive.cdxj import IndexEntry
from gossamer.stages.archive.logs import BrokenFrameError, batches
from gossamer.stages.archive.records import HTTP_RESPONSE, Gzip, Record, member, response_head
from gossamer.stages.archive.surt import surt
from gossamer.stages.archive.warc import warc_date
from gossamer.stages.fetch.decoding import BoundedDecoder
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.frontier.record import decode_block, decode_entry, decode_record
from gossamer.stages.process.announcements import Announcements
from gossamer.stages.process.charset import to_utf8
from gossamer.stages.process.html import TreeMarkup
from gossamer.stages.process.scan import ScannedMarkup
from gossamer.stages.robots.rules import RobotsRules
from gossamer.state import contacts
from gossamer.url.join import join
from gossamer.url.name import Namer
from gossamer.world.clock import WallClock
from tests.stages.archive.web import START, visited
from tests.stages.fetch.servers import Server, always, serving
from tests.stages.fetch.speaking import speaking
from tests.stages.process.pages import SCAN, TREE, findings
from tests.stages.process.test_scan import ANCHOR, BLOCKS, facts

Target = Callable[[], None]
TARGETS: dict[str, Target] = {}
FETCH_S_MAX = 5.0
BASE = "https://example.org/dir/page?q#f"
URLS = st.text("abcé%2fF:/?#@[].\\& \t\n<>\0\uff03\u3002", max_size=60) | st.text(max_size=40)


def one_line(error: Exception) -> None:
    """An operator's mistake is one line."""
    assert "\n" not in str(error)
    assert str(error)


def target(function: Target) -> Target:
    """Register a target under its function's name."""
    TARGETS[function.__name__] = function
    return function


@target
@given(URLS)
def urls(text: str) -> None:
    """A joined address joins to itself, and its key has its own key."""
    joined = join(BASE, text)
    if joined is None:
        return
    assert join(BASE, joined) == joined
    named = Namer().name(joined)
    if named is not None:
        again = Namer().name(named.key)
        assert again is not None
        assert (again.key, again.fingerprint) == (named.key, named.fingerprint)


@target
@given(st.binary(max_size=400) | st.lists(st.sampled_from([b"<", b">", b"a", b" ", b"=", b"'", b"&#0;"])).map(b"".join))
def html(body: bytes) -> None:
    """Both readers read any bytes; of well-formed pages they say the same (`both_readers`)."""
    findings(body, TREE)
    findings(body, SCAN)


@target
@given(st.lists(BLOCKS | ANCHOR, max_size=30).map("".join))
def both_readers(body: str) -> None:
    """The tree and the scan find the same in pages without mistakes."""
    tree, scan = TreeMarkup(body.encode()), ScannedMarkup(body.encode())
    assert [anchor[:2] for anchor in scan.anchors] == [anchor[:2] for anchor in tree.anchors]
    assert facts(scan)[1:] == facts(tree)[1:]


_PATHS = st.text("/ab.c", max_size=6).map("/{}".format)
_RULES = st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), _PATHS | st.builds("{}*{}".format, _PATHS, _PATHS)))
_GROUPS = st.lists(st.tuples(st.sampled_from(["*", "gossamer", "other"]), _RULES), max_size=4)


@target
@given(_GROUPS, _PATHS, st.binary(max_size=200))
def robots(groups: list[tuple[str, list[tuple[str, str]]]], path: str, noise: bytes) -> None:
    """Rules that RFC 9309 reads in one way are read as an independent reader does; other bytes are read somehow."""
    lines = [
        line
        for agent, rules in groups
        for line in (f"User-agent: {agent}", *(f"{verb}: {pattern}" for verb, pattern in rules))
    ]
    text = "\n".join(lines)
    expected = Protego.parse(text).can_fetch(f"http://example.org{path}", "gossamer")
    assert RobotsRules.parse(text.encode()).allows(path) == expected, text
    RobotsRules.parse(text.encode() + b"\n" + noise).allows(path)


_HEADS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 301 \r\n", b"HTTP/1.1 99", b"HTTP/9.9 200\r\n", b"Location: //\xff\r\n",
        b"\r\n",
        b"Content-Length: 5\r\n", b"Content-Length: 18446744073709551616\r\n", b"Content-Length: -1\r\n",
        b"5\r\nhello\r\n",
        b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n",
        b"ffffffffffffffff\r\n",
        b"Content-Encoding: gzip, br, zstd\r\n", b"Connection: close\r\n", b" folded\r\n",
        b"Content-Type: text/html; charset\r\n",
        b"Set-Cookie: a=b\r\n", b"hello", b"HTTP/1.1 100 Continue\r\n\r\n",
    ]
)  # fmt: skip


@target
@given(st.lists(_HEADS | st.binary(max_size=20), max_size=12).map(b"".join), st.booleans())
def http(data: bytes, stays: bool) -> None:
    """For any bytes of a server a fetch ends in a reply or a failure, within its time."""

    async def main() -> Reply | Failure:
        async with (
            serving(always(data, stay=stays)) as server,
            speaking(request_s_max=0.3, connect_s_max=0.3) as module,
        ):
            async with asyncio.timeout(FETCH_S_MAX):
                return await module.fetch(_request(server))

    answer = asyncio.run(main())
    if isinstance(answer, Reply):
        assert 100 <= answer.status <= 999
        assert len(answer.body) <= len(data)
    else:
        assert answer.error
        assert "\n" not in answer.error


def _request(server: Server) -> Request:
    return Request(url=f"http://example.test:{server.port}/", ip="127.0.0.1", port=server.port)


_CODINGS = st.lists(st.sampled_from(["gzip", "deflate", "br", "zstd", "identity", "x"]), max_size=3).map(", ".join)


@target
@given(st.binary(max_size=200), _CODINGS, st.booleans())
def codings(body: bytes, coding: str, is_packed: bool) -> None:
    """A body in any codings is decoded as far as it goes, within the bound."""
    sent = gzip.compress(body) if is_packed else body
    reply = visited(body=sent, headers=(("Content-Encoding", coding),)).reply
    assert reply is not None
    found = BoundedDecoder(FetchOptions()).decode(reply)
    if is_packed and coding == "gzip":
        assert (found.body, found.error) == (body, "")


@target
@given(
    st.binary(max_size=300),
    st.text(max_size=20) | st.sampled_from(["utf-8", "utf-7", "utf-16", "gb18030", "x-user-defined"]),
)
def charset(body: bytes, label: str) -> None:
    """Any bytes in any charset become UTF-8."""
    text, name = to_utf8(body, label)
    text.decode("utf-8", "strict" if name != "utf-8" else "replace")  # What says it is UTF-8 stays as it is.
    assert name


_XML = st.sampled_from(
    [
        b"<urlset>", b"<url><loc>/a</loc>", b"</url>", b"<lastmod>2026-13-01T</lastmod>", b"<rss><channel>",
        b"<item><link>x",
        b"<feed xmlns='http://www.w3.org/2005/Atom'>", b"<entry><link href='/b'/>", b"&x;",
        b"<!DOCTYPE a [<!ENTITY x 'y'>]>",
        b"<?xml version='1.0' encoding='utf-16'?>", b"<![CDATA[", b"]]>", b"<sitemapindex><sitemap>", b'{"version":"',
        b"\x1f\x8b",
        b'{"items":[{"url":1}]}', b"http://example.org/\n", b"<changefreq>weekly", b"<priority>nan</priority>",
    ]
)  # fmt: skip


@target
@given(
    st.lists(_XML | st.binary(max_size=10), max_size=15).map(b"".join),
    st.sampled_from(["sitemap_file", "feed_file", ""]),
)
def sitemaps(body: bytes, link_type: str) -> None:
    """Sitemaps and feeds of any bytes, packed or not, raise nothing."""
    for data in (body, gzip.compress(body), gzip.compress(body)[:-9]):
        for media_type in ("text/xml", "text/plain", "application/json"):
            page = Page(BASE, media_type, "", (), data, link_type=link_type)
            Announcements().process(page, Findings())


_LATIN = st.text(st.characters(max_codepoint=255), max_size=12)


@target
@given(st.lists(st.tuples(_LATIN, _LATIN), max_size=5), st.binary(max_size=200), _LATIN)
def warc(headers: list[tuple[str, str]], body: bytes, reason: str) -> None:
    """A record that is written is read back by another library: as many, with the same payload and a right digest."""
    reply = visited(body=body, headers=tuple(headers), reason=reason).reply
    assert reply is not None
    record = Record("response", "urn:uuid:0", warc_date(START), HTTP_RESPONSE, [], response_head(reply), body)
    stream = io.BytesIO(member(record, "sha1", Gzip(2)) * 2)
    found = [
        (one.reader.read().partition(b"\r\n\r\n")[2], one.verify_block_digest())
        for one in ArchiveIterator(stream, parse_http=False)
    ]
    assert [payload for payload, _ in found] == [body, body]


@target
@given(URLS, st.text(max_size=10))
def cdxj(text: str, mime: str) -> None:
    """A line of the index is one line: a key without spaces, a time, and JSON that gives back what was written."""
    url = join(BASE, text)
    if url is None:
        return
    line = IndexEntry(url, int(START), mime, "200", "sha1:A", 1, 2, "x.warc.gz").line()
    key, stamp, rest = line.decode().split(" ", 2)
    assert line.count(b"\n") == 1
    assert (key, len(stamp)) == (surt(url), 14)
    assert msgspec.json.decode(rest)["url"] == url.partition("?__wb_method")[0] or "__wb" in url


_KEYS = st.sampled_from(
    ["crawl.commit_s", "scope.include", "politeness.delay_s_min", "frontier", "x", "fetch.headers", ""]
)
_VALUES = st.sampled_from(["1", "-1", "nan", "'a'", "[]", "['a', 1]", "{}", "true", "1e400", '"""', "2026-01-01"])


@target
@given(st.lists(st.builds("{} = {}\n".format, _KEYS, _VALUES) | st.text(max_size=20), max_size=6).map("".join))
def configuration(text: str) -> None:
    """A configuration is read, or refused in one line."""
    try:
        config = reopen_text(text, "crawl.toml")
    except ConfigError as error:
        one_line(error)
        return
    assert reopen_text(effective_toml(config), "crawl.toml") == config


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
_FIELDS = st.sampled_from(sorted({field for verb in VERBS.values() for field in verb.takes.__struct_fields__}))


@target
@given(
    st.sampled_from([*VERBS, "none"]), st.dictionaries(_FIELDS | st.text(max_size=5), _JSON, max_size=4), st.booleans()
)
def requests(verb: str, fields: dict[str, Any], from_texts: bool) -> None:
    """Fields of a request, over HTTP or the control socket, are taken or refused as invalid."""
    with suppress(InvalidError):
        read(verb, fields, from_texts=from_texts)


@target
@given(st.dictionaries(st.sampled_from(["verb", "url", "x"]), _JSON, max_size=3))
def control(request: dict[str, Any]) -> None:
    """The control socket answers every object."""

    async def failing(_request: dict[str, object]) -> dict[str, object]:
        raise ValueError("an internal error")

    with tempfile.TemporaryDirectory() as folder:
        logs = Logs(Path(folder), WallClock())
        answer = asyncio.run(answer_of({"why": failing}, request, logs))
        logs.close()
    assert answer["ok"] is False
    assert answer["error"]


@cache
def _index() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="gossamer-fuzz-")) / "search"
    writer = IndexWriter(folder, 15 << 20)
    writer.commit("")
    writer.close()
    return folder


_WORDS = st.sampled_from(
    ["a", '"', "(", ")", " AND ", " OR ", "-", "+", "title:", "*", "~9", "^2", "[a TO z]", "{", "\\", ":", "é"]
)


@target
@given(st.lists(_WORDS | st.text(max_size=5), max_size=12).map("".join))
def queries(query: str) -> None:
    """A query is answered, or refused in one line."""
    try:
        search([_index()], SearchQuestion(query))
    except (QueryError, ConfigError) as error:
        one_line(error)


@target
@given(st.binary(max_size=200) | _JSON.map(lambda value: msgspec.msgpack.encode(value, enc_hook=str)))
def records(data: bytes) -> None:
    """Durable records and frames between shards: other bytes are refused as such, before anything else happens."""
    for decode in (decode_frame, decode_batch, read_page_record, decode_record, decode_block, decode_entry):
        with suppress(msgspec.MsgspecError, ConfigError, UnicodeDecodeError):
            decode(data)
    contacts.faults(data)


@target
@given(st.binary(max_size=300), st.sampled_from([b"", b"gsf1"]))
def table_logs(data: bytes, magic: bytes) -> None:
    """A log of a table that holds other bytes is refused by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        path.write_bytes(magic + data)
        with suppress(BrokenFrameError):
            list(batches(path))
