"""Each export equals what a plain reading of the WARC and Parquet files gives."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import brotli
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
import zstandard
from warcio.archiveiterator import ArchiveIterator

from gossamer.config import Config
from gossamer.model.errors import ConfigError
from gossamer.model.pages import Page
from gossamer.results.export.bodies import MarkdownPage
from gossamer.results.export.export import ExportedCrawl, ExportRequest, stream
from gossamer.results.export.opening import export_means
from gossamer.results.export.pages import _escape_all, escape, file_name, front_matter, quote
from gossamer.stages.archive.cdxj import entries_of_warcs, write_index
from gossamer.stages.archive.schema import PAGES
from tests.results.export.conftest import NOW, Exporting
from tests.results.export.crawled import HOSTILE_PATHS, HOSTILE_TITLES, hosts

Row = dict[str, object]


def rows(directory: Path, table: str) -> list[Row]:
    return [row for file in sorted((directory / table).glob("*.parquet")) for row in pq.read_table(file).to_pylist()]


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def as_text(row: Row) -> Row:
    return {k: f"{v:%Y-%m-%dT%H:%M:%S.%fZ}" if k == "fetched_at" else v for k, v in row.items()}  # type: ignore[str-format]


def decoded(body: bytes, coding: str) -> bytes | None:
    """Remove one content coding; None where that is not simply done."""
    decoders = {
        "gzip": gzip.decompress,
        "deflate": zlib.decompress,
        "br": brotli.decompress,
        "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    }
    try:
        return decoders[coding.lower()](body) if coding else body
    except (KeyError, OSError, EOFError, zlib.error, brotli.error, zstandard.ZstdError):
        return None


def bodies(directory: Path) -> dict[tuple[str, str], bytes | None]:
    """Content by URL and payload digest, read by warcio; a revisit has that of its digest."""
    found: dict[tuple[str, str], bytes | None] = {}
    by_digest: dict[str, bytes | None] = {}
    for path in sorted((directory / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                url, digest = (
                    record.rec_headers.get_header(name) for name in ("WARC-Target-URI", "WARC-Payload-Digest")
                )
                if record.rec_type == "response":
                    coding = record.http_headers.get_header("Content-Encoding") or ""
                    content = decoded(record.raw_stream.read(), coding)
                    found[url, digest] = by_digest[digest] = content
                elif record.rec_type == "revisit":
                    found[url, digest] = by_digest[digest]
    return found


def text_in(body: bytes | None) -> str:
    assert body is not None
    return body.decode()


def latest(directory: Path) -> dict[str, Row]:
    """Each key's last successful fetch."""
    found: dict[str, Row] = {}
    for row in sorted(rows(directory, "pages"), key=lambda row: row["fetched_at"]):  # type: ignore[arg-type, return-value]
        if row["outcome"] == "fetched":
            found[str(row["key"])] = row
    return found


def test_the_made_crawl_has_what_it_takes(crawled: Path) -> None:
    pages = rows(crawled, "pages")
    assert len(list((crawled / "pages").glob("*.parquet"))) > 1
    assert len(list((crawled / "warc").glob("*.warc.gz"))) > 3
    assert any(row["duplicate_of"] for row in pages)
    assert {row["title"] for row in pages} >= set(HOSTILE_TITLES)


@pytest.mark.promise("Files and exports", "An export holds what the WARC files and tables hold.")
@pytest.mark.parametrize("table", ["pages", "links"])
def test_json_lines_hold_every_row_and_column(crawled: Path, exporting: Exporting, tmp_path: Path, table: str) -> None:
    done = exporting("jsonl", tmp_path / "out", table=table)
    expected = [as_text(row) for row in rows(crawled, table)]
    text = (tmp_path / "out").read_bytes()
    assert text.count(b"\n") == len(expected) == done.rows[table]
    assert [json.loads(line) for line in text.split(b"\n")[:-1]] == expected


