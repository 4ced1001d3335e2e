"""The contracts: what Gossamer ships keeps them, and what breaks one promise is told which."""

from __future__ import annotations

import asyncio
import functools
import http.server
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import msgspec
import pytest

from gossamer.features.permit import Exclusions
from gossamer.model.links import ALLOWED, Found, Link, Prerequisite, Verdict, Visit
from gossamer.model.pages import Archived, Findings, Original, Page, Visited
from gossamer.model.visits import Failure, Reply, Request
from gossamer.ports import Conclusion, VisitMiddleware
from gossamer.stages.archive.archive import Archives
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.warc import WarcArchive, WarcInfo
from gossamer.stages.fetch.http import HttpModule
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.scope.filters import (
    Depth,
    ExcludePatterns,
    Hops,
    Include,
    Length,
    LinkType,
    PathDepth,
    RepeatedPath,
    Scheme,
)
from gossamer.stages.scope.lists import ExcludedHost
from gossamer.stages.seen.content import ExactContentSeen
from gossamer.stages.seen.urls import RocksUrlSeen
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals
from gossamer.state.store import Store
from gossamer.testing import (
    FakeWeb,
    MemoryArchive,
    check_archive,
    check_content_seen,
    check_filter,
    check_middleware,
    check_processing_module,
    check_protocol_module,
    check_url_seen,
    reply,
)
from gossamer.url.url import Url
from gossamer.world.clock import WallClock
from tests.answering import serving
from tests.stages.process.pages import standard_modules

pytestmark = pytest.mark.promise(
    "Components and Python", "A component that replaces ours is checked by the same contract as ours."
)


@pytest.fixture
def fresh_epochs(tmp_path: Path) -> Iterator[Callable[[], Epochs]]:
    stores: list[Store] = []
    numbers = count()

    def make() -> Epochs:
        stores.append(Store(tmp_path / f"store{next(numbers)}", 1 << 20, 1 << 20))
        return Epochs(stores[-1])

    yield make
    for store in stores:
        store.close()


# ---- what is ours


@pytest.mark.parametrize("popular_urls_max", [0, 100, 10_000])
def test_our_url_seen_keeps_the_contract(fresh_epochs: Callable[[], Epochs], popular_urls_max: int) -> None:
    check_url_seen(lambda: RocksUrlSeen(fresh_epochs(), popular_urls_max))


@pytest.mark.parametrize("scope", ["host", "site", "shard"])
def test_our_content_seen_keeps_the_contract(fresh_epochs: Callable[[], Epochs], scope: str) -> None:
    check_content_seen(lambda: ExactContentSeen(fresh_epochs(), scope))


