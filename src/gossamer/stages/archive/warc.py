"""The WARC archive: every reply as sent, with its request and metadata of the fetch."""

import uuid
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import count

import msgspec

from gossamer.model.pages import Archived, Original, PageCapture, Rendered, Visited
from gossamer.model.visits import Reply
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.records import (
    HTTP_REQUEST,
    HTTP_RESPONSE,
    PROTOCOLS,
    WARC_FIELDS,
    Fields,
    Record,
    field_lines,
    member,
    packer,
    pieces_of_member,
    request_head,
    response_head,
    warc_digest,
)
from gossamer.stages.archive.segments import Segments
from gossamer.state.journals import Journal, Journals

SAME_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
AUTHENTICATED = ("Gossamer-Authenticated", "yes")
"""The request carried a credential. WARC 1.1, section 4, allows fields of one's own."""
SENT_TYPE_MAX = 200
HTTP = ("http://", "https://")
RENDERED_HTML = "text/html; charset=utf-8"
SECONDS_MAX = 64
"""Seconds that are remembered as written: many pages are fetched in each."""
CONFORMS_TO = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"


class WarcInfo(msgspec.Struct, frozen=True):
    """Contents of the warcinfo record of every WARC file. Empty fields are left out."""

    software: str
    """Name and version, such as `gossamer/1.0`."""
    user_agent: str = ""
    robots: str = ""
    """The policy towards robots.txt: `RFC 9309` or `ignore`."""
    operator: str = ""
    """How to reach the operator."""
    hostname: str = ""
    """The machine that crawls."""
    is_part_of: str = ""
    """The name of the crawl."""
    description: str = ""
    configuration: str = ""
    """The effective configuration."""