@pytest.mark.parametrize("table", ["pages", "links"])
def test_csv_is_read_back_whole(crawled: Path, exporting: Exporting, tmp_path: Path, table: str) -> None:
    exporting("csv", tmp_path / "out", table=table)
    data = (tmp_path / "out").read_bytes()
    read = list(csv.DictReader(io.StringIO(data.decode(), newline=""), strict=True))
    expected = [
        {k: "" if v is None else str(v).lower() if isinstance(v, bool) else str(v) for k, v in as_text(row).items()}
        for row in rows(crawled, table)
    ]
    assert read == expected
    assert data.endswith(b"\r\n")
    assert data.startswith(b"url,key,host" if table == "pages" else b"from_url,")


def unpacked(path: Path) -> bytes:
    """The text of a file as Python's own readers find it, which read one frame of zstd."""
    with gzip.open(path) if path.suffix == ".gz" else zstandard.open(path, "rb") as file:
        return bytes(file.read())


@pytest.mark.parametrize("to", ["jsonl", "csv", "cdxj"])
def test_a_text_is_compressed_as_its_name_says(exporting: Exporting, tmp_path: Path, to: str) -> None:
    exporting(to, tmp_path / "plain")
    for ending in (".gz", ".zst"):
        target = tmp_path / f"pages.{to}{ending}"
        exporting(to, target)
        assert unpacked(target) == (tmp_path / "plain").read_bytes()
        assert target.stat().st_size < (tmp_path / "plain").stat().st_size / 2
        assert not target.with_name(target.name + ".part").exists()


def test_an_export_that_was_killed_is_compressed_whole(exporting: Exporting, tmp_path: Path) -> None:
    target = tmp_path / "pages.jsonl.gz"
    exporting("jsonl", tmp_path / "plain")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exporting("jsonl", target, progress=die)
    assert not target.exists()
    assert exporting("jsonl", target).resumed
    assert unpacked(target) == (tmp_path / "plain").read_bytes()


@pytest.mark.parametrize("to", ["jsonl", "csv"])
def test_rows_can_be_limited(exporting: Exporting, crawled: Path, tmp_path: Path, to: str) -> None:
    def read(name: str) -> list[object]:
        data = (tmp_path / name).read_bytes().decode()
        return (
            list(csv.reader(io.StringIO(data, newline=""), strict=True))[1:] if to == "csv" else data.split("\n")[:-1]
        )

    exporting(to, tmp_path / "all", where="status = 200")
    for limit in (1, 3, 1_000_000):
        done = exporting(to, tmp_path / str(limit), limit=limit, where="status = 200")
        assert read(str(limit)) == read("all")[:limit]
        assert done.rows == {"pages": min(limit, len(read("all")))}
    out = io.BytesIO()
    request = ExportRequest(to, where="status = 200", limit=3)
    stream(ExportedCrawl(crawled, running=False), request, out, tmp_path)
    assert out.getvalue() == (tmp_path / "3").read_bytes()


@pytest.mark.parametrize("where", ["", "status = 200"])
def test_a_crawl_without_rows_has_their_columns(exporting: Exporting, tmp_path: Path, where: str) -> None:
    (tmp_path / "empty").mkdir()
    exporting("csv", tmp_path / "out", directory=tmp_path / "empty", where=where)
    assert next(csv.reader(io.StringIO((tmp_path / "out").read_text()))) == PAGES.names
    exporting("markdown", tmp_path / "pages", directory=tmp_path / "empty", where=where)