@pytest.mark.parametrize(
    ("one", "accepts", "rejects"),
    [
        (Scheme(("http", "https")), ["http://a.example/"], ["ftp://a.example/"]),
        (Length(100), ["http://a.example/"], ["http://a.example/" + "x" * 100]),
        (LinkType(("anchor",)), ["http://a.example/"], []),
        (PathDepth(3), ["http://a.example/a/b"], ["http://a.example/a/b/c/d/e"]),
        (RepeatedPath(2), ["http://a.example/a/a"], ["http://a.example/a/b/a/b/a/b"]),
        (ExcludePatterns(["secret"]), ["http://a.example/"], ["http://a.example/secret"]),
        (Include(["docs"]), ["http://a.example/docs/"], ["http://a.example/"]),
        (Hops(5), ["http://a.example/"], []),
        (Depth(3), ["http://a.example/"], []),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_our_filters_keep_the_contract(one: object, accepts: list[str], rejects: list[str]) -> None:
    check_filter(one, accepts, rejects)  # type: ignore[arg-type]


class Own(VisitMiddleware):
    """A middleware with a flaw."""

    def __init__(self, flaw: str = "", name: str = "own") -> None:
        self.flaw = flaw
        self.name = name
        self.calls = 0

    def judge(self, url: Url, now: float) -> Verdict:
        self.calls += 1
        if self.flaw == "moody" and self.calls % 2:
            return Verdict(wait_until=9.0, reason="it is odd")
        return {
            "no reason": Verdict(outcome="excluded"),
            "no outcome": Verdict(outcome="eaten", reason="it is hungry"),
            "no end": Verdict(reason="it says nothing more"),
            "not its own": Verdict(prerequisite=Prerequisite(url, url, owner="x"), reason="it lends"),
        }.get(self.flaw, ALLOWED)

    def request(self, url: Url, visit: Visit | None, request: Request, now: float) -> Request:
        return msgspec.structs.replace(request, ip="::1") if self.flaw == "elsewhere" else request

    def settle(self, visit: Visit, reply: Reply, now: float) -> Conclusion | None:
        return Conclusion("eaten", "it was hungry") if self.flaw == "odd end" else None


def test_our_middleware_keeps_the_contract() -> None:
    excluded = ExcludedHost()
    excluded.add("a.example")
    for one in (Own(), Exclusions(excluded)):
        check_middleware(one)


@pytest.mark.parametrize(
    ("one", "promise"),
    [
        (Own(name=""), "name"),
        (Own("moody"), "pure"),
        (Own("no reason"), "has a reason"),
        (Own("no outcome"), "eaten is no outcome"),
        (Own("no end"), "ends or waits"),
        (Own("not its own"), "is the owner"),
        (Own("elsewhere"), "keeps the address"),
        (Own("odd end"), "eaten is no outcome"),
    ],
    ids=lambda value: getattr(value, "flaw", ""),
)
def test_a_broken_middleware_is_reported_with_its_promise(one: Own, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_middleware(one)


def test_our_archives_keep_the_contract(tmp_path: Path) -> None:
    numbers = count()
    about = WarcInfo("software", "agent", "RFC 9309", "me@example.org", "crawl", "")

    def make() -> Archives:
        journals = Journals(tmp_path / str(next(numbers)))
        made.append(journals)
        warc = WarcArchive(ArchiveOptions(), journals, about, 0, 1)
        return Archives([warc, TableWriters(ArchiveOptions(), journals, 0, 1)])

    made: list[Journals] = []
    check_archive(make)
    for journals in made:
        journals.close_files()


@pytest.mark.parametrize("module", standard_modules(ProcessOptions(text=True)), ids=lambda module: module.name)
def test_our_processing_modules_keep_the_contract(module: object) -> None:
    check_processing_module(module)  # type: ignore[arg-type]


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:  # type: ignore[override]
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """A directory behind the standard library's own server."""
    bodies = {"page.html": b"<title>Page</title>" * 50, "data.bin": bytes(range(256)) * 8, "empty.txt": b""}
    (tmp_path / "www" / "folder").mkdir(parents=True)
    for name, body in bodies.items():
        (tmp_path / "www" / name).write_bytes(body)
    handler = functools.partial(Quiet, directory=str(tmp_path / "www"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with serving(server):
        root = f"http://127.0.0.1:{server.server_address[1]}/"
        yield root, {root + name: body for name, body in bodies.items()}


def test_our_http_module_keeps_the_contract(served: tuple[str, dict[str, bytes]]) -> None:
    root, bodies = served
    options = FetchOptions()
    asyncio.run(
        check_protocol_module(
            lambda: HttpModule(options, "gossamer/test", WallClock()), bodies, redirects=[root + "folder"]
        )
    )


def test_the_fake_web_keeps_the_contract() -> None:
    pages = {"http://a.example/": reply(b"0123456789"), "http://a.example/x": reply(b"<p>")}
    moved = {"http://a.example/m": reply(b"", 301, (("Location", "/"),))}
    closed = {"http://a.example:1/": Failure("connect_error", "nobody listens", retry=True, host_level=True)}
    bodies = {url: page.body for url, page in pages.items()}
    asyncio.run(check_protocol_module(lambda: FakeWeb(pages | moved | closed), bodies, redirects=list(moved)))


# ---- what is broken, and what it is told


class Urls:
    """A duplicate URL eliminator with a flaw."""

    def __init__(self, flaw: str = "") -> None:
        self.flaw = flaw
        self.ways: dict[str, tuple[int, int]] = {}

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> list[int]:
        answers = []
        before = dict(self.ways)
        for url, depth, hop in zip(urls, depths, hops, strict=True):
            key = url.text if self.flaw == "compares texts" else url.key
            way = (depth, hop)
            known = (before if self.flaw == "blind within a call" else self.ways).get(key)
            if known is None:
                answers.append(1)
                self.ways[key] = way
            elif depth < known[0] or (hop < known[1] and self.flaw != "ignores hops"):
                answers.append(0 if self.flaw == "no shorter ways" else 2)
                if self.flaw != "forgets ways":
                    self.ways[key] = (min(depth, known[0]), min(hop, known[1]))
            else:
                answers.append(0)
                if self.flaw == "last way wins":
                    self.ways[key] = way
        return sorted(answers) if self.flaw == "loses order" else answers

    def way(self, url: Url) -> tuple[int, int] | None:
        return self.ways.get(url.key, (0, 0) if self.flaw == "knows all" else None)


def test_a_plain_dictionary_keeps_the_contract_of_url_seen() -> None:
    check_url_seen(Urls)


@pytest.mark.parametrize(
    ("flaw", "promise"),
    [
        ("compares texts", "the key compares"),
        ("blind within a call", "equal keys in one call"),
        ("loses order", "each in its place"),
        ("no shorter ways", "less depth is shorter"),
        ("forgets ways", "remembered at their least"),
        ("ignores hops", "fewer hops"),
        ("last way wins", "leaves the least one"),
        ("knows all", "never offered is None"),
    ],
)
def test_a_broken_url_seen_is_reported_with_its_promise(flaw: str, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_url_seen(lambda: Urls(flaw))


def test_a_url_seen_with_few_bits_is_reported_as_losing_urls() -> None:
    class Colliding(Urls):
        def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> list[int]:
            short = [
                Url(url.text, str(url.fingerprint % 50_021), 0, url.host, url.site, 0) for url in urls
            ]  # fmt: skip
            return super().offer(short, depths, hops)

        def way(self, url: Url) -> tuple[int, int] | None:
            return self.ways.get(str(url.fingerprint % 50_021))

    with pytest.raises(AssertionError, match="different URLs all are new"):
        check_url_seen(Colliding)


class Contents:
    """A content-seen test with a flaw."""

    shared: dict[bytes, Original] = {}  # noqa: RUF012 - the flaw

    def __init__(self, flaw: str = "") -> None:
        self.flaw = flaw
        self.holders: dict[bytes, Original] = self.shared if flaw == "shares" else {}

    def find(self, digest: bytes, url: Url) -> Original | None:
        found = self.holders.get(self._key(digest, url))
        return Original(found.url, round(found.fetched_at)) if found and self.flaw == "forgets times" else found

    def remember(self, digest: bytes, url: Url, original: Original) -> None:
        self.holders[self._key(digest, url)] = original

    def _key(self, digest: bytes, url: Url) -> bytes:
        if self.flaw == "per page":
            return digest + url.key.encode()
        return digest[:8] if self.flaw == "few bits" else digest


def test_a_plain_dictionary_keeps_the_contract_of_content_seen() -> None:
    check_content_seen(Contents)


@pytest.mark.parametrize(
    ("flaw", "promise"),
    [
        ("forgets times", "with address, time and record"),
        ("per page", "another page of the host"),
        ("few bits", "one bit"),
        ("shares", "empty one knows nothing"),
    ],
)
def test_a_broken_content_seen_is_reported_with_its_promise(flaw: str, promise: str) -> None:
    Contents.shared.clear()
    with pytest.raises(AssertionError, match=promise):
        check_content_seen(lambda: Contents(flaw))


class Judge:
    def __init__(self, name: str, rejects: Callable[[Link], object]) -> None:
        self.name = name
        self._rejects = rejects

    def rejects(self, link: Link) -> bool:
        return self._rejects(link)  # type: ignore[return-value]


def moody() -> Callable[[Link], bool]:
    judged: set[Link] = set()

    def rejects(link: Link) -> bool:
        again = link in judged
        judged.add(link)
        return again != ("theirs" in link.url.host)

    return rejects


@pytest.mark.parametrize(
    ("one", "promise"),
    [
        (Judge("", lambda _: False), "has a name"),
        (Judge("two words", lambda _: False), "one word"),
        (Judge("number", lambda _: 1), "True or False"),
        (Judge("moody", moody()), "pure"),
        (Judge("fragile", lambda link: link.url.text.index("?") > 0), "judges every link"),
        (Judge("strict", lambda _: True), "lets http://ours.example/ pass"),
        (Judge("lax", lambda _: False), "rejects http://theirs.example/"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_broken_filter_is_reported_with_its_promise(one: Judge, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_filter(one, ["http://ours.example/"], ["http://theirs.example/"])


class Flawed(MemoryArchive):
    """An archive with a flaw."""

    def __init__(self, flaw: str) -> None:
        super().__init__()
        self.flaw = flaw

    def add(self, visited: Visited) -> Archived:
        archived = super().add(visited)
        if self.flaw == "changes outcomes":
            visited.row.outcome = "fetched"
        if not archived.warc_file:
            return Archived("a.warc.gz", 0, 10) if self.flaw == "places failures" else archived
        if self.flaw == "leaves the row":
            visited.row.warc_offset = None
        if self.flaw == "half a place":
            return Archived(archived.warc_file, archived.warc_offset)
        if self.flaw == "overlaps":
            visited.row.warc_offset = 7
            return Archived(archived.warc_file, 7, archived.warc_length, archived.record_id)
        if self.flaw == "one id":
            return Archived(archived.warc_file, archived.warc_offset, archived.warc_length, "<urn:1>")
        return archived


@pytest.mark.parametrize(
    ("flaw", "promise"),
    [
        ("changes outcomes", "leaves what happened"),
        ("places failures", "only a response"),
        ("leaves the row", "the row's place"),
        ("half a place", "or none of them"),
        ("overlaps", "no record overlaps another"),
        ("one id", "share an id"),
    ],
)
def test_a_broken_archive_is_reported_with_its_promise(flaw: str, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_archive(lambda: Flawed(flaw))


class Speaker(FakeWeb):
    """A protocol module with a flaw."""

    flaw = ""

    async def fetch(self, request: Request) -> Reply | Failure:
        if request.port == 1 and self.flaw == "raises":
            raise ConnectionRefusedError
        if self.flaw == "ignores bounds":
            request = Request(request.url, request.ip, request.port)
        if self.flaw == "goes elsewhere":
            request = Request(request.url, "127.0.0.9", request.port, body_bytes_max=request.body_bytes_max)
        if self.flaw == "follows" and request.url.endswith("/m"):
            request = Request("http://a.example/", request.ip, request.port)
        return await super().fetch(request)


@pytest.mark.parametrize(
    ("flaw", "promise"),
    [
        ("raises", "raises nothing of the web's doing"),
        ("ignores bounds", "cut at its bound"),
        ("goes elsewhere", "goes to the address"),
        ("follows", "nothing is followed"),
        ("blames nobody", "says something of the host"),
        ("wrong body", "the body is what was sent"),
    ],
)
def test_a_broken_protocol_module_is_reported_with_its_promise(flaw: str, promise: str) -> None:
    def make() -> FakeWeb:
        speaker = Speaker(
            {
                "http://a.example/": reply(b"01234567"),
                "http://a.example/m": reply(b"", 301, (("Location", "/"),)),
                "http://a.example:1/": Failure("connect_error", "refused", host_level=flaw != "blames nobody"),
            }
        )
        speaker.flaw = flaw
        return speaker

    body = b"other" if flaw == "wrong body" else b"01234567"
    with pytest.raises(AssertionError, match=promise):
        asyncio.run(check_protocol_module(make, {"http://a.example/": body}, ["http://a.example/m"]))


class Looker:
    name = "looker"

    def __init__(self, flaw: str) -> None:
        self.flaw = flaw
        self.seen = 0
        if flaw == "nameless":
            self.name = ""

    def wants(self, media_type: str) -> bool:
        return media_type == "text/html"

    def process(self, page: Page, findings: Findings) -> None:
        self.seen += 1
        if self.flaw == "counts":
            findings.title = str(self.seen)
        if self.flaw == "removes":
            findings.links = []
        if self.flaw == "fragile":
            page.body.decode("utf-8")
        if self.flaw == "invents":
            findings.links.append(Found("http://a.example/", "invented"))


@pytest.mark.parametrize(
    ("flaw", "promise"),
    [
        ("counts", "pure"),
        ("removes", "adds to the findings"),
        ("fragile", "takes every page"),
        ("invents", "LINK_TYPES"),
        ("nameless", "has a name"),
    ],
)
def test_a_broken_processing_module_is_reported_with_its_promise(flaw: str, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_processing_module(Looker(flaw))


def test_a_good_processing_module_keeps_the_contract() -> None:
    check_processing_module(Looker(""))
