"""Chunks: bounded, with their headings and a fragment that leads to them; nothing of a page is lost."""

from __future__ import annotations

import json
import random
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest

from gossamer.config import Config
from gossamer.model.errors import ConfigError
from gossamer.model.pages import Findings
from gossamer.results.export import forms
from gossamer.results.export.bodies import FRONT
from gossamer.results.export.chunks import TOKENS_MAX, chunks_of, plain_text
from gossamer.results.export.export import Exported, ExportedCrawl, ExportRequest, export
from gossamer.results.export.opening import export_means
from gossamer.results.export.quality import tokens_of
from gossamer.stages.archive.archive import Archives
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.warc import WarcArchive, WarcInfo
from tests.results.export.crawled import finished
from tests.results.export.test_corpus import made  # noqa: F401 - a fixture
from tests.stages.archive.web import START, Shard, visited

PAGE = """\
Before all headings.

# The *guide*

Two lines
of one paragraph.

## Install ##

- one
- two

```sh
# no heading

pip install x
```

### Empty heading

## See [here](https://a.example/x)

Last.
"""


def test_chunks_have_the_headings_above_them() -> None:
    assert [(one.headings, one.text, unquote(one.fragment)) for one in chunks_of(PAGE, TOKENS_MAX)] == [
        ((), "Before all headings.", "#:~:text=Before all headings."),
        (("The guide",), "Two lines\nof one paragraph.", "#:~:text=The guide"),
        (("The guide", "Install"), "- one\n- two\n\n```sh\n# no heading\n\npip install x\n```", "#:~:text=Install"),
        (("The guide", "See here"), "Last.", "#:~:text=See here"),
    ]


def test_a_heading_with_an_id_has_its_address() -> None:
    """What follows in its section has the text fragment too: without it, browsers show the heading."""
    page = "# A\n\n" + "word " * 30 + "\n\nThen that.\n\n## B\n\nx\n\n## C\n\n## D\n\ny"
    assert [one.fragment for one in chunks_of(page, 40, ["a", "", "c", "é:~b/1"])] == [
        "#a", "#a:~:text=Then%20that.", "#:~:text=B", "#%C3%A9%3A~b/1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "nested",
    [
        "- ```\n  # a\n  ```",
        "- a\n\n  ```\n  # a\n\n  b\n  ```",
        "10. ```\n    # a\n\n    b\n    ```",
        "> ```\n> # a\n> ```",
    ],
)
def test_code_in_a_list_ends_where_its_fence_does(nested: str) -> None:
    assert [one.headings for one in chunks_of(f"{nested}\n\n## B\n\nx", 64)] == [(), ("B",)]


SECTIONS = b"""<html><body><main><h1 id=top>Guide</h1><p>Before you begin, read what follows with care, all of it.</p>
<section id=install><h2>Install</h2><p>Type the command in a terminal, then wait until it ends without an error.</p>
</section><h2>Use</h2><p>Open the program and choose a file of yours, which is then shown in the window.</p></main>"""


@pytest.mark.parametrize(
    ("columns", "fragments"),
    [
        ({}, ["#top", "#install", "#:~:text=Use"]),
        ({"markdown": "# Guide\n\nx", "heading_ids": "top"}, ["#top"]),
        ({"markdown": "# Guide\n\nx"}, ["#:~:text=Guide"]),
    ],
)
def test_rows_have_the_ids_of_pages(tmp_path: Path, columns: dict[str, str], fragments: list[str]) -> None:
    """The crawl found the Markdown, with or without ids as former versions did, or the export finds it."""
    shard = Shard(tmp_path / "crawl")
    options = ArchiveOptions()
    declared = {
        **dict.fromkeys(FRONT, "text"),
        "hidden_chars": "int",
        "main_text": "text",
        **dict.fromkeys(columns, "text"),
    }
    writers = TableWriters(options, shard.journals, columns=declared if columns else {})
    archive = Archives([WarcArchive(options, shard.journals, WarcInfo("gossamer/1")), writers])
    visit = visited("http://a.example/", SECTIONS, headers=(("Content-Type", "text/html"),), at=START)
    visit.findings = Findings(columns={"main_text": "Guide x", **columns} if columns else {})
    archive.add(visit)
    crawl = ExportedCrawl(finished(tmp_path / "crawl", shard, archive), running=False)
    export(crawl, ExportRequest("chunks"), tmp_path / "out", export_means(Config()))
    assert pq.read_table(tmp_path / "out/data")["fragment"].to_pylist() == fragments


def test_a_dash_in_a_fragment_is_escaped() -> None:
    """A dash ends the prefix of a text directive."""
    [chunk] = chunks_of("# Well-known, & more", 64) or chunks_of("# Well-known, & more\n\ntext", 64)
    assert chunk.fragment == "#:~:text=Well%2Dknown%2C%20%26%20more"


def strip(text: str) -> str:
    return "".join(text.split()).replace("`", "").replace("~", "")


@pytest.mark.parametrize("seed", range(60))
def test_no_chunk_is_too_large_and_nothing_is_lost(seed: int) -> None:
    dice = random.Random(seed)
    blocks = []
    for number in range(dice.randrange(1, 20)):
        words = ["word", "longer-word", "x" * dice.randrange(1, 400), "東京都。", "ends."]
        line = " ".join(dice.choices(words, k=dice.randrange(1, 60)))
        blocks.append(
            dice.choice((f"## Heading {number}\n\n{line}", line, f"```\n{line}\n\n{line}\n```", f"- {line}\n- {line}"))
        )
    page = "\n\n".join(blocks)
    bound = dice.choice((32, 64, 512))
    chunks = chunks_of(page, bound)
    assert max(tokens_of(one.text) for one in chunks) <= bound
    body = "\n".join(line for line in page.split("\n") if not line.startswith("## "))
    assert strip("".join(one.text for one in chunks)) == strip(body)
    assert all(text.text.count("```") % 2 == 0 for text in chunks), "code is fenced in each chunk"


