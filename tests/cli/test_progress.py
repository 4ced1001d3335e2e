"""Progress: what is shown, and that nothing shown can do harm."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.screen import Screen
from rich.text import Text

from gossamer.cli import run
from gossamer.cli.live import Live, screen_of
from gossamer.cli.output import harmless
from gossamer.cli.run import JsonProgress, PlainLines, Quiet, progress_for
from gossamer.cli.status_text import line_of, summary_of
from gossamer.model import status as model_status
from gossamer.model.status import Status, read_status

STATUS: dict[str, object] = {
    "state": "running", "pages": 1234, "attempts": 1300, "discovered": 9000, "queued": 7000, "in_flight": 5,
    "outcomes": {"fetched": 1234, "redirected": 9, "timeout": 3, "dns_error": 36},
    "terminal_outcomes": {"fetched": 1234, "redirected": 9, "timeout": 3, "dns_error": 12}, "wire_bytes": 5_600_000,
    "hosts_known": 44, "hosts_active": 7, "pages_s": 12.5, "bytes_s": 99_000.0,
    "elapsed_s": 125.0, "max_pages": 5000, "max_time_s": None, "max_bytes": None, "eta_s": 301.0,
    "waiting_for": "", "rejected": {},
}  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_line_tells_what_the_issue_asks_for() -> None:
    line = line_of(read_status(STATUS))
    for part in ("1,234 pages", "12.5/s", "7,000 queued", "7 hosts active", "5.6 MB", "dns_error 12, timeout 3"):
        assert part in line
    assert "1,234 of 5,000 (25%), about 5 min 1 s left" in line
    assert "redirected" not in line


def test_an_estimate_stands_only_where_there_is_one() -> None:
    assert "left" not in line_of(read_status({**STATUS, "eta_s": None}))
    assert "of" not in line_of(read_status({**STATUS, "eta_s": None, "max_pages": None}))


def test_a_crawl_that_waits_says_for_what() -> None:
    assert "paused: the operator" in line_of(read_status({**STATUS, "state": "paused", "waiting_for": "the operator"}))


HOST = {"host": "a.example", "limit": "politeness", "queued": 300, "fetch_s": 0.25, "failures": 0, "reason": ""}
DETAILED = {
    **STATUS,
    "course": [[5.0 * n, float(n % 7), 0.0] for n in range(50)],
    "hosts": {"limits": {"politeness": 5, "fetching": 2}, "active": [HOST], "slowest": [], "failing": []},
}


def test_the_live_view_says_what_limits_the_crawl_and_how_its_rate_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "40")
    terminal = Terminal()
    live = Live(terminal)
    live.show(DETAILED)
    live.close()
    for part in ("5 of 7 active hosts", "▁▂", "running well", "a.example", "250 ms", "redirected 9", "dns_error 12"):
        assert part in terminal.getvalue(), part


def screen(status: Status, name: str, columns: int, lines: int) -> list[str]:
    console = Console(file=io.StringIO(), force_terminal=True, width=columns, height=lines)
    with console.capture() as captured:
        console.print(Screen(screen_of(status, name, columns, lines)), end="")
    return captured.get().splitlines()


@pytest.mark.parametrize("columns", [26, 30, 40, 60])
def test_counts_are_whole_on_a_narrow_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    counts = {"pages": 1_234_567, "queued": 123_456, "discovered": 2_345_678}
    shown = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in screen(read_status(counts), "crawl", columns, 24)]
    assert max(map(len, shown)) <= columns
    assert [line.split()[1] for line in shown if line.split()[:1] in (["pages"], ["queued"], ["discovered"])] == [
        "1,234,567", "123,456", "2,345,678",
    ]  # fmt: skip


@pytest.mark.parametrize(("columns", "lines"), [(200, 60), (80, 24), (40, 10), (20, 3)])
def test_the_screen_is_no_larger_than_the_terminal(columns: int, lines: int) -> None:
    status = read_status(
        {**DETAILED, "warnings": ["x\x1b[2J" * 50] * 50, "waiting_for": "漢字" * 99, "state": "paused"}
    )
    shown = screen(status, "di\x1br", columns, lines)
    assert len(shown) <= lines
    texts = [Text.from_ansi(line) for line in shown]
    assert max(text.cell_len for text in texts) <= columns
    assert not any("\x1b" in text.plain for text in texts)


def test_no_color_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    color = re.compile("\x1b\\[[0-9;]*\\b(?:3[0-8]|4[0-8]|9[0-7])\\b")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert color.search("\n".join(screen(read_status(DETAILED), "crawl", 100, 40)))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not color.search("\n".join(screen(read_status(DETAILED), "crawl", 100, 40)))


def test_what_is_to_be_uploaded_is_shown() -> None:
    uploads = {"store": "s3://b/p", "waiting_files": 3, "waiting_bytes": 2_000_000, "uploaded_files": 1}
    status = {**STATUS, "uploads": {**uploads, "uploaded_bytes": 1000, "error": ""}}
    assert "3 files (2.0 MB) to upload" in line_of(read_status(status))
    assert "Uploaded: 1 file (1.0 kB) to s3://b/p." in summary_of(read_status(status), "d", "finished")
    terminal = Terminal()
    live = Live(terminal)
    live.show(status)
    live.close()
    assert "3 files (2.0 MB) to upload" in terminal.getvalue()
    assert "upload" not in line_of(read_status({**STATUS, "uploads": None})).lower()
    assert "upload" not in summary_of(read_status({**STATUS, "uploads": None}), "d", "finished").lower()


def test_an_unknown_or_empty_status_is_shown_as_well_as_can_be() -> None:
    assert line_of(read_status({})).startswith("0 s: 0 pages")
    summary_of(read_status({}), "x", "finished")
    Live(Terminal()).show({})


def test_the_last_words_name_the_outputs_that_are_there(tmp_path: Path) -> None:
    for name in ("warc", "pages"):
        (tmp_path / name).mkdir()
    said = summary_of(read_status(STATUS), str(tmp_path), "finished")
    assert f"Output: {tmp_path} (warc/, pages/)." in said
    assert "--to wacz" in said
    (tmp_path / "warc").rmdir()
    said = summary_of(read_status(STATUS), str(tmp_path), "finished")
    assert f"Output: {tmp_path} (pages/)." in said
    assert "--to wacz" not in said, "there is nothing to package"


@pytest.mark.parametrize(
    ("recipe", "advised"),
    [
        ("archive", "verify d --deep"),
        ("mirror", "export d --to wacz -o FILE"),
        ("corpus", "export d --to datasets -o FOLDER"),
        ("watch", "changes d"),
    ],
)
def test_a_recipe_advises_what_follows_it_and_not_itself(recipe: str, advised: str) -> None:
    said = summary_of(read_status(STATUS), "d", "finished", recipe)
    assert f"  gossamer {advised}" in said
    assert said.count("--to ") == advised.count("--to ")
    stopped = summary_of(read_status(STATUS), "d", "stopped", recipe)
    assert f"the same {recipe} command continues." in stopped, "gossamer resume makes no export"


@pytest.mark.parametrize(
    ("outcome", "queued", "recipe", "advises"),
    [
        ("robots_unreachable", 0, "", True),
        ("connect_error", 0, "", True),
        ("connect_error", 0, "check", False),
        ("connect_error", 1, "", False),
        ("robots_denied", 0, "", False),
    ],
)
def test_the_last_words_say_how_to_request_again_what_failed(
    outcome: str, queued: int, recipe: str, advises: bool
) -> None:
    """Of apify/crawlee-python#1033: how to restart failed crawl jobs."""
    status = read_status({**STATUS, "queued": queued, "terminal_outcomes": {outcome: 1}})
    assert ("gossamer segment build d --retry 1 -o FILE" in summary_of(status, "d", "finished", recipe)) == advises


