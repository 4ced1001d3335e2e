"""Seeds from files of other programs: the format is found by the content."""

from __future__ import annotations

import gzip
import html
import re
from pathlib import Path

import pytest

from gossamer.config.seedfiles import form_of
from gossamer.config.seeds import file_seeds
from gossamer.model.errors import ConfigError

WEB = ("http", "https")
A, B = "https://a.test/", "http://b.test/x?y[]=1&copy=2"
BOOKMARKS = f"""<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<DL><p><DT><H3>Folder</H3>
<DT><A HREF="{A}" ADD_DATE="1">A</A> <DT><a href='{html.escape(B)}'>B</a>
<DT><A HREF="javascript:alert(1)">no</A><DT><A HREF="place:sort=8">no</A></DL>
"""
PAGE = f"""<!DOCTYPE html><a class=x
  href="{A}">A</a><!-- <a href="http://old.test/">old</a> --><a title='a > b' data-href="http://no.test/" href={B}>B</a>
"""
CDX_LINE = "test,{0})/ 20260101000000 {1} text/html 200 AAAA - - 100 5 x.warc.gz"
INDEX_LINE = 'test,{0})/ 20260101000000 {{"url": "{1}", "mime": "text/html", "status": "200"}}'


def two(line: str) -> str:
    return line.format("a", A) + "\n" + line.format("a", A) + "\n" + line.format("b", B) + "\n"


SITEMAP = f"""<?xml version="1.0" encoding="UTF-8"?>{" " * 3_000}
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>
  {A} </loc><image:image><image:loc>http://i.test/</image:loc></image:image></url><!--{" " * (1 << 20)}-->
<url><loc><![CDATA[{B}]]></loc></url></urlset>"""
FILES = {
    "lines": f"# mine\n{A}\n{B}\n",
    "sitemap": SITEMAP,
    "sitemap-line": f"<urlset><url><loc>{A}</loc></url><url><loc>{html.escape(B)}</loc></url></urlset>",
    "sitemap-index": f"<sitemapindex><sitemap><loc>{A}</loc></sitemap><loc>{html.escape(B)}</loc></sitemapindex>",
    "sitemap-prefix": re.sub("(</?)(url|loc)", r"\1s:\2", SITEMAP).replace("xmlns", "xmlns:s"),
    "sitemap-comment": f"<urlset><!-- <loc>http://o.test/</loc> --><loc>{A}</loc><loc>{html.escape(B)}</loc></urlset>",
    "bookmarks": BOOKMARKS,
    "bookmarks-page": PAGE,
    "csv": f'rank,URL,title\n1,{A},"x, y"\n2,{B},z\n3\n',
    "csv-semicolon": f"name;address\r\nx;{A}\r\ny;{B}\r\n",
    "csv-tab": f"\ufeffpage\tclicks\n{A}\t3\n{B}\t1\n",
    "csv-one": f"url\n{A}\n{B}\n",
    "cdx": " CDX N b a m s k r M S V g\n" + two(CDX_LINE),
    "cdx-bare": two(CDX_LINE),
    "cdx-other": f" CDX A b a\nx 2026 {A}\nx 2026 {B}\n",
    "json-cdxj": two(INDEX_LINE),
    "json-lines": f'{{"urlkey": "x", "url": "{A}"}}\n{{"url": "{B}", "more": [1]}}\n',
}


