"""The parts of `make league` that read logs and output, and the shape of its report. No other crawler is needed."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gossamer.lab.simweb.log import Logged

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks/league"))
import league
import peers
import report


def logged(host: str, path: str, at: float = 0.0, *, status: int = 200, whole: bool = True) -> Logged:
    return Logged(at, at, at, "127.16.0.1", host, path, status, 1, 1, 1, whole, 0.0, "GET", "agent")


def test_a_gap_is_from_start_to_start_at_one_host() -> None:
    log = [logged("a", "/robots.txt", 0.0), logged("a", "/1", 0.01), logged("b", "/1", 0.02), logged("a", "/3", 0.25)]
    log += [logged("a", "/2", 0.15), logged("b", "/2", 0.05), logged("-", "-", 0.05)]
    assert league.gaps(log, None, 0.1) == (1, 3)
    assert league.gaps(log, {"a"}, 0.1) == (0, 2)
    assert league.gaps(log, {"a"}, 0.13) == (1, 2)


def test_a_page_is_found_in_any_spelling_but_only_whole() -> None:
    wanted = ["http://a.test:80/x%20y", "http://a.test:80/z", "http://a.test:80/cut", "http://a.test:80/gone"]
    log = [logged("a.test", "/x y"), logged("a.test", "/z"), logged("b.test", "/gone")]
    log += [logged("a.test", "/cut", whole=False), logged("a.test", "/gone", status=404)]
    assert league.found_of(wanted, log) == 2


def test_only_linked_files_exist(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="in/">in</a><a href="gone.html">x</a><a href="//other/not.html">x</a>'
    )
    (tmp_path / "in/index.html").write_text('<a href="../deep%20er.html#part">x</a><a href="data.txt">x</a>')
    for name in ("deep er.html", "not.html", "in/data.txt"):
        (tmp_path / name).write_text("<p>")
    assert league.linked(tmp_path) == {"/index.html", "/in/index.html", "/deep er.html"}


def test_lost_pages_are_counted_by_file_and_doubled_ones_by_url() -> None:
    exist = {"127.0.0.1/index.html", "127.0.0.1/a.html", "127.0.0.1/b.html"}
    kept = Counter({"http://127.0.0.1:80/": 1, "http://127.0.0.1:80/index.html": 1, "http://127.0.0.1:80/a.html": 3})
    assert league.kept_pages(kept, exist) == (1, 1)


def record(url: str, kind: str, status: str, media_type: str) -> bytes:
    http = f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\n\r\n<p>"
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{kind}>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
    head += f"WARC-Target-URI: {url}\r\nContent-Type: application/http\r\nContent-Length: {len(http)}\r\n\r\n"
    return gzip.compress(f"{head}{http}\r\n\r\n".encode())


def test_pages_in_warc_files_are_answers_with_html_and_copies(tmp_path: Path) -> None:
    records = [
        record("http://a/", "response", "200 OK", "text/html"),
        record("http://a/", "request", "200 OK", "text/html"),
        record("http://a/copy", "revisit", "200 OK", "text/html; charset=utf-8"),
        record("http://a/copy", "response", "200 OK", "text/html"),
        record("http://a/gone", "response", "404 Not Found", "text/html"),
        record("http://a/picture", "response", "200 OK", "image/png"),
    ]
    (tmp_path / "x.warc.gz").write_bytes(b"".join(records))
    assert peers.warc(tmp_path) == {"http://a/": 1, "http://a/copy": 2}


def test_a_row_cut_by_a_kill_is_none(tmp_path: Path) -> None:
    dataset = tmp_path / "datasets/default"
    dataset.mkdir(parents=True)
    (tmp_path / "items.jsonl").write_text('{"url": "http://a/"}\n{"url": "http://a/b", "ti{"url": "http://a/c"}\n')
    (dataset / "000000001.json").write_text('{"url": "http://a/"}')
    (dataset / "__metadata__.json").write_text('{"url": "http://a/never"}')
    assert peers.rows(tmp_path) == {"http://a/": 2}


def test_a_file_cut_by_a_kill_is_none(tmp_path: Path) -> None:
    root, saved = tmp_path / "root", tmp_path / "saved"
    for directory in (root / "sub", saved / "127.0.0.1:80/sub"):
        directory.mkdir(parents=True)
    for name in ("whole.html", "sub/cut.html"):
        (root / name).write_text("<p>text")
    (saved / "127.0.0.1:80/whole.html").write_text("<p>text")
    (saved / "127.0.0.1:80/sub/cut.html").write_text("<p>te")
    assert peers.files(saved, root) == {"http://127.0.0.1:80/whole.html": 1}


def test_every_process_of_a_crawl_is_counted() -> None:
    with subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, start_new_session=True
    ) as shell:
        assert shell.stdout is not None
        child = int(shell.stdout.readline())
        try:
            assert set(league.members(shell.pid)) == {shell.pid, child}
            assert league.pss_bytes([shell.pid, child]) > league.pss_bytes([shell.pid]) > 0
        finally:
            subprocess.run(["kill", str(child)], check=True)


@pytest.mark.parametrize("polite", [False, True])
def test_every_crawler_gets_the_task(polite: bool, tmp_path: Path) -> None:
    task = peers.Task(("http://127.0.0.1:80/",), ("127.0.0.1",), tmp_path / "hosts", 1, 0.25 if polite else 0.0)
    for peer in peers.peers(tmp_path):
        command = peer.command(task, tmp_path / "out", False)
        text = " ".join(command)
        assert task.seeds[0] in text, peer.name
        assert str(tmp_path / "out") in text, peer.name
        assert ("0.25" in text) == polite, peer.name
        assert not (peer.resume and not peer.kept), peer.name


def one_round(**values: int) -> dict[str, Any]:
    return {"cpu_s": 2.0, "wall_s": 3.0, "peak_bytes": 5_000_000, "ended": True, "exist": 10, **values}


RESULT: dict[str, Any] = {
    "per_host": 8, "delay_s": 0.1, "crawl_delay_s": 1.0, "text": None, "missing": {"Other <crawler>": "not there"},
    "peers": {"Gossamer": {"stores": "WARC", "resume": "resume"}, "wget": {"stores": "WARC", "resume": ""}},
    "trials": {
        "docs": {"Gossamer": [one_round(found=10), one_round(found=9), one_round(found=10)],
                 "wget": [one_round(found=5)]},
        "web": {"Gossamer": [one_round(found=10, denied=0)],
                "wget": [one_round(found=5, denied=1), one_round(found=5, denied=4) | {"ended": False}]},
        "polite": {"Gossamer": [one_round(found=10, early=0, of=9, broken=0, asked=4)]},
        "kill": {"Gossamer": [one_round(lost=0, doubled=0, again=3), one_round(lost=2, doubled=0, again=1)]},
    },
}  # fmt: skip


def test_the_report_shows_medians_and_the_worst_round() -> None:
    lines = report.markdown(RESULT).splitlines()
    assert "| Gossamer | 10 of 10 | 2.00 | 5 | 5 | 3.0 |" in lines
    assert "| wget | 5 of 10 | 2.00 | 2 | 5 | 3.0 (did not end) | 4 |" in lines
    assert "| Gossamer | 10 of 10 | 3.0 | 0 of 9 | 0 of 4 |" in lines
    assert "| Gossamer | 2 | 0 | 3 | resume |" in lines
    assert "| wget | - | - | - | cannot resume |" in lines
    assert "- Other <crawler>: not there." in lines
    assert any("--wcxb" in line for line in lines)
    tables = [line.count("|") for line in lines if line.startswith("|")]
    heads = [at for at, line in enumerate(lines) if line.startswith(("| ---", "| | "))]
    assert len(tables) > len(heads) == 2 * 5
    for at, line in enumerate(lines):
        if line.startswith("|") and lines[at - 1].startswith("|"):
            assert line.count("|") == lines[at - 1].count("|")


def test_main_text_has_a_table_where_it_was_measured() -> None:
    text = report.markdown(RESULT | {"text": {"pages": 1_497, "f1": 0.8612, "precision": 0.9}})
    assert "| Gossamer | 0.861 | 0.900 |" in text
    assert "--wcxb" not in text


class Page(HTMLParser):
    """Tags that never end and attributes that load something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [name for name, _ in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)
        self.cells += [str(value) for name, value in attrs if name == "style"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_no_other_file(tmp_path: Path) -> None:
    report.write(RESULT, tmp_path)
    html = (tmp_path / "league.html").read_text()
    page = Page()
    page.feed(html)
    assert (page.open, page.loaded) == ([], [])
    assert "Other &lt;crawler&gt;" in html
    assert "url(" not in html
    assert {"--part:100.0%", "--part:50.0%", "--part:0.0%"} <= set(page.cells)
    assert json.loads((tmp_path / "league.json").read_text()) == RESULT
    assert (tmp_path / "league.md").read_text() == report.markdown(RESULT)
