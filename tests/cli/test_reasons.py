"""Reasons: what a quiet crawl says of a broken module, a report of lost tables, and both of a crawl that failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from gossamer.state import slots
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


FAILING = """
from pathlib import Path
from gossamer.model.pages import Archived

class Failing:
    name = "mine"

    def __init__(self, **means):
        pass

    def rejects(self, link):
        if Path("broken").exists():
            raise ValueError("no luck")
        return 0

    level = rejects

class Archive:
    def __init__(self, **means):
        pass

    def add_prerequisite(self, *row):
        if Path("broken").exists():
            raise RuntimeError("no luck")

    def add(self, visited):
        return Archived()

    def cut(self):
        pass

    def close(self):
        pass

    add_epoch = lambda self, row: None
"""
COMPONENTS = {
    "filters": ("Failing", '["{}"]', "the filter `mine` failed on http://127.0.0.1"),
    "prioritizer": ("Failing", "{}", "the prioritizer Failing failed on http://127.0.0.1"),
    "archives": ("Archive", '["{}"]', "Archive failed in add_prerequisite"),
}


def _ends(run: Real) -> tuple[dict[str, object], dict[str, object], str, str]:
    found = [json.loads(run(verb, "crawl", "--json")[1]) for verb in ("status", "report")]
    return found[0], found[1], run("status", "crawl")[1], run("report", "crawl")[1]


@pytest.mark.parametrize("kind", COMPONENTS)
def test_status_and_report_say_why_a_crawl_failed_until_the_next_run(kind: str, port: int, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FAILING)
    (tmp_path / "broken").touch()
    run = Real(tmp_path)
    name, form, says = COMPONENTS[kind]
    component = f"components.{kind}={form.format(f'{tmp_path}/mine.py:{name}')}"
    words = ("--allow-private", "--politeness", "own", "--quiet", "--set", component)
    assert run("crawl", f"http://127.0.0.1:{port}/", *words)[0] == 1
    status, report, *texts = _ends(run)
    assert status["state"] == "failed"
    for found in (status, report):
        assert found["ended"] == "failed"
        assert says in str(found["ended_says"])
    assert all(says in text for text in texts)
    (tmp_path / "broken").unlink()
    assert run("resume", "crawl", "--quiet")[0] == 0
    status, report, *texts = _ends(run)
    assert (status["state"], status["ended"], report["ended"]) == ("finished", "finished", "finished")
    assert not any(says in text for text in texts)


def test_a_full_disk_has_room_for_the_reason_and_a_changed_bit_is_none(tmp_path: Path) -> None:
    file = tmp_path / slots.FILE
    slots.note_end(tmp_path, "failed", "x" * 5000)
    size = file.stat().st_size
    assert slots.end_of(tmp_path)[0] == "failed"
    slots.note_end(tmp_path, "stopped", "héllo\nthere")
    assert slots.end_of(tmp_path) == ("stopped", "héllo\nthere")
    assert file.stat().st_size == size
    data = bytearray(file.read_bytes())
    data[-100] ^= 1
    file.write_bytes(data)
    assert slots.end_of(tmp_path) == ("", "")
    slots.note_end(tmp_path, "failed", "one")
    slots.ShardSlots(tmp_path).take_suspects()  # The next run begins.
    assert slots.end_of(tmp_path) == ("", "")


def test_forgotten_addresses_leave_the_reason_and_the_page_of_the_slot(tmp_path: Path) -> None:
    shard = slots.ShardSlots(tmp_path)
    shard.name("http://a.test/page")
    shard.note_epoch(7)
    shard.close()
    slots.note_end(tmp_path, "failed", "no luck with http://a.test/page")
    slots.erase_page(tmp_path, lambda says: "b.test" in says)
    assert slots.end_of(tmp_path) == ("failed", "no luck with http://a.test/page")
    slots.erase_page(tmp_path, lambda says: "a.test" in says)
    assert b"a.test" not in (tmp_path / slots.FILE).read_bytes()
    assert slots.end_of(tmp_path)[0] == "failed"
    assert slots.progress(tmp_path) == 7
