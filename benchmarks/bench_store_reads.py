"""Bench of a crawl in an object store: what each reading command requests of the store, and how much it reads.

    python benchmarks/bench_store_reads.py [--pages N] [--commands NAME,...] [--json FILE]

nginx serves generated pages of 9 KB, and one crawl keeps its checkpoints and finished files in moto's S3 server. Then
each command runs on the store alone, in a process of its own. nginx stands before the S3 server, and its log says what
was requested and how many bytes of bodies it sent. Processor time is that of the command's processes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from crawls import write_json
from kinds import constant, generated
from tests.acceptance.nginx import Logged, Nginx
from tests.stages.archive.bucket import KEYS, NAME, Bucket

PAGE_BYTES = 9_000
LINKS = 10
CHECKPOINT_S = 30
URI = f"s3://{NAME}/crawls/bench"
PARTIAL = 206
PROXY = "location / {{ proxy_pass http://127.0.0.1:{port}; proxy_set_header Host $http_host; client_max_body_size 0; }}"
KINDS = ("range", "whole", "LIST", "HEAD", "other")


class Reading(NamedTuple):
    """What one command took of the store."""

    requests: Counter[str]
    """By kind: `range` and `whole` are GETs of an object."""
    repeated: int
    """GETs of whole objects that the same command had already got whole."""
    read_bytes: int
    cpu_s: float


def commands(url: str, out: Path) -> dict[str, list[str]]:
    """Return the reading commands by name; they write into `out`."""
    one_page = ["--where", f"url = '{url}'"]

    def export(to: str, *more: str) -> list[str]:
        return ["export", URI, "--to", to, "-o", str(out / f"{to}{len(more)}"), *more]

    return {
        "status": ["status", URI],
        "why": ["why", URI, url],
        "report": ["report", URI],
        "changes": ["changes", URI],
        "rank": ["rank", URI, "-o", str(out / "ranks.bin")],
        "verify": ["verify", URI],
        "verify --deep": ["verify", URI, "--deep"],
        "search": ["search", URI, "harbour"],
        "export --to csv": export("csv"),
        "export --to parquet": export("parquet"),
        "export --to cdxj": export("cdxj"),
        "export --to markdown, one page": export("markdown", *one_page),
        "export --to markdown": export("markdown"),
        "export --to wacz": ["export", URI, "--to", "wacz", "-o", str(out / "crawl.wacz")],
        "segment build": ["segment", "build", URI, "-o", str(out / "next.seg")],
    }


def kind_of(request: Logged) -> str:
    """Name the kind of a request to the S3 server."""
    path, _, query = request.path.partition("?")
    if request.method == "HEAD":
        return "HEAD"
    if request.method != "GET":
        return "other"
    if "list-type=" in query or path.count("/") == 1:
        return "LIST"
    return "range" if request.status == PARTIAL else "whole"


def run(words: Sequence[str], environment: Mapping[str, str]) -> float:
    """Run a command of Gossamer to its end, and return the processor time of its processes."""
    command = [sys.executable, "-m", "gossamer", *words]
    process = subprocess.Popen(
        command, env=dict(environment), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}: {said}")
    return usage.ru_utime + usage.ru_stime


def read(words: Sequence[str], environment: Mapping[str, str], front: Nginx) -> Reading:
    """Run a reading command, and count its requests at the store."""
    before = len(front.log())
    cpu_s = run(words, environment)
    time.sleep(0.2)  # nginx writes its line after the response has ended.
    seen = front.log()[before:]
    whole = Counter(one.path for one in seen if kind_of(one) == "whole")
    sent_bytes = sum(one.body_bytes for one in seen)
    return Reading(Counter(map(kind_of, seen)), sum(whole.values()) - len(whole), sent_bytes, cpu_s)


def stored_bytes(bucket: Bucket) -> int:
    """Return the bytes of all objects of the crawl."""
    pages = bucket.client.get_paginator("list_objects_v2").paginate(Bucket=NAME, Prefix="crawls/bench/")
    return sum(one["Size"] for page in pages for one in page.get("Contents", []))


def crawl(pages: int, folder: Path, environment: Mapping[str, str]) -> str:
    """Crawl generated pages into the store, and return the URL of one."""
    site = folder / "site"
    site.mkdir()
    generated(pages + pages // 10, constant(PAGE_BYTES, LINKS))(site)  # The rest is for `segment build`.
    with Nginx(site, folder / "nginx") as nginx:
        sets = (
            f"state.checkpoint_uri='{URI}'",
            f"state.checkpoint_s={CHECKPOINT_S}",
            "scope.traps=false",
            f"limits.max_pages={pages}",
        )
        options = [word for one in sets for word in ("--set", one)]
        place = ["--politeness", "own", "--allow-private", "-o", str(folder / "crawl")]
        run(["crawl", f"{nginx.origin}/", *place, *options], environment)
        return f"{nginx.origin}/p/{pages // 2}.html"


def print_row(name: str, reading: Reading, total_bytes: int) -> None:
    counts = " | ".join(str(reading.requests[kind]) for kind in KINDS)
    share = 100 * reading.read_bytes / total_bytes
    print(
        f"| `{name}` | {counts} | {reading.repeated} | {reading.read_bytes / 1e6:.1f} | {share:.1f} % "
        f"| {reading.cpu_s:.1f} |",
        flush=True,
    )


def measure(pages: int, chosen: Sequence[str], folder: Path) -> dict[str, Reading]:
    """Crawl into a store, run the commands on it, and print a row for each."""
    (folder / "empty").mkdir()
    (folder / "out").mkdir()
    with Bucket() as bucket, Nginx(folder / "empty", folder / "front", server=PROXY.format(port=bucket.port)) as front:
        place = {"AWS_ENDPOINT": front.origin, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
        environment = {**os.environ, **KEYS, **place, "TMPDIR": str(folder)}
        url = crawl(pages, folder, environment)
        total_bytes = stored_bytes(bucket)
        print(f"{pages:,} pages, {total_bytes / 1e6:.0f} MB in the store\n")
        print(f"| command | {' | '.join(KINDS)} | whole again | MB read | share of the store | CPU s |")
        print("| --- |" + " --: |" * (len(KINDS) + 4), flush=True)
        readings = {}
        for name, words in commands(url, folder / "out").items():
            if not chosen or name in chosen:
                readings[name] = read(words, environment, front)
                print_row(name, readings[name], total_bytes)
        return readings


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--commands", default="", help="names of the table, with commas between; all by default")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        readings = measure(given.pages, [name for name in given.commands.split(",") if name], Path(folder))
    write_json(given.json, {name: reading._asdict() for name, reading in readings.items()})


if __name__ == "__main__":
    main()
