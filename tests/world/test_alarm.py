"""The alarm interrupts what runs too long, and nothing else."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from gossamer.world.alarm import Alarm

TICK_S = 0.05
pytestmark = pytest.mark.timeout(60, method="thread")  # Its other method uses the signal.


def test_a_run_that_does_not_end_is_interrupted_and_the_next_is_not() -> None:
    alarm = Alarm.set(TICK_S)
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


def test_whoever_swallows_it_is_interrupted_again() -> None:
    alarm = Alarm.set(TICK_S)
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
        assert Alarm.set(1.0) is None
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    found: list[Alarm | None] = []
    thread = threading.Thread(target=lambda: found.append(Alarm.set(1.0)))
    thread.start()
    thread.join()
    assert found == [None]


def _for_ever() -> None:
    while True:
        pass
