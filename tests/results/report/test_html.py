"""The report as a page."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

from gossamer.model.standing import Lasting
from gossamer.results.report.figures import Cache, Report
from gossamer.results.report.html import as_html
from gossamer.results.report.report import summary
from gossamer.results.report.svg import log_log
from tests.results.report.crawled import START, assorted, crawled, page

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'\u202e\x1b[2J"


class Read(HTMLParser):
    """What a browser would find."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in {"meta", "br", "wbr"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def course(directory: Path) -> Report:
    hosts = [f"h{n}-{size}.example.org" for size in range(5) for n in range(12) for _ in range(1 << size)]
    rows = [page(n, host, fetched_at=START + n * n, body_bytes=1 << n % 20) for n, host in enumerate(hosts)]
    return summary(crawled(directory, rows))


def test_every_element_is_closed_and_every_drawing_is_sound(tmp_path: Path) -> None:
    text = as_html(course(tmp_path), "a crawl")
    read = Read(text)
    assert not read.open
    drawings = [part.partition("</svg>")[0] for part in text.split("<svg")[1:]]
    assert len(drawings) == 6  # Pages and bits over time, document sizes, depth, hosts by pages and by bytes.
    for drawing in drawings:
        for element in ET.fromstring(f"<svg{drawing}</svg>").iter():
            numbers = [element.get(name) for name in ("x", "y", "cx", "cy", "x1", "x2", "y1", "y2", "width", "height")]
            assert all(-1 <= float(number) <= 1200 for number in numbers if number is not None)


def test_a_few_dots_are_a_table(tmp_path: Path) -> None:
    rows = [page(n, f"h{n % 7}.example.org", fetched_at=START + n) for n in range(20)]
    text = as_html(summary(crawled(tmp_path, rows)), "a crawl")
    by_pages = text.partition("<h2>Hosts by pages</h2>")[2].partition("</section>")[0]
    assert "<svg" not in by_pages
    assert '<th scope=row>2</th><td data-head="hosts">7</td>' in by_pages


def test_it_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    text = as_html(course(tmp_path), "a crawl")
    read = Read(text)
    assert not {"script", "link", "img", "iframe", "object", "embed", "a", "form"} & set(read.tags)
    assert not [name for name, _ in read.attributes if name in {"src", "href"} or name.startswith("on")]
    assert "url(" not in text
    assert "@import" not in text


def test_what_strangers_wrote_is_text(tmp_path: Path) -> None:
    rows = [
        page(1, host=HOSTILE, media_type=HOSTILE, duplicate_of=HOSTILE, fetched_at=START),
        page(2, host=HOSTILE, outcome="timeout", error=HOSTILE, url=HOSTILE, fetched_at=START + 9),
        page(3, host=HOSTILE, outcome="trapped", fetched_at=START + 10),
    ]
    text = as_html(summary(crawled(tmp_path, rows), rejected={HOSTILE: 1}), HOSTILE)
    read = Read(text)
    assert not {"script", "img"} & set(read.tags)
    assert "<script>alert(1)</script>" in read.text
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert text.count("alert(1)") >= 7


def test_figures_are_those_of_the_report(tmp_path: Path) -> None:
    report = summary(assorted(tmp_path))
    text = Read(as_html(report, "a crawl")).text
    for words in ("10pages fetched", "14 attempts, 1 of them again", "no byte for 30 s", "text/html", "b.example.com"):
        assert words in text


def test_labels_of_dots_do_not_touch() -> None:
    points = [(float(1 << n), 10.0, "") for n in (14, 15, 16, 17, 18, 19, 23)]
    drawing = ET.fromstring(log_log(points, [f"{x:.0f} bytes" for x, _, _ in points], "hosts"))
    places = [float(one.get("x", "")) for one in drawing if one.get("class") == "tick at"]
    assert len(places) > 2
    assert min(after - before for before, after in pairwise(places)) >= 75  # Nine letters of 11 pixels, with room.


def test_commands_are_shown_as_code() -> None:
    text = as_html(
        Report(warnings=("`gossamer resume <DIR>` goes on",), lasting=(Lasting("a", 1, 2.0, 1.0, "1 `b`"),)), "a"
    )
    assert "<code>gossamer resume &lt;DIR&gt;</code> goes on" in text
    assert "1 <code>b</code>" in text


def test_a_crawl_without_lookups_states_no_mean_of_them() -> None:
    text = Read(as_html(Report(attempts=1, caches=(Cache("dns", 1, 2, 1 / 3),)), "a crawl")).text
    assert "No DNS lookups." in text
    assert "0.0 ms on average" not in text


def test_a_crawl_without_pages_has_a_page() -> None:
    assert "No pages yet." in as_html(Report(), "empty")


def test_its_size_does_not_grow_with_the_crawl(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    for directory, count in ((small, 200), (large, 4000)):
        directory.mkdir()
        rows = [page(n, f"h{n}.example{n}.d{n % 300}", error=f"e{n}", fetched_at=START + n) for n in range(count)]
        crawled(directory, rows)
    assert len(as_html(summary(large), "x")) < 1.3 * len(as_html(summary(small), "x"))
