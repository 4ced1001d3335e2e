"""What a crawl keeps of pages: a row for each link found, and how each text was found, in tables, exports, figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gossamer.api.views import export_of
from gossamer.cli.status_view import picture_rows
from gossamer.model.status import read_status
from gossamer.results.report.report import summary
from gossamer.results.report.text import as_text
from tests.ring.crawls import OWN, Crawled, crawl, rows
from tests.ring.hostile import HostileServer, whole
from tests.stages.process.test_content_modules import ARTICLE

LONG = ARTICLE.replace("<a ", "<b ").replace("</article>", "<p>A paragraph of many words.\n" * 3_000 + "</article>")
DEEP = "<nav>Menu</nav>" + "<div>" * 1_500 + "<p>Deep</p>"
ROOT = """<title>r</title><a href=long>First</a> <a href=deep>Deep</a> <a href=./long#x>Second</a>
<a href=long rel=nofollow><img src=i alt=Third></a><iframe srcdoc='<a href=framed>Framed</a>'></iframe>
<blockquote cite=cited>q</blockquote><img src=i><a href=never rel=nofollow>Never</a><a href=long>First</a>"""


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    answers = {
        "/": whole(ROOT.encode()),
        "/long": whole(LONG.encode()),
        "/deep": whole(DEEP.encode()),
        "/framed": whole(b"<p>framed"),
        "/cited": whole(b"plain", "text/plain"),
        "/i": whole(b"GIF89a", "image/gif"),
    }
    types = 'process.types={"text/html" = ["links", "title_and_text", "main_text", "markdown"]}'
    with HostileServer(answers) as server:
        directory = tmp_path_factory.mktemp("made") / "crawl"
        yield crawl((server.root,), directory, *OWN, types, "archive.warc_outlinks=true", embeds=True)


def path(url: object) -> str:
    return str(url).partition("://")[2].partition("/")[2]


@pytest.mark.promise("What is fetched", "Each link found has a row, and each address is offered to the frontier once.")
def test_each_link_found_has_its_row_and_each_address_its_visit(crawled: Crawled) -> None:
    assert crawled.critical() == ""
    found = [
        (path(row["to_url"]), row["link_type"], row["anchor_text"], row["nofollow"])
        for row in rows(crawled.directory / "links")
        if path(row["from_url"]) == ""
    ]
    assert found == [
        ("long", "anchor", "First", False),
        ("deep", "anchor", "Deep", False),
        ("long", "anchor", "Second", False),
        ("long", "anchor", "Third", True),
        ("never", "anchor", "Never", True),
        ("long", "anchor", "First", False),
        ("cited", "cite", "", False),
        ("framed", "anchor", "Framed", False),
        ("i", "embed", "Third", False),
        ("i", "embed", "", False),
    ]
    assert sorted(path(row["url"]) for row in crawled.rows) == ["", "cited", "deep", "framed", "i", "long"]


def test_no_more_is_offered_for_a_link_that_is_repeated(crawled: Crawled) -> None:
    assert crawled.status["discovered"] == 6


def test_exported_links_are_those_of_the_table(crawled: Crawled, tmp_path: Path) -> None:
    shown: list[tuple[str, int, int]] = []
    export_of(crawled.directory, "pagefiles", str(tmp_path / "pages"), progress=lambda *one: shown.append(one))
    assert {name for name, _, _ in shown} == {"pages", "links"}
    assert all(done <= rows for _, done, rows in shown), "links are no share of the pages"
    log = (tmp_path / "pages/links.log").read_text().splitlines()
    assert len(log) == len(rows(crawled.directory / "links"))
    texts = [line.split("\t")[4] for line in log if path(line.split("\t")[1]) == "long"]
    assert sorted(texts) == ["First", "First", "Second", "Third"]


def test_how_text_was_found_is_said_wherever_pages_are_shown(crawled: Crawled, tmp_path: Path) -> None:
    expected = {"": "main", "long": "main", "deep": "visible", "framed": "main", "cited": "plain", "i": ""}
    assert {path(row["url"]): row["text_method"] for row in crawled.rows} == expected
    texts = {path(row["url"]): str(row["main_text"]) for row in crawled.rows}
    assert "Altweibersommer" in texts["long"]
    assert "Startseite" not in texts["long"]
    assert texts["deep"] == "Menu\nDeep"
    assert crawled.status["text_methods"] == {"main": 3, "visible": 1, "plain": 1}
    assert dict(picture_rows(read_status(crawled.status)))["text found as"] == "main 3, plain 1, visible 1"
    report = summary(crawled.directory)
    assert {one.name: one.count for one in report.text_methods} == {"main": 3, "visible": 1, "plain": 1}
    assert "Text found as" in as_text(report)
    export_of(crawled.directory, "markdown", str(tmp_path / "markdown"))
    front = {}
    for file in (tmp_path / "markdown").rglob("*.md"):
        fields = yaml.safe_load(file.read_text().split("---\n", 2)[1])
        front[path(fields["url"])] = fields["text_method"]
    assert front == {"": "main", "long": "main", "deep": "visible", "framed": "main", "cited": "plain"}
