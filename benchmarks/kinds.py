"""Kinds of sites that bench_crawl.py crawls: no crawler is quick on all of them by being good at one.

Generated ones are the same at every call. Sizes and numbers of links of `archive` are drawn as the HTTP Archive counts
them (Web Almanac 2024, chapters Page Weight and Markup): half of all pages have less than 33 KB of HTML, a tenth more
than 150 KB.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DOCUMENTATION = {"python": "/usr/share/doc/python3-doc/html", "postgresql": "/usr/share/doc/postgresql-doc-15/html"}
"""Of Debian: 527 heavy pages (96 KB, 310 anchors) and 1,168 light ones (15 KB, 28 anchors)."""
WORDS = (
    "harbour", "ledger", "copper", "meadow", "signal", "archive", "lantern", "quarry", "vessel", "timber", "orchard",
    "granite", "compass", "journal", "bridge", "kettle", "saddle", "window", "marble", "thread", "ribbon", "tunnel",
    "garden", "station", "mirror", "engine", "feather", "pepper", "canvas", "anchor",
)  # fmt: skip
NEW_LINKS = 3
"""Of each page; the others lead to pages that are known by then, or soon."""
MIXED_SERVER = "location /moved/ { rewrite ^/moved/(.*)$ /p/$1 permanent; }"
PIXEL_BYTES = 1_500


@dataclass(frozen=True)
class Kind:
    """A site, and how it is served and crawled."""

    make: Callable[[Path], None]
    """Fills an empty directory."""
    hosts: int = 2
    """Addresses of loopback that serve it."""
    tls: bool = False
    """HTTPS with a new connection for every page, else HTTP as nginx ships it."""
    server: str = ""
    options: tuple[str, ...] = ()
    """Of `gossamer crawl`; the floor understands `--embeds`."""


def documentation(*parts: str) -> Callable[[Path], None]:
    """Lay out documentation of Debian."""

    def make(root: Path) -> None:
        for name in parts:
            if not Path(DOCUMENTATION[name]).is_dir():
                raise SystemExit(f"{DOCUMENTATION[name]} is missing: `make parts` installs it")
            (root / name).symlink_to(DOCUMENTATION[name])
        links = "".join(f'<p><a href="/{name}/index.html">{name}</a>' for name in parts)
        (root / "index.html").write_text(f"<!doctype html><title>Documentation</title>{links}\n")

    return make


def generated(pages: int, size: Callable[[random.Random], tuple[int, int]], kind: str = "") -> Callable[[Path], None]:
    """Write pages whose numbers of bytes and links `size` draws; of `kind` mixed or embeds, with what that means."""

    def make(root: Path) -> None:
        dice = random.Random(f"{pages} {kind}")
        (root / "p").mkdir()
        for number in range(pages):
            size_bytes, links = size(dice)
            targets = [NEW_LINKS * number + one + 1 for one in range(NEW_LINKS)]
            targets += [dice.randrange(pages) for _ in range(max(0, links - NEW_LINKS))]
            addresses = [_address(one, number, kind, dice) for one in targets if one < pages]
            embeds = [f"/o/{number}-{one}.png" for one in range(6)] if kind == "embeds" else []
            text = page(f"Page {number}", size_bytes, addresses, embeds, dice)
            (root / "p" / f"{number}.html").write_text(text)
            if number == 0:
                (root / "index.html").write_text(text)
            for embed in embeds:
                (root / "o").mkdir(exist_ok=True)
                (root / embed[1:]).write_bytes(b"\x89PNG\r\n\x1a\n" + dice.randbytes(PIXEL_BYTES))

    return make


def _address(target: int, page_number: int, kind: str, dice: random.Random) -> str:
    drawn = dice.random() if kind == "mixed" else 1.0
    if drawn < 0.10:
        return f"/gone/{page_number}-{target}.html"
    return f"/moved/{target}.html" if drawn < 0.25 else f"/p/{target}.html"


def page(title: str, size_bytes: int, links: list[str], embeds: list[str], dice: random.Random) -> str:
    """Return a page with links between its sentences."""
    head = f'<meta charset="utf-8"><title>{title}</title><link rel="stylesheet" href="/style.css">'
    parts = [f'<!doctype html><html lang="en"><head>{head}</head><body><header><h1>{title}</h1></header><main>']
    left = size_bytes - sum(map(len, parts))
    for number in range(max(len(links), left // 400)):
        sentence = " ".join(dice.choices(WORDS, k=6))
        anchor = f'<a href="{links[number]}">{dice.choice(WORDS)} {number}</a>' if number < len(links) else ""
        room = max(40, left // max(1, max(len(links), left // 400) - number) - len(anchor) - 40)
        filler = " ".join(dice.choices(WORDS, k=1 + room // 8))
        paragraph = f'<p class="text">{sentence} {anchor} <em>{filler[: room // 4]}</em> {filler}</p>\n'
        parts.append(paragraph)
        left -= len(paragraph)
        if left <= 0 and number >= len(links) - 1:
            break
    parts += [f'<img src="{one}" alt="" width="20" height="20">' for one in embeds]
    return "".join([*parts, "</main></body></html>\n"])


def constant(size_bytes: int, links: int) -> Callable[[random.Random], tuple[int, int]]:
    """Draw the same for every page."""
    return lambda _: (size_bytes, links)


def like_the_archive(dice: random.Random) -> tuple[int, int]:
    """Draw bytes and links of a page as the HTTP Archive counts them."""
    size_bytes = min(1_000_000, int(33_000 * dice.lognormvariate(0.0, 1.18)))
    return size_bytes, max(3, min(500, int(size_bytes / 550)))


KINDS = {
    "light": Kind(generated(3_000, constant(5_000, 10)), hosts=1),
    "postgresql": Kind(documentation("postgresql")),
    "python": Kind(documentation("python")),
    "documentation": Kind(documentation("python", "postgresql")),
    "mixed": Kind(generated(3_000, constant(8_000, 10), "mixed"), hosts=1, server=MIXED_SERVER),
    "hosts": Kind(generated(40, constant(5_000, 10)), hosts=64, tls=True),
    "embeds": Kind(generated(3_000, constant(5_000, 10), "embeds"), hosts=1, options=("--embeds",)),
    "archive": Kind(generated(3_000, like_the_archive), hosts=1),
}