class WarcArchive:
    """Writes each reply as one `response` or `revisit` record, with its `request` and `metadata` records behind it.

    One gzip member (or Zstandard frame) a record, all members of a visit appended in one piece: they are committed
    together or not at all. Costs about 10 µs a record, 1.5 µs a KB of text, 0.8 µs a KB that is compressed already.
    """

    def __init__(
        self, options: ArchiveOptions, journals: Journals, about: WarcInfo, shard: int = 0, incarnation: int = 1
    ) -> None:
        self._options = options
        self._about = about
        self._packer = packer(options)
        self._member = partial(member, algorithm=options.digests, by=self._packer)
        self._segments = Segments(journals, "warc/gossamer", self._packer.suffix, shard, incarnation)
        # 74 random bits that this object alone has, then a count: as unique as a random UUID, at a tenth of its cost.
        self._next_id = map(f"urn:uuid:{str(uuid.uuid4())[:-12]}{{:012x}}".format, count(1)).__next__

    def add(self, visited: Visited) -> Archived:
        """Archive the reply, if there is one, and write its place into the row.

        Sets `warc_file`, `warc_offset`, `warc_length`, `warc_type` and `sent_type` of the row, and where they are empty
        `digest` and (for a revisit) `duplicate_of`. The date of the records is the row's `fetched_at`. Raises OSError:
        the disk is full; nothing was archived then.
        """
        reply = visited.reply
        if reply is None or not self._options.warc:
            return Archived()
        row = visited.row
        original = visited.revisit_of
        if not row.digest and (original is None or reply.status != 304):  # The payload of a 304 is the original's.
            row.digest = warc_digest(self._options.digests, reply.body, file=reply.file)
        if original is not None and not row.duplicate_of and original.url != row.url:
            row.duplicate_of = original.url
        place = visited.place
        row.warc_type = place.warc_type if place is not None else ""
        if place is None:
            main = self._main_record(reply, row.fetched_at, row.digest, original)
            main.fields.extend(visited.source)
            place = self._write(main, reply, self._story(visited, reply), visited.rendered)
            row.warc_type = main.record_type
        row.warc_file = place.warc_file
        row.warc_offset = place.warc_offset
        row.warc_length = place.warc_length
        if row.warc_type != "resource":  # Other protocols send no header.
            row.sent_type = (reply.header("content-type") or "")[:SENT_TYPE_MAX]
        return place

    def add_prerequisite(self, reply: Reply, via: str, link_type: str) -> None:
        """Archive a prerequisite of a page: a robots.txt (`robots`), a document about the use of a site (`usage`), a
        host's addresses (`dns`), or a resource of a rendered page (its type).

        `via` is a URL of the origin that waited for it; without it no metadata record is written. Does nothing if the
        options exclude it. Raises OSError: the disk is full; nothing was archived then.
        """
        options = self._options
        is_kept = {"dns": options.warc_dns, "robots": options.warc_robots, "usage": options.warc_robots}
        if not (options.warc and is_kept.get(link_type, True)):
            return
        digest = warc_digest(options.digests, reply.body, file=reply.file)
        main = self._main_record(reply, reply.started_at, digest, None)
        story: Fields = [("fetchTimeMs", str(round(reply.fetch_s * 1000))), ("via", via), ("linkType", link_type)]
        self._write(main, reply, [*story, ("wireBytes", str(reply.wire_bytes))] if via else [])

    def cut(self) -> None:
        """Do nothing: records go to the journal when they are added."""

    def close(self) -> None:
        """Finish the growing file. The commit that follows gives it its final name."""
        self._segments.finish()

    def _write(self, main: Record, reply: Reply, story: Fields, rendered: Rendered | None = None) -> Archived:
        """Append a record and those that belong to it, and return the record's place."""
        others = []
        if self._options.warc_request_records and reply.request_head:
            others.append(self._member(self._request_record(main, reply)))
        if story and self._options.warc_metadata_records:
            others.append(self._member(self._metadata_record(main, reply, story)))
        if rendered is not None:
            others.append(self._member(self._conversion_record(main, reply, rendered)))
            others += [self._member(self._page_record(main, reply, rendered, one)) for one in rendered.records]
        journal = self._segments.journal or self._begin(main.date)
        if main.file is None:
            packed = self._member(main)
            offset = journal.append(b"".join((packed, *others)))
            length = len(packed)
        else:
            offset, length = self._append_large(journal, main, b"".join(others))
        if journal.length >= self._options.warc_segment_bytes_max:
            self._segments.finish()
        return Archived(journal.name.rpartition("/")[2], offset, length, main.record_id)

    def _append_large(self, journal: Journal, main: Record, others: bytes) -> tuple[int, int]:
        """Append a record whose payload is in a file, and those that belong to it: all of them, or none."""
        offset = journal.length
        try:
            for piece in pieces_of_member(main, self._options.digests, self._packer):
                journal.append(piece)
            length = journal.length - offset
            journal.append(others)
        except OSError:
            journal.rewind(offset)
            raise
        return offset, length

    def _main_record(self, reply: Reply, at: float, digest: str, original: Original | None) -> Record:
        fields: Fields = [("WARC-Target-URI", reply.url)]
        if reply.ip:
            fields.append(("WARC-IP-Address", reply.ip))
        if protocol := PROTOCOLS.get(reply.http_version):
            fields.append(("WARC-Protocol", protocol))
        if reply.truncated:
            fields.append(("WARC-Truncated", reply.truncated))
        if reply.authenticated:
            fields.append(AUTHENTICATED)
        if reply.page_id:
            fields += _part_of(reply)
        if not reply.url.startswith(HTTP):
            fields.append(("WARC-Payload-Digest", digest))
            kind = reply.media_type or "application/octet-stream"
            return Record("resource", self._next_id(), warc_date(at), kind, fields, b"", reply.body, reply.file)
        head = response_head(reply)
        if original is None:
            fields.append(("WARC-Payload-Digest", digest))
            date = warc_date(at)
            return Record("response", self._next_id(), date, HTTP_RESPONSE, fields, head, reply.body, reply.file)
        fields += _refers_to(original, NOT_MODIFIED if reply.status == 304 else SAME_PAYLOAD)
        if digest:
            fields.append(("WARC-Payload-Digest", digest))
        return Record("revisit", self._next_id(), warc_date(at), HTTP_RESPONSE, fields, head)

    def _request_record(self, main: Record, reply: Reply) -> Record:
        fields: Fields = [("WARC-Target-URI", reply.url), ("WARC-Concurrent-To", f"<{main.record_id}>")]
        if reply.ip:
            fields.append(("WARC-IP-Address", reply.ip))
        if reply.authenticated:
            fields.append(AUTHENTICATED)
        if reply.page_id:
            fields += _part_of(reply)
        head = request_head(reply.request_head)
        return Record("request", self._next_id(), main.date, HTTP_REQUEST, fields, head, reply.request_body)

    def _story(self, visited: Visited, reply: Reply) -> Fields:
        """Return the fields of the metadata record; empty if none is written."""
        if not self._options.warc_metadata_records:
            return []
        row = visited.row
        story: Fields = [("fetchTimeMs", str(round(reply.fetch_s * 1000)))]
        if row.referrer:
            story.append(("via", row.referrer))
        if row.link_type:
            story.append(("linkType", row.link_type))
        story += [("depth", str(row.depth)), ("attempt", str(row.attempt)), ("wireBytes", str(reply.wire_bytes))]
        if row.hops:
            story.append(("hops", str(row.hops)))
        if row.outcome == "redirected" and row.error:
            story.append(("error", row.error))
        if not reply.url.startswith(HTTP):  # A resource record has no place for it.
            story.append(("status", str(reply.status)))
        if row.usage_statements:
            story.append(("usage", row.usage_reason))
            story += [("usageStatement", one) for one in row.usage_statements.split("\n")]
        if self._options.warc_outlinks:
            outlinks = dict.fromkeys(f"{link.url} {link.link_type}" for link in visited.links)
            story += [("outlink", outlink) for outlink in outlinks]
        return story

    def _metadata_record(self, main: Record, reply: Reply, story: Fields) -> Record:
        fields: Fields = [("WARC-Target-URI", reply.url), ("WARC-Concurrent-To", f"<{main.record_id}>")]
        return Record("metadata", self._next_id(), main.date, WARC_FIELDS, fields, field_lines(story))

    def _conversion_record(self, main: Record, reply: Reply, page: Rendered) -> Record:
        """Return the record of the page as scripts changed it (WARC 1.1, section 6.8)."""
        fields: Fields = [
            ("WARC-Target-URI", reply.url),
            ("WARC-Refers-To", f"<{main.record_id}>"),
            ("WARC-Page-ID", page.page_id),
        ]
        return Record("conversion", self._next_id(), main.date, RENDERED_HTML, fields, b"", page.html)

    def _page_record(self, main: Record, reply: Reply, rendered: Rendered, one: PageCapture) -> Record:
        """Return the record of a picture of a page, or of what the page is made of, under an address of its own."""
        fields: Fields = [
            ("WARC-Target-URI", f"urn:{one.name}:{reply.url}"),
            ("WARC-Concurrent-To", f"<{main.record_id}>"),
            ("WARC-Page-ID", rendered.page_id),
            ("WARC-Payload-Digest", warc_digest(self._options.digests, one.payload)),
        ]
        return Record("resource", self._next_id(), main.date, one.media_type, fields, b"", one.payload)

    def _begin(self, date: str) -> Journal:
        journal = self._segments.begin()
        fields: Fields = [("WARC-Filename", journal.name.rpartition("/")[2])]
        info = Record("warcinfo", self._next_id(), date, WARC_FIELDS, fields, warcinfo_block(self._about))
        journal.append(self._member(info))
        return journal


