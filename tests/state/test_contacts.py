"""Contacts: who was asked is known after every death of the process, however it came."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gossamer.state.contacts import ENDED_MAX, FILE, KEPT_MAX, UNDER_WAY_MAX, Contacts, Delay

BOOT, NEXT_BOOT = b"b" * 16, b"c" * 16
NOW = 1_700_000_000.0
SECOND = Delay(1.0, 0.0, 1.0)


@contextmanager
def opened(directory: Path, boot: bytes = BOOT, now: float = NOW) -> Iterator[Contacts]:
    """A process's time with the file; at its end nothing is told to the file, as if it had been killed."""
    contacts = Contacts(directory, boot, now)
    yield contacts
    contacts.close()


def test_a_new_file_knows_of_nobody_and_says_that_it_is_new(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        assert contacts.recovered.missing
        assert not contacts.recovered.hosts
        assert not contacts.recovered.unknown_at
    with opened(tmp_path) as contacts:
        assert not contacts.recovered.missing


def test_that_there_was_no_file_is_known_until_something_is_committed(tmp_path: Path) -> None:
    for now in (NOW, NOW + 1, NOW + 2):
        contacts = Contacts(tmp_path, BOOT, now, epoch=7)
        assert contacts.recovered.missing == (now == NOW)
        assert contacts.recovered.lacks_earlier(7, 1)
        assert contacts.recovered.lacks_earlier(8, 1) == (now == NOW)
        contacts.note_missing_file(now)
        contacts.close()


def test_a_first_start_lacks_no_contacts(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        assert not contacts.recovered.lacks_earlier(0, 1)
        assert contacts.recovered.lacks_earlier(0, 2), "the machine of the first was lost before a commit"
    with opened(tmp_path) as contacts:
        assert not contacts.recovered.lacks_earlier(3, 2)


def test_a_request_under_way_rests_as_if_it_had_ended_at_the_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        contacts.begin(11, 21, NOW, Delay(least_s=2.0, per_second=3.0, most_s=60.0))
        contacts.begin(12, 22, NOW, Delay(least_s=2.0, per_second=3.0, most_s=10.0))
        contacts.begin(13, 23, NOW, SECOND)
    with opened(tmp_path, now=NOW + 5) as contacts:
        assert contacts.recovered.hosts == {11: NOW + 5 + 2 + 3 * 5, 12: NOW + 5 + 10, 13: NOW + 5 + 1}
        assert contacts.recovered.addresses == {21: NOW + 5, 22: NOW + 5, 23: NOW + 5}


@pytest.mark.promise("Politeness", "A clock that is set, during a crawl or between two runs, makes no request early.")
def test_a_clock_that_went_back_shortens_no_rest(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        contacts.begin(11, 21, NOW, Delay(2.0, 3.0, 60.0))
    with opened(tmp_path, now=NOW - 100) as contacts:
        assert contacts.recovered.hosts == {11: NOW - 100 + 2}


def test_a_request_that_ended_is_remembered_with_both_instants(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        ticket = contacts.begin(11, 21, NOW, SECOND)
        contacts.end(ticket, 11, 21, NOW + 60, NOW + 0.1, NOW)
        contacts.prolong(12, NOW + 300, NOW)
    with opened(tmp_path, now=NOW + 1) as contacts:
        assert contacts.recovered.hosts == {11: NOW + 60, 12: NOW + 300}
        assert contacts.recovered.addresses == {21: NOW + 0.1}


def test_the_latest_instant_of_several_counts(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        for at in (NOW + 5, NOW + 90, NOW + 7):
            contacts.end(contacts.begin(11, 21, NOW, SECOND), 11, 21, at, at, NOW)
        contacts.begin(11, 21, NOW, SECOND)
    with opened(tmp_path) as contacts:
        assert contacts.recovered.hosts == {11: NOW + 90}
        assert contacts.recovered.addresses == {21: NOW + 90}


@pytest.mark.promise(
    "Politeness",
    "Delays of hosts and addresses survive any crash; a host whose past is unknown waits its longest delay.",
)
def test_it_survives_a_killed_process(tmp_path: Path) -> None:
    script = f"""
import os, signal, sys
from pathlib import Path
from gossamer.state.contacts import Contacts, Delay
contacts = Contacts(Path(sys.argv[1]), {BOOT!r}, {NOW})
contacts.end(contacts.begin(1, 101, {NOW}, Delay(1.0, 0.0, 1.0)), 1, 101, {NOW} + 30, {NOW} + 3, {NOW})
contacts.begin(2, 102, {NOW}, Delay(7.0, 0.0, 60.0))
os.kill(os.getpid(), signal.SIGKILL)
"""
    source = Path(__file__).parents[2] / "src"
    died = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], env={**os.environ, "PYTHONPATH": str(source)}, check=False
    )
    assert died.returncode == -signal.SIGKILL
    with opened(tmp_path, now=NOW + 1) as contacts:
        assert contacts.recovered.hosts == {1: NOW + 30, 2: NOW + 8}
        assert contacts.recovered.addresses == {101: NOW + 3, 102: NOW + 1}


def test_after_the_machine_started_anew_nobody_knows_and_that_is_remembered(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        contacts.begin(11, 21, NOW, SECOND)
    with opened(tmp_path, NEXT_BOOT, NOW + 10) as contacts:
        assert contacts.recovered.unknown_at == NOW + 10
    with opened(tmp_path, NEXT_BOOT, NOW + 11) as contacts:
        assert contacts.recovered.unknown_at == NOW + 10, "a second death soon after must not make anybody early"
    with opened(tmp_path, BOOT, NOW + 20) as contacts:
        assert contacts.recovered.unknown_at == NOW + 20


@pytest.mark.promise(
    "Politeness",
    "Delays of hosts and addresses survive any crash; a host whose past is unknown waits its longest delay.",
)
def test_a_lost_file_makes_the_past_unknown_and_that_is_remembered(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        contacts.note_missing_file(NOW)
        assert contacts.recovered.unknown_at == NOW
    with opened(tmp_path, now=NOW + 1) as contacts:
        assert contacts.recovered.unknown_at == NOW


def test_of_a_file_of_another_size_it_is_unknown_when_the_last_contacts_were(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"short")
    with opened(tmp_path) as contacts:
        assert not contacts.recovered.missing
        assert contacts.recovered.unknown_at == NOW
        assert contacts.recovered.damaged == 1


def test_what_was_recovered_survives_further_deaths_commits_and_laps(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        contacts.begin(11, 21, NOW, Delay(1000.0, 0.0, 1000.0))
        contacts.end(contacts.begin(12, 22, NOW, SECOND), 12, 22, NOW + 2000, NOW + 2000, NOW)
    with opened(tmp_path) as contacts:
        known = contacts.recovered
    with opened(tmp_path) as contacts:
        assert contacts.recovered.hosts == known.hosts == {11: NOW + 1000, 12: NOW + 2000}
        for number in range(ENDED_MAX + 10):
            contacts.end(contacts.begin(99, 98, NOW, SECOND), 99, 98, NOW + number / ENDED_MAX, NOW, NOW)
            if contacts.is_crowded:
                contacts.on_commit(contacts.ended_since_commit)
    with opened(tmp_path) as contacts:
        assert contacts.recovered.hosts == {**known.hosts, 99: NOW + (ENDED_MAX + 9) / ENDED_MAX}
        assert contacts.recovered.addresses[22] == NOW + 2000


def test_what_is_past_is_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        contacts.end(contacts.begin(11, 21, NOW, SECOND), 11, 21, NOW + 1, NOW + 1, NOW)
    with opened(tmp_path, now=NOW + 2):
        pass
    with opened(tmp_path, now=NOW + 2) as contacts:
        assert not contacts.recovered.hosts
        assert not contacts.recovered.addresses


def test_nothing_is_overwritten_before_it_is_crowded(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        hosts = 0
        while not contacts.is_crowded:
            hosts += 1
            contacts.end(contacts.begin(hosts, 1, NOW, SECOND), hosts, 1, NOW + hosts, NOW, NOW)
        for late in range(hosts + 1, hosts + UNDER_WAY_MAX + 1):  # Those under way end while the commit runs.
            contacts.end(contacts.begin(late, 1, NOW, SECOND), late, 1, NOW + late, NOW, NOW)
        assert contacts.is_crowded
    with opened(tmp_path) as contacts:
        assert len(contacts.recovered.hosts) == hosts + UNDER_WAY_MAX
        kept = sorted(contacts.recovered.hosts)[-KEPT_MAX:]
    with opened(tmp_path) as contacts:
        assert sorted(contacts.recovered.hosts) == kept, "of too many, those with the longest rest"
        assert not contacts.is_crowded


def test_a_commit_counts_what_ended_before_it(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        while not contacts.is_crowded:
            contacts.end(contacts.begin(1, 1, NOW, SECOND), 1, 1, NOW, NOW, NOW)
        ended = contacts.ended_since_commit
        contacts.end(contacts.begin(1, 1, NOW, SECOND), 1, 1, NOW, NOW, NOW)
        contacts.on_commit(ended)
        assert not contacts.is_crowded
        assert contacts.ended_since_commit == 1


def test_tickets_come_back_and_their_number_is_bounded(tmp_path: Path) -> None:
    with opened(tmp_path) as contacts:
        tickets = [contacts.begin(number + 1, 1, NOW, SECOND) for number in range(UNDER_WAY_MAX)]
        assert len(set(tickets)) == UNDER_WAY_MAX
        with pytest.raises(AssertionError, match="requests at once"):
            contacts.begin(1, 1, NOW, SECOND)
        contacts.end(tickets[7], 8, 1, NOW, NOW, NOW)
        assert contacts.begin(1, 1, NOW, SECOND) == tickets[7]
    with opened(tmp_path) as contacts:
        assert len(contacts.recovered.hosts) == UNDER_WAY_MAX


@pytest.mark.promise("Politeness", "A clock that is set, during a crawl or between two runs, makes no request early.")
def test_a_clock_that_was_set_between_two_processes_makes_nobody_early_nor_late(tmp_path: Path) -> None:
    offset_s = 1e9
    for jump_s in (3_600.0, -3_600.0):
        place = tmp_path / str(jump_s)
        place.mkdir()
        contacts = Contacts(place, BOOT, NOW, offset_s)
        ended = contacts.begin(11, 21, NOW, SECOND)
        contacts.begin(12, 22, NOW, Delay(least_s=2.0, per_second=3.0, most_s=60.0))
        contacts.end(ended, 11, 21, NOW + 60, NOW + 0.1, NOW)
        contacts.close()
        now = NOW + 5 + jump_s
        contacts = Contacts(place, BOOT, now, offset_s + jump_s)
        assert contacts.recovered.hosts == {11: now + 55, 12: now + 2 + 3 * 5}
        assert contacts.recovered.unknown_at == (now if jump_s > 0 else 0.0), "longer rests than those came too soon"
        contacts.close()
        contacts = Contacts(place, BOOT, now + 1, offset_s + jump_s + 0.2)
        assert contacts.recovered.hosts[11] == now + 55, "clocks that are kept in step were not set"
        contacts.close()


def test_a_file_takes_over_what_others_have(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for directory, until in ((mine, NOW + 60), (theirs, NOW + 90)):
        directory.mkdir()
        with opened(directory) as contacts:
            contacts.end(contacts.begin(11, 21, NOW, SECOND), 11, 21, until, NOW, NOW)
            contacts.prolong(12 if directory == mine else 13, NOW + 30, NOW)
    contacts = Contacts(mine, BOOT, NOW + 1, others=[theirs])
    contacts.close()
    assert contacts.recovered.hosts == {11: NOW + 90, 12: NOW + 30, 13: NOW + 30}
    with opened(mine, now=NOW + 2) as again:
        assert again.recovered.hosts == {11: NOW + 90, 12: NOW + 30, 13: NOW + 30}, "also after another death"
    alone = Contacts(tmp_path, BOOT, NOW + 3, others=[mine, theirs])
    alone.close()
    assert alone.recovered.hosts == {11: NOW + 90, 12: NOW + 30, 13: NOW + 30}
    assert (theirs / FILE).exists()
    assert not alone.recovered.missing
