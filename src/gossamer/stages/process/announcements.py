"""Announcements: the module that reads sitemaps and feeds."""

import gzip
import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import BinaryIO, Final, cast

from gossamer.model.links import ANNOUNCING, FEED, SEED, SITEMAP, SITEMAP_FILE, Announced, Announcement, Found
from gossamer.model.pages import Findings, Page
from gossamer.stages.process.charset import codec_of
from gossamer.stages.process.feeds import FEED_ROOTS, SITEMAP_ROOTS, FeedHandler, SitemapHandler, listed, read_json_feed
from gossamer.stages.process.links import AT_ONCE, Base, slices_of
from gossamer.stages.process.options import TypedModule
from gossamer.stages.process.xml import Handler, StopParsing, decode_pieces, read_xml

ANNOUNCEMENT_TYPES = (
    "application/xml", "text/xml", "application/rss+xml", "application/atom+xml", "application/rdf+xml",
    "application/x-rss+xml", "application/feed+json", "application/json",
)  # fmt: skip
"""Types that `announcements` reads; it reads any type if a link announces a sitemap or a feed."""
JSON_TYPES: Final = frozenset(("application/feed+json", "application/json"))
ELEMENTS_MAX = 1_000_000
"""Elements of one document: some 20 for each address that a sitemap may have."""
BYTES_MAX = 50 << 20
"""Uncompressed size of a sitemap; the protocol's limit."""
JSON_BYTES_MAX: Final = 10 << 20
"""A longer feed in JSON is not read: it is parsed in one go, 7 ms a MB."""
PACKED_MAX: Final = 2
"""Nested gzip: some servers compress files that the site has compressed before, without declaring either."""
_HEAD_BYTES = 4_096
_GZIP = b"\x1f\x8b"
_ROOT = re.compile(rb"<(?:[\w.-]{1,32}:)?(?i:urlset|sitemapindex|rss|rdf|feed)[\s>]").search
_ADDRESSES = (b"http://", b"https://")
_RELATIONS = {"hub": "hub", "self": "self", "next": "next"}
RELATED_MAX = 16
"""Links of a feed about itself that are read."""


