"""Every command that reads a crawl works on an imported directory, linked and copied."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import run
from tests.results.imports.archives import HOST, Stored, do_import, packed, record, site, write_wacz, write_warc

PAGES = 6
ROBOTS = Stored(f"{HOST}/robots.txt", b"User-agent: *\nDisallow: /no\n", headers="Content-Type: text/plain\r\n")
FORMATS = (
    "parquet", "jsonl", "csv", "markdown", "cdxj", "wacz", "pagefiles", "sqlite", "duckdb", "mirror", "chunks", "bulk",
    "datasets",
)  # fmt: skip
COMMANDS = (
    ("status",), ("status", "--json"), ("why", f"{HOST}/p3"), ("why", f"{HOST}/p9"), ("report",), ("report", "--json"),
    ("report", "--html", "OUT.html"), ("changes",), ("robots", "a.example"), ("search", "--build"), ("search", "river"),
    ("extract", "-c", "RULES"), ("verify",), ("verify", "--deep"), ("rank",), ("cookies",),
    ("segment", "build", "-o", "OUT.segment"), *(("export", "--to", form, "-o", f"OUT.{form}") for form in FORMATS),
)  # fmt: skip


@pytest.fixture(scope="module", params=["--link", "--copy"])
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("imported")
    pages = site(PAGES)
    write_warc(folder / "a.warc.gz", [ROBOTS, pages[0]])
    (folder / "b.warc").write_bytes(b"".join(map(record, pages[1:3])))
    files = {"archive__x_warc_gz": packed(pages[3:5]), "archive__y_warc": record(pages[5])}
    write_wacz(folder / "c.wacz", **files)
    do_import(folder / "crawl", folder, request.param)
    assert run("search", str(folder / "crawl"), "--build")[0] == 0
    yield folder / "crawl"
    shutil.rmtree(folder)


@pytest.mark.heavy
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_command(imported: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    rules = tmp_path.parent / "rules.toml"
    rules.write_text('[extract.headings]\nurls = ["/p"]\n[extract.headings.fields]\nheading = { css = "h1" }\n')
    words = [word.replace("OUT", str(tmp_path / "out")).replace("RULES", str(rules)) for word in command]
    at = 2 if words[0] == "segment" else 1
    status, out, err = run(*words[:at], str(imported), *words[at:])
    assert status == 0, err
    assert "Traceback" not in err
    assert out or any(tmp_path.iterdir()) or command[0] in {"cookies", "changes", "robots", "search", "extract"}


def test_reports_do_not_make_up_fetch_times(imported: Path, tmp_path: Path) -> None:
    """Archives do not say them."""
    status, out, err = run("report", str(imported), "--html", str(tmp_path / "out.html"))
    assert status == 0, err
    assert "Fetch time" not in run("report", str(imported))[1] + out
    assert "Fetch times" not in (tmp_path / "out.html").read_text()