@pytest.mark.promise("Files and exports", "An export holds what the WARC files and tables hold.")
def test_parquet_is_sorted_by_host_and_loses_nothing(crawled: Path, exporting: Exporting, tmp_path: Path) -> None:
    exporting("parquet", tmp_path / "out")
    pages, links = (rows(tmp_path / "out", table) for table in ("pages", "links"))
    assert [(row["host"], row["url"], row["fetched_at"]) for row in pages] == sorted(
        (row["host"], row["url"], row["fetched_at"])
        for row in pages  # type: ignore[type-var]
    )
    host_of = {str(row["url"]): row["host"] for row in pages}
    assert all(host_of[str(row["from_url"])] == row.pop("from_host") for row in links)
    key = lambda row: json.dumps(row, default=str, sort_keys=True)  # noqa: E731
    assert sorted(map(key, pages)) == sorted(map(key, rows(crawled, "pages")))
    assert sorted(map(key, links)) == sorted(map(key, rows(crawled, "links")))
    in_order = [row["anchor_text"] for row in links if row["from_url"] == pages[0]["url"]]
    assert in_order == [f"{pages[0]['title']} {k}" for k in range(len(in_order))]  # As the page has them.
    schema = pq.read_schema(next((tmp_path / "out/pages").glob("*.parquet")))
    assert schema.equals(pq.read_schema(next((crawled / "pages").glob("*.parquet"))))


def test_columns_that_only_some_files_have_are_kept(crawled: Path, exporting: Exporting, tmp_path: Path) -> None:
    made = tmp_path / "crawl/pages"
    made.mkdir(parents=True)
    one, other = sorted((crawled / "pages").glob("*.parquet"))[:2]
    pq.write_table(pq.read_table(one), made / "pages-000-0001-000001.parquet")
    table = pq.read_table(other)
    table = table.append_column("language", pa.array(["de"] * len(table)).dictionary_encode())
    table = table.append_column("words", pa.array([7] * len(table), pa.int64()))
    pq.write_table(table, made / "pages-000-0001-000002.parquet")
    table = table.set_column(table.column_names.index("words"), "words", pa.array([0.5] * len(table)))
    pq.write_table(table, made / "pages-000-0001-000003.parquet")
    exporting("parquet", tmp_path / "out", tmp_path / "crawl", table="pages")
    exporting("jsonl", tmp_path / "lines", tmp_path / "crawl")
    for found in (rows(tmp_path / "out", "pages"), lines(tmp_path / "lines")):
        assert sorted(str(row["words"]) for row in found) == sorted(
            ["None"] * len(pq.read_table(one)) + ["7.0"] * len(table) + ["0.5"] * len(table)
        )
        assert {row["language"] for row in found} == {None, "de"}


def test_cdxj_is_what_reading_the_archive_gives(crawled: Path, exporting: Exporting, tmp_path: Path) -> None:
    exporting("cdxj", tmp_path / "out")
    write_index(tmp_path / "slow", entries_of_warcs(sorted((crawled / "warc").glob("*.warc.gz"))))
    assert (tmp_path / "out").read_text().splitlines() == (tmp_path / "slow").read_text().splitlines()


def stored(out: Path) -> Iterator[list[str]]:
    for line in (out / "store.log").read_bytes().split(b"\n")[:-1]:
        yield line.decode().split("\t")


def unescaped(text: str) -> str:
    return text.encode().decode("unicode_escape").encode("latin-1").decode() if "\\" in text else text


