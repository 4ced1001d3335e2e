"""Reasons: what a quiet crawl and a report say when a module or the tables of a crawl are broken."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.answering import Answering, serving
from tests.cli.conftest import Real

MODULE = """
class Broken:
    name = "broken"

    def wants(self, media_type):
        return True

    def process(self, page, findings):
        raise ValueError("no")
"""


class Site(Answering):
    def get(self) -> None:
        self.answer(200 if self.path == "/" else 404, b"<title>A page</title>")


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    with serving(server):
        yield server.server_address[1]


def test_a_broken_module_is_named_though_quiet_and_lost_tables_are_no_empty_report(port: int, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    run = Real(tmp_path)
    module = f'process.modules=["{tmp_path}/mine.py:Broken"]'
    words = ("--allow-private", "--politeness", "own", "--quiet", "--set", module)
    status, _, err = run("crawl", f"http://127.0.0.1:{port}/", *words)
    assert status == 0
    assert "module broken failed on 1 of 1 pages: ValueError: no" in err
    assert run("report", "crawl")[0] == 0
    for file in (tmp_path / "crawl/pages").glob("*.parquet"):
        file.unlink()
    for form in ((), ("--json",)):
        status, _, err = run("report", "crawl", *form)
        assert status == 1
        assert "its tables are gone" in err
