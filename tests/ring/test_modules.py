"""Processing modules as the documentation shows them, in a crawl: columns, tables, processes of their own, failures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.api.search import build_index_of, search_of
from gossamer.api.views import export_of
from gossamer.model.errors import ConfigError
from gossamer.stages.process.choice import DEFAULT_TYPES, MODULES
from tests.ring.crawls import OWN, crawl, rows
from tests.ring.hostile import HostileServer, whole
from tests.stages.process.test_content_modules import ARTICLE, METADATA, pdf
from tests.stages.process.test_documents import DOCX, docx, message, pdf_of
from tests.stages.process.test_documents import shown as pdf_shown
from tests.stages.process.test_images import drawn

PAGE = Path(__file__).parents[2] / "docs/reference/processing.md"

FAILING = """
import os, signal, time
from gossamer import processing_module

@processing_module("text/html", columns={"raised": "int"})
def raises(page, findings):
    findings.columns["raised"] = "no number"
    raise ValueError("on purpose")

@processing_module("text/html")
def hangs(page, findings):
    while b"<article>" in page.body:
        pass

@processing_module("text/html", isolated=True)
def dies(page, findings):
    if b"<article>" in page.body:
        os.kill(os.getpid(), signal.SIGSEGV)
    findings.columns["alive"] = True
