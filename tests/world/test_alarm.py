"""The alarm interrupts what runs too long, and nothing else."""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from contextlib import nullcontext

import pytest

from gossamer.world.alarm import OverrunAlarm, TurnAlarm

TICK_S = 0.05
pytestmark = pytest.mark.timeout(900, method="thread")  # Its other method uses the signal.


def test_a_run_that_does_not_end_is_interrupted_and_the_next_is_not() -> None:
    alarm = OverrunAlarm.set(TICK_S, 60.0)
    assert alarm is not None
    try:
        for _ in range(2):
            alarm.begin()
            with pytest.raises(TimeoutError):
                _for_ever()
            alarm.end()
        for _ in range(1000):  # Short ones, for longer than the limit in all.
            alarm.begin()
            time.sleep(TICK_S / 200)
            alarm.end()
        time.sleep(3 * TICK_S)  # Between runs.
    finally:
        alarm.close()
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.promise("Components and Python", "A module's time limit counts its own processor time alone.")
def test_a_busy_machine_interrupts_nobody_and_a_run_that_waits_is_interrupted() -> None:
    processor, now = [5.0], [100.0]
    alarm = OverrunAlarm(600.0, 1_800.0, lambda: processor[0], lambda: now[0])  # Its own ticks do not come.
    try:
        alarm.begin()
        for _ in range(1_790):  # A second of the machine brings this thread a third of one.
            alarm.tick()
            now[0] += 1.0
            processor[0] += 0.33
        alarm.end()
        alarm.tick()
        now[0] += 10_000
        alarm.begin()  # Another run, and time between two runs is nobody's.
        alarm.tick()
        processor[0] += 599.0
        alarm.tick()
        processor[0] += 2.0
        with pytest.raises(TimeoutError, match="more than 600 s of processor time"):
            alarm.tick()
        alarm.begin()
        alarm.tick()
        now[0] += 1_801.0  # It waits: no time of any processor.
        with pytest.raises(TimeoutError, match="more than 1800 s"):
            alarm.tick()
    finally:
        alarm.close()


def test_whoever_swallows_it_is_interrupted_again() -> None:
    alarm = OverrunAlarm.set(TICK_S, 60.0)
    assert alarm is not None
    times = 0
    try:
        alarm.begin()
        while times < 3:
            try:
                _for_ever()
            except TimeoutError:
                times += 1
    finally:
        alarm.end()
        alarm.close()
    assert times == 3


def test_there_is_none_where_another_uses_the_signal_or_outside_the_main_thread() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        assert OverrunAlarm.set(1.0, 3.0) is None
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    found: list[OverrunAlarm | None] = []
    thread = threading.Thread(target=lambda: found.append(OverrunAlarm.set(1.0, 3.0)))
    thread.start()
    thread.join()
    assert found == [None]


def _for_ever() -> None:
    while True:
        pass


def test_a_connection_is_ended_whose_turn_takes_too_long_and_no_other() -> None:
    alarm = TurnAlarm.set(0.02)
    if alarm is None:
        pytest.skip("this system tells no other thread's processor time")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours, quiet = (socket.create_connection(listener.getsockname()) for _ in range(2))
        theirs, other = (listener.accept()[0] for _ in range(2))
    theirs.sendall(b"what is not read")
    theirs.setblocking(False)
    alarm.begin(quiet.fileno())
    assert not alarm.end()
    alarm.begin(ours.fileno())
    while True:  # As long as the other side hears nothing of us.
        try:
            theirs.recv(1)
            break
        except BlockingIOError:
            continue
        except ConnectionResetError:
            break
    assert alarm.end()
    assert not alarm.end()
    other.sendall(b"x")
    assert quiet.recv(1) == b"x"
    with pytest.raises(OSError, match=r"not connected|reset") if sys.platform == "linux" else nullcontext():
        ours.recv(1)
    alarm.close()
    for one in (ours, quiet, theirs, other):
        one.close()


def test_the_parts_of_a_run_share_its_limit_and_what_remains_has_a_tenth() -> None:
    processor, now = [0.0], [0.0]
    alarm = OverrunAlarm(600.0, 6_000.0, lambda: processor[0], lambda: now[0])
    try:
        alarm.begin()
        processor[0] = 599.0
        alarm.end()
        alarm.resume()
        alarm.tick()
        processor[0] = 600.0
        with pytest.raises(TimeoutError):
            alarm.tick()
        alarm.end()
        alarm.resume()
        processor[0] = 659.0
        alarm.tick()
        processor[0] = 660.0
        with pytest.raises(TimeoutError):
            alarm.tick()
    finally:
        alarm.close()


def test_other_work_between_two_parts_costs_a_run_nothing_nor_does_a_short_part() -> None:
    processor = [0.0]
    alarm = OverrunAlarm(600.0, 6_000.0, lambda: processor[0], lambda: 0.0)
    try:
        alarm.begin()
        processor[0] = 10.0
        assert alarm.pause() == 0.0
        processor[0] = 1_000.0
        alarm.begin(0.0)
        processor[0] = 1_400.0
        spent_s = alarm.pause()
        assert spent_s == 400.0
        processor[0] = 5_000.0
        alarm.begin(spent_s)
        processor[0] = 5_199.0
        alarm.tick()
        processor[0] = 5_200.0
        with pytest.raises(TimeoutError):
            alarm.tick()
    finally:
        alarm.close()
