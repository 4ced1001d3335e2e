"""Pages that kill the process of an import of any size cost themselves, in archives of every kind."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from gossamer.cli import supervisor
from gossamer.model.pages import Findings, Page
from tests.results.imports.archives import HOST, packed, rows, site, write_warc

PAGES = 12
DEADLY = (f"{HOST}/p3", f"{HOST}/p4", f"{HOST}/p11")
WAIT_S_MAX = 60.0


class Deadly:
    """A module whose native code crashes at some pages. It says with which allocator tables are written, and
    whether garbage is collected."""

    name = "deadly"

    def wants(self, media_type: str) -> bool:
        return media_type == "text/html"

    def process(self, page: Page, findings: Findings) -> None:
        findings.columns["memory"] = f"{pa.default_memory_pool().backend_name} {gc.isenabled()}"
        if page.url in DEADLY:
            os.kill(os.getpid(), signal.SIGSEGV)


class Hanging(Deadly):
    """A module whose native code does not return from a page."""

    def process(self, page: Page, findings: Findings) -> None:
        if page.url == DEADLY[0]:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            time.sleep(3_600)


class Slow(Deadly):
    """A module that takes long."""

    def process(self, page: Page, findings: Findings) -> None:
        time.sleep(0.2)


def command(module: type[Deadly], archive: Path, directory: Path) -> list[str]:
    modules = f'process.modules=["{module.__module__}:{module.__name__}"]'
    words = ["import", str(archive), "-o", str(directory), "--set", modules]
    return [sys.executable, "-m", "gossamer", *words]


def as_warc(folder: Path) -> Path:
    return write_warc(folder / "site.warc.gz", site(PAGES))


def as_deflated(folder: Path) -> Path:
    path = folder / "site.wacz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("archive/data.warc.gz", packed(site(PAGES)))
    return path


def as_har(folder: Path) -> Path:
    entries = [
        {
            "startedDateTime": one.date,
            "request": {"method": "GET", "url": one.url},
            "response": {
                "status": 200,
                "headers": [{"name": "Content-Type", "value": "text/html"}],
                "content": {"mimeType": "text/html", "text": one.body.decode()},
            },
        }
        for one in site(PAGES)
    ]
    path = folder / "site.har"
    path.write_text(json.dumps({"log": {"entries": entries}}))
    return path


@pytest.mark.heavy
@pytest.mark.long
@pytest.mark.parametrize("make", [as_warc, as_deflated, as_har])
def test_pages_that_kill_the_process_cost_themselves(make: Callable[[Path], Path], tmp_path: Path) -> None:
    archive = make(tmp_path)
    directory = tmp_path / "crawl"
    answer = subprocess.run(command(Deadly, archive, directory), capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert f"Imported {PAGES} captures" in answer.stdout
    lines = answer.stderr.splitlines()
    assert sum("died of SIGSEGV; it continues from its last commit" in line for line in lines) == len(DEADLY)
    assert f"could not read {archive}" in lines[-1]
    assert "a process died of its page twice; it is archived unparsed" in lines[-1]
    files = [str(path) for path in (directory / "pages").glob("*.parquet")]
    found = duckdb.read_parquet(files, union_by_name=True).project("url, outcome, memory").fetchall()
    assert {url for url, outcome, _ in found if outcome == "process_crashed"} == set(DEADLY)
    assert {memory for _, outcome, memory in found if outcome == "fetched"} == {"system True"}
    log = (directory / "logs" / "info.log").read_text()
    assert log.count("record_refused") >= log.count("process_crashed") >= 1
    assert str(archive) in log


@pytest.mark.heavy
def test_a_signal_ends_the_import_and_its_process(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    words = command(Slow, as_warc(tmp_path), directory)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ends_at = time.monotonic() + WAIT_S_MAX
    while not (directory / "state" / "slots").exists() and time.monotonic() < ends_at:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT_S_MAX)
    assert process.returncode == 130, err
    assert "Interrupted: repeat the command to go on." in out


@pytest.mark.heavy
def test_a_page_that_hangs_costs_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(supervisor, "PAGE_S_MAX", 1.0)
    words = command(Hanging, as_warc(tmp_path), tmp_path / "crawl")[3:]
    assert supervisor.run_supervised([*words, "--set", "crawl.process_s_max=1"]) == 0
    found = rows(tmp_path / "crawl", "url, outcome")
    assert [url for url, outcome in found if outcome == "process_crashed"] == [DEADLY[0]]
    assert len(found) == PAGES
    assert "hung in a page and was ended" in capfd.readouterr().err
