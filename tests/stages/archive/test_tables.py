"""Rows and links, from the visit to the table's log."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from gossamer.model.counters import Counters
from gossamer.model.links import Found
from gossamer.model.pages import EpochRow, Findings, PageRow
from gossamer.stages.archive.logs import BrokenFrameError, batches, frame
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.schema import EPOCHS, LINKS, PAGES
from gossamer.stages.archive.tables import TableWriters

from .web import START, Shard, visited

# docs/reference/output.md and the interface promise these names, in this order.
PAGES_COLUMNS = [
    "url", "key", "host", "site", "fetched_at", "outcome", "status", "media_type", "charset",
    "wire_bytes", "body_bytes", "truncated", "digest", "duplicate_of", "title", "depth", "referrer", "link_type",
    "redirect_to", "ip", "fetch_s", "attempt", "warc_file", "warc_offset", "warc_length", "shard", "error",
    "warc_type",
    "near_duplicate_of", "simhash", "change", "hops", "text_method",
    "usage_search", "usage_ai_train", "usage_ai_input", "usage_archive", "usage_reason", "usage_statements",
    "wall", "offer", "authenticated",
    "rendered", "links_gained", "render_reason", "sent_type",
]  # fmt: skip
LINKS_COLUMNS = ["from_url", "to_url", "to_key", "link_type", "anchor_text", "nofollow"]

PAGES_LOG = "state/tables/pages-000-0001-000001.journal.open"
LINKS_LOG = "state/tables/links-000-0001-000001.journal.open"


def tables(shard: Shard, **options: object) -> TableWriters:
    return TableWriters(ArchiveOptions(**options), shard.journals)  # type: ignore[arg-type]


def rows_of(path: Path) -> list[dict[str, object]]:
    return [row for batch in batches(path) for row in batch.to_pylist()]


def test_columns_are_those_promised() -> None:
    assert PAGES.names == PAGES_COLUMNS == list(PageRow.__struct_fields__)
    assert LINKS.names == LINKS_COLUMNS
    assert EPOCHS.names == [*EpochRow.__struct_fields__[:-1], *Counters.__struct_fields__]


def test_rows_come_back_as_they_were_given(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    into = tables(shard)
    visits = [visited(f"http://example.org/{number}", links=number, at=START + number / 7) for number in range(5)]
    visits[3].row.status = None
    visits[3].row.warc_offset = 2**40
    for visit in visits:
        into.add(visit)
    shard.commit()
    assert not (tmp_path / PAGES_LOG).exists()  # Nothing reaches the log before the cut.
    into.cut()
    shard.commit()
    pages, links = rows_of(tmp_path / PAGES_LOG), rows_of(tmp_path / LINKS_LOG)
    for visit, page in zip(visits, pages, strict=True):
        wanted = msgspec.structs.asdict(visit.row)
        at, fetched_at = page.pop("fetched_at"), wanted.pop("fetched_at")
        assert page == wanted
        assert at.tzinfo is not None  # type: ignore[attr-defined]
        assert at.timestamp() == pytest.approx(fetched_at, abs=1e-6)  # type: ignore[attr-defined]
    assert links == [
        {
            "from_url": visit.url.text,
            "to_url": link.url,
            "to_key": key,
            "link_type": link.link_type,
            "anchor_text": link.anchor_text,
            "nofollow": link.nofollow,
        }
        for visit in visits
        for link, key in zip(visit.links, visit.link_keys, strict=True)
    ]


def test_what_a_page_forbids_stands_with_each_of_its_links_but_embeds(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    into = tables(shard)
    visit = visited("http://example.org/", links=2)
    visit.links[1] = Found(visit.links[1].url, "embed")
    visit.findings = Findings(nofollow=True)
    into.add(visit)
    into.cut()
    shard.commit()
    assert [row["nofollow"] for row in rows_of(tmp_path / LINKS_LOG)] == [True, False]


def test_each_cut_is_one_frame_and_an_empty_epoch_none(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    into = tables(shard, links=False)
    for number in range(3):
        into.add(visited(f"http://example.org/{number}", links=3))
        into.cut()
        into.cut()
    shard.commit()
    assert [batch.num_rows for batch in batches(tmp_path / PAGES_LOG)] == [1, 1, 1]
    assert not (tmp_path / LINKS_LOG).exists()


def test_memory_is_bounded_within_an_epoch(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    into = tables(shard, table_frame_rows_max=10)
    for number in range(25):
        into.add(visited(f"http://example.org/{number}", links=6))
        assert into._pages.count < 10
        assert into._links.count < 10
    into.cut()
    shard.commit()
    assert len(rows_of(tmp_path / PAGES_LOG)) == 25
    assert len(rows_of(tmp_path / LINKS_LOG)) == 150


def test_a_full_disk_loses_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = Shard(tmp_path)
    into = tables(shard)
    into.add(visited("http://example.org/1", links=2))
    into.cut()
    journal = shard.journals.open_journals("state/tables/pages")[0]

    def refuse(data: bytes) -> int:
        raise OSError(28, "No space left on device")

    into.add(visited("http://example.org/2", links=2))
    with monkeypatch.context() as patch:
        patch.setattr(journal, "append", refuse)
        with pytest.raises(OSError, match="No space"):
            into.cut()
    into.cut()
    shard.commit()
    assert [row["url"] for row in rows_of(tmp_path / PAGES_LOG)] == ["http://example.org/1", "http://example.org/2"]
    assert len(rows_of(tmp_path / LINKS_LOG)) == 4


def test_text_that_is_no_unicode_harms_nothing_else(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    into = tables(shard)
    odd = visited("http://example.org/odd", links=1)
    odd.row.title = "a\ud800b"
    into.add(odd)
    into.add(visited("http://example.org/fine"))
    into.cut()
    shard.commit()
    assert [row["title"] for row in rows_of(tmp_path / PAGES_LOG)] == ["a?b", "Page"]


@pytest.mark.parametrize("options", [{"table_segment_rows_max": 2}, {"table_segment_bytes_max": 5000}])
def test_a_full_log_is_finished_and_numbers_go_on(tmp_path: Path, options: dict[str, int]) -> None:
    shard = Shard(tmp_path)
    into = tables(shard, **options)
    for number in range(6):
        into.add(visited(f"http://example.org/{number}"))
        into.cut()
        shard.commit()
    into.close()
    shard.commit()
    logs = [entry.name for entry in shard.journals.finals("state/tables/pages")]
    assert len(logs) >= 2
    assert logs == [f"state/tables/pages-000-0001-{number:06d}.journal" for number in range(1, len(logs) + 1)]
    assert sum(len(rows_of(tmp_path / log)) for log in logs) == 6


def test_after_a_crash_the_log_holds_what_was_committed_and_goes_on(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    into = tables(shard)
    into.add(visited("http://example.org/kept"))
    into.cut()
    shard.commit()
    into.add(visited("http://example.org/lost"))
    into.cut()
    shard.journals.cut()
    shard = shard.crash()
    into = tables(shard)
    into.add(visited("http://example.org/after"))
    into.cut()
    shard.commit()
    assert [row["url"] for row in rows_of(tmp_path / PAGES_LOG)] == [
        "http://example.org/kept",
        "http://example.org/after",
    ]


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    batch = pa.record_batch([pa.array(["some", "words"])], names=["word"])
    whole = frame(batch) + frame(batch)
    path = tmp_path / "log"
    path.write_bytes(whole)
    assert sum(found.num_rows for found in batches(path)) == 4
    for at in range(0, len(whole), 7):
        broken = bytearray(whole)
        broken[at] ^= 0x10
        path.write_bytes(broken)
        with pytest.raises(BrokenFrameError, match="log"):
            list(batches(path))


@pytest.mark.parametrize("cut", [1, 5, 15, 16, 17, 100])
def test_a_log_that_ends_early_is_noticed(tmp_path: Path, cut: int) -> None:
    data = frame(pa.record_batch([pa.array(["some", "words"])], names=["word"]))
    path = tmp_path / "log"
    path.write_bytes(data + data[:-cut])
    with pytest.raises(BrokenFrameError):
        list(batches(path))


def epoch(number: int, at: float) -> EpochRow:
    sums = 3 * number, 2 * number, 1000 * number
    return EpochRow(number, at, 0.25, 0.0625, *sums, 0, 10 * number, 5, 1, Counters(dns_lookups=number, dns_s=0.5))


def test_a_commit_leaves_a_row_with_the_next(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    into = tables(shard)
    into.add_epoch(epoch(1, START))
    into.cut()
    shard.commit()
    (row,) = rows_of(tmp_path / "state/tables/epochs-000-0001-000001.journal.open")
    assert row.pop("committed_at").timestamp() == START  # type: ignore[attr-defined]
    assert row == {
        "epoch": 1, "took_s": 0.25, "cut_s": 0.0625, "attempts": 3, "pages": 2, "wire_bytes": 1000, "shard": 0,
        "queued": 10, "hosts_with_work": 5, "due": 1,
        **msgspec.structs.asdict(Counters(dns_lookups=1, dns_s=0.5)),
    }  # fmt: skip


def test_logs_that_have_grown_for_long_are_finished(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    into = tables(shard, table_segment_s_max=60.0)
    for number in range(4):
        into.add(visited(f"http://example.org/{number}"))
        into.cut()
        into.add_epoch(epoch(number, START + 40.0 * number))
        shard.commit()
    finished = sorted(path.name for path in (tmp_path / "state/tables").glob("pages-*.journal"))
    assert finished == ["pages-000-0001-000001.journal"]  # 80 s after the first commit, with what was in it by then.
    assert [row["url"] for row in rows_of(tmp_path / "state/tables" / finished[0])] == [
        f"http://example.org/{number}" for number in range(3)
    ]
