"""WACZ, against the tool of those who define it, and as a player on the web reads it: by range."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gossamer.model.errors import ConfigError, DamagedError
from gossamer.results.export import wacz
from gossamer.results.export.bodies import require_whole
from gossamer.results.export.source import RowSource, pieces_of
from gossamer.results.export.work import ExportPiece
from gossamer.stages.archive.archive import Archives
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.segments import files_of
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.warc import WarcArchive, WarcInfo
from tests.results.export.conftest import Exporting
from tests.results.export.crawled import finished
from tests.stages.archive.web import START, Shard, visited


@pytest.fixture
def made(exporting: Exporting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(wacz, "LINES_A_BLOCK", 20)
    exporting("wacz", tmp_path / "crawl.wacz")
    return tmp_path / "crawl.wacz"


def validated(path: Path) -> str:
    code = f"from wacz.main import main; raise SystemExit(main(['validate', '-f', {str(path)!r}]))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False, timeout=100
    )
    return f"{done.returncode} {done.stdout}{done.stderr}"


@pytest.mark.heavy
def test_the_tool_of_its_makers_accepts_it(made: Path) -> None:
    said = validated(made)
    assert said.startswith("0 ")
    assert "the passed WACZ is valid" in said


@pytest.mark.heavy
def test_the_tool_refuses_one_with_a_changed_byte(made: Path, tmp_path: Path) -> None:
    """What accepts everything proves nothing."""
    changed = tmp_path / "changed.wacz"
    with zipfile.ZipFile(made) as archive, zipfile.ZipFile(changed, "w") as copy:
        for info in archive.infolist():
            data = archive.read(info)
            copy.writestr(info, data + b"\n" if info.filename == "pages/pages.jsonl" else data)
    assert "is invalid" in validated(changed)


def test_every_line_of_the_index_leads_to_its_record_by_range(made: Path, crawled: Path) -> None:
    data = made.read_bytes()
    with zipfile.ZipFile(made) as archive:
        starts = {}
        for info in archive.infolist():
            head = data[info.header_offset : info.header_offset + 30]
            starts[info.filename] = (
                info.header_offset + 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
            )
            if info.filename.startswith("archive/") or info.filename.endswith(".gz"):
                assert info.compress_type == zipfile.ZIP_STORED
        blocks = archive.read("indexes/index.idx").decode().splitlines()
    assert json.loads(blocks[0].removeprefix("!meta 0 ")) == {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
    lines: list[str] = []
    for block in blocks[1:]:
        key, place = block[: block.index("{")].strip(), json.loads(block[block.index("{") :])
        start = starts["indexes/index.cdx.gz"] + place["offset"]
        packed = data[start : start + place["length"]]
        assert place["digest"] == "sha256:" + hashlib.sha256(packed).hexdigest()
        found = gzip.decompress(packed).decode().splitlines()
        assert found[0].startswith(key)
        lines += found
    assert len(blocks) > 3
    assert lines == sorted(lines)
    for line in lines:
        entry = json.loads(line.split(" ", 2)[2])
        start = starts[f"archive/{entry['filename']}"] + int(entry["offset"])
        assert f"WARC-Target-URI: {entry['url']}\r\n".encode() in gzip.decompress(
            data[start : start + int(entry["length"])]
        )
    assert len(lines) > 100


def test_pages_are_listed_with_title_and_time(made: Path) -> None:
    with zipfile.ZipFile(made) as archive:
        head, *pages = [json.loads(line) for line in archive.read("pages/pages.jsonl").split(b"\n")[:-1]]
        package = json.loads(archive.read("datapackage.json"))
        digest = json.loads(archive.read("datapackage-digest.json"))
        assert digest["hash"] == "sha256:" + hashlib.sha256(archive.read("datapackage.json")).hexdigest()
        assert {one["path"] for one in package["resources"]} | {"datapackage.json", "datapackage-digest.json"} == set(
            archive.namelist()
        )
        assert archive.testzip() is None
    assert head["format"] == "json-pages-1.0"
    assert len({page["id"] for page in pages}) == len(pages) > 100
    assert all(page["ts"].endswith("Z") and page["url"] and page["title"] for page in pages)


def test_pages_are_listed_as_browsertrix_crawler_lists_them(made: Path) -> None:
    """With the text by which players search, what was a seed, and the page to begin with."""
    with zipfile.ZipFile(made) as archive:
        head, *pages = [json.loads(line) for line in archive.read("pages/pages.jsonl").split(b"\n")[:-1]]
        package = json.loads(archive.read("datapackage.json"))
    assert head["hasText"] is True
    first = pages[0]
    assert first["text"] == "<title>t</title><p>Body of 0.</p>"
    assert (first["mime"], first["status"], first["depth"], first["seed"]) == ("text/html", 200, 2, False)
    assert all("Body of " in page["text"] for page in pages), "copies have the text of their originals"
    assert (package["mainPageUrl"], package["mainPageDate"]) == (first["url"], first["ts"])
    assert package["title"] == first["title"]


def test_every_visit_of_a_page_is_listed_and_its_seed_is_the_main_page(exporting: Exporting, tmp_path: Path) -> None:
    shard = Shard(tmp_path / "crawl")
    archive = Archives(
        [WarcArchive(ArchiveOptions(), shard.journals, WarcInfo("g/1")), TableWriters(ArchiveOptions(), shard.journals)]
    )
    for number, path in enumerate(("deep", "seed", "seed")):
        visit = visited(f"http://example.org/{path}", f"<p>Version {number}.".encode(), at=START + number)
        visit.row.depth, visit.row.title = int(path == "deep"), path
        archive.add(visit)
    exporting("wacz", tmp_path / "out.wacz", finished(tmp_path / "crawl", shard, archive))
    with zipfile.ZipFile(tmp_path / "out.wacz") as file:
        _, *pages = [json.loads(line) for line in file.read("pages/pages.jsonl").splitlines()]
        package = json.loads(file.read("datapackage.json"))
    assert [page["text"] for page in pages] == [f"<p>Version {number}." for number in range(3)]
    assert (package["mainPageUrl"], package["mainPageDate"]) == ("http://example.org/seed", pages[1]["ts"])
    assert package["title"] == "seed"


@pytest.mark.heavy
def test_on_a_running_crawl_it_holds_finished_files_and_names_no_others(
    crawled: Path, exporting: Exporting, tmp_path: Path
) -> None:
    running = tmp_path / "crawl"
    (running / "warc").mkdir(parents=True)
    (running / "pages").symlink_to(crawled / "pages")
    first, second, *_ = sorted((crawled / "warc").iterdir())
    (running / "warc" / first.name).symlink_to(first)
    (running / "warc" / f"{second.name}.open").symlink_to(second)
    exporting("wacz", tmp_path / "out.wacz", running, running=True)
    with zipfile.ZipFile(tmp_path / "out.wacz") as archive:
        assert [name for name in archive.namelist() if name.startswith("archive/")] == [f"archive/{first.name}"]
        index = gzip.decompress(archive.read("indexes/index.cdx.gz")).decode().splitlines()
    assert {json.loads(line.split(" ", 2)[2])["filename"] for line in index} == {first.name}
    assert validated(tmp_path / "out.wacz").startswith("0 ")


def test_other_archives_than_gzipped_ones_are_refused(crawled: Path, exporting: Exporting, tmp_path: Path) -> None:
    made = tmp_path / "crawl"
    (made / "warc").mkdir(parents=True)
    (made / "pages").symlink_to(crawled / "pages")
    (made / "warc/gossamer-000-0001-000001.warc.zst").touch()
    with pytest.raises(ConfigError, match="no gzipped WARC file"):
        exporting("wacz", tmp_path / "out.wacz", made)
    assert not (tmp_path / "out.wacz.part").exists()


def test_beyond_what_plain_zip_can_say_it_is_zip64(tmp_path: Path) -> None:
    """A sparse file stands in for 5 GB: what is checked is what the directory says of it."""
    large = tmp_path / "large.warc.gz"
    with large.open("wb") as file:
        file.truncate(5_000_000_000)
    out = (tmp_path / "out").open("w+b")
    try:
        archive = wacz._Zip(out, [], 1_767_225_600.0)
        member = archive.add_file("archive/large.warc.gz", large, 200, zipfile.ZIP_STORED)
        assert member.version == 20
        length = out.tell()
        archive.leave()
        far = wacz.ZipMember("archive/far.warc.gz", length, 5_000_000_000, 5_000_000_000, 1, "sha256:", 0, 45)
        archive = wacz._Zip(out, [member, far], 1_767_225_600.0)
        archive.close()
    finally:
        out.close()
    with zipfile.ZipFile(tmp_path / "out") as read:
        assert [info.file_size for info in read.infolist()] == [200, 5_000_000_000]


@pytest.mark.promise("Files and exports", "No file that was cut short is exported or indexed as if it were whole.")
@pytest.mark.parametrize("cut", ["within a record of a page", "behind the last of them", "to nothing"])
def test_a_warc_file_that_was_cut_short_is_named_and_nothing_is_made(
    crawled: Path, exporting: Exporting, tmp_path: Path, cut: str
) -> None:
    copied = tmp_path / "crawl"
    shutil.copytree(crawled / "warc", copied / "warc")
    (copied / "pages").symlink_to(crawled / "pages")
    exporting("wacz", tmp_path / "sound.wacz", copied)
    for file in sorted((copied / "warc").iterdir())[1:3]:
        whole = file.read_bytes()
        lengths = {"within a record of a page": len(whole) // 2, "behind the last of them": len(whole) - 5}
        file.write_bytes(whole[: lengths.get(cut, 0)])
        with pytest.raises(DamagedError, match=f"{file.name} ends early: it was damaged, or not copied whole") as error:
            exporting("wacz", tmp_path / "out.wacz", copied)
        assert "\n" not in str(error.value)
        assert not list(tmp_path.glob("out.wacz*"))
        file.write_bytes(whole)
    exporting("wacz", tmp_path / "out.wacz", copied)


def test_what_was_never_committed_is_not_missed(crawled: Path, tmp_path: Path) -> None:
    copied = tmp_path / "crawl"
    shutil.copytree(crawled / "warc", copied / "warc")
    last = max((copied / "warc").iterdir())
    length = last.stat().st_size
    growing = last.rename(last.with_name(last.name + ".open"))
    with growing.open("ab") as file:
        file.write(b"\x1f\x8b half of a record")
    pieces = [ExportPiece(str(growing), length)]
    rows = RowSource(pieces_of(files_of(crawled, "pages")), table="pages")
    require_whole(pieces, rows)
    with pytest.raises(DamagedError, match="ends early"):
        require_whole([ExportPiece(str(growing), length + 10)], rows)
