"""Deterministic fault tests: whole crawls in a simulated world, killed at any step; and that mistakes are found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gossamer.lab.faults.trial import Trial, trial
from gossamer.lab.faults.world import World
from gossamer.state.contacts import Contacts, Recovered
from gossamer.state.journals import Entry, Journals

SEEDS = range(1, 13)
TRACE = """
import sys, tempfile
from pathlib import Path
from gossamer.lab.faults.trial import trial
found = trial(3, Path(tempfile.mkdtemp()))
print(found.trace, found.kills, found.steps, found.broken)
"""


def test_crawls_that_are_killed_at_any_step_keep_every_promise(tmp_path: Path) -> None:
    trials = [trial(seed, tmp_path / str(seed)) for seed in SEEDS]
    assert {one.seed: one.broken for one in trials if one.broken} == {}
    assert min(one.requests for one in trials) > 20
    assert sum(one.kills for one in trials) >= len(SEEDS)


def test_a_seed_decides_everything_whatever_the_hash_seed() -> None:
    traces = {
        subprocess.run(
            [sys.executable, "-c", TRACE], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True, timeout=60,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(traces) == 1
    assert "[]" in traces.pop()


def test_the_world_is_reached_whole_without_kills_and_pages_fail_in_it_first(tmp_path: Path) -> None:
    found = trial(5, tmp_path, kills=False)
    truth = World(5).site.truth(["http://h0.test/"])
    assert (found.kills, found.broken) == (0, [])
    assert found.requests > len(truth)
    assert {"fetched", "redirected"} <= set(truth.values())


def forgets_contacts(patch: pytest.MonkeyPatch) -> None:
    opened = Contacts.__init__

    def forgetful(self: Contacts, *given: Any, **named: Any) -> None:
        opened(self, *given, **named)
        self.recovered = Recovered({}, {})

    patch.setattr(Contacts, "__init__", forgetful)


def keeps_what_was_not_committed(patch: pytest.MonkeyPatch) -> None:
    recover = Journals.recover

    def careless(self: Journals, manifest: list[Entry], owned: tuple[str, ...] = ()) -> None:
        grown = [
            Entry(entry.name, entry.phase, path.stat().st_size, crc=None)
            if (path := self.path(entry.name + ".open")).exists()
            else entry
            for entry in manifest
        ]
        recover(self, grown, owned)

    patch.setattr(Journals, "recover", careless)


@pytest.mark.parametrize("mistake", [forgets_contacts, keeps_what_was_not_committed])
def test_a_mistake_in_what_outlives_a_kill_is_found(
    mistake: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)

    def run(seed: int) -> Trial:
        try:
            return trial(seed, tmp_path / str(seed))
        except Exception as error:  # noqa: BLE001 - that the crawl refuses to go on is a finding too
            return Trial(seed, broken=[repr(error)])

    assert any(run(seed).broken for seed in SEEDS)
