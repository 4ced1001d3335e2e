"""Exports of pages that may be used for a purpose: of every format, what owners refuse is in none."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from gossamer.model.errors import ConfigError
from gossamer.model.links import Found
from gossamer.model.pages import Original, Visited
from gossamer.results.export import wacz
from gossamer.results.export.export import ExportedCrawl, ExportRequest, stream
from gossamer.results.export.permitted import LIST, Permission, permission
from gossamer.stages.archive.archive import Archives
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.warc import WarcArchive, WarcInfo
from tests.results.export.conftest import Exporting
from tests.results.export.crawled import finished
from tests.results.export.test_wacz import validated
from tests.stages.archive.web import START, Shard, visited

HOST = "http://a.example/"
ALLOWED, REFUSED, UNKNOWN = "allowed", "refused", "unknown"


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stated") / "crawl"
    shard = Shard(directory)
    options = ArchiveOptions(warc_segment_bytes_max=3_000)
    archive = Archives(
        [WarcArchive(options, shard.journals, WarcInfo("gossamer/1")), TableWriters(options, shard.journals)]
    )
    clock = iter(range(1_000))

    def add(name: str, answer: str, outcome: str = "fetched", copy_of: Visited | None = None) -> Visited:
        body = f"<title>{name}</title><p>Body of {name}.</p>".encode()
        visit = visited(HOST + name, body, at=START + next(clock), headers=(("Content-Type", "text/html"),))
        visit.row.outcome, visit.row.usage_ai_train = outcome, answer
        visit.row.usage_reason = "" if answer == UNKNOWN else f"ai-train {answer} by header Content-Usage: train-ai=x"
        visit.links = [Found(HOST + "to", "anchor", f"text of {name}")]
        visit.link_keys = [HOST + "to"]
        if copy_of is not None:
            assert copy_of.reply is not None
            visit.reply = msgspec.structs.replace(copy_of.reply, url=visit.row.url)
            visit.revisit_of = Original(copy_of.row.url, copy_of.row.fetched_at)
            visit.row.digest, visit.digest = copy_of.row.digest, copy_of.digest
        archive.add(visit)
        return visit

    add("yes", ALLOWED)
    no = add("no", REFUSED)
    add("silent", UNKNOWN)
    add("copy-of-refused", ALLOWED, copy_of=no)
    first = add("original", ALLOWED)
    add("copy", ALLOWED, copy_of=first)
    same = add("same-again", ALLOWED)
    add("same-again", ALLOWED, copy_of=same)
    add("changed-its-mind", ALLOWED)
    add("changed-its-mind", REFUSED)
    add("withheld-later", ALLOWED)
    add("withheld-later", UNKNOWN, "usage_withheld")
    add("denied", UNKNOWN, "usage_denied")
    archive.cut()
    shard.commit()
    return finished(directory, shard, archive)


YES = {"yes", "copy-of-refused", "original", "copy", "same-again"}
ASKED = Permission("ai-train")
Read = Callable[[Path], set[str]]


def names(urls: list[str]) -> set[str]:
    assert len(urls) == len(set(urls))
    return {url.removeprefix(HOST) for url in urls}


def in_lines(path: Path) -> set[str]:
    return names([json.loads(line)["url"] for line in path.read_bytes().splitlines()])


def in_csv(path: Path) -> set[str]:
    return names([line.partition(",")[0] for line in path.read_text().splitlines()[1:]])


def in_parquet(path: Path) -> set[str]:
    return names(pq.read_table(path / "pages")["url"].to_pylist())


def in_markdown(path: Path) -> set[str]:
    texts = [file.read_text() for file in path.glob("*/*.md")]
    assert all("Body of" in text for text in texts)
    return names([text.split('url: "')[1].partition('"')[0] for text in texts])


def in_pagefiles(path: Path) -> set[str]:
    linked = {line.split("\t")[0].removeprefix(HOST) for line in (path / "links.log").read_text().splitlines()}
    lines = [line.split("\t") for line in (path / "store.log").read_text().splitlines()]
    stored = names([line[1] for line in lines])
    assert linked == stored
    assert all(line[8] != "-1" for line in lines)
    return stored


def in_datasets(path: Path) -> set[str]:
    return names(pq.read_table(path / "data")["url"].to_pylist())


def in_bulk(path: Path) -> set[str]:
    [file] = path.glob("*.ndjson")
    return names([json.loads(line)["url"] for line in file.read_bytes().splitlines()[1::2]])


READERS: dict[str, Read] = {
    "jsonl": in_lines, "datasets": in_datasets, "bulk": in_bulk,
    "csv": in_csv, "parquet": in_parquet, "markdown": in_markdown, "pagefiles": in_pagefiles,
}  # fmt: skip


@pytest.mark.heavy
@pytest.mark.promise("Files and exports", "An export of permitted pages holds no page that refuses the use.")
@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("to", READERS)
def test_each_format_holds_permitted_pages_alone(
    stated: Path, exporting: Exporting, tmp_path: Path, to: str, unknown: bool
) -> None:
    wanted = Permission("ai-train", unknown)
    done = exporting(to, tmp_path / "out", stated, permitted=wanted)
    assert READERS[to](tmp_path / "out") == (YES | {"silent"} if unknown else YES)
    assert dict(done.answers) == {"allowed": 5, "refused": 2, "unknown": 2}


def test_the_list_beside_pages_has_each_page_with_its_reason(
    stated: Path, exporting: Exporting, tmp_path: Path
) -> None:
    exporting("markdown", tmp_path / "out", stated, permitted=ASKED)
    lines = [json.loads(line) for line in (tmp_path / "out" / LIST).read_bytes().splitlines()]
    assert [line["url"].removeprefix(HOST) for line in lines] == sorted(
        [*YES, "no", "silent", "changed-its-mind", "withheld-later"]
    )
    assert {line["url"].removeprefix(HOST) for line in lines if line["exported"]} == YES
    refused = next(line for line in lines if line["url"] == HOST + "no")
    assert (refused["answer"], refused["reason"]) == ("refused", "ai-train refused by header Content-Usage: train-ai=x")


def test_tables_of_links_are_those_of_permitted_pages(stated: Path, exporting: Exporting, tmp_path: Path) -> None:
    exporting("parquet", tmp_path / "all", stated, permitted=ASKED)
    assert {url.removeprefix(HOST) for url in pq.read_table(tmp_path / "all/links")["from_url"].to_pylist()} == YES
    exporting("jsonl", tmp_path / "links", stated, permitted=ASKED, table="links", where="anchor_text LIKE '%copy'")
    found = [json.loads(line)["from_url"] for line in (tmp_path / "links").read_bytes().splitlines()]
    assert found == [HOST + "copy"]


@pytest.mark.promise("Files and exports", "An export of permitted pages holds no page that refuses the use.")
def test_a_wacz_holds_the_records_of_permitted_pages_alone(stated: Path, exporting: Exporting, tmp_path: Path) -> None:
    target = tmp_path / "out.wacz"
    exporting("wacz", target, stated, permitted=ASKED)
    assert validated(target).startswith("0 ")
    with zipfile.ZipFile(target) as archive:
        records = {
            name: gzip.decompress(archive.read(name)) for name in archive.namelist() if name.startswith("archive/")
        }
        lines = gzip.decompress(archive.read("indexes/index.cdx.gz")).decode().splitlines()
        listed = [json.loads(line) for line in archive.read(f"usage/{LIST}").splitlines()]
        data = {name: archive.read(name) for name in records}
    text = b"".join(records.values())
    uris = {part.partition(b"\r\n")[0].decode() for part in text.split(b"WARC-Target-URI: ")[1:]}
    # The body of this copy is in the record of a page that refuses.
    assert {uri.removeprefix(HOST) for uri in uris} == YES - {"copy-of-refused"}
    for name in ("no", "silent", "changed-its-mind", "withheld-later"):
        assert f"Body of {name}.".encode() not in text
    assert all(record.startswith(b"WARC/1.1\r\nWARC-Type: warcinfo") for record in records.values())
    assert len(listed) == 9
    for line in lines:
        entry = json.loads(line.split(" ", 2)[2])
        start = int(entry["offset"])
        record = gzip.decompress(data[f"archive/{entry['filename']}"][start : start + int(entry["length"])])
        assert f"WARC-Target-URI: {entry['url']}\r\n".encode() in record
    assert len(lines) == 5


@pytest.mark.heavy
def test_an_interrupted_export_goes_on_as_it_was_asked_for(
    stated: Path, exporting: Exporting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(wacz, "_package", full)
        with pytest.raises(OSError, match="No space"):
            exporting("wacz", tmp_path / "out.wacz", stated, permitted=ASKED)
    with pytest.raises(ConfigError, match="permitted 'ai-train', not ''"):
        exporting("wacz", tmp_path / "out.wacz", stated)
    done = exporting("wacz", tmp_path / "out.wacz", stated, permitted=ASKED)
    assert done.resumed
    assert done.newer == 0
    assert validated(tmp_path / "out.wacz").startswith("0 ")


def test_a_stream_holds_permitted_pages_alone(stated: Path, tmp_path: Path) -> None:
    out = io.BytesIO()
    done = stream(ExportedCrawl(stated, running=False), ExportRequest("jsonl", permitted=ASKED), out, tmp_path)
    assert names([json.loads(line)["url"] for line in out.getvalue().splitlines()]) == YES
    assert done.answers["refused"] == 2


@pytest.mark.heavy
def test_a_purpose_that_nothing_allows_leaves_nothing(stated: Path, exporting: Exporting, tmp_path: Path) -> None:
    for to in ("jsonl", "markdown", "wacz", "parquet"):
        done = exporting(to, tmp_path / to, stated, permitted=Permission("archive"))
        assert dict(done.answers) == {"unknown": 9}
    assert (tmp_path / "jsonl").read_bytes() == b""
    assert validated(tmp_path / "wacz").startswith("0 ")


@pytest.mark.parametrize(
    ("purpose", "unknown", "to", "says"),
    [
        ("training", False, "jsonl", "no purpose is called so; known are search, ai-train, ai-input, archive"),
        ("ai-train", False, "cdxj", "cdxj is an index of the crawl's own files"),
        ("", True, "jsonl", "name the purpose with --permitted"),
    ],
)
def test_what_cannot_be_asked_for(purpose: str, unknown: bool, to: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        permission(purpose, unknown=unknown, to=to)


def test_labels_of_other_vocabularies_are_known() -> None:
    assert permission("train-ai", unknown=False, to="jsonl") == ASKED
    assert permission("", unknown=False, to="cdxj") is None