def test_the_last_words_say_what_to_do() -> None:
    assert "gossamer resume my/dir continues" in summary_of(read_status(STATUS), "my/dir", "stopped")
    for field, bound, option in (
        ("pages", "max_pages", "--max-pages"),
        ("wire_bytes", "max_bytes", "--max-bytes"),
        ("elapsed_s", "max_time_s", "--max-time"),
    ):
        at_limit = read_status({**STATUS, "ended": "limit", field: 9, bound: 9, "ended_says": "in other words"})
        said = summary_of(at_limit, "my/dir", "limit")
        assert f"gossamer resume my/dir {option} N continues with a higher limit N." in said
        at_limit.ended = "stopped"
        assert "gossamer resume my/dir continues." in summary_of(at_limit, "my/dir", "stopped")
    assert "Not fetched: dns_error 12, timeout 3." in said
    assert "gossamer report my/dir" in summary_of(read_status(STATUS), "my/dir", "finished")
    assert "Still queued" not in summary_of(read_status({**STATUS, "queued": 0}), "d", "finished")
    said = summary_of(read_status(STATUS), "my dir", "finished")
    for command in ("report 'my dir'", "serve 'my dir'", "why 'my dir' URL", "export 'my dir' --to wacz"):
        assert f"  gossamer {command}" in said
    assert "  gossamer report ./-dir" in summary_of(read_status(STATUS), "-dir", "finished")
    long = [line for line in summary_of(read_status(STATUS), "d" * 60, "finished").split("\n") if "  gossamer " in line]
    assert all("  " in line[3:] for line in long), "a command and what it shows are apart"
    fetched_at_last = {**STATUS, "outcomes": {"fetched": 5, "timeout": 2}, "terminal_outcomes": {"fetched": 5}}
    assert "why" not in summary_of(read_status(fetched_at_last), "d", "finished")


