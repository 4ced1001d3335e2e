"""Tables of pages and links as a crawl leaves them, made up."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.stages.archive.schema import LINKS, PAGES
from gossamer.url.name import Namer

Row = dict[str, Any]
_SCHEMA = pa.schema(
    [
        *PAGES,
        *((name, kind) for name, kind in (("hops", pa.int32()), ("nofollow", pa.bool_())) if name not in PAGES.names),
    ]
)


def page(url: str, at: int, **more: Any) -> Row:
    """Return the row of a page that was fetched."""
    row = {
        "url": url, "key": key(url), "fetched_at": at, "outcome": "fetched", "status": 200, "depth": 0, "hops": 0,
        "link_type": "anchor", "redirect_to": "", "duplicate_of": "", "error": "", "attempt": 1, "nofollow": False,
        "referrer": "",
    }  # fmt: skip
    return row | more


def link(from_url: str, to_url: str, **more: Any) -> Row:
    """Return the row of a link."""
    row = {
        "from_url": from_url,
        "to_url": to_url,
        "to_key": key(to_url),
        "link_type": "anchor",
        "anchor_text": "",
        "nofollow": False,
    }
    return row | more


def key(url: str) -> str:
    """Return the key of an address by the default rules."""
    named = Namer().name(url)
    assert named is not None
    return named.key


def write(folder: Path, pages: Iterable[Mapping[str, Any]], links: Iterable[Mapping[str, Any]], rows: int = 50) -> Path:
    """Write tables, `rows` in a file."""
    for name, schema, table in (("pages", _SCHEMA, list(pages)), ("links", LINKS, list(links))):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for at in range(0, max(len(table), 1), rows):
            part = pa.Table.from_pylist(table[at : at + rows], schema=schema)
            pq.write_table(part, folder / name / f"{name}-{at:06d}.parquet")
    return folder


def web(dice: random.Random, urls: int, pages: int) -> tuple[list[Row], list[Row]]:
    """Return random pages and links: of several hosts and sites, with redirects, failures, and two texts of one key."""
    texts = [
        f"http://{'www.' if n % 3 else ''}site{n % 5}.example/{'%7E' if n % 4 == 0 else ''}p{n}" for n in range(urls)
    ]
    others = {text: text.replace("%7E", "~") for text in texts if "%7E" in text}
    rows: list[Row] = []
    links: list[Row] = []
    for at, text in enumerate(dice.sample(texts, pages)):
        kind = dice.choice(["anchor", "anchor", "seed", "redirect"])
        row = page(
            text, at, depth=0 if kind == "seed" else dice.randrange(4), link_type=kind, hops=int(kind == "redirect")
        )
        if dice.random() < 0.2:
            target = dice.choice(texts)
            row |= {"outcome": "redirected", "status": 301, "redirect_to": target}
            links.append(link(text, target, link_type="redirect"))
        elif dice.random() < 0.2:
            row |= {"outcome": "timeout", "status": None}
        else:
            row["nofollow"] = dice.random() < 0.1
            for target in dice.choices(texts, k=dice.randrange(6)):
                target = others.get(target, target) if dice.random() < 0.5 else target
                kind = dice.choice(["anchor", "anchor", "area", "canonical"])
                links.append(link(text, target, link_type=kind, nofollow=dice.random() < 0.1))
        rows.append(row)
    return rows, links
