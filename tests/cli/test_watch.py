"""Watch: in place on a terminal, as blocks of lines elsewhere, and over when the crawl is or somebody types q."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress

import pytest

from gossamer.cli import live as watching
from gossamer.cli.status_text import BARS, course_of
from gossamer.cli.status_view import picture_rows
from gossamer.model.status import Alarm, Closing, Status, read_status
from tests.cli.conftest import Gossamer, until

ALTERNATE_OFF = "\x1b[?25h\x1b[?1049l"
SCRIPT = """
import sys
from gossamer.cli import live as watch
watch.LIVE_INTERVAL_S = 0.05
turns = iter(range(10**6))
sys.exit(watch.watch(lambda: (f"turn {next(turns)}\\n" + "x" * 500, False)))
"""


def test_where_there_is_no_terminal_blocks_of_lines_come_until_the_crawl_is_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watching, "PLAIN_INTERVAL_S", 0.0)
    texts: Iterator[tuple[str, bool]] = iter([("one", False), ("two", False), ("three", True), ("four", True)])
    assert watching.watch(lambda: next(texts)) == 0
    assert capsys.readouterr().out.split() == ["one", "two", "three"]


def test_it_ends_when_its_reader_has_gone_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "PLAIN_INTERVAL_S", 0.0)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        texts: Iterator[tuple[str, bool]] = iter([("one", False), ("two", True)])
        with pytest.raises(BrokenPipeError):
            watching.watch(lambda: next(texts))
        with suppress(BrokenPipeError):
            out.close()
    assert next(texts) == ("two", True)


def test_on_a_terminal_without_room_for_figures_it_comes_in_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leader, follower = pty.openpty()
    monkeypatch.setenv("COLUMNS", "20")
    with os.fdopen(follower, "w") as out, os.fdopen(os.dup(out.fileno())) as keyboard:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stdin", keyboard)
        assert watching.watch(lambda: ("one", True)) == 0
        assert os.read(leader, 99) == b"one\r\n\r\n"
    os.close(leader)


def test_on_a_terminal_it_is_redrawn_in_place_and_q_ends_it_leaving_the_last() -> None:
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 60, 0, 0))
    child = os.posix_spawn(
        sys.executable, [sys.executable, "-c", SCRIPT], {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        file_actions=[(os.POSIX_SPAWN_DUP2, follower, number) for number in (0, 1, 2)],
    )  # fmt: skip
    shown = b""
    while b"turn 3" not in shown:
        shown += os.read(leader, 1 << 16)
    os.write(leader, b"q")
    _, status = os.waitpid(child, 0)
    os.close(follower)
    while True:
        try:
            part = os.read(leader, 1 << 16)
        except OSError:  # The other end is closed.
            break
        if not part:
            break
        shown += part
    os.close(leader)
    assert os.waitstatus_to_exitcode(status) == 0
    assert shown.count(b"q: quit") >= 4
    on_screen, _, after = shown.partition(ALTERNATE_OFF.encode())
    assert b"x" * 61 not in on_screen, "no line is longer than the terminal is wide"
    assert b"turn" in after, "the last one stays"


def test_a_crawl_fills_the_screen_until_q_and_its_status_stays(run: Gossamer) -> None:
    run.start("crawl", "http://127.0.0.1/forever", "--allow-private", "--quiet")
    until((run.directory / "crawl/state/pid").exists)
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))
    for variable in ("COLUMNS", "LINES"):  # They count more than the terminal's size.
        run.environment.pop(variable, None)
    process = run.start("status", "crawl", "--watch", stdin=follower, stdout=follower)
    os.close(follower)
    shown = b""
    while b"q: quit" not in shown:
        shown += os.read(leader, 1 << 16)
    os.write(leader, b"q")
    with suppress(OSError):  # The other end is closed.
        while part := os.read(leader, 1 << 16):
            shown += part
    os.close(leader)
    assert process.wait(100) == 0
    on_screen, _, after = shown.decode().partition(ALTERNATE_OFF)
    for part in ("gossamer  crawl", "outcomes", "timeout 2", "3 active"):
        assert part in on_screen, part
    assert "\x1b" not in after
    assert "state        running" in after


def test_rates_become_bars_and_strangers_text_harmless() -> None:
    course = [[float(at), float(at), 0.0] for at in range(9)]
    assert course_of(read_status({"course": course})).startswith(BARS[0] + BARS[1])
    assert course_of(read_status({"course": course[:1]})) == ""
    assert course_of(read_status({"course": [[0.0, 0.0, 0.0], [5.0, 0.0, 0.0]]})).startswith(BARS[0] * 2)
    rows = picture_rows(
        Status(
            state="running",
            closings=[Closing(host="a.test", reason="\x1b[2Jevil")],
            alarms=[Alarm("disk", 0.0, "\x1b]0;x")],
        )
    )
    assert all("\x1b" not in line for _, line in rows)
    assert len(rows) == 2


def test_origins_of_a_failing_host_and_idle_shards_have_their_lines() -> None:
    origin = {
        "origin": "https://a.test:8443",
        "state": "waiting",
        "next_at": 1_767_312_000.0,
        "queued": 3,
        "reason": "x",
    }
    given_up = {**origin, "origin": "http://a.test:81", "state": "closed"}
    failing = {"host": "a.test", "limit": "failing", "queued": 3, "fetch_s": None, "failures": 2, "reason": ""}
    failing["origins"] = [origin, given_up]
    shard = {"shard": 1, "state": "running", "idle": True, "epoch": 3}
    hosts = {"limits": {}, "active": [], "slowest": [], "failing": [failing]}
    rows = picture_rows(read_status({"hosts": hosts, "shards": [shard]}))
    assert [line for name, line in rows if name == "origin"] == [
        "https://a.test:8443: waiting, next request at 2026-01-02 00:00:00 UTC, 3 queued: x",
        "http://a.test:81: given up until 2026-01-02 00:00:00 UTC, 3 queued: x",
    ]
    assert any("running" in line and "idle (no URLs)" in line for name, line in rows if name == "shard")
