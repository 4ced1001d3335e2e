"""Corpora: copies within and across crawls, what Hugging Face and search engines read, and the card beside them."""

from __future__ import annotations

import dataclasses
import json
import random
import subprocess
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from gossamer.config import Config, effective_toml
from gossamer.model.errors import ConfigError
from gossamer.model.pages import PLAIN_TYPES
from gossamer.results.export import copies, corpus, forms
from gossamer.results.export.copies import FOUND, SIGNATURES, find_copies
from gossamer.results.export.export import ExportedCrawl, ExportRequest, export
from gossamer.results.export.opening import export_means
from gossamer.results.export.quality import STOP_WORDS
from gossamer.results.export.source import pieces_of
from gossamer.results.search.documents import INDEXED_TYPES
from gossamer.stages.archive.archive import Archives
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.warc import WarcArchive, WarcInfo
from gossamer.stages.seen.shingles import signature
from tests.commands import run
from tests.results.export.conftest import MEANS, NOW, Exporting
from tests.results.export.crawled import finished
from tests.stages.archive.web import START, Shard, visited

HOST = "http://a.example/"
VOCABULARY = ["".join(random.Random(n).choices("abcdefghijklmnop", k=7)) for n in range(2_000)]


def text(seed: int, words: int = 200, changed: int = 0) -> str:
    """A text of its own for each seed; some words of it changed."""
    chosen = random.Random(seed).choices(VOCABULARY, k=words)
    for at in range(changed):
        chosen[at * words // changed] = "changed"
    return " ".join(chosen)


def crawl(directory: Path, pages: dict[str, str], media_type: str = "text/plain", **row: object) -> Path:
    """Write a crawl of pages of text, by name."""
    shard = Shard(directory)
    options = ArchiveOptions()
    archive = Archives(
        [WarcArchive(options, shard.journals, WarcInfo("gossamer/1")), TableWriters(options, shard.journals)]
    )
    for number, (name, words) in enumerate(pages.items()):
        headers = (("Content-Type", media_type),)
        visit = visited(HOST + name, words.encode(), headers=headers, at=START + number, media_type=media_type)
        for key, value in row.items():
            setattr(visit.row, key, value)
        archive.add(visit)
    return finished(directory, shard, archive)


PAGES = {
    "first": text(1),
    "other": text(2),
    "again": text(1).replace(" ", "\n"),
    "nearly": text(1, changed=4),
    "less": text(1, changed=60),
    "short": "few words",
    "short-too": "few  words",
    "empty": "   ",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crawl(tmp_path_factory.mktemp("made") / "crawl", PAGES, usage_ai_train="allowed")


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / "data").to_pylist()
    return found


def names(folder: Path) -> list[str]:
    return [row["url"].removeprefix(HOST) for row in rows(folder)]


def removed(folder: Path) -> dict[str, tuple[str, str]]:
    lines = [json.loads(line) for line in (folder / corpus.REMOVED).read_bytes().splitlines()]
    return {line["url"].removeprefix(HOST): (line["duplicate_of"].removeprefix(HOST), line["how"]) for line in lines}


@pytest.mark.promise("Files and exports", "A corpus export leaves out exact and near duplicates and lists each.")
@pytest.mark.parametrize(
    ("how", "left"),
    [
        ("", {}),
        ("exact", {"again": ("first", "exact"), "short-too": ("short", "exact")}),
        ("near", {"again": ("first", "exact"), "nearly": ("first", "near"), "short-too": ("short", "exact")}),
    ],
)
def test_copies_are_left_out_and_listed(
    made: Path, exporting: Exporting, tmp_path: Path, how: str, left: dict[str, tuple[str, str]]
) -> None:
    done = exporting("datasets", tmp_path / "out", made, dedupe=how)
    assert names(tmp_path / "out") == [name for name in PAGES if name not in left and name != "empty"]
    assert (tmp_path / "out" / corpus.REMOVED).exists() == bool(how)
    assert not how or removed(tmp_path / "out") == left
    assert done.removed == {kind: sum(one == kind for _, one in left.values()) for kind in ("exact", "near")}
    assert not (tmp_path / "out.part").exists()


@pytest.mark.heavy
@pytest.mark.parametrize("earlier", ["crawl", "datasets", "bulk", "markdown"])
def test_texts_of_earlier_crawls_and_exports_are_left_out(
    made: Path, exporting: Exporting, tmp_path: Path, earlier: str
) -> None:
    later = crawl(tmp_path / "later", {"new": text(9), "seen": text(2), "much-alike": text(1, changed=3)})
    place: ExportedCrawl | Path = ExportedCrawl(made, running=False)
    if earlier != "crawl":
        place = tmp_path / "earlier"
        exporting(earlier, place, made, dedupe="near")
    exporting("datasets", tmp_path / "out", later, dedupe="near", against=[place])
    assert names(tmp_path / "out") == ["new"]
    found = removed(tmp_path / "out")
    assert found["seen"] == ("other", "exact")
    assert found["much-alike"] == ("first", "near")


def test_an_original_that_a_condition_leaves_out_hides_no_copy(
    made: Path, exporting: Exporting, tmp_path: Path
) -> None:
    exporting("datasets", tmp_path / "out", made, dedupe="near", where=f"url <> '{HOST}first'")
    assert names(tmp_path / "out") == ["other", "again", "less", "short"]


def test_markdown_without_copies_is_what_it_is_with_them(made: Path, exporting: Exporting, tmp_path: Path) -> None:
    exporting("markdown", tmp_path / "all", made)
    exporting("markdown", tmp_path / "few", made, dedupe="near")
    few = {path.name: path.read_bytes() for path in (tmp_path / "few/a.example").iterdir()}
    every = {path.name: path.read_bytes() for path in (tmp_path / "all/a.example").iterdir()}
    assert len(few) == 4
    assert few.items() <= every.items()
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["a.example"]


OPENS = """
import json, sys
import datasets
files, folder, cache = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
for given in (
    datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=cache + "/1"),
    datasets.load_dataset(folder, split="train", cache_dir=cache + "/2"),
):
    features = {name: str(feature) for name, feature in given.features.items()}
    print(json.dumps({"url": list(given["url"]), "features": features, "first": given[0]}, default=str))
"""


def prose_shards(folder: Path) -> list[Path]:
    """Write texts of which the filters keep some: sentences of common words, from varied to repetitive."""
    folder.mkdir()
    dice = random.Random(48)
    words = [
        *sorted(STOP_WORDS),
        *(f"{one}{two}" for one in ("river", "stone", "winter", "garden") for two in "abcdefghij"),
    ]
    texts = []
    for number in range(60):
        few = dice.sample(words, 8 + number % 40)
        lines = [" ".join(dice.choices(few, k=12)) + dice.choice((".", ".", "", "...")) for _ in range(3 + number % 9)]
        texts.append("\n".join(lines))
    shards = forms.ParquetShards(folder, 0)
    shards.add(pa.RecordBatch.from_pydict({name: texts if name == "text" else [""] * 60 for name in forms.COLUMNS}))
    shards.close()
    return list((folder / "data").iterdir())


JUDGES = """
import json, sys
import datasets
from datatrove.data import Document
from datatrove.pipeline import filters
from datatrove.pipeline.filters import fineweb_quality_filter, gopher_quality_filter, gopher_repetition_filter
for module in (fineweb_quality_filter, gopher_quality_filter, gopher_repetition_filter):
    module.split_into_words = lambda text, language: text.split()  # Its own splitter is a package for each language.
gopher = filters.GopherQualityFilter(), filters.GopherRepetitionFilter()
fineweb = filters.FineWebQualityFilter()
for row in datasets.load_dataset("parquet", data_files=json.loads(sys.argv[1]), split="train", cache_dir=sys.argv[2]):
    document = Document(text=row["text"], id="1")
    keeps = [all(one.filter(document) is True for one in gopher), fineweb.filter(document) is True]
    print(json.dumps([keeps, [row["passes_gopher"], row["passes_fineweb"]]]))
"""


@pytest.mark.acceptance
@pytest.mark.timeout(1800)  # It installs a package with all that this needs.
@pytest.mark.long
def test_hugging_face_opens_the_shards_with_their_features(
    made: Path, exporting: Exporting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`datasets` gets its own environment: it needs pandas, which pyarrow would import into every crawl."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(corpus, "PAGES_A_PART", 2)
    monkeypatch.setattr(forms, "SHARD_BYTES", 1_000)
    exporting("datasets", tmp_path / "out", made)
    files = sorted(str(path) for path in (tmp_path / "out/data").iterdir())
    assert len(files) > 2
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv/bin/python")
    subprocess.run([python, "-m", "pip", "install", "-q", "datasets>=4", "datatrove>=0.10", "regex"], check=True)
    command = [python, "-c", OPENS, json.dumps(files), str(tmp_path / "out"), str(tmp_path / "cache")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    found = [json.loads(line) for line in printed if line.startswith("{")]
    assert len(found) == 2
    for given in found:
        assert given["url"] == [HOST + name for name in PAGES if name != "empty"]
        assert given["features"]["text"] == "Value('string')"
        assert given["features"]["fetched_at"] == "Value('timestamp[us, tz=UTC]')"
        assert set(given["features"]) == {*forms.COLUMNS, *forms.FIGURES}
        assert given["first"]["text"] == PAGES["first"]
        assert given["first"]["license"] is None
    prose = [str(path) for path in prose_shards(tmp_path / "prose")]
    command = [python, "-c", JUDGES, json.dumps(files + prose), str(tmp_path / "cache/3")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    judged = [json.loads(line) for line in printed if line.startswith("[")]
    assert [ours for _, ours in judged] == [theirs for theirs, _ in judged]
    assert {keeps for (keeps, _), _ in judged} == {True, False}, "the filter has something to tell apart"


def test_shards_carry_the_features_that_datasets_reads(made: Path, exporting: Exporting, tmp_path: Path) -> None:
    exporting("datasets", tmp_path / "out", made)
    [shard] = (tmp_path / "out/data").iterdir()
    schema = pq.read_schema(shard)
    about = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert list(about) == schema.names
    kinds = {"string": pa.string(), "timestamp[us, tz=UTC]": pa.timestamp("us", "UTC")}
    kinds |= {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}
    assert [kinds[one["dtype"]] for one in about.values()] == schema.types
    assert {one["_type"] for one in about.values()} == {"Value"}


def bulk_documents(folder: Path, bytes_max: int) -> dict[str, dict[str, Any]]:
    """Read bulk requests as strictly as servers do: an action, then a document, a line each; the last line ends."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("bulk-*.ndjson")):
        data = path.read_bytes()
        assert 0 < len(data) <= bytes_max
        assert data.endswith(b"\n")
        lines = data.decode("utf-8", "strict").removesuffix("\n").split("\n")
        assert len(lines) % 2 == 0
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            [(verb, about)] = json.loads(action).items()
            assert verb == "index"
            assert list(about) == ["_id"]
            assert 0 < len(about["_id"].encode()) <= 512
            assert about["_id"] not in found
            found[about["_id"]] = json.loads(document)
    return found


def test_search_engines_take_the_bulk_requests(
    made: Path, exporting: Exporting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "BULK_BYTES_MAX", 5_000)
    exporting("bulk", tmp_path / "out", made)
    found = bulk_documents(tmp_path / "out", 5_000)
    assert [one["url"].removeprefix(HOST) for one in found.values()] == [name for name in PAGES if name != "empty"]
    assert len(list((tmp_path / "out").glob("bulk-*"))) > 1
    known = json.loads((tmp_path / "out/mappings.json").read_bytes())["mappings"]["properties"]
    assert {"text", "url", "fetched_at"} <= known.keys()
    assert all(one["fetched_at"].startswith("2026-01-01T00:00:0") for one in found.values())
    exporting("bulk", tmp_path / "again", made)
    assert bulk_documents(tmp_path / "again", 5_000) == found


def test_strangers_pages_make_sound_bulk_requests(crawled: Path, exporting: Exporting, tmp_path: Path) -> None:
    exporting("bulk", tmp_path / "out")
    assert len(bulk_documents(tmp_path / "out", forms.BULK_BYTES_MAX)) > 100


def test_the_card_says_what_the_corpus_is_made_of(made: Path, exporting: Exporting, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exporting("datasets", out, made, dedupe="near", where="depth < 9")
    card = json.loads((out / "data-card.json").read_bytes())
    assert card["counts"] == {
        "attempts": 8, "outcomes": {"fetched": 8}, "pages_with_text": 7, "removed_exact_duplicates": 2,
        "removed_near_duplicates": 1, "texts": 4, "words": 602,
        "characters": sum(len(row["text"]) for row in rows(out)),
    }  # fmt: skip
    assert card["filters"] == {"where": "depth < 9", "permitted": "", "dedupe": "near", "against": []}
    assert card["sources"] == {"hosts": 1, "sites": 1, "texts_by_host": {"a.example": 4}}
    assert card["dates"]["first_fetched"].startswith("2026-01-01T00:00:00")
    assert card["licenses"] == {"not stated": 4}
    assert card["preferences"]["texts"]["ai-train"] == {"allowed": 4}
    assert card["languages"] == {"not stated": {"texts": 4, "characters": card["counts"]["characters"], "share": 1.0}}
    _, header, body = (out / "README.md").read_text().split("---\n", 2)
    fields = yaml.safe_load(header)
    assert fields["configs"][0]["data_files"] == [{"split": "train", "path": "data/*.parquet"}]
    [split] = fields["dataset_info"]["splits"]
    assert (split["name"], split["num_examples"]) == ("train", 4)
    assert split["num_bytes"] > card["counts"]["characters"]
    assert [one["name"] for one in fields["dataset_info"]["features"]] == [*forms.COLUMNS, *forms.FIGURES]
    assert fields["size_categories"] == ["n<1K"]
    assert "| removed: near-duplicates | 1 |" in body
    columns = body.partition("## Columns")[2].partition("##")[0]
    assert [line.split(" | ")[0][2:].replace("\\", "") for line in columns.split("\n")[4:-2]] == [
        *forms.COLUMNS,
        *forms.FIGURES,
    ]
    assert "## How texts were found" in body
    assert all(line == line.rstrip() for line in body.split("\n"))


def test_a_crawl_without_texts_makes_an_empty_corpus(exporting: Exporting, tmp_path: Path) -> None:
    empty = crawl(tmp_path / "empty", {"blank": " "})
    for to in ("datasets", "bulk", "markdown"):
        exporting(to, tmp_path / to, empty, dedupe="near")
        assert json.loads((tmp_path / to / "data-card.json").read_bytes())["counts"]["texts"] == 0
    assert pq.read_table(tmp_path / "datasets/data").num_rows == 0
    (empty / "crawl.toml").write_text(effective_toml(Config()))
    status, _, said = run("export", str(empty), "--to", "chunks", "-o", str(tmp_path / "chunks"))
    assert (status, "no page has a text: texts come from WARC files" in said) == (0, True), said


def test_an_export_that_leaves_all_texts_out_does_not_say_that_there_are_none(tmp_path: Path) -> None:
    unknown = crawl(tmp_path / "crawl", PAGES)
    (unknown / "crawl.toml").write_text(effective_toml(Config()))

    def export(*options: str) -> str:
        name = str(tmp_path / f"of-{options[1]}-{len(options)}")
        status, out, said = run("export", str(unknown), "--to", "chunks", "-o", name, *options)
        assert status == 0
        assert "no page has a text" not in out + said
        return out + said

    assert "--unknown exports pages" in export("--permitted", "ai-train")
    assert "0 rows of texts" not in export("--dedupe", "near")
    assert "0 rows of texts" in export("--dedupe", "near", "--against", str(tmp_path / "of-near-2"))


@pytest.mark.parametrize("to", ["markdown", "pagefiles", "mirror", "datasets", "chunks", "bulk"])
def test_a_folder_is_not_made_by_the_name_of_a_file(made: Path, exporting: Exporting, tmp_path: Path, to: str) -> None:
    with pytest.raises(ConfigError, match=rf"{to} makes a folder of files; name one, such as -o .*/out$"):
        exporting(to, tmp_path / "out.jsonl", made)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_done_is_refused(made: Path, exporting: Exporting, tmp_path: Path) -> None:
    for to, options, says in (
        ("jsonl", {"dedupe": "near"}, "chunks and bulk can leave copies out"),
        ("datasets", {"dedupe": "fuzzy"}, "expected exact or near"),
        ("datasets", {"against": [made]}, "with --dedupe exact or --dedupe near"),
        ("datasets", {"dedupe": "near", "against": [tmp_path]}, "holds neither a crawl"),
    ):
        with pytest.raises(ConfigError, match=says):
            exporting(to, tmp_path / "out", made, **options)
    assert list(tmp_path.iterdir()) == []


def test_near_duplicates_are_those_that_share_most_shingles(tmp_path: Path) -> None:
    """Of texts with a known share of equal shingles: above 0.9 nearly all are found, below 0.65 none."""
    texts = [text(seed, 300, changed) for seed in range(60) for changed in (0, 3, 60)]
    table = pa.table(
        {
            "n": np.arange(len(texts)),
            "url": [str(n) for n in range(len(texts))],
            "exact": [one.encode() for one in texts],
            "signature": [signature(one) for one in texts],
        },
        schema=SIGNATURES,
    )
    (tmp_path / "own").mkdir()
    pq.write_table(table, tmp_path / "own/1.parquet")
    find_copies(tmp_path / "copies", pieces_of(sorted((tmp_path / "own").iterdir())), [], "near", 100_000_000)
    found = pq.read_table(tmp_path / "copies")
    assert found.schema == FOUND
    pairs = {(int(row["url"]), int(row["of"])) for row in found.to_pylist()}
    assert all(n % 3 == 1 and of == n - 1 for n, of in pairs)
    assert len(pairs) >= 57


def test_a_million_copies_of_one_text_are_compared_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    matrix = copies._matrix
    monkeypatch.setattr(copies, "_matrix", lambda column: compared.append(len(column)) or matrix(column))
    size = 5_000
    (tmp_path / "own").mkdir()
    one = signature(text(1))
    held = {
        "n": np.arange(size),
        "url": ["u"] * size,
        "exact": [b"%d" % n for n in range(size)],
        "signature": [one] * size,
    }
    pq.write_table(pa.table(held, schema=SIGNATURES), tmp_path / "own/1.parquet")
    find_copies(tmp_path / "copies", pieces_of(sorted((tmp_path / "own").iterdir())), [], "near", 100_000_000)
    assert pq.read_metadata(tmp_path / "copies").num_rows == size - 1
    assert sum(compared) <= size + 2 * 2 * size


def test_a_language_that_no_page_declares_is_found_in_the_text(tmp_path: Path) -> None:
    german = "Junge Spinnen segeln an einem Faden über das Meer, so weit der Wind sie trägt, und niemand weiß warum."
    texts = {"german": german, "japanese": "東京都は日本の首都であり、多くの人々がここで暮らしている大きな都市です。"}
    directory = crawl(tmp_path / "crawl", {**texts, "short": "Hi.", "letters": text(1)})
    means = dataclasses.replace(MEANS, language_of=export_means(Config()).language_of)
    export(ExportedCrawl(directory, running=False, now=NOW), ExportRequest("datasets"), tmp_path / "out", means)
    languages = {row["url"].removeprefix(HOST): row["language"] for row in rows(tmp_path / "out")}
    assert languages == {"german": "de", "japanese": "ja", "short": None, "letters": None}


@pytest.mark.parametrize("media_type", PLAIN_TYPES)
def test_text_of_every_plain_type_is_in_a_corpus_and_in_markdown(
    media_type: str, exporting: Exporting, tmp_path: Path
) -> None:
    directory = crawl(tmp_path / "c", {"a": "# Kilns\n\nFired for [four](/more) days.\n"}, media_type)
    exporting("datasets", tmp_path / "d", directory)
    exporting("markdown", tmp_path / "m", directory)
    (row,) = rows(tmp_path / "d")
    (file,) = (tmp_path / "m").glob("*/*.md")
    for text in (row["text"], row["markdown"], file.read_text()):
        assert "Fired for [four](/more) days." in text


def test_text_of_every_plain_type_is_indexed() -> None:
    assert INDEXED_TYPES.issuperset(PLAIN_TYPES)