def test_parts_of_a_table_have_its_header_and_lead_to_their_first_row() -> None:
    rows = [f"| key {number} | the value of number {number} |" for number in range(40)]
    chunks = chunks_of("\n".join(["| key | value |", "| --- | --- |", *rows]), 64)
    assert {tuple(one.text.split("\n")[:2]) for one in chunks} == {("| key | value |", "| --- | --- |")}
    assert [row for one in chunks for row in one.text.split("\n")[2:]] == rows
    assert max(tokens_of(one.text) for one in chunks) <= 64
    for one in chunks:  # A browser finds no text that goes on in the next cell.
        assert unquote(one.fragment) == "#:~:text=" + one.text.split("|")[8].strip()


def test_a_long_header_of_a_table_is_not_repeated() -> None:
    header = f"| {'name ' * 40}| {'type ' * 40}|"
    chunks = chunks_of("\n".join([header, "|:--|--:|", *[f"| a{number} | b |" for number in range(50)]]), 64)
    assert max(tokens_of(one.text) for one in chunks) <= 64
    assert "".join(one.text for one in chunks).count(":--|--:") == 1


def test_markdown_without_an_end_of_its_fence_is_read() -> None:
    [chunk] = chunks_of("# a\n\n```\nx\n# y\n", 64)
    assert (chunk.headings, chunk.text) == (("a",), "```\nx\n# y")
    assert chunks_of("", 64) == []
    assert plain_text("**b** `c` [d](e) snake_case _f_ > g ![h](i)") == "b c d snake_case f g h"


def test_rows_say_which_page_and_which_part(
    made: Path,  # noqa: F811
    exporting: Callable[..., Exported],
    tmp_path: Path,
) -> None:
    done = exporting("chunks", tmp_path / "out", made, chunk_tokens=64)
    [file] = (tmp_path / "out/data").iterdir()
    assert pq.read_schema(file).names == list(forms.CHUNK_COLUMNS)
    rows = pq.read_table(file).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows) == done.rows["chunks"] > 10
    assert {row["tokens"] <= 64 and row["tokens"] == tokens_of(row["text"]) for row in rows} == {True}
    for row in rows:
        assert 0 <= row["chunk"] < row["chunks"] == sum(one["url"] == row["url"] for one in rows)
        assert row["fetched_at"].year == 2026
    again = exporting("chunks", tmp_path / "again", made, chunk_tokens=64)
    assert again.rows["texts"] == len({row["url"] for row in rows})
    assert pq.read_table(tmp_path / "again/data").to_pylist() == rows


LOADS = """
import json, sys
import datasets
from langchain_core.documents import Document
from llama_index.core import SimpleDirectoryReader
from llama_index.core.node_parser import MarkdownNodeParser
chunks, texts, cache = sys.argv[1:]
rows = datasets.load_dataset(chunks, split="train", cache_dir=cache)
documents = [Document(row["text"], id=row["id"], metadata={"source": row["url"] + row["fragment"]}) for row in rows]
print(json.dumps([[one.id, one.page_content, one.metadata["source"]] for one in documents]))
pages = SimpleDirectoryReader(texts, recursive=True, required_exts=[".md"]).load_data()
nodes = MarkdownNodeParser().get_nodes_from_documents(pages)
print(json.dumps([sorted({one.metadata["file_path"] for one in pages}), [one.get_content() for one in nodes]]))
"""


@pytest.mark.acceptance
@pytest.mark.timeout(900)  # It installs three packages with all that they need.
@pytest.mark.long
def test_langchain_and_llamaindex_load_what_is_exported(
    made: Path,  # noqa: F811
    exporting: Callable[..., Exported],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They get their own environment, as the packages that they bring are no part of Gossamer's."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    exporting("chunks", tmp_path / "chunks", made, chunk_tokens=64)
    exporting("markdown", tmp_path / "texts", made)
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv/bin/python")
    wanted = ["datasets>=4", "langchain-core>=1", "llama-index-core>=0.14"]
    subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
    command = [python, "-c", LOADS, *(str(tmp_path / name) for name in ("chunks", "texts", "cache"))]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    chunks, (files, nodes) = (json.loads(line) for line in printed if line.startswith("["))
    rows = pq.read_table(tmp_path / "chunks/data").to_pylist()
    assert chunks == [[row["id"], row["text"], row["url"] + row["fragment"]] for row in rows]
    assert files == sorted(str(path) for path in (tmp_path / "texts").rglob("*.md"))
    assert all(any(row["text"].split()[0] in node for node in nodes) for row in rows)


@pytest.mark.parametrize(("to", "tokens", "says"), [("bulk", 64, "bulk has no chunks"), ("chunks", 9, "at least 32")])
def test_a_bound_that_cannot_be_is_refused(
    exporting: Callable[..., Exported], tmp_path: Path, to: str, tokens: int, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        exporting(to, tmp_path / "out", chunk_tokens=tokens)
    assert list(tmp_path.iterdir()) == []