def test_page_files_give_each_page_back_by_offset(
    crawled: Path, exporting: Exporting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gossamer.results.export.pages.SEGMENT_BYTES_MAX", 8_000)
    out = tmp_path / "out"
    exporting("pagefiles", out)
    contents, pages = bodies(crawled), latest(crawled)
    assert max(path.stat().st_size for path in out.glob("*.pfl")) <= 8_000
    assert len(list(out.glob("*.pfl"))) > 3
    seen = set()
    for fields in stored(out):
        came_from, url, key, kind, status, media_type, size, title, number, offset = map(unescaped, fields)
        row = pages[key]
        seen.add(key)
        assert (came_from, url, status, media_type, title) == (
            row["referrer"], row["url"], str(row["status"]), row["media_type"], row["title"],
        )  # fmt: skip
        assert kind == "0"
        data = (out / f"pagefile_{number}.pfl").read_bytes()[int(offset) : int(offset) + int(size)]
        assert data == contents[url, str(row["digest"])]
    assert seen == set(pages)


def test_a_content_larger_than_a_page_file_is_named_but_not_stored(
    exporting: Exporting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gossamer.results.export.pages.SEGMENT_BYTES_MAX", 500)
    exporting("pagefiles", tmp_path / "out")
    places = [(int(fields[6]), fields[8], fields[9]) for fields in stored(tmp_path / "out")]
    assert any(size > 500 for size, _, _ in places)
    assert all((number == "-1" and offset == "-1") == (size > 500) for size, number, offset in places)


def test_a_column_is_escaped_as_a_text_is() -> None:
    texts = ["a\\\tb", "\\n\n\r\\", "", "ö\t\t", "\\\\"]
    assert _escape_all(pa.array(texts)).to_pylist() == [escape(text) for text in texts]


def test_links_log_has_every_link_with_its_type(crawled: Path, exporting: Exporting, tmp_path: Path) -> None:
    exporting("pagefiles", tmp_path / "out")
    numbers = {"anchor": "0", "frame": "1", "iframe": "1", "redirect": "2"}
    read = [line.decode().split("\t") for line in (tmp_path / "out/links.log").read_bytes().split(b"\n")[:-1]]
    assert [[unescaped(field) for field in line] for line in read] == [
        [row["from_url"], row["to_url"], row["to_key"], numbers[str(row["link_type"])], row["anchor_text"]]
        for row in rows(crawled, "links")
    ]


def test_a_count_in_front_matter_is_a_number() -> None:
    page = Page("http://a.test/", "text/html", "", (), b"<p>Seen.<p hidden>Unseen.")
    facts = export_means(Config()).content_of(page).facts
    assert facts["hidden_chars"] == len("Unseen.")
    row = dict.fromkeys(("url", "title", "fetched_at", "host", "media_type", "referrer", "digest", "duplicate_of"), "")
    lines = front_matter({**row, "depth": 0}, MarkdownPage("", "main", facts)).splitlines()
    assert "hidden_chars: 7" in lines


def test_markdown_holds_every_page_and_its_front_matter_is_yaml(
    crawled: Path, exporting: Exporting, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    exporting("markdown", out)
    contents, pages = bodies(crawled), latest(crawled)
    files = [path for path in out.rglob("*") if path.is_file()]
    read = {}
    for path in files:
        _, front, content = path.read_bytes().decode().split("---\n", 2)
        fields = yaml.safe_load(front)
        read[fields["url"]] = (fields.get("title", ""), content)
    assert len(files) == len(read) == len(pages)
    for row in pages.values():
        url = str(row["url"])
        assert read[url] == (row["title"], "\n" + text_in(contents[url, str(row["digest"])]).strip("\n") + "\n")


def test_names_are_safe_whatever_a_url_says() -> None:
    urls = [
        f"http://{host}{path}"
        for host in [*hosts(3), "..", "con", "[::1]", "a:8080", "x" * 300, "ü.example"]
        for path in HOSTILE_PATHS
    ]
    names = [file_name(url.split("/")[2], url, url) for url in urls]
    assert len({name.lower() for name in names}) == len(urls)
    for name in names:
        folder, file = name.split("/")
        for part in (folder, file):
            assert part.isascii()
            assert part == part.lower()
            assert len(part) <= 140
            assert part.strip(". -") == part.rstrip("-")
            assert not set(part) & set('\\/:*?"<>|\0 %')
            assert part.split(".")[0] not in ("con", "prn", "aux", "nul")


@pytest.mark.parametrize("text", [*HOSTILE_TITLES, "\ud7ff\ue000", "a: b", "\x00\x7f\x80\x9f\xa0"])
def test_every_title_comes_back_from_yaml(text: str) -> None:
    assert yaml.safe_load(f"title: {quote(text)}") == {"title": text}
    assert quote(text).isprintable()


def test_a_condition_chooses_rows(crawled: Path, exporting: Exporting, tmp_path: Path) -> None:
    done = exporting("jsonl", tmp_path / "out", where="host = 'h01.example' AND outcome = 'fetched'")
    expected = [as_text(row) for row in rows(crawled, "pages") if row["host"] == "h01.example"]
    assert lines(tmp_path / "out") == expected
    assert done.rows == {"pages": len(expected)}
    done = exporting("parquet", tmp_path / "tables", table="pages", where="host = 'h01.example'")
    assert done.rows == {"pages": pq.read_table(tmp_path / "tables/pages").num_rows} == {"pages": len(expected)}
    exporting("markdown", tmp_path / "pages", where="host = 'h01.example'")
    assert [path.name for path in (tmp_path / "pages").iterdir()] == ["h01.example"]


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("passes_gopher", "no column passes_gopher; columns that an export adds are in its files alone"),
        ("outcom = 'fetched'", "no column outcom; did you mean outcome?"),
        ("hots = 'x'", "hots"),
        ("count(*) > 1", "condition on single rows"),
        ("1 = ", "not complete"),
        ("(SELECT count(*) FROM read_csv('/etc/passwd')) > 0", "disabled by configuration"),
    ],
)
def test_a_condition_that_is_none_leaves_nothing(exporting: Exporting, tmp_path: Path, where: str, says: str) -> None:
    for to in ("csv", "markdown"):
        with pytest.raises(ConfigError, match=says) as error:
            exporting(to, tmp_path / "out", where=where)
        assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_streaming_gives_the_same_bytes(crawled: Path, exporting: Exporting, tmp_path: Path) -> None:
    exporting("csv", tmp_path / "out", table="links")
    out = io.BytesIO()
    stream(ExportedCrawl(crawled, running=False, now=NOW), ExportRequest("csv", "links"), out, tmp_path / "logs")
    assert out.getvalue() == (tmp_path / "out").read_bytes()


def test_what_was_not_begun_here_is_not_touched(exporting: Exporting, tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_text("thesis")
    with pytest.raises(ConfigError, match="out already exists, a file of 6 bytes, written 20"):
        exporting("csv", target)
    assert target.read_text() == "thesis"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("to", "what"), [("csv", "a file of [0-9,]+ bytes"), ("parquet", "a directory with 2 entries")]
)
def test_a_finished_export_is_not_written_over(exporting: Exporting, tmp_path: Path, to: str, what: str) -> None:
    target = tmp_path / "out"
    exporting(to, target)
    finished = target.stat()
    said = f"out already exists, {what}, written .* UTC; an export overwrites nothing: name another"
    with pytest.raises(ConfigError, match=said) as caught:
        exporting(to, target)
    assert "\n" not in str(caught.value)
    assert (target.stat().st_mtime_ns, target.stat().st_ino) == (finished.st_mtime_ns, finished.st_ino)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    target.rename(tmp_path / "first")
    target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="a link that leads nowhere"):
        exporting(to, target)


def test_no_message_says_to_remove_a_crawl(crawled: Path, exporting: Exporting) -> None:
    for target in (crawled, crawled.parent):
        with pytest.raises(ConfigError, match="is the crawl itself, or holds it; name another place with -o"):
            exporting("csv", target)


def test_an_unfinished_export_goes_on_only_as_it_was_asked_for(
    exporting: Exporting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("gossamer.results.export.tables.AppendFile.write", full)
        with pytest.raises(OSError, match="No space"):
            exporting("csv", tmp_path / "out")
    with pytest.raises(ConfigError, match="table '', not 'links'"):
        exporting("csv", tmp_path / "out", table="links")
    assert exporting("csv", tmp_path / "out").resumed
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_gzip_members_of_the_made_crawl_are_what_they_seem(crawled: Path) -> None:
    """The bodies that these tests compare with were really coded: what decodes them is under test."""
    path = next(iter(sorted((crawled / "warc").glob("*.warc.gz"))))
    assert b"Content-Encoding: gzip" in gzip.decompress(path.read_bytes())
    with pytest.raises(zlib.error):
        zlib.decompress(path.read_bytes())