class Announcements(TypedModule):
    """Reads sitemaps (XML, plain text, gzipped) and feeds (RSS, Atom, JSON Feed), recognized by their content.

    Their entries are links of type `sitemap` or `feed`; the sitemaps that an index names are of type `sitemap_file`.
    Versions of a page in other languages that a sitemap names are of type `alternate`. Plain text and gzip are only
    read if they were announced as sitemaps or are seeds. A broken document counts up to the first error that cannot be
    repaired. About 6 µs an entry; the cost of a document is linear in its length.
    """

    name = "announcements"
    media_types = ANNOUNCEMENT_TYPES
    reads_announced = True

    def process(self, page: Page, findings: Findings) -> None:
        for _ in self.process_in_slices(page, findings):
            pass

    def process_in_slices(self, page: Page, findings: Findings) -> Iterator[None]:
        """As `process`. Yields each few milliseconds, where other work may run."""
        related: list[tuple[str, str]] = []
        announcement = yield from self._read(page, related)
        if announcement is None:
            return
        kind = {"sitemap": SITEMAP, "sitemap_index": SITEMAP_FILE, "feed": FEED}[announcement.kind]
        base = Base(page.url)
        options = self._options
        known: dict[str, None] = {}
        entries = []
        for some in slices_of(announcement.entries):
            for entry in some:
                url = base.join(entry.url.strip())
                if url is not None and len(url) <= options.url_bytes_max and url not in known:
                    if len(known) >= options.links_max:
                        break
                    known[url] = None
                    entries.append(Announced(url, entry.changed_at, entry.period_s, entry.weight))
            if len(some) == AT_ONCE:
                yield
        announcement.entries = entries
        findings.announcement = announcement
        findings.links.extend(Found(url, kind) for url in known)
        alternates = dict.fromkeys(one.partition(" ")[2] for versions in announcement.versions for one in versions)
        for addresses in slices_of(list(alternates)[: options.links_max]):
            joined = (base.join(address) for address in addresses)
            new = [url for url in joined if url is not None and len(url) <= options.url_bytes_max and url not in known]
            known.update(dict.fromkeys(new))
            findings.links.extend(Found(url, "alternate") for url in dict.fromkeys(new))
            if len(addresses) == AT_ONCE:
                yield
        for relation, address in related[:RELATED_MAX]:
            link_type = _RELATIONS.get(relation)
            url = base.join(address)
            if link_type is not None and url is not None and len(url) <= options.url_bytes_max:
                findings.links.append(Found(url, link_type))

    def _read(self, page: Page, related: list[tuple[str, str]]) -> Generator[None, None, Announcement | None]:
        announced = page.link_type in ANNOUNCING
        announcement = Announcement("sitemap")
        if page.media_type in JSON_TYPES or (announced and page.body[:64].lstrip()[:1] == b"{"):
            with page.open() as file:
                body = file.read(JSON_BYTES_MAX + 1)
            is_short = len(body) <= JSON_BYTES_MAX
            return announcement if is_short and read_json_feed(body, announcement, related) else None
        open_ = page.open
        head = page.body[:_HEAD_BYTES]
        for _ in range(PACKED_MAX):
            if head[:2] != _GZIP:
                break
            open_ = cast("Callable[[], BinaryIO]", partial(_Gunzipped, open_))
            with open_() as file:
                head = file.read(_HEAD_BYTES)
        codec = codec_of(head, page.charset)
        sorting = _Sorting(announcement, related, page.url)

        def handler() -> Handler:
            nonlocal announcement, sorting
            announcement = Announcement("sitemap")
            related.clear()
            sorting = _Sorting(announcement, related, page.url)
            return sorting

        begins_as_list = (
            head.lstrip(b"\xef\xbb\xbf \t\r\n")[:8].lower().startswith(_ADDRESSES) or _ROOT(head) is not None
        )
        if page.link_type == SEED and page.media_type not in ANNOUNCEMENT_TYPES and not begins_as_list:
            return None
        if b"<" in head[:256]:
            announcement.error = yield from read_xml(open_, codec, handler, ELEMENTS_MAX)
            if announcement.error and sorting.handler is not None:
                with suppress(StopParsing):
                    sorting.handler.take()  # What is known of the entry within which the document ends.
            return announcement if sorting.handler is not None or (announced and announcement.error) else None
        if page.link_type in (SITEMAP_FILE, SEED):
            pieces = decode_pieces(open_, codec if codec[:6] == "utf-16" else "utf-8")
            announcement.entries = yield from listed(_lines(pieces))
            return announcement if announcement.entries else None
        return None


class _Sorting:
    """Passes a document to the handler of its kind, by its outermost element, with names in lower case."""

    def __init__(self, announcement: Announcement, related: list[tuple[str, str]], url: str) -> None:
        self._announcement = announcement
        self._related = related
        self._url = url
        self.handler: SitemapHandler | FeedHandler | None = None

    def start(self, name: str, attributes: Mapping[str, str], depth: int) -> None:
        name = name.lower()
        if self.handler is None:
            local = name.rpartition(":")[2]
            if local in SITEMAP_ROOTS:
                self.handler = SitemapHandler(self._announcement, name)
            elif local in FEED_ROOTS:
                self.handler = FeedHandler(self._announcement, self._related, self._url)
            else:
                raise StopParsing
        self.handler.start(name, attributes, depth)

    def end(self, name: str, text: str, depth: int) -> None:
        assert self.handler is not None
        self.handler.end(name.lower(), text, depth)


class _Gunzipped(gzip.GzipFile):
    """The content of a gzipped file, up to `BYTES_MAX` or the first error. Several members are one content."""

    def __init__(self, open_: Callable[[], BinaryIO]) -> None:
        self._source = open_()
        super().__init__(fileobj=self._source, mode="rb")
        self._left = BYTES_MAX

    def read(self, size: int | None = -1) -> bytes:
        wanted = self._left if size is None or size < 0 else min(size, self._left)
        data = b""
        with suppress(OSError, EOFError, zlib.error):
            data = self.read1(wanted)  # What comes before an error is returned before it is raised.
        self._left -= len(data)
        return data

    def close(self) -> None:
        super().close()
        self._source.close()


def _lines(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text, without lines longer than any address."""
    held = ""
    left = BYTES_MAX
    for piece in pieces:
        *lines, held = (held + piece).replace("\r", "\n").split("\n")
        yield from lines
        if len(held) > (1 << 16):
            held = "-"  # Not the start of an address.
        left -= len(piece)
        if left <= 0:
            break
    yield held
