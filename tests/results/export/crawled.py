"""A crawl's files, made by the real archives without a crawl: several segments, copies, and what strangers write."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec

from gossamer.model.links import Found
from gossamer.model.pages import Original, Visited
from gossamer.stages.archive.archive import Archives
from gossamer.stages.archive.follower import Follower
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.warc import WarcArchive, WarcInfo
from tests.stages.archive.web import START, Shard, visited

HOSTILE_TITLES = [
    "plain",
    "tab\there",
    "line\nbreak\rand\r\nmore",
    'quote "double", comma',
    "back\\slash \\t",
    "\x1b[31mred\x07",
    "---",
    "'",
    "",
    "=1+1",
    "\u202edrawkcab",
    "\ufeffmark \x85 \u2028",
    "emoji \U0001f600",
    "nul \0 in it",
    ": colon # hash",
    "{flow: [seq]}",
]
HOSTILE_PATHS = [
    "/",
    "/a/b/c.html",
    "/../../../etc/passwd",
    "/%2e%2e/%2e%2e/x",
    "/%00",
    "/con",
    "/CON.txt",
    "/" + "long" * 200,
    "/ü/ä?q=1#f",
    "/.hidden",
    "/a%2fb",
    "/x?" + "y" * 300,
    "/UPPER",
    "/upper",
    "/trailing.",
    "/space%20%20",
    "/nul%0a%0d",
]


def hosts(count: int) -> list[str]:
    return [f"h{number:02d}.example" for number in range(count)]


def visits(pages: int, links: int = 5) -> list[Visited]:
    """Pages of several hosts, taking turns, as a crawl meets them."""
    found = []
    names = hosts(7)
    for number in range(pages):
        host = names[number * 5 % 7]
        path = HOSTILE_PATHS[number] if number < len(HOSTILE_PATHS) else f"/docs/page-{number}.html"
        title = HOSTILE_TITLES[number % len(HOSTILE_TITLES)]
        body = f"<title>t</title><p>Body of {number}.</p>".encode() + b"<p>more words</p>" * (number % 40)
        headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html; charset=utf-8"),)
        if number % 3 == 0:
            body, headers = gzip.compress(body, mtime=0), (*headers, ("Content-Encoding", "gzip"))
        if number == 4:  # As long as a crawl takes: readers of WARC files have limits of their own.
            headers = (*headers, ("X-Long", "x" * 60_000))
        visit = visited(f"http://{host}{path}", body, headers=headers, at=START + number)
        visit.row.title = title
        visit.links = [
            Found(
                f"http://{names[(number + k) % 7]}/to/{k}",
                ("anchor", "frame", "redirect", "iframe")[k % 4],
                f"{title} {k}",
            )
            for k in range(links)
        ]
        visit.link_keys = [link.url for link in visit.links]
        found.append(visit)
    return found


def crawl(directory: Path, pages: int = 120, **options: object) -> Path:
    """Write a crawl of `pages` pages and as many failures again as seven leave over."""
    shard = Shard(directory)
    given = ArchiveOptions(**({"warc_segment_bytes_max": 20_000, "table_segment_rows_max": 60} | options))  # type: ignore[arg-type]
    archive = Archives(
        [WarcArchive(given, shard.journals, WarcInfo("gossamer/1")), TableWriters(given, shard.journals)]
    )
    for number, visit in enumerate(visits(pages)):
        archive.add(visit)
        if number % 7 == 0:
            failed = visited(f"http://down.example/{number}", at=START + number)
            failed.reply = None
            failed.row.outcome, failed.row.status = "connect_error", None
            archive.add(failed)
        if number % 10 == 0:
            copy = visited(f"http://copies.example/{number}", b"", at=START + number + 0.5)
            assert visit.reply is not None
            copy.reply = msgspec.structs.replace(visit.reply, url=copy.row.url)
            copy.revisit_of = Original(visit.row.url, visit.row.fetched_at)
            archive.add(copy)
        if number % 20 == 19:
            archive.cut()
            shard.commit()
    return finished(directory, shard, archive)


def finished(directory: Path, shard: Shard, archive: Archives) -> Path:
    """End a crawl that tests write; return its directory."""
    archive.close()
    shard.commit()
    Follower(shard.journals).finish()
    shard.commit()
    (directory / "crawl.toml").touch()
    return directory