"""


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    answers = {
        "/": whole(
            METADATA.encode() + b"<a href=article>a</a><a href=p.png>p</a><a href=d.pdf>d</a><a href=t.txt>t</a>"
        ),
        "/article": whole(ARTICLE.encode()),
        "/p.png": whole(drawn("PNG", (7, 9)), "image/png"),
        "/t.txt": whole(b"see https://e.example/from-text.", "text/plain"),
    }
    with HostileServer(answers) as server:
        answers["/d.pdf"] = whole(pdf(f"{server.root}from-pdf"), "application/pdf")
        answers["/from-pdf"] = whole(b"<p>found")
        # One folder for what the addresses of the first page name.
        answers |= {f"/b{path}": answer for path, answer in answers.items() if path not in ("/", "/from-pdf")}
        yield server


def shown(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.promise("Operation", "The examples in the documentation run.")
def test_the_modules_of_the_documentation_add_what_it_says(
    server: HostileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for code in shown("python"):
        (tmp_path / code.split("\n", 1)[0].removeprefix("# ")).write_text(code)
    monkeypatch.chdir(tmp_path)
    made = ('process.modules=["words.py:words", "pictures.py:Pictures"]', "process.text=true")
    crawled = crawl((server.root + "article",), tmp_path / "c", *OWN, *made)
    assert crawled.critical() == ""
    assert crawled.rows[0]["words"] == len(ARTICLE.split())
    assert not (tmp_path / "c/pictures").exists()
    assert len(shown("python")[0].splitlines()) <= 10, "one in ten lines"


def test_all_of_ours_together(server: HostileServer, tmp_path: Path) -> None:
    (example, default, *_) = shown("toml")
    chosen = re.search(r"^types = (.*)$", example, re.MULTILINE)
    assert chosen is not None
    assert eval(default.partition("=")[2].replace("] }", "]}").replace('" =', '" :')) == {
        kind: list(names) for kind, names in DEFAULT_TYPES.items()
    }
    named = (
        chosen[1]
        .replace('"metadata"', '"metadata", "tags", "markdown"')
        .replace(" }", ', "text/plain" = ["title_and_text", "text_links", "language"] }')
    )
    crawled = crawl((server.root,), tmp_path / "c", *OWN, f"process.types={named}")
    assert crawled.critical() == ""
    table = {str(row["url"]).removeprefix(server.root): row for row in crawled.rows if row["outcome"] == "fetched"}
    assert table["b/article"]["language"] == "de"
    assert "Altweibersommer" in str(table["b/article"]["main_text"])
    assert str(table["b/article"]["markdown"]).startswith("# Die Spinne")
    assert table[""]["canonical"] == f"{server.root}b/c"
    assert table[""]["open_graph"] == '{"og:title":["A"],"og:image":["1.png","2.png"],"twitter:card":["summary"]}'
    assert (table["b/p.png"]["image_width"], table["b/p.png"]["image_height"]) == (7, 9)
    assert table["b/d.pdf"]["title"] == "Of spiders"
    assert "from-pdf" in table, "links that a module finds in a process of its own are followed"
    assert (f"{server.root}b/t.txt", "https://e.example/from-text") in crawled.links
    tags = {(row["tag"], row["count"]) for row in rows(tmp_path / "c/tags") if row["url"] == f"{server.root}b/article"}
    assert ("p", 2) in tags


def test_text_of_documents_is_in_the_table_in_the_index_and_in_exports(server: HostileServer, tmp_path: Path) -> None:
    word = docx("<w:p><w:r><w:t>Spinnaker in a document.</w:t></w:r></w:p>")
    server.answers |= {
        "/files": whole(b"<a href=f.docx>d</a><a href=f.eml>m</a><a href=f.pdf>p</a>"),
        "/f.docx": whole(word, DOCX),
        "/f.eml": whole(message("Sails", "Spinnaker in a message.").as_bytes(), "message/rfc822"),
        "/f.pdf": whole(pdf_of(pdf_shown((50, 700, "Spinnaker in a PDF."))), "application/pdf"),
    }
    chosen = 'process.modules=["pdf_text", "documents", "mail"]'
    crawled = crawl((server.root + "files",), tmp_path / "c", *OWN, chosen, "search.enabled=true")
    assert crawled.critical() == ""
    files = {str(row["url"])[-4:]: row for row in crawled.rows if row["text_method"] == "document"}
    assert {name: row["document"] for name, row in files.items()} == dict.fromkeys((".pdf", "docx", ".eml"), "whole")
    assert files[".pdf"]["main_text"] == "Spinnaker in a PDF."
    export_of(tmp_path / "c", "datasets", tmp_path / "corpus", dedupe="near")
    assert sum("Spinnaker in" in row["text"] for row in rows(tmp_path / "corpus/data")) == 3
    export_of(tmp_path / "c", "markdown", tmp_path / "markdown")
    assert sum("Spinnaker in" in path.read_text() for path in (tmp_path / "markdown").rglob("*.md")) == 3
    for again in (False, True):
        if again:
            build_index_of(tmp_path / "c")
        assert search_of(tmp_path / "c", "spinnaker").total == 3


@pytest.mark.heavy
@pytest.mark.promise(
    "Components and Python", "A processing module that raises, hangs or crashes harms its own findings alone."
)
@pytest.mark.timeout(900, method="thread")  # Its other method uses the signal that ends what hangs.
def test_what_fails_harms_only_itself(server: HostileServer, tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    names = [f"{tmp_path}/failing.py:{name}" for name in ("raises", "hangs", "dies")]
    crawled = crawl((server.root,), tmp_path / "c", *OWN, f"process.modules={names}", "process.module_s_max=1.0")
    assert set(crawled.outcomes.values()) <= {"fetched", "http_error"}
    assert crawled.end == "finished"
    told = crawled.critical()
    table = {str(row["url"]).removeprefix(server.root): row for row in crawled.rows}
    assert (table["b/article"]["title"], table["b/article"]["alive"]) == ("T", None)
    assert (table[""]["raised"], table[""]["alive"]) == (None, True)
    assert "raises: ValueError: on purpose" in told
    assert told.count("hangs: TimeoutError: it took too long") == 1
    assert told.count("dies: its process died (signal 11)") == 1
    assert "column 'raised' is no int" in told


@pytest.mark.parametrize(
    ("setting", "mistake"),
    [
        ('process.types={"text/html"=["link"]}', "no module 'link'; did you mean links?"),
        ('process.types={"html"=["links"]}', "is no media type"),
        ('process.modules=["nowhere.py:x"]', "nowhere.py"),
        ('process.modules=["json:dumps"]', "process.modules: json:dumps"),
        ('process.isolated=["markdown"]', "'markdown' is not among the modules of this crawl"),
    ],
)
def test_a_mistake_is_reported_in_one_line(setting: str, mistake: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape(mistake)):
        crawl(("http://127.0.0.1:9/",), tmp_path / "c", *OWN, setting)


def test_every_module_is_documented() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in MODULES if f"| `{name}` |" not in text] == []
