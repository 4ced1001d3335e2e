"""What a plain crawl does not import, from its first word to its last file: every start would pay for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

import gossamer
from gossamer.cli import start
from tests.answering import Answering, serving

UNUSED = {
    "aiodns", "cryptography", "duckdb", "email.utils", "gossamer.api.cluster", "gossamer.api.metrics",
    "gossamer.api.views",
    "gossamer.assembly.rendering", "gossamer.assembly.sessions", "gossamer.cli.exporting", "gossamer.cli.inspecting",
    "gossamer.cli.live", "gossamer.cli.pages", "gossamer.cluster.coordination", "gossamer.cluster.exchange",
    "gossamer.config.confinement", "gossamer.config.schema", "gossamer.console", "gossamer.features.identity",
    "gossamer.features.logins.logins", "gossamer.features.logins.sessions", "gossamer.features.render.choice",
    "gossamer.features.render.rendering", "gossamer.features.requests", "gossamer.lab", "gossamer.results.export",
    "gossamer.results.isolated", "gossamer.results.offline.segment", "gossamer.results.report",
    "gossamer.results.search.documents", "gossamer.stages.archive.objectstore", "gossamer.stages.fetch.cookies",
    "gossamer.stages.fetch.digest", "gossamer.stages.fetch.rules", "gossamer.stages.process.expressions",
    "gossamer.stages.process.forms", "gossamer.stages.process.items", "gossamer.stages.process.pdf",
    "gossamer.stages.process.selectors", "gossamer.stages.resolve.lookup", "gossamer.stages.seen.bloom",
    "gossamer.stages.seen.diskmerge", "gossamer.testing", "gossamer.world.sandbox", "http_sf", "importlib.metadata",
    "jsonpath", "lxml", "multiprocessing.pool", "obstore", "prometheus_client", "pyarrow.compute",
    "pyarrow.dataset", "pycares", "pydantic", "pypdf", "ray", "requests", "rich", "starlette", "tantivy", "tldextract",
    "uvicorn",
}  # fmt: skip

CRAWL = """
import json, mimetypes, sys
from gossamer.cli import child

class Supervisor:
    def tell(self, message): pass
    def says_go(self): return True

status = child.run_command_line(sys.argv[1:], Supervisor())
print(json.dumps([status, sorted(sys.modules), mimetypes.inited]))
"""


class Page(Answering):
    def get(self) -> None:
        body = b"<!doctype html><title>One</title><p>and <a href=other>no other</a>" if self.path == "/" else b""
        self.answer(200 if body else 404, body)


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    with serving(server):
        yield server.server_address[1]


LOOK = """
import json, sys
from gossamer.cli.main import status_of_command

status = status_of_command(sys.argv[1:], lambda request: 1)
print(json.dumps([status, sorted(sys.modules)]))
"""
NOT_FOR_LOOKS = {"duckdb", "fastwarc", "numpy", "pyarrow", "pycurl"}


def _run(program: str, *words: str) -> list[Any]:
    """Return what a program prints last, as JSON."""
    answer = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PYTHONPATH": str(Path(gossamer.__file__).parent.parent)},
    )
    return cast("list[Any]", json.loads(answer.stdout.splitlines()[-1]))


def test_a_plain_crawl_imports_nothing_that_it_has_no_use_for(port: int, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("127.0.0.1 www.example.test\n")
    url = f"http://www.example.test:{port}/"
    output = str(tmp_path / "crawl")
    status, loaded, has_types = _run(
        CRAWL, "crawl", url, "-o", output, "--allow-private", "--quiet", "--hosts", str(tmp_path / "hosts")
    )
    assert status == 0
    assert (tmp_path / "crawl/pages").is_dir()
    assert UNUSED & set(loaded) == set()
    assert not has_types, "the table of media types takes 3 ms, and no address here has an extension"
    for words in (["status", output], ["why", output, url]):
        status, loaded = _run(LOOK, *words)
        assert status == 0
        assert NOT_FOR_LOOKS & set(loaded) == set(), words[0]


def test_an_index_alone_is_made_by_one_process() -> None:
    """Others would find the texts for a seventh more processor time, and the index would come no sooner."""
    program = "import sys, gossamer.api.search; print(any('results.isolated' in name for name in sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PYTHONPATH": str(Path(gossamer.__file__).parent.parent)},
    )
    assert answer.stdout == "False\n"


COLLECTED = """
import gc
imported = sum(one["collections"] for one in gc.get_stats())
"""


def test_no_collector_looks_for_garbage_while_the_child_imports() -> None:
    program = f"{COLLECTED}{start.CHILD.replace('main()', 'pass')}{COLLECTED.replace('imported', 'after')}"
    answer = subprocess.run(
        [sys.executable, "-c", f"{program}print(after - imported)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PYTHONPATH": str(Path(gossamer.__file__).parent.parent)},
    )
    assert answer.stdout == "0\n"


SEPARABLE = (
    "gossamer.cluster", "gossamer.console", "gossamer.features.render", "gossamer.lab", "gossamer.results.offline",
    "gossamer.testing",
)  # fmt: skip
DOORS = (
    "gossamer.api.cluster", "gossamer.api.cluster_queries", "gossamer.api.engine",
    "gossamer.api.extracting", "gossamer.api.following", "gossamer.api.identity", "gossamer.api.maintenance",
    "gossamer.api.reading", "gossamer.api.search", "gossamer.api.shares", "gossamer.api.views",
)  # fmt: skip
"""Modules of the API that `make figures` counts as features: they open these parts to users."""
CONFIGURED = ("gossamer.cluster.options", "gossamer.cluster.partitions", "gossamer.features.render.options")
"""What a configuration may say of them stays, and the partition map, without which there is one shard."""
WITHOUT = f"""
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        is_separable = any(name.startswith(part + ".") for part in {SEPARABLE})
        if name in {DOORS} or (is_separable and name not in {CONFIGURED}):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
"""


@pytest.mark.promise(
    "Operation",
    "A crawl runs without the files of the laboratory, the dashboard, several shards, rendering and offline segments.",
)
def test_a_crawl_runs_without_its_separable_parts(port: int, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("127.0.0.1 www.example.test\n")
    crawl = str(tmp_path / "crawl")
    hosts = ["--hosts", str(tmp_path / "hosts")]
    for words in (
        ["crawl", f"http://www.example.test:{port}/", "-o", crawl, "--allow-private", "--quiet", *hosts],
        ["resume", crawl, "--quiet"],
    ):
        answer = subprocess.run(
            [sys.executable, "-c", WITHOUT + CRAWL, *words],
            capture_output=True,
            text=True,
            timeout=60,
            env={"PYTHONPATH": str(Path(gossamer.__file__).parent.parent)},
        )
        assert answer.returncode == 0, answer.stderr
        assert json.loads(answer.stdout)[0] == 0
    assert (tmp_path / "crawl/pages").is_dir()
