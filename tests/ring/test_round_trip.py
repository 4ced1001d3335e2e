"""The round trip: what stands in WARC files is what the made servers sent, and every pointer leads to its record."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.sheet import ServedAnswer
from gossamer.lab.simweb.web import Web
from tests.further import with_further
from tests.ring.crawls import HASTY, OWN, Crawled, crawl
from tests.stages.archive import strict
from tests.stages.archive.strict import Read

ALL = SimwebOptions(
    seed=7, hosts=40, pages=300, shares={"robots_stall": 0, "bodies": 0.3}, links_per_page=12, drip_s=0.2,
    oversized_bytes=3_000_000, bomb_bytes=8_000_000, crawl_delay_s=0.1, retry_after_s=1,
)  # fmt: skip
SMALL_FILES = ("archive.warc_segment_bytes_max=300_000", "fetch.body_bytes_max=1_000_000")


class Archived:
    """All records of a crawl."""

    def __init__(self, crawled: Crawled) -> None:
        self.crawled = crawled
        self.files = sorted((crawled.directory / "warc").iterdir())
        self.records = [record for file in self.files for record in strict.read(file)]
        self.by_id = {record.id: record for record in self.records}
        self.at = {(record.file, record.offset): record for record in self.records}
        told = {record.fields["WARC-Concurrent-To"]: record.story() for record in self.records if _tells(record)}
        self.prerequisites = {name for name, story in told.items() if story.get("linkType") == ["robots"]}

    @property
    def replies(self) -> list[Read]:
        return [record for record in self.records if record.kind in ("response", "revisit")]

    def payload(self, record: Read) -> bytes:
        """Return what the server sent, through the original of a revisit."""
        return self.by_id[record.fields["WARC-Refers-To"]].payload if record.kind == "revisit" else record.payload


def _tells(record: Read) -> bool:
    return record.kind == "metadata"


def sent(web: Web, url: str) -> list[ServedAnswer]:
    """Return every answer that the maker has for an address: the first, the second …"""
    authority, _, path = url.removeprefix("http://").partition("/")
    found: list[ServedAnswer] = []
    for nth in range(10):
        answer = web.page(authority.partition(":")[0], f"/{path}", nth)
        if answer not in found:
            found.append(answer)
    return found


def is_what_was_sent(record: Read, payload: bytes, answer: ServedAnswer) -> bool:
    head = record.head.decode("latin-1").lower()
    if not head.startswith(f"http/1.1 {answer.status} "):
        return False
    if answer.manner == "drip":  # A dot now and then, for ever.
        return record.fields["WARC-Truncated"] == "time" and payload == b"." * len(payload)
    if answer.manner == "cut":  # Half of what was announced.
        return record.fields["WARC-Truncated"] == "disconnect" and payload == answer.body
    body = answer.body * (answer.body_bytes // len(answer.body) + 1) if answer.body_bytes else answer.body
    body = body[: max(answer.body_bytes, len(answer.body))]
    if answer.gzip_if_asked and "content-encoding: gzip" in head:
        payload = gzip.decompress(payload)
    if "WARC-Truncated" in record.fields:
        return len(payload) < len(body) and body.startswith(payload)
    return payload == body


@pytest.mark.heavy
@pytest.mark.promise(
    "Files and exports",
    "WARC files hold what the servers sent, and each offset in `pages` and the index is one record.",
)
@pytest.mark.parametrize(("compression", "memory_bytes"), with_further(("gzip", 6_000), ("zstd", 1_048_576)))
@pytest.mark.long
def test_a_whole_web_comes_back_as_it_was_sent(tmp_path: Path, compression: str, memory_bytes: int) -> None:
    """With most bodies too large for memory, and with most of them within it."""
    with SimwebProcess(ALL, tmp_path / "web") as simweb:
        crawled = crawl(
            simweb.seeds, tmp_path / "crawl", *HASTY, *SMALL_FILES, f"archive.warc_compression='{compression}'",
            f"fetch.body_memory_bytes_max={memory_bytes}", hosts=str(simweb.hosts_file), scope="any",
        )  # fmt: skip
    assert (crawled.end, crawled.critical()) == ("finished", "")
    archived = Archived(crawled)
    assert len(archived.files) > 3
    assert {file.suffix for file in archived.files} == {".gz" if compression == "gzip" else ".zst"}
    assert strict.faults(archived.files) == []
    check_bodies(archived, simweb)
    check_requests(archived, simweb)
    check_pointers(archived)


def check_bodies(archived: Archived, simweb: SimwebProcess) -> None:
    kinds, codings = Counter[str](), set()
    for record in archived.replies:
        payload = archived.payload(record)
        answers = sent(simweb.web, record.target)
        assert any(is_what_was_sent(record, payload, answer) for answer in answers), record.target
        kinds[record.kind] += 1
        kinds["truncated"] += "WARC-Truncated" in record.fields
        kinds["disconnect"] += record.fields.get("WARC-Truncated") == "disconnect"
        codings |= {value for answer in answers for name, value in answer.headers if name == "Content-Encoding"}
    assert min(kinds["response"], kinds["revisit"], kinds["truncated"], kinds["disconnect"]) > 0, kinds
    assert codings >= {"gzip", "br", "zstd", "deflate", "gzip, gzip"}


def check_requests(archived: Archived, simweb: SimwebProcess) -> None:
    """Every answer that the server sent whole is there, robots.txt included, once, or came too late and is told so."""
    port = simweb.port
    asked = Counter(f"http://{one.host}:{port}{one.path}" for one in simweb.requests() if one.whole and one.status)
    kept = Counter(record.target for record in archived.replies)
    truncated = {record.target for record in archived.replies if "WARC-Truncated" in record.fields}
    late = Counter(str(row["url"]) for row in archived.crawled.rows if row["outcome"] == "timeout")
    assert {
        url: n for url, n in (asked - kept - late).items() if "too_large" not in archived.crawled.outcomes[url]
    } == {}
    assert set(kept - asked) <= truncated  # We left before the server was done.
    robots = {record.target for record in archived.replies if record.id in archived.prerequisites}
    assert {url for url in asked if url.endswith("/robots.txt")} <= robots
    assert all(urlsplit(url).path.startswith("/robots") for url in robots)
    kinds = Counter(record.kind for record in archived.records)
    assert kinds["request"] == kinds["metadata"] == len(archived.replies)
    assert kinds["warcinfo"] == len(archived.files)


def check_pointers(archived: Archived) -> None:
    """A row, and a line of the index, is exactly one member; whoever is not a prerequisite has both."""
    rows = {(row["warc_file"], row["warc_offset"]): row for row in archived.crawled.rows if row["warc_file"]}
    assert rows.keys() == {(r.file, r.offset) for r in archived.replies if r.id not in archived.prerequisites}
    for (file, offset), row in rows.items():
        record = archived.at[str(file), int(str(offset))]
        assert (record.length, record.target, record.kind) == (row["warc_length"], row["url"], row["warc_type"])
        assert record.fields["WARC-Payload-Digest"] == row["digest"]
        assert record.fields.get("WARC-Truncated", "") in (row["truncated"], "")
    lines = (archived.crawled.directory / "index.cdxj").read_bytes().splitlines()
    assert lines == sorted(lines)
    entries = [json.loads(line.split(b" ", 2)[2]) for line in lines]
    assert {(one["filename"], int(one["offset"])) for one in entries} == rows.keys()
    assert len(entries) == len(rows)
    for one in entries:
        record = archived.at[one["filename"], int(one["offset"])]
        assert (record.length, record.target) == (int(one["length"]), one["url"])
        assert (one.get("mime") == "warc/revisit") == (record.kind == "revisit")


def test_lookups_are_archived_when_asked_for(tmp_path: Path) -> None:
    with SimwebProcess(SimwebOptions.plain(seed=3, hosts=6, pages=40), tmp_path / "web") as simweb:
        sets = (one for one in OWN if not one.startswith("resolve.servers"))
        lookups = (*sets, "archive.warc_dns=true", "resolve.timeout_s=20")
        crawled = crawl(
            simweb.seeds, tmp_path / "crawl", *lookups, dns=(simweb.dns,), scope="any", contact="me@example.org"
        )
    archived = Archived(crawled)
    assert strict.faults(archived.files) == []
    found = {record.target: record for record in archived.records if record.kind == "resource"}
    assert found.keys() == {f"dns:{host.name}" for host in simweb.web.hosts}
    for host in simweb.web.hosts:
        record = found[f"dns:{host.name}"]
        assert record.fields["Content-Type"] == "text/dns"
        stamp, *answers = record.block.decode().splitlines()
        assert stamp == record.fields["WARC-Date"].translate(str.maketrans("", "", "-:TZ"))[:14]
        (address,) = [answer.split("\t") for answer in answers]
        assert (address[0], *address[2:]) == (f"{host.name}.", "IN", "A", host.address)
    assert not any(str(row["url"]).startswith("dns:") for row in crawled.rows)


def test_robots_and_request_records_can_be_left_out(tmp_path: Path) -> None:
    bare = [f"archive.warc_{name}=false" for name in ("robots", "request_records", "metadata_records")]
    with SimwebProcess(SimwebOptions.plain(seed=3, hosts=3, pages=20), tmp_path / "web") as simweb:
        crawled = crawl(
            simweb.seeds, tmp_path / "crawl", *HASTY, *bare, hosts=str(simweb.hosts_file), scope="any"
        )  # fmt: skip
    archived = Archived(crawled)
    assert strict.faults(archived.files) == []
    assert {record.kind for record in archived.records} == {"warcinfo", "response"}
    assert len(archived.replies) == len(crawled.rows)
