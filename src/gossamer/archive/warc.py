"""The WARC archive: every reply as sent, with the request that caused it and the story of the fetch."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import msgspec

from gossamer.archive import heads
from gossamer.archive.options import ArchiveOptions
from gossamer.archive.records import (
    HTTP_REQUEST,
    HTTP_RESPONSE,
    WARC_FIELDS,
    Fields,
    Record,
    labelled_digest,
    member,
    named_fields,
)
from gossamer.archive.segments import Segments
from gossamer.model.visits import Archived, Original, Reply, Visited
from gossamer.state.journals import Journal, Journals

SAME_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
CONFORMS_TO = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"


class About(msgspec.Struct, frozen=True):
    """What every WARC file says of its making, in its warcinfo record. Empty fields are left out."""

    software: str
    """Name and version, such as `gossamer/1.0`."""
    user_agent: str = ""
    robots: str = ""
    """The policy towards robots.txt: `RFC 9309` or `ignore`."""
    operator: str = ""
    """How to reach whoever runs the crawl."""
    hostname: str = ""
    """The machine that crawls."""
    is_part_of: str = ""
    """The name of the crawl."""
    description: str = ""
    configuration: str = ""
    """The effective configuration."""


class WarcArchive:
    """Writes each reply as one `response` or `revisit` record, with its `request` and `metadata` records behind it.

    One gzip member a record, all members of a visit appended in one piece: they are committed together or not at
    all. Costs about 10 µs a record, 1.5 µs a KB of body that is text, 0.7 µs a KB that is compressed already.
    """

    def __init__(
        self, options: ArchiveOptions, journals: Journals, about: About, shard: int = 0, incarnation: int = 1
    ) -> None:
        self._options = options
        self._about = about
        self._segments = Segments(journals, "warc/gossamer", ".warc.gz", shard, incarnation)
        # 74 random bits that this object alone has, then a count: as unique as a random UUID, at a tenth of its cost.
        self._id_stem = str(uuid.uuid4())[:-12]
        self._ids = 0

    def add(self, visited: Visited) -> Archived:
        """Archive the reply, if there is one, and write its place into the row.

        Sets `warc_file`, `warc_offset`, `warc_length` of the row, and where they are empty `digest` and (for a
        revisit) `duplicate_of`. The date of the records is the row's `fetched_at`.

        Raises:
            OSError: the disk is full; nothing was archived then.
        """
        reply = visited.reply
        if reply is None or not self._options.warc:
            return Archived()
        row = visited.row
        if not row.digest:
            row.digest = labelled_digest(self._options.digests, reply.body)
        if visited.revisit_of is not None and not row.duplicate_of:
            row.duplicate_of = visited.revisit_of.url
        main = self._main_record(visited, reply)
        data = [self._member(main)]
        if self._options.warc_request_records and reply.request_head:
            data.append(self._member(self._request_record(main, reply)))
        if self._options.warc_metadata_records:
            data.append(self._member(self._metadata_record(main, visited, reply)))
        journal = self._segments.journal or self._begin(main.date)
        offset = journal.append(b"".join(data))
        if journal.length >= self._options.warc_segment_bytes_max:
            self._segments.finish()
        row.warc_file, row.warc_offset, row.warc_length = journal.name.rpartition("/")[2], offset, len(data[0])
        return Archived(row.warc_file, offset, row.warc_length, main.record_id)

    def cut(self) -> None:
        """Nothing waits here: records go to the journal when they are added."""

    def close(self) -> None:
        """Finish the file that grows. The commit that follows gives it its final name."""
        self._segments.finish()

    def _member(self, record: Record) -> bytes:
        return member(record, self._options.digests, self._options.warc_gzip_level)

    def _next_id(self) -> str:
        self._ids += 1
        return f"urn:uuid:{self._id_stem}{self._ids:012x}"

    def _main_record(self, visited: Visited, reply: Reply) -> Record:
        row, original = visited.row, visited.revisit_of
        fields: Fields = [("WARC-Target-URI", reply.url)]
        if reply.ip:
            fields.append(("WARC-IP-Address", reply.ip))
        if protocol := heads.protocol(reply):
            fields.append(("WARC-Protocol", protocol))
        if reply.truncated:
            fields.append(("WARC-Truncated", reply.truncated))
        if not reply.url.startswith(("http://", "https://")):
            fields.append(("WARC-Payload-Digest", row.digest))
            return self._record("resource", row.fetched_at, reply.media_type, fields, b"", reply.body)
        head = heads.response_head(reply)
        if original is None:
            fields.append(("WARC-Payload-Digest", row.digest))
            return self._record("response", row.fetched_at, HTTP_RESPONSE, fields, head, reply.body)
        fields += _refers_to(original, NOT_MODIFIED if reply.status == 304 else SAME_PAYLOAD)
        if reply.status != 304:
            fields.append(("WARC-Payload-Digest", row.digest))
        return self._record("revisit", row.fetched_at, HTTP_RESPONSE, fields, head)

    def _request_record(self, main: Record, reply: Reply) -> Record:
        fields: Fields = [("WARC-Target-URI", reply.url), ("WARC-Concurrent-To", f"<{main.record_id}>")]
        if reply.ip:
            fields.append(("WARC-IP-Address", reply.ip))
        head = heads.request_head(reply.request_head)
        return Record("request", self._next_id(), main.date, HTTP_REQUEST, fields, head)

    def _metadata_record(self, main: Record, visited: Visited, reply: Reply) -> Record:
        row = visited.row
        story: Fields = [("fetchTimeMs", str(round(reply.fetch_s * 1000)))]
        if row.referrer:
            story.append(("via", row.referrer))
        if row.link_type:
            story.append(("linkType", row.link_type))
        story += [("depth", str(row.depth)), ("attempt", str(row.attempt)), ("wireBytes", str(reply.wire_bytes))]
        if self._options.warc_outlinks:
            story += [("outlink", f"{link.url} {link.link_type}") for link in visited.links]
        fields: Fields = [("WARC-Target-URI", reply.url), ("WARC-Concurrent-To", f"<{main.record_id}>")]
        return Record("metadata", self._next_id(), main.date, WARC_FIELDS, fields, named_fields(story))

    def _record(
        self, kind: str, fetched_at: float, content_type: str, fields: Fields, head: bytes, payload: bytes = b""
    ) -> Record:
        content_type = content_type or "application/octet-stream"
        return Record(kind, self._next_id(), warc_date(fetched_at), content_type, fields, head, payload)

    def _begin(self, date: str) -> Journal:
        journal = self._segments.begin()
        name = journal.name.rpartition("/")[2]
        info = Record(
            "warcinfo", self._next_id(), date, WARC_FIELDS, [("WARC-Filename", name)], warcinfo_block(self._about)
        )
        journal.append(self._member(info))
        return journal


def warc_date(instant: float) -> str:
    """Return the instant in UTC, to the microsecond, as WARC 1.1 section 5.4 has it."""
    whole, micros = divmod(round(instant * 1_000_000), 1_000_000)
    return f"{datetime.fromtimestamp(whole, UTC).isoformat()[:19]}.{micros:06d}Z"


def warcinfo_block(about: About) -> bytes:
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
    block = named_fields([(name, value) for name, value in fields if value])
    if about.configuration:
        lines = ["configuration:", *about.configuration.splitlines()]
        block += "\r\n\t".join(lines).encode("utf-8", "replace") + b"\r\n"
    return block


def _refers_to(original: Original, profile: str) -> Fields:
    fields: Fields = [
        ("WARC-Profile", profile),
        ("WARC-Refers-To-Target-URI", original.url),
        ("WARC-Refers-To-Date", warc_date(original.fetched_at)),
    ]
    if original.record_id:
        fields.append(("WARC-Refers-To", f"<{original.record_id}>"))
    return fields