@pytest.mark.promise(
    "What is fetched",
    "Seeds are read from sitemaps, bookmarks, CSV, WARC, CDX and Common Crawl indexes, plain or gzipped.",
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", [name for name in FILES if name != "lines"])
def test_seeds_are_found_in_every_format(tmp_path: Path, name: str, packed: bool) -> None:
    path = tmp_path / "file"
    data = FILES[name].encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    assert form_of(path) == name.partition("-")[0]
    assert list(file_seeds(path, WEB)) == [A, B]


def test_a_list_of_lines_is_as_before(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(FILES["lines"])
    assert form_of(tmp_path / "file") == "lines"
    assert list(file_seeds(tmp_path / "file", WEB)) == [A, B]
    (tmp_path / "file").write_bytes(gzip.compress(FILES["lines"].encode()))
    assert list(file_seeds(tmp_path / "file", WEB)) == [A, B]
    (tmp_path / "file").write_text(f"{A}\r{B}\r")  # As old Macs wrote them.
    assert list(file_seeds(tmp_path / "file", WEB)) == [A, B]
    (tmp_path / "file").write_text(f"{A}\nno seed\n")
    with pytest.raises(ConfigError, match="file line 2: "):
        list(file_seeds(tmp_path / "file", WEB))


@pytest.mark.parametrize(
    "line",
    [
        f"{A}\tA label", f"{A}\t", f"{A}   ", f"\t{A}\tLabel\tmore", f"{A}\r", f"<{A}>", f'"{A}"', f"'{A}'\tLabel",
        f"- {A}", f"* <{A}>", f"+ {A}\tLabel", f"[A label]({A})", f"- [A, label]({A})", f"{A} # comment",
        f"\ufeff{A}\tLabel",
    ],
)  # fmt: skip
def test_an_address_is_found_among_what_surely_is_no_part_of_it(tmp_path: Path, line: str) -> None:
    (tmp_path / "file").write_text(f"# mine\n{line}\n{B}\n")
    assert list(file_seeds(tmp_path / "file", WEB)) == [A, B]


@pytest.mark.parametrize("line", ["A label\thttp://a.test/", "<>", '"', "- ", "[A](", "[A]()", "\t\tlabel"])
def test_a_line_without_an_address_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "file").write_text(f"{A}\n{line}\n")
    with pytest.raises(ConfigError, match="file line 2: "):
        list(file_seeds(tmp_path / "file", WEB))


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_seeds_are_the_pages_of_a_warc_file(tmp_path: Path, packed: bool) -> None:
    records = []
    for url in ("dns:a.test", f"{A}robots.txt", A, B):
        kind = "resource" if url.startswith("dns") else "response"
        heads = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nContent-Length: 2\r\n\r\n"
        records.append(f"{heads}ab\r\n\r\n".encode())
    (tmp_path / "file").write_bytes(b"".join(map(gzip.compress, records) if packed else records))
    assert form_of(tmp_path / "file") == "warc"
    assert list(file_seeds(tmp_path / "file", WEB)) == [A, B]


def test_a_file_that_is_cut_short_is_one_line(tmp_path: Path) -> None:
    packed = gzip.compress(FILES["cdx"].encode() * 500)
    (tmp_path / "file").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(ConfigError, match=r"cannot read seeds from .*file: "):
        list(file_seeds(tmp_path / "file", WEB))
    (tmp_path / "file").write_bytes(gzip.compress(FILES["lines"].encode())[:-6])
    with pytest.raises(ConfigError, match=r"cannot read seeds from .*file: Compressed file ended before"):
        list(file_seeds(tmp_path / "file", WEB))
    (tmp_path / "file").write_bytes(b"\x1f\x8bno gzip at all")
    with pytest.raises(ConfigError, match=r"cannot read seeds from .*file: "):
        list(file_seeds(tmp_path / "file", WEB))


@pytest.mark.parametrize(
    ("content", "is_it"),
    [
        (b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Tar", "a WARC file without whole responses"),
        (b"WARC/1.1\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n", "a WARC file without whole"),
        (b"<urlset></urlset>", "a sitemap without addresses"),
        (b"<!DOCTYPE html><p>404", "HTML without links"),
        (b"url,title\nmailto:x,y\n", "CSV without addresses"),
    ],
)
def test_a_file_of_another_format_without_seeds_is_named(tmp_path: Path, content: bytes, is_it: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ConfigError, match=rf"no seeds in .*file: it is {is_it}"):
        list(file_seeds(tmp_path / "file", WEB))
