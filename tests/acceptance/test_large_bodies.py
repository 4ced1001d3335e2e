"""Bodies of hundreds of megabytes through the command: memory stays where it was, and the archive holds every byte."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from base64 import b32encode
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from warcio.archiveiterator import ArchiveIterator

import gossamer
from tests.ring.hostile import MIB, Answer, HostileServer, bomb, noise, whole

pytestmark = [pytest.mark.acceptance, pytest.mark.promise("Bounds", "Every page takes bounded time and memory.")]

LARGE_MB = 300
RSS_BYTES_MAX = 300 * MIB
"""What one body would take if it were held; a crawl of small pages takes some 150 MB."""


def rss_of(*arguments: str | Path) -> tuple[int, int]:
    """Run the command; return its exit status and the most memory that any of its processes held."""
    environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parent.parent)}
    code = (
        "import resource, subprocess, sys\n"
        "command = [sys.executable, '-m', 'gossamer', *sys.argv[1:]]\n"
        "status = subprocess.run(command, stdin=subprocess.DEVNULL).returncode\n"
        "print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    status, kilobytes = run.stdout.split()[-2:]
    return int(status), int(kilobytes) * 1024


@pytest.mark.long
def test_bodies_far_beyond_the_budget(tmp_path: Path) -> None:
    answers = {
        "/": whole(b"<a href=one>1</a><a href=two>2</a><a href=bomb>b</a><a href=page>p</a>"),
        "/one": Answer(noise(LARGE_MB, 1), "application/octet-stream"),
        "/two": Answer(noise(LARGE_MB, 2), "text/html"),
        "/bomb": Answer(bomb(10), "text/html", "gzip"),
        "/page": whole(b"<title>Small</title>"),
    }
    with HostileServer(answers) as server:
        status, rss_bytes = rss_of(
            "crawl", server.root, "-o", tmp_path / "c", "--allow-private", "--politeness", "own", "--quiet",
            "--set", "fetch.body_bytes_max=1000000000", "--set", "fetch.body_memory_bytes_max=1048576",
            "--set", "fetch.request_s_max=200.0",
        )  # fmt: skip
        root = server.root
    assert status == 0
    assert rss_bytes < RSS_BYTES_MAX
    rows = {str(row["url"]).removeprefix(root): row for row in pq.read_table(tmp_path / "c/pages").to_pylist()}
    assert {row["outcome"] for row in rows.values()} == {"fetched"}
    assert rows["one"]["body_bytes"] == LARGE_MB * MIB
    assert rows["page"]["title"] == "Small"
    archived = payloads(sorted((tmp_path / "c/warc").iterdir()))
    for path, seed in (("one", 1), ("two", 2)):
        expected = hashlib.sha1()
        for piece in noise(LARGE_MB, seed)():
            expected.update(piece)
        assert archived[root + path] == (LARGE_MB * MIB, expected.digest())
        assert rows[path]["digest"] == f"sha1:{b32encode(expected.digest()).decode()}"
    assert not list((tmp_path / "c/state/spill").iterdir())


def payloads(files: list[Path]) -> dict[str, tuple[int, bytes]]:
    """Length and sha1 of each response's payload, by another reader."""
    found = {}
    for path in files:
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                if record.rec_type == "response":
                    size, digest = 0, hashlib.sha1()
                    while piece := record.raw_stream.read(MIB):
                        size += len(piece)
                        digest.update(piece)
                    found[record.rec_headers.get_header("WARC-Target-URI")] = size, digest.digest()
    return found
