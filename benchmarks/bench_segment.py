"""What the queue builder costs: time, peak memory and peak disk for generated tables of links, and the cost per link.

    python benchmarks/bench_segment.py [--links N …] [--memory SIZE] [--folder DIR] [--keep] [--json FILE]

The web is made up: sites by Zipf's law, a tenth of the known pages fetched, 40 links a page: 15 to the fifty first
pages of its site (menus), 15 elsewhere on its site, 10 to other sites, the popular ones more often. Memory is the peak
of the process (`ru_maxrss`), disk the most that stood in the build's own folder and index, beside the tables.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.stages.archive.schema import LINKS, PAGES

LINKS_A_PAGE = 40
MENU, OWN, OTHER = 15, 15, 10
KNOWN_A_FETCHED = 10
FILE_PAGES = 50_000
URLS_A_SITE = 60
RATIO_MAX = 1.5
Numbers = npt.NDArray[np.int64]


class MadeUp:
    """Pages by number; site k has the numbers from `start(k)` on."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.known = pages * KNOWN_A_FETCHED
        self.sites = max(50, self.known // URLS_A_SITE)

    def site(self, page: Numbers) -> Numbers:
        return np.asarray(np.exp(page / self.known * np.log(self.sites)).astype(np.int64))

    def start(self, site: Numbers) -> Numbers:
        return np.asarray(np.ceil(self.known * np.log(site) / np.log(self.sites)).astype(np.int64))

    def urls(self, page: Numbers) -> pa.Array:
        texts = [pa.array(values).cast(pa.string()) for values in (self.site(page), page % 977, page)]
        return pc.binary_join_element_wise(
            "http://www.site", texts[0], ".example/articles/", texts[1], "/page-", texts[2], ".html", ""
        )

    def links(self, dice: np.random.Generator, page: Numbers) -> Numbers:
        site = self.site(page)
        start, end = self.start(site), np.maximum(self.start(site) + 1, self.start(site + 1))
        size = (end - start)[:, None]
        menu = start[:, None] + dice.integers(0, np.minimum(size, 50), (len(page), MENU))
        own = start[:, None] + dice.integers(0, size, (len(page), OWN))
        other = (self.known * dice.random((len(page), OTHER)) ** 2).astype(np.int64)
        return np.minimum(np.hstack([menu, own, other]), self.known - 1).ravel()


def write(folder: Path, links: int) -> None:
    """Write the tables of pages and links as a crawl leaves them."""
    web, dice = MadeUp(links // LINKS_A_PAGE), np.random.default_rng(1)
    for name in ("pages", "links"):
        (folder / name).mkdir(parents=True)
    fetched = np.sort(dice.choice(web.known, web.pages, replace=False))
    dice.shuffle(fetched)
    for number, at in enumerate(range(0, web.pages, FILE_PAGES)):
        page = fetched[at : at + FILE_PAGES]
        urls = web.urls(page)
        columns = {
            "url": urls,
            "key": urls,
            "fetched_at": pa.array(np.arange(at, at + len(page)), pa.timestamp("us", "UTC")),
        }
        constant = {"outcome": "fetched", "status": 200, "depth": 1, "link_type": "anchor", "attempt": 1}
        columns |= {name: pa.array([value] * len(page), PAGES.field(name).type) for name, value in constant.items()}
        table = pa.table({one.name: columns.get(one.name, pa.nulls(len(page), one.type)) for one in PAGES}, PAGES)
        pq.write_table(table, folder / "pages" / f"pages-{number:06d}.parquet", compression="zstd")
        with pq.ParquetWriter(folder / "links" / f"links-{number:06d}.parquet", LINKS, compression="zstd") as writer:
            for start in range(0, len(page), 2_500):
                writer.write_table(_links(web, dice, page[start : start + 2_500]))


def _links(web: MadeUp, dice: np.random.Generator, page: Numbers) -> pa.Table:
    to = web.links(dice, page)
    targets, places = np.unique(to, return_inverse=True)
    urls = web.urls(targets).take(pa.array(places))
    count = len(to)
    origin = web.urls(page).take(pa.array(np.repeat(np.arange(len(page)), LINKS_A_PAGE)))
    few = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), ["anchor"])
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), [""]).dictionary_decode()
    return pa.table([origin, urls, urls, few, text, pa.array(np.zeros(count, bool))], schema=LINKS)


def measure(folder: Path, memory: str) -> dict[str, float]:
    """Build a segment of the tables, and return what it took."""
    target = folder / "next.parquet"
    command = [
        sys.executable, "-m", "gossamer", "segment", "build", str(folder), "-o", str(target), "--known",
        str(folder / "known"), "--scope", "any", "--memory", memory,
    ]  # fmt: skip
    most = [0]
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(folder, most, ended))
    started = time.monotonic()
    process = subprocess.Popen(command)
    watch.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    took = time.monotonic() - started
    ended.set()
    watch.join()
    if process.returncode:
        sys.exit(f"the build ended with {process.returncode}")
    return {
        "wall_s": took,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_mib": used.ru_maxrss / 1024,
        "disk_mb": most[0] / 1e6,
        "segment_mb": target.stat().st_size / 1e6,
        "urls": float(pq.read_metadata(target).num_rows),
    }


def _watch(folder: Path, most: list[int], ended: threading.Event) -> None:
    while not ended.wait(0.5):
        size = 0
        for place in (folder / "next.parquet.part", folder / "known"):
            for path in place.rglob("*"):
                try:
                    size += path.stat().st_size
                except OSError:
                    continue
        most[0] = max(most[0], size)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--links", type=int, nargs="+", default=[1_000_000, 10_000_000])
    arguments.add_argument("--memory", default="512MiB")
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--keep", action="store_true", help="Keep the tables, and use those that are there.")
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    place = given.folder or Path(tempfile.mkdtemp(prefix="bench-segment-"))
    rows: dict[int, dict[str, float]] = {}
    for links in given.links:
        folder = place / f"{links}"
        if not folder.exists():
            write(folder.with_name(folder.name + ".new"), links)
            folder.with_name(folder.name + ".new").rename(folder)
        for left in ("next.parquet", "known", "next.parquet.part"):
            found = folder / left
            shutil.rmtree(found) if found.is_dir() else found.unlink(missing_ok=True)
        rows[links] = measure(folder, given.memory)
        if not given.keep:
            shutil.rmtree(folder)
    if given.folder is None:
        shutil.rmtree(place)
    names = ("wall, s", "CPU, s", "µs a link", "peak, MiB", "disk, MB")
    print(f"{'links':>13} {'URLs listed':>12} " + " ".join(f"{name:>9}" for name in names))
    for links, row in rows.items():
        values = (row["wall_s"], row["cpu_s"], row["cpu_s"] / links * 1e6, row["peak_mib"], row["disk_mb"])
        print(f"{links:>13,} {row['urls']:>12,.0f} " + " ".join(f"{value:>9.1f}" for value in values))
    least, most = min(rows), max(rows)
    ratio = rows[most]["cpu_s"] / most / (rows[least]["cpu_s"] / least)
    print(f"CPU a link at {most:,} is {ratio:.2f} of that at {least:,} (wanted: at most {RATIO_MAX})")
    if given.json:
        given.json.write_text(json.dumps({"rows": rows, "ratio": ratio}, indent=2))


if __name__ == "__main__":
    main()
