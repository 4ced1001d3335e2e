"""`limits.max_bytes` and `limits.max_time_s` within bodies: what is under way counts as it arrives."""

from __future__ import annotations

import gzip
import http.server
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from tests.answering import Answering, serving
from tests.ring.crawls import OWN, crawl

MIB = 1 << 20
BUFFERED_BYTES_MAX = 4 * MIB
"""What the kernel may have received of one body beyond the pieces that were read."""


class Bodies(http.server.ThreadingHTTPServer):
    """Bodies of 64 MiB, as they are, compressed, or without an end at a slow pace."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        self.got: Counter[str] = Counter()
        self.over = Event()
        bodies = self
        noise = random.Random(1).randbytes(MIB)
        packed = gzip.compress(b"<p>many words</p>" * 2_000_000)

        class Handler(Answering):
            def get(self) -> None:
                bodies.got[self.path] += 1
                if self.path == "/robots.txt":
                    self.answer(404)
                elif self.path == "/packed":
                    self.answer(200, packed, ("Content-Encoding", "gzip"))
                elif self.path == "/":
                    self.answer(200, b"".join(b"<a href=/large/%d>x</a>" % one for one in range(8)))
                else:
                    self.send_large(slowly=self.path == "/slow")

            def send_large(self, *, slowly: bool) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(64 * MIB))
                self.end_headers()
                with suppress(OSError):
                    for _ in range(64):
                        self.wfile.write(noise[:16_384] if slowly else noise)
                        if slowly and bodies.over.wait(0.2):
                            break

        super().__init__(("127.0.0.1", 0), Handler)


def limited(server: Bodies, directory: Path, path: str, *sets: str, resuming: bool = False) -> tuple[str, int, int]:
    """Crawl from a path; return how it ended, the bytes received, and the pages."""
    seeds = (f"http://127.0.0.1:{server.server_port}{path}",)
    found = crawl(seeds, directory, *OWN, "politeness.per_host=8", "fetch.request_s_max=60", *sets, resuming=resuming)
    assert found.critical() == ""
    return found.end, int(str(found.status["wire_bytes"])), int(str(found.status["pages"]))


@pytest.mark.promise("Bounds", "`limits.max_bytes` ends bodies that are under way; their URLs stay queued.")
@pytest.mark.parametrize(("path", "bodies", "pages"), [("/large/0", 1, 0), ("/", 8, 1)])
def test_bodies_under_way_end_at_the_limit_of_bytes(tmp_path: Path, path: str, bodies: int, pages: int) -> None:
    server = Bodies()
    with serving(server):
        end, received, fetched = limited(server, tmp_path / "c", path, f"limits.max_bytes={MIB}")
    assert (end, fetched) == ("limit", pages)
    assert MIB <= received <= MIB + bodies * BUFFERED_BYTES_MAX
    assert max(server.got.values()) == 1


def test_a_body_that_was_cut_off_comes_whole_with_a_higher_limit(tmp_path: Path) -> None:
    server = Bodies()
    with serving(server):
        limited(server, tmp_path / "c", "/large/0", f"limits.max_bytes={MIB}")
        found = limited(
            server, tmp_path / "c", "/", "limits.max_bytes=100MiB", "fetch.body_bytes_max=80MiB", resuming=True
        )
    assert (found[0], found[2]) == ("finished", 1)
    assert server.got["/large/0"] == 2


def test_compressed_bytes_count_as_they_came(tmp_path: Path) -> None:
    server = Bodies()
    with serving(server):
        end, received, pages = limited(server, tmp_path / "c", "/packed", f"limits.max_bytes={MIB}")
    assert (end, pages) == ("finished", 1)
    assert received < MIB


def test_a_body_under_way_ends_with_the_time(tmp_path: Path) -> None:
    server = Bodies()
    with serving(server):
        end, _, pages = limited(server, tmp_path / "c", "/slow", "limits.max_time_s=1")
        server.over.set()
    assert (end, pages) == ("limit", 0)
    assert server.got["/slow"] == 1
