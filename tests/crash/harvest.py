"""What a crawl has brought in: its tables and archives, in a form in which two crawls can be compared."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from fastwarc.warc import ArchiveIterator, WarcRecordType

from tests.stages.archive import strict

Row = dict[str, object]
# warcio 1.8.1 fails on any payload in brotli when brotli 1.2 is there: its decompressor lacks `unused_data`.
# Digests are of payloads as sent, so it is let see none; in tests/acceptance/test_replay.py it sees all.
_WITHOUT_BROTLI = "import sys; sys.modules['brotli'] = None; from warcio.cli import main; sys.exit(main())"
WARCIO = (sys.executable, "-c", _WITHOUT_BROTLI, "check")
FASTWARC = (str(Path(sys.executable).with_name("fastwarc")), "check", "-q")
AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""Statuses by which a server asks for another attempt."""


class Harvest:
    """The output of a crawl that has ended."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @cached_property
    def rows(self) -> list[Row]:
        """All rows of `pages`."""
        return self._table("pages")

    @cached_property
    def attempts(self) -> dict[str, list[Row]]:
        """The rows of each URL, in the order of attempts."""
        attempts: dict[str, list[Row]] = {}
        for row in sorted(self.rows, key=lambda row: (row["fetched_at"], row["attempt"])):
            attempts.setdefault(str(row["url"]), []).append(row)
        return attempts

    @cached_property
    def finals(self) -> dict[str, tuple[object, ...]]:
        """What became of each URL, in what does not depend on the order of visits."""
        columns = ("outcome", "status", "media_type", "digest", "title", "redirect_to", "body_bytes", "truncated")
        return {url: tuple(rows[-1][name] for name in columns) for url, rows in self.attempts.items()}

    @cached_property
    def links(self) -> Counter[tuple[object, ...]]:
        """Every link found, and how often."""
        return Counter(
            (row["from_url"], row["to_url"], row["to_key"], row["link_type"], row["anchor_text"], row["nofollow"])
            for row in self._table("links")
        )

    @cached_property
    def records(self) -> Counter[tuple[str, str]]:
        """Target and payload digest of the responses and revisits of each URL's last attempt, and how often: those
        before it were a server in trouble, which is in trouble so many times whoever asks.
        """
        last = {(rows[-1]["warc_file"], rows[-1]["warc_offset"]) for rows in self.attempts.values()}
        return Counter((target, digest) for target, digest, place in self._archived if place in last)

    @cached_property
    def _archived(self) -> list[tuple[str, str, tuple[str, int]]]:
        found, robots = {}, set()
        for file in self.archives:
            with file.open("rb") as stream:
                for record in ArchiveIterator(stream, parse_http=False):
                    headers = record.headers
                    if record.record_type in (WarcRecordType.response, WarcRecordType.revisit):
                        place = (file.name, record.stream_pos)
                        digest = headers.get("WARC-Payload-Digest", "")
                        found[headers["WARC-Record-ID"]] = (headers["WARC-Target-URI"], digest, place)
                    elif b"\r\nlinkType: robots\r\n" in record.reader.read():
                        robots.add(headers["WARC-Concurrent-To"])  # Replies without a row.
        return [reply for name, reply in found.items() if name not in robots]

    @property
    def archives(self) -> list[Path]:
        """The WARC files."""
        return sorted((self.directory / "warc").glob("*.warc.gz"))

    def faults(self) -> list[str]:
        """Return what contradicts itself: rows without records, records twice, files left over."""
        places = {place: (target, digest) for target, digest, place in self._archived}
        rows = {(row["warc_file"], row["warc_offset"]): row for row in self.rows if row["warc_file"]}
        found = [
            f"record without row: {target} at {place}" for place, (target, _) in places.items() if place not in rows
        ]
        found += [f"row without record: {row['url']} at {place}" for place, row in rows.items() if place not in places]
        found += [
            f"row and record differ: {row['url']}, {places[place]}"
            for place, row in rows.items()
            if place in places and places[place] != (row["url"], row["digest"])
        ]
        for url, attempts in self.attempts.items():
            told = [row["redirect_to"] or row["status"] in AGAIN for row in attempts[:-1]]
            if not all(told):
                found.append(f"{len(attempts)} attempts at {url}: nobody said so")
        left = [*(self.directory / "warc").glob("*.open"), *(self.directory / "state").rglob("tables/*")]
        left += [path for table in ("pages", "links") for path in (self.directory / table).glob(".*")]
        return found + [f"left over: {path}" for path in left]

    def describe(self, url: str) -> str:
        """Describe what became of a URL, by which path it was found, and each attempt."""
        rows = self.attempts.get(url)
        if rows is None:
            return "no row"
        last = rows[-1]
        path = f"depth {last['depth']} by {last['link_type']} from {last['referrer']}"
        tries = [f"{row['fetched_at']} shard {row['shard']}: {row['outcome']} {row['error'] or ''}" for row in rows]
        return f"{self.finals[url]}, {path}, {len(rows)} attempts ({'; '.join(tries)})"

    def check_archives(self) -> list[str]:
        """Return what the strict reader, `warcio check` and `fastwarc check` object to."""
        objections = strict.faults(self.archives)
        commands = [[*WARCIO, *map(str, self.archives)]]
        commands += [[*FASTWARC, str(file)] for file in self.archives]
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            if done.returncode or "fail" in done.stdout.lower():
                objections.append(f"{command}: {done.stdout}{done.stderr}")
        return objections

    def _table(self, name: str) -> list[Row]:
        files = sorted((self.directory / name).glob("*.parquet"))
        tables = [pq.read_table(file) for file in files]
        rows: list[Row] = pa.concat_tables(tables).to_pylist() if tables else []
        return rows


def differences(one: Harvest, other: Harvest) -> list[str]:
    """Return in what two crawls of the same web differ: pages with all their attempts; links and records of others."""
    keys = one.finals.keys() | other.finals.keys()
    pages = sorted(url for url in keys if one.finals.get(url) != other.finals.get(url))
    found = [f"page {url}: {one.describe(url)} | {other.describe(url)}" for url in pages]
    for name in ("links", "records"):
        mine, theirs = getattr(one, name), getattr(other, name)
        found += [
            f"{name} {key}: {mine.get(key)} and {theirs.get(key)}"
            for key in mine.keys() | theirs.keys()
            if mine.get(key) != theirs.get(key) and key[0] not in pages
        ]
    return found


def imbalances(statuses: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return the statuses at which some URL is nowhere: discovered is not queued, in flight or at its end."""
    return [
        status
        for status in statuses
        if "discovered" in status
        and status["discovered"] != sum(int(str(status[name])) for name in ("queued", "in_flight", "terminal"))
    ]
