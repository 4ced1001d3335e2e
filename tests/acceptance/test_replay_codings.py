"""Pywb and ReplayWeb.page show what servers send that compress as well as they can."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import brotli
import pytest
import zstandard

from tests.acceptance.conftest import Crawl
from tests.acceptance.replay import VENV, Pywb
from tests.acceptance.test_page_records import replayed_in_browser
from tests.answering import Answering, serving
from tests.stages.archive import strict

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

CODINGS = {"gzip": gzip.compress, "br": brotli.compress, "deflate": zlib.compress, "zstd": zstandard.compress}


class Compressing(Answering):
    """Answers `/CODING` in that coding where the client offers it, else in the first that it offers, else plainly."""

    def get(self) -> None:
        offered = re.split(r"\s*,\s*", self.headers.get("Accept-Encoding", ""))
        wanted = self.path.strip("/")
        links = "".join(f'<a href="/{name}">{name}</a>' for name in CODINGS)
        body = f"<!doctype html><title>{wanted}</title><p>The kiln page of {wanted}.</p>{links}".encode()
        for coding in (wanted, *CODINGS):
            if coding in offered and coding in CODINGS:
                fields = (("Content-Encoding", coding), ("Vary", "Accept-Encoding"))
                return self.answer(200, CODINGS[coding](body), *fields)
        return self.answer(200, body)


@pytest.fixture
def server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Compressing)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.mark.promise("Files and exports", "Bodies are archived in content codings that pywb and ReplayWeb.page read.")
@pytest.mark.long
def test_pages_of_servers_with_any_coding_replay(command: Crawl, tmp_path: Path, server: str) -> None:
    done = command(
        "crawl", f"{server}/gzip", "-o", tmp_path / "c", "--allow-private", "--politeness", "own", "--no-robots"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    warcs = sorted((tmp_path / "c/warc").iterdir())
    heads = [one.head for path in warcs for one in strict.read(path) if one.kind == "response"]
    sent = [found[1].decode() for head in heads if (found := re.search(rb"Content-Encoding: (\S+)", head))]
    assert sorted(sent) == ["br", "gzip", "gzip", "gzip"]
    exported = command("export", tmp_path / "c", "--to", "wacz", "-o", tmp_path / "c.wacz")
    assert exported.returncode == 0, exported.stderr
    pywb = Pywb(tmp_path / "pywb")
    pywb.indexed("ours", warcs, tmp_path / "c/index.cdxj")
    with pywb:
        for coding in CODINGS:
            shown = pywb.get("ours", f"{server}/{coding}", rewritten=True, gzip=False)
            assert f"The kiln page of {coding}." in shown.body.decode(), coding
    for coding in CODINGS:
        words = f"The kiln page of {coding}."
        assert words in replayed_in_browser(tmp_path / "c.wacz", f"{server}/{coding}", tmp_path / coding, words)


def test_the_brotli_that_pywb_installs_is_named_at_the_start(tmp_path: Path, server: str) -> None:
    [module] = VENV.glob("lib/python*/site-packages/brotli")
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow/brotli").symlink_to(module)
    command = [sys.executable, "-m", "gossamer", "crawl", f"{server}/br", "-o", str(tmp_path / "c"), "--allow-private"]
    paths = os.pathsep.join((str(tmp_path / "shadow"), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "run `pip uninstall brotlipy`" in done.stderr