@pytest.mark.parametrize(
    ("form", "out", "kind"),
    [
        ("auto", Terminal(), Live),
        ("auto", io.StringIO(), PlainLines),
        ("plain", Terminal(), PlainLines),
        ("live", io.StringIO(), Live),
        ("json", Terminal(), JsonProgress),
        ("quiet", Terminal(), Quiet),
    ],
)
def test_the_form_suits_the_place(form: str, out: io.StringIO, kind: type) -> None:
    progress = progress_for(form, out)
    assert isinstance(progress, kind)
    progress.close()


def test_a_terminal_that_is_too_narrow_for_the_figures_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert isinstance(progress_for("auto", Terminal()), PlainLines)


@pytest.mark.parametrize("form", ["live", "plain", "json", "quiet"])
def test_a_reader_that_has_gone_away_is_no_error(form: str) -> None:
    progress = progress_for(form, Gone())
    progress.show(STATUS)
    progress.note("x")
    progress.close()
    progress.end(STATUS, "d", "finished")


def test_a_log_of_a_crawl_that_waits_has_fewer_and_fewer_lines() -> None:
    out = io.StringIO()
    progress = progress_for("plain", out)
    paused = {**STATUS, "state": "paused", "waiting_for": "room on the disk", "max_time_s": 1e6}
    for elapsed_s in range(0, 5 * 17_280, 5):  # A day.
        progress.show({**paused, "elapsed_s": elapsed_s})
    lines = out.getvalue().splitlines()
    assert len(lines) == 16, "the first, and after 1, 2, 4 … 16,384 intervals"
    progress.show({**STATUS, "pages": 7_777, "elapsed_s": 86_400})
    progress.show({**STATUS, "pages": 7_778, "elapsed_s": 86_405})
    assert len(out.getvalue().splitlines()) == 18, "each change is shown"


@pytest.mark.parametrize(("journal", "prefix"), [("{0}:{1}", "<3>"), ("{0}:1{1}", ""), ("", "")])
def test_an_error_has_the_priority_of_one_in_the_journal(tmp_path: Path, journal: str, prefix: str) -> None:
    """As journald reads standard error of a service; not where that was redirected."""
    error = tmp_path / "error"
    with error.open("w") as stream:
        found = os.fstat(stream.fileno())
        named = {"JOURNAL_STREAM": journal.format(found.st_dev, found.st_ino)}
        command = [sys.executable, "-c", "from gossamer.cli.output import complain; complain('a\\nb')"]
        subprocess.run(command, env={**os.environ, **named}, stderr=stream, check=True, timeout=60)
    assert error.read_text() == f"{prefix}gossamer: a\\nb\n"


@pytest.mark.parametrize("name", ["answers", "disk", "proxy"])
def test_quiet_says_once_each_time_why_nothing_is_fetched(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    progress = progress_for("quiet", Gone())
    halted = {"alarms": [{"name": name, "since": 1.0, "says": "waiting\x1b for it"}]}
    other = {"alarms": [{"name": "memory", "since": 1.0, "says": "much"}]}
    for more in ({}, halted, halted, {}, halted, other):
        progress.show({**STATUS, **more})
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", 2 * "gossamer: waiting\\x1b for it\n")


@pytest.mark.promise("Operation", "Text from the web never reaches a terminal unescaped.")
@pytest.mark.parametrize("form", ["plain", "json"])
def test_hostile_text_is_shown_not_obeyed(form: str) -> None:
    out = io.StringIO()
    progress = progress_for(form, out)
    hostile = "a\x1b]0;x\x07\x9b31m\u202eb\udcff\n"
    progress.note(hostile)
    progress.show({**STATUS, "waiting_for": hostile, "terminal_outcomes": {hostile: 1}})
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)
    if form == "json":
        assert json.loads(lines[0])["note"] == hostile


def test_the_live_view_obeys_nothing_either() -> None:
    out = Terminal()
    live = Live(out)
    live.note("[bold]\x1b[5mtitle[/bold] \u202e")
    live.show({**STATUS, "waiting_for": "x\x1b[2J"})
    live.close()
    assert "\x1b[5m" not in out.getvalue()
    assert "\x1b[2J" not in out.getvalue()
    assert r"[bold]\x1b[5mtitle[/bold] \u202e" in out.getvalue()


@given(st.text())
def test_harmless_text_is_printable_and_plain_text_stays(text: str) -> None:
    assert harmless(text).isprintable()
    if text.isprintable() and len(text) <= 500:
        assert harmless(text) == text


def test_between_two_looks_at_the_hosts_those_of_the_last_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_status, "DETAIL_COST_MAX", 1e-9)  # After one look no other is cheap enough.
    looks: list[bool] = []

    def status(*, detail: bool = False) -> dict[str, object]:
        looks.append(detail)
        return {**STATUS, "pages": len(looks), **({"hosts": DETAILED["hosts"]} if detail else {})}

    found = run.throttle_detail(status)
    assert [found()["pages"], found()["pages"], found()["hosts"]] == [1, 2, DETAILED["hosts"]]
    assert looks == [True, False, False]
