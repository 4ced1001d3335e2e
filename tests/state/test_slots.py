"""Slots: what a dead process was looking at, told to those who survive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from math import inf
from pathlib import Path

import pytest

from gossamer.state.slots import (
    FILE,
    SLOTS,
    STAGES,
    ShardSlots,
    Suspect,
    accuse,
    is_silent,
    overdue,
    page_of,
    progress,
    was_paused,
)

DECODE, PROCESS = STAGES.index("decode"), STAGES.index("process")
NOW = 1_700_000_000.0


def die_of(directory: Path, code: str) -> int:
    """Run `code` with `slots` in a process of its own that ends by SIGSEGV; return how it ended."""
    script = f"""
import ctypes, sys, faulthandler
from pathlib import Path
from gossamer.state.slots import ShardSlots
slots = ShardSlots(Path(sys.argv[1]))
slots.take_suspects()
{code}
ctypes.string_at(0)
"""
    source = Path(__file__).parents[2] / "src"
    return subprocess.run(
        [sys.executable, "-c", script, str(directory)],
        env={**os.environ, "PYTHONPATH": str(source), "PYTHONFAULTHANDLER": ""},
        stderr=subprocess.DEVNULL,
    ).returncode


def test_a_page_that_killed_its_process_is_accused_and_suspected(tmp_path: Path) -> None:
    assert die_of(tmp_path, f"slots.enter(0, 77, {PROCESS}, {NOW})") == -signal.SIGSEGV
    assert accuse(tmp_path) == 1

    slots = ShardSlots(tmp_path)
    assert slots.take_suspects() == [Suspect(77, "process", 1)]
    assert slots.take_suspects() == []
    slots.close()


@pytest.mark.promise(
    "Crash safety",
    "A page is blamed for a crash only if the process was working on it and ended in a way that a page can cause.",
)
def test_a_death_that_nobody_accused_accuses_nobody(tmp_path: Path) -> None:
    die_of(tmp_path, f"slots.enter(0, 77, {PROCESS}, {NOW})")

    slots = ShardSlots(tmp_path)
    assert slots.take_suspects() == []
    slots.close()
    assert accuse(tmp_path) == 0, "what was found is cleared, so a later death is not laid at its door"


@pytest.mark.promise(
    "Crash safety",
    "A page is blamed for a crash only if the process was working on it and ended in a way that a page can cause.",
)
def test_a_death_with_no_slot_set_accuses_nobody(tmp_path: Path) -> None:
    die_of(tmp_path, f"slots.enter(0, 77, {DECODE}, {NOW}); slots.leave(0)")

    assert accuse(tmp_path) == 0


def test_every_slot_in_use_is_accused(tmp_path: Path) -> None:
    code = f"[slots.enter(number, 100 + number, {DECODE}, {NOW}) for number in range({SLOTS})]; slots.leave(3)"
    die_of(tmp_path, code)
    assert accuse(tmp_path) == SLOTS - 1

    slots = ShardSlots(tmp_path)
    assert [suspect.fingerprint for suspect in slots.take_suspects()] == [100, 101, 102, 104, 105, 106, 107]
    slots.close()


def test_strikes_add_up_until_somebody_takes_them(tmp_path: Path) -> None:
    die_of(tmp_path, f"slots.enter(0, 2**64 - 1, {DECODE}, {NOW})")
    accuse(tmp_path)
    accuse(tmp_path)

    slots = ShardSlots(tmp_path)
    assert slots.take_suspects() == [Suspect(2**64 - 1, "decode", 2)]
    slots.close()


def test_a_slot_busy_for_too_long_is_overdue(tmp_path: Path) -> None:
    assert not overdue(tmp_path, NOW, 30.0), "no file"
    slots = ShardSlots(tmp_path)
    assert not overdue(tmp_path, NOW + 1e6, 30.0), "nobody is in a slot"
    slots.enter(5, 77, PROCESS, NOW)
    assert not overdue(tmp_path, NOW + 30.0, 30.0)
    assert overdue(tmp_path, NOW + 30.1, 30.0)
    slots.leave(5)
    assert not overdue(tmp_path, NOW + 1e6, 30.0)
    slots.close()


def test_entering_anew_starts_anew(tmp_path: Path) -> None:
    slots = ShardSlots(tmp_path)
    slots.enter(0, 77, DECODE, NOW)
    slots.enter(0, 77, PROCESS, NOW + 40)
    assert not overdue(tmp_path, NOW + 50, 30.0)
    slots.close()


def test_progress_is_the_last_epoch_that_was_reported(tmp_path: Path) -> None:
    assert progress(tmp_path) == 0
    slots = ShardSlots(tmp_path)
    assert progress(tmp_path) == 0
    slots.note_epoch(300)
    assert progress(tmp_path) == 300
    slots.close()
    again = ShardSlots(tmp_path)
    again.enter(SLOTS - 1, 1, DECODE, NOW)
    assert progress(tmp_path) == 300, "the slots and the epoch do not meet"
    again.close()


@pytest.mark.parametrize("damage", [b"", b"x", bytes(4096)])
def test_a_file_of_another_size_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / FILE).write_bytes(damage)
    slots = ShardSlots(tmp_path)
    assert slots.take_suspects() == []
    slots.close()
    assert accuse(tmp_path) == 0


@pytest.mark.parametrize("damage", [b"", b"short"])
def test_a_supervisor_reads_a_file_of_another_size_as_an_empty_one(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "slots").write_bytes(damage)
    assert accuse(tmp_path) == 0
    assert not overdue(tmp_path, 100.0, 1.0)
    assert progress(tmp_path) == 0


def test_what_an_earlier_process_left_is_not_laid_at_a_later_one_s_door(tmp_path: Path) -> None:
    """One that was killed in a page leaves its slot busy until the next one has started."""
    die_of(tmp_path, f"slots.enter(0, 77, {PROCESS}, {NOW})")
    later = NOW + 60
    assert not overdue(tmp_path, later + 0.5, 30.0, since=later)
    assert accuse(tmp_path, since=later) == 0
    assert accuse(tmp_path, since=NOW - 1) == 1


def test_a_loop_is_silent_when_its_heartbeat_is_old_and_never_once_it_has_ended(tmp_path: Path) -> None:
    assert not is_silent(tmp_path, NOW + 9.0, 1.5, since=NOW, asked_at=NOW + 8.0), "it has not begun for so long"
    assert is_silent(tmp_path, NOW + 9.6, 1.5, since=NOW, asked_at=NOW + 8.0)
    slots = ShardSlots(tmp_path)
    slots.note_beat(NOW + 10.0)
    assert not is_silent(tmp_path, NOW + 11.5, 1.5, since=NOW, asked_at=NOW)
    assert is_silent(tmp_path, NOW + 11.6, 1.5, since=NOW, asked_at=NOW + 11.6)
    later = NOW + 20.0
    assert not is_silent(tmp_path, later + 1.0, 1.5, since=later, asked_at=later), "the heartbeat of an earlier process"
    slots.note_beat(inf)
    assert not is_silent(tmp_path, NOW + 1e6, 1.5, since=NOW, asked_at=NOW)
    slots.close()


def test_the_page_in_the_slot_has_its_address(tmp_path: Path) -> None:
    slots = ShardSlots(tmp_path)
    slots.name("http://a.example/" + "x" * 2_000)
    assert page_of(tmp_path, NOW) == ""
    slots.enter(0, 77, PROCESS, NOW)
    assert page_of(tmp_path, NOW).startswith("http://a.example/xxx")
    slots.name("http://a.example/b")
    assert page_of(tmp_path, NOW) == "http://a.example/b"
    slots.close()


def test_a_pause_outlives_the_process_that_noted_it(tmp_path: Path) -> None:
    slots = ShardSlots(tmp_path)
    slots.note_pause(True)
    slots.close()
    assert was_paused(tmp_path)
    again = ShardSlots(tmp_path)
    assert again.is_paused
    again.close()
