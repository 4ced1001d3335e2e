"""A real application: Fossil's server, a wiki and a code browser whose pages list each revision in many ways."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.acceptance.conftest import Crawl
from tests.answering import free_port

pytestmark = pytest.mark.acceptance

PAGES = 8
REQUESTS_MAX = 90
"""Without `code_histories` there are 231."""
DEADLINE_S = 60.0


@pytest.fixture
def fossil(tmp_path: Path) -> Iterator[str]:
    """Serve a repository with `PAGES` pages of a wiki, for visitors who may read all."""
    environment = {**os.environ, "HOME": str(tmp_path), "USER": "admin"}

    def run(*words: str, text: str = "") -> None:
        subprocess.run(["fossil", *words], env=environment, input=text.encode(), check=True, capture_output=True)

    store = str(tmp_path / "a.fossil")
    run("new", store)
    run("user", "capabilities", "nobody", "ghjorz", "-R", store)
    for number in range(PAGES):
        run("wiki", "create", f"Page {number}", "-R", store, text=f"The page of number {number}.")
    port = free_port()
    words = ["fossil", "server", "--localhost", "--port", str(port), store]
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


def wait_for(port: int) -> None:
    ends_at = time.monotonic() + DEADLINE_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            assert time.monotonic() < ends_at
            time.sleep(0.01)


def test_a_crawl_of_fossil_ends_soon_with_all_pages(fossil: str, command: Crawl, tmp_path: Path) -> None:
    kinds = 'scope.useless_paths=["listing_order", "wiki_actions", "code_histories"]'
    words = ("--allow-private", "--delay", "0", "--exclude", "/help|/sitemap|^https:", "--set", kinds)
    assert command("crawl", f"{fossil}/wcontent", *words, "-o", tmp_path / "crawl").returncode == 0
    rows: list[dict[str, Any]] = pq.read_table(tmp_path / "crawl" / "pages").to_pylist()
    fetched = {row["url"].removeprefix(fossil) for row in rows if row["outcome"] == "fetched"}
    assert fetched >= {f"/wiki?name=Page+{number}&p" for number in range(PAGES)}
    assert len(rows) < REQUESTS_MAX