def warc_date(instant: float) -> str:
    """Return the instant in UTC, to the microsecond, as WARC 1.1 section 5.4 has it."""
    whole, micros = divmod(round(instant * 1_000_000), 1_000_000)
    return f"{_second(whole)}.{micros:06d}Z"


@lru_cache(maxsize=SECONDS_MAX)
def _second(whole: int) -> str:
    return datetime.fromtimestamp(whole, UTC).isoformat()[:19]


def warcinfo_block(about: WarcInfo) -> bytes:
    """Return the fields of the warcinfo record (WARC 1.1 section 6.2, DCMI terms)."""
    fields: Fields = [
        ("software", about.software),
        ("format", "WARC File Format 1.1"),
        ("conformsTo", CONFORMS_TO),
        ("robots", about.robots),
        ("hostname", about.hostname),
        ("operator", about.operator),
        ("http-header-user-agent", about.user_agent),
        ("isPartOf", about.is_part_of),
        ("description", about.description),
    ]
    block = field_lines([(name, value) for name, value in fields if value])
    if about.configuration:
        lines = ["configuration:", *about.configuration.splitlines()]
        block += "\r\n\t".join(lines).encode("utf-8", "replace") + b"\r\n"
    return block


def _part_of(reply: Reply) -> Fields:
    """Return the fields that join the records of a rendered page, as Browsertrix Crawler writes them."""
    return [("WARC-Page-ID", reply.page_id), ("WARC-Resource-Type", reply.resource_type)]


def _refers_to(original: Original, profile: str) -> Fields:
    fields: Fields = [
        ("WARC-Profile", profile),
        ("WARC-Refers-To-Target-URI", original.url),
        ("WARC-Refers-To-Date", warc_date(original.fetched_at)),
    ]
    if original.record_id:
        fields.append(("WARC-Refers-To", f"<{original.record_id}>"))
    return fields
