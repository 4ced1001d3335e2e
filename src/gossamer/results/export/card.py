"""Card: what a corpus is made of, for people and programs: `README.md`, as Hugging Face expects it, and
`data-card.json`.

Counts come from the texts that are in the export; what the crawl met comes from its table of pages.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow.parquet as pq

from gossamer.model.decodable import decodable
from gossamer.model.product import PRODUCT, __version__
from gossamer.model.words import iso_time
from gossamer.results.export.chunks import TOKENS_MAX
from gossamer.results.export.copies import Copies
from gossamer.results.export.forms import features
from gossamer.results.export.pages import quote
from gossamer.results.export.source import open_database
from gossamer.results.export.work import ExportPiece

JSON_NAME = "data-card.json"
README_NAME = "README.md"
LISTED_MAX = 100
"""Hosts, and licenses, that are listed; all are counted."""
VALUE_CHARACTERS_MAX = 200
_PURPOSES = ("search", "ai_train", "ai_input", "archive")
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_SIZES = (("n<1K", 1_000), ("1K<n<10K", 10_000), ("10K<n<100K", 100_000), ("100K<n<1M", 1_000_000),
          ("1M<n<10M", 10_000_000), ("10M<n<100M", 100_000_000))  # fmt: skip
_ABSENT = "not stated"
_SUMS = """
    SELECT count(*), coalesce(sum(length(text)), 0), coalesce(sum(words), 0), count(DISTINCT host),
        count(DISTINCT site), min(fetched_at), max(fetched_at) FROM texts"""
MEANINGS = msgspec.toml.decode(files(__package__).joinpath("columns.toml").read_bytes(), type=dict[str, str])
"""Of columns, by name."""
Counts = dict[str, int]


@decodable
class Facts(msgspec.Struct, frozen=True):
    """Contents of a card that are not in the texts."""

    name: str
    """Of the crawl."""
    exported_at: float
    where: str
    permitted: str
    copies: Copies
    crawl: Mapping[str, object]
    """How the crawl was configured."""
    outcomes: Mapping[str, int]
    """Of its attempts, all of them."""
    answers: Mapping[str, int]
    """Pages by their answer, where a use must be permitted."""
    chunk_tokens: int = TOKENS_MAX
    """Bound of the chunks, in tokens."""


def write_card(
    folder: Path,
    to: str,
    facts: Facts,
    texts: Sequence[ExportPiece],
    copies: Path,
    removed: Mapping[str, int],
    memory_bytes_max: int,
) -> None:
    """Write both files. `copies` lists the texts left out, `removed` counts them by kind. About 5 µs a text."""
    with open_database(memory_bytes_max, copies.with_name("spilled"), threads=2) as tables:
        _open(tables, texts, copies)
        card = _card(tables, to, facts, sum(piece.rows for piece in texts), removed)
    (folder / JSON_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(card)) + b"\n")
    data = map(pq.read_metadata, (folder / "data").glob("[!.]*.parquet"))
    bytes_ = sum(one.row_group(number).total_byte_size for one in data for number in range(one.num_row_groups))
    (folder / README_NAME).write_text("".join(f"{line}\n" for line in _readme(card, to, bytes_)), encoding="utf-8")


def _open(tables: duckdb.DuckDBPyConnection, texts: Sequence[ExportPiece], copies: Path) -> None:
    tables.read_parquet(str(copies)).create_view("copies")
    if not texts:
        columns = ("host", "site", "fetched_at", "language", "license", "text_method", "text")
        usage = [f"usage_{purpose}" for purpose in _PURPOSES]
        empty = ", ".join(["0 AS words", *(f"'' AS {name}" for name in (*columns, *usage))])
        tables.execute(f"CREATE VIEW texts AS SELECT {empty} WHERE false")
        return
    tables.read_parquet([piece.path for piece in texts]).create_view("parts")
    tables.execute("CREATE VIEW texts AS SELECT * FROM parts WHERE n NOT IN (SELECT n FROM copies)")


def _card(
    tables: duckdb.DuckDBPyConnection, to: str, facts: Facts, with_text: int, removed: Mapping[str, int]
) -> dict[str, Any]:
    texts, characters, words, hosts, sites, first, last = tables.execute(_SUMS).fetchall()[0]
    return {
        "name": facts.name,
        "made_by": f"{PRODUCT} {__version__}",
        "exported_at": iso_time(facts.exported_at),
        "format": to,
        "crawl": dict(facts.crawl),
        "counts": {
            "attempts": sum(facts.outcomes.values()),
            "outcomes": dict(facts.outcomes),
            "pages_with_text": with_text,
            "removed_exact_duplicates": removed["exact"],
            "removed_near_duplicates": removed["near"],
            "texts": texts,
            "characters": int(characters),
            "words": int(words),
        },
        "filters": {
            "where": facts.where,
            "permitted": facts.permitted,
            "dedupe": facts.copies.how,
            "against": [Path(name).name for name in facts.copies.against],
        },
        "sources": {"hosts": hosts, "sites": sites, "texts_by_host": _frequent_values(tables, "host")},
        "dates": {"first_fetched": first or "", "last_fetched": last or ""},
        "languages": _languages(tables, texts),
        "licenses": _frequent_values(tables, f"coalesce(nullif(license, ''), '{_ABSENT}')"),
        "preferences": {
            "robots": facts.crawl.get("robots", ""),
            "pages_by_answer": dict(facts.answers),
            "texts": {purpose.replace("_", "-"): _frequent_values(tables, f"usage_{purpose}") for purpose in _PURPOSES},
        },
        "text_methods": _frequent_values(tables, "text_method"),
        "columns": features(to),
    }


def _frequent_values(tables: duckdb.DuckDBPyConnection, column: str) -> Counts:
    cut = f"left({column}, {VALUE_CHARACTERS_MAX})"
    question = f"SELECT {cut}, count(*) FROM texts GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {LISTED_MAX}"  # noqa: S608
    return dict(tables.execute(question).fetchall())


def _languages(tables: duckdb.DuckDBPyConnection, texts: int) -> dict[str, dict[str, float]]:
    """Return texts, characters and the share of texts by language, the largest first."""
    question = f"""
        SELECT coalesce(nullif(lower(regexp_extract(language, '^[A-Za-z]{{2,3}}')), ''), '{_ABSENT}'), count(*),
            sum(length(text)) FROM texts GROUP BY 1 ORDER BY 2 DESC, 1"""  # noqa: S608
    return {
        name: {"texts": count, "characters": int(characters), "share": round(count / texts, 4)}
        for name, count, characters in tables.execute(question).fetchall()
    }


def _readme(card: Mapping[str, Any], to: str, bytes_: int) -> Iterator[str]:
    counts = card["counts"]
    filters = card["filters"]
    dates = card["dates"]
    yield from _header(card, to, bytes_)
    hosts = card["sources"]["hosts"]
    yield f"# {_plain(card['name'])}\n"
    yield f"Texts of {counts['texts']:,} pages of {hosts:,} {'host' if hosts == 1 else 'hosts'}, fetched from"
    yield f"{dates['first_fetched'] or 'never'} to {dates['last_fetched'] or 'never'}. Made by {card['made_by']} on"
    yield f"{card['exported_at']}. `{JSON_NAME}` holds the same figures for programs."
    yield from _table("Crawl", "setting", "value", {k: v for k, v in card["crawl"].items() if v})
    steps = {
        "attempts": counts["attempts"],
        "pages with text that the filters chose": counts["pages_with_text"],
        "removed: exact duplicates": counts["removed_exact_duplicates"],
        "removed: near-duplicates": counts["removed_near_duplicates"],
        "texts": counts["texts"],
        "words": counts["words"],
        "characters": counts["characters"],
    }
    yield from _table("Counts", "what", "count", steps)
    yield from _table("Outcomes of the crawl's attempts", "outcome", "attempts", counts["outcomes"])
    yield from _table("Filters", "filter", "value", {k: v or "none" for k, v in filters.items()})
    yield from _table("Languages", "language", "texts", {k: v["texts"] for k, v in card["languages"].items()})
    yield from _table("Licenses, as pages state them", "license", "texts", card["licenses"])
    uses = {f"{use}: {answer}": n for use, one in card["preferences"]["texts"].items() for answer, n in one.items()}
    yield from _table("Statements of owners about use", "use", "texts", uses)
    yield from _table("How texts were found", "text_method", "texts", card["text_methods"])
    yield from _table("Columns", "column", "meaning", {name: MEANINGS[name] for name in card["columns"]})
    yield from _table("Sources", "host", "texts", card["sources"]["texts_by_host"])
    yield "\n## Limits\n"
    yield "Texts are as their authors published them: they may hold errors, personal data and instructions to"
    yield "programs that read them. A license or statement counts as it was when the page was fetched. Where a page"
    yield "states no license, ask its owner before you publish its text."


def _header(card: Mapping[str, Any], to: str, bytes_: int) -> Iterator[str]:
    """Yield the YAML header: https://huggingface.co/docs/hub/datasets-cards."""
    texts = card["counts"]["texts"]
    yield from ("---", f"pretty_name: {quote(card['name'])}")
    if languages := [name for name in card["languages"] if _LANGUAGE.fullmatch(name)]:
        yield "language:"
        yield from (f"- {quote(name)}" for name in languages)
    size = next((name for name, bound in _SIZES if texts < bound), "n>100M")
    yield from ("license: other", "license_name: as-stated-by-each-page", "size_categories:", f"- {size}")
    yield from ("tags:", f"- {PRODUCT}")
    if card["columns"]:
        yield from ("configs:", "- config_name: default", "  data_files:", "  - split: train")
        yield "    path: data/*.parquet"
    if to == "datasets":
        yield from ("dataset_info:", "  features:")
        for name, value in card["columns"].items():
            yield from (f"  - name: {name}", f"    dtype: {value['dtype']}")
        # `datasets` ignores a split without `num_bytes`, and says so at each load.
        yield from ("  splits:", "  - name: train", f"    num_bytes: {bytes_}", f"    num_examples: {texts}")
    yield "---\n"


def _table(title: str, first: str, second: str, rows: Mapping[str, object]) -> Iterator[str]:
    if not rows:
        return
    yield f"\n## {title}\n"
    yield from (f"| {first} | {second} |", "| --- | --- |")
    yield from (f"| {_plain(name)} | {_plain(value)} |" for name, value in rows.items())


def _plain(value: object) -> str:
    """Return a value for a cell; what Markdown would read as markup is escaped."""
    if isinstance(value, int):
        return f"{value:,}"
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = "".join(c if c.isprintable() else " " for c in text)[:1_000]
    return re.sub(r"([\\`*_\[\]<>|#!])", r"\\\1", text)
