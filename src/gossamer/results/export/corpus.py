"""Corpus: the text of each page once, without copies: Markdown files, rows for Hugging Face, lines for search engines.

Texts are made once and kept in small Parquet files; copies among them are found; what is left is written. Beside it
stand a data card, the list of what was left out, and what its texts are recognized by in later exports.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from xxhash import xxh3_128_digest

from gossamer.model.errors import ConfigError
from gossamer.results.export.bodies import MarkdownPage, Means
from gossamer.results.export.card import Facts, write_card
from gossamer.results.export.copies import SIGNATURES, Copies, find_copies, keep_mask, listed_in
from gossamer.results.export.forms import form_of
from gossamer.results.export.pages import with_contents
from gossamer.results.export.plan import MORE, Planned, make_plan, rows_of
from gossamer.results.export.source import RowSource, pieces_of
from gossamer.results.export.work import ExportFolder, ExportPiece, KnownTexts, Progress
from gossamer.stages.archive.schema import column_of
from gossamer.world.files import sync_everything, sync_file

FORMATS = ("datasets", "chunks", "bulk")
"""Formats that are always a corpus; `markdown` is one where copies are left out."""
OF_MARKDOWN = frozenset(("markdown", "datasets", "chunks"))
"""Formats that hold or divide Markdown."""
PAGES_A_PART = 2_000
PART_BYTES = 16_000_000
"""Size of buffered texts, and of a row group."""
FINGERPRINTS = "fingerprints.parquet"
REMOVED = "duplicates.jsonl"
FACTS = "facts.json"
"""For the data card, beside the texts of a share."""
KEPT = ("texts", "plan", "copies.parquet", "logs")
"""Names in the folder of an export that hold what was done."""
_PLANNED = (
    "url", "key", "host", "site", "title", "fetched_at", "media_type", "depth", "referrer", "digest", "duplicate_of",
    *MORE,
)  # fmt: skip
_FACTS = ("author", "published", "modified", "license")
_NUMBERS = dict.fromkeys(("n", "depth", "words"), pa.int64())
TEXTS = pa.schema(
    [
        *((name, _NUMBERS.get(name, pa.string())) for name in ("n", *_PLANNED, *_FACTS, "words")),
        ("text_method", pa.string()),
        ("text", pa.string()),
        ("markdown", pa.string()),
        ("heading_ids", pa.string()),
        ("exact", pa.binary()),
        ("signature", pa.binary()),
    ]
)


class CorpusProgress(msgspec.Struct):
    """How far a corpus is: texts of its own pages (source 0) and of earlier crawls, then what is written."""

    source: int = 0
    position: int = 0
    parts: int = 0
    """Finished files of this source."""
    texts: int = 0
    """Texts in them."""
    written: int = 0
    files: int = 0
    length: int = 0
    """Of the last file, in bytes, where it grows from note to note."""


def make_corpus(
    work: ExportFolder, directory: Path, to: str, facts: Facts, means: Means, memory_bytes_max: int, progress: Progress
) -> dict[str, int]:
    """Write the corpus of a crawl's `work.inputs`; go on where an earlier call stopped. Return how many texts
    were written, and how many were left out as `exact` and `near` copies. Where copies are left out, that of a share
    is its texts, for `join_corpora`.

    Beside finding the text of a page (2 to 7 ms, by several processes) 1.5 ms, 2 ms to find near-duplicates too, and
    some 3 KB on disk meanwhile. In memory: `memory_bytes_max`. Raises ConfigError: the memory does not suffice, or an
    earlier crawl lacks a file; OSError: the disk is full; what was noted stays done.
    """
    inputs = work.inputs
    assert inputs is not None
    step = work.step(CorpusProgress)
    sources = [KnownTexts(str(directory), inputs.tables["pages"]), *inputs.earlier]
    for number, source in enumerate(sources):
        if number >= step.source and source.pages:
            where = facts.where if number == 0 else ""
            _Reading(work, step, number, means, progress).read(source, where, memory_bytes_max // 2)
        step = work.step(CorpusProgress)
    if facts.copies.how and work.order.share is not None:
        if not work.out.exists():
            _folder(work, 0).mkdir(parents=True, exist_ok=True)
            (_folder(work, 0) / FACTS).write_bytes(msgspec.json.encode(facts))
            _folder(work, 0).rename(work.out)
        return {"texts": sum(piece.rows for piece in pieces_of(work.out.glob("*.parquet")))}
    own = _texts(work, 0)
    copies = work.folder / "copies.parquet"
    if not copies.exists():
        earlier = [[*source.texts, *_texts(work, number)] for number, source in enumerate(sources) if number]
        find_copies(copies, own, earlier, facts.copies.how, memory_bytes_max // 2)
    texts = RowSource(own)
    kept = keep_mask(copies, sum(piece.rows for piece in own))
    work.out.mkdir(exist_ok=True)
    form = form_of(to, work.out, step.files, step.length, facts.chunk_tokens)
    for position, batch in texts.batches(step.written):
        form.add(batch.filter(pa.array(kept[position - batch.num_rows : position])))
        if form.settle():
            step.written = position
            step.files = form.files
            step.length = form.length
            work.save(step)
    form.close()
    if facts.copies.how:
        _list(copies, work.out / REMOVED)
    _fingerprints(work.out / FINGERPRINTS, texts, kept)
    removed = {"exact": 0, "near": 0} | counts_of(listed_in(copies), "how")
    write_card(work.out, to, facts, own, copies, removed, memory_bytes_max // 2)
    found = {"texts": int(kept.sum())}
    if to == "chunks":
        found["chunks"] = sum(pq.read_metadata(file).num_rows for file in (work.out / "data").iterdir())
    return {**found, **removed}


def join_corpora(
    shares: Sequence[Path], work: ExportFolder, to: str, copies: Copies, means: Means, memory_bytes_max: int
) -> dict[str, int]:
    """Write the corpus of the texts that shares without their copies left in folders, and return the same counts.
    Copies are searched in all of them, and in earlier texts of `work`. See `make_corpus`.
    """
    facts = msgspec.json.decode((shares[0] / FACTS).read_bytes(), type=Facts)
    if work.step(CorpusProgress).source == 0:
        folder = _folder(work, 0)
        folder.mkdir(parents=True, exist_ok=True)
        number = 0
        for part, path in enumerate(one for share in shares for one in sorted(share.glob("*.parquet"))):
            texts = pq.read_table(path, schema=TEXTS)
            numbers = pa.array(range(number, number + texts.num_rows), pa.int64())
            target = folder / f"{part + 1:06d}.parquet"
            pq.write_table(texts.set_column(0, TEXTS.field("n"), numbers), target, compression="zstd")
            number += texts.num_rows
        sync_everything()
        work.save(CorpusProgress(source=1))
    facts = msgspec.structs.replace(facts, copies=copies)
    return make_corpus(work, Path(), to, facts, means, memory_bytes_max, lambda *_: None)


def earlier_export(directory: Path) -> KnownTexts:
    """Return an export as texts that are known. Raises ConfigError."""
    if not (directory / FINGERPRINTS).exists():
        raise ConfigError(
            f"--against {directory}: it holds neither a crawl (crawl.toml) nor a corpus export ({FINGERPRINTS})"
        )
    return KnownTexts(str(directory.resolve()), texts=pieces_of([directory / FINGERPRINTS]))


def counts_of(source: RowSource, column: str) -> dict[str, int]:
    """Return how often each value of a column of text occurs, by value."""
    found: dict[str, int] = {}
    for _, batch in source.batches(0, [column]):
        for one in pc.value_counts(batch[column].cast(pa.string())).to_pylist():
            found[one["values"]] = found.get(one["values"], 0) + one["counts"]
    return dict(sorted(found.items()))


class _Reading:
    """Makes texts of the pages of one crawl, part by part."""

    def __init__(self, work: ExportFolder, step: CorpusProgress, number: int, means: Means, progress: Progress) -> None:
        self._work = work
        self._step = step if step.source == number else CorpusProgress(source=number)
        self._means = means
        self._progress = progress
        self._folder = _folder(work, number)
        self._schema = TEXTS if number == 0 else SIGNATURES
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0

    def read(self, source: KnownTexts, where: str, memory_bytes_max: int) -> None:
        """Make texts of a crawl's pages, from where an earlier call stopped."""
        step = self._step
        plan = self._work.folder / "plan" / f"{step.source}.parquet"
        for folder in (plan.parent, self._folder):
            folder.mkdir(parents=True, exist_ok=True)
        own = self._work.order.share if step.source == 0 else None
        make_plan(plan, source.pages, where, memory_bytes_max, contents=True, share=own)
        position = step.position
        rows = rows_of(plan)
        for position, row, written in with_contents(plan, step.position, Path(source.directory) / "warc", self._means):
            if written is not None and written.text.strip():
                self._add(row, written)
            if len(self._rows) >= PAGES_A_PART or self._bytes >= PART_BYTES:
                self._cut(position)
            self._progress("pages", position, rows)
        self._cut(position)
        self._work.save(CorpusProgress(source=step.source + 1))

    def _add(self, row: Planned, written: MarkdownPage) -> None:
        words = " ".join(written.text.split())
        held: dict[str, Any] = {name: getattr(row, name) for name in _PLANNED}
        held |= {name: written.facts.get(name, "") for name in _FACTS}
        held["language"] = row.language or written.facts.get("language") or self._means.language_of(written.text)
        held |= {"n": self._step.texts + len(self._rows), "text_method": written.text_method}
        held |= {"text": written.text, "markdown": written.markdown, "heading_ids": written.heading_ids}
        held["words"] = words.count(" ") + 1
        held["exact"] = xxh3_128_digest(words.encode("utf-8", "replace"))
        held["signature"] = self._means.signature_of(words)
        self._rows.append({name: held[name] for name in self._schema.names})
        self._bytes += len(written.text) + len(written.markdown)

    def _cut(self, position: int) -> None:
        step = self._step
        if self._rows:
            columns = [column_of([row[field.name] for row in self._rows], field.type) for field in self._schema]
            path = self._folder / f"{step.parts + 1:06d}.parquet"
            pq.write_table(pa.table(columns, schema=self._schema), path, compression="zstd", write_page_checksum=True)
            sync_file(path)
            step.parts += 1
            step.texts += len(self._rows)
            self._rows = []
            self._bytes = 0
        step.position = position
        self._work.save(step)


def _folder(work: ExportFolder, number: int) -> Path:
    return work.folder / "texts" / str(number)


def _texts(work: ExportFolder, number: int) -> list[ExportPiece]:
    return pieces_of(sorted(_folder(work, number).glob("*.parquet")))


def _list(copies: Path, target: Path) -> None:
    """Write the list of texts that were left out."""
    with target.open("wb") as file:
        for _, batch in listed_in(copies).batches(0, ["url", "of", "how"]):
            for row in batch.to_pylist():
                line = {"url": row["url"], "duplicate_of": row["of"], "how": row["how"]}
                file.write(msgspec.json.encode(line) + b"\n")


def _fingerprints(target: Path, source: RowSource, kept: Any) -> None:
    """Write hashes and signatures of this export's texts, by which a later one recognizes them: 280 bytes each."""
    with pq.ParquetWriter(target, SIGNATURES, compression="zstd", write_page_checksum=True) as writer:
        number = 0
        for position, batch in source.batches(0, SIGNATURES.names):
            left = batch.filter(pa.array(kept[position - batch.num_rows : position]))
            numbers = pa.array(range(number, number + left.num_rows), pa.int64())
            writer.write_batch(left.set_column(0, SIGNATURES.field("n"), numbers))
            number += left.num_rows
