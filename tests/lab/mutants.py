"""Mutants: hand-made mistakes in commit, journals, politeness, frontier and cluster, and how many the fault trials
find.

    python -m tests.lab.mutants [--trials N] [NAME ...]

`mutants.toml` lists them. Each is a line of the source, replaced while its module is imported, in a process of its own.
Where no trial finds one, the tests run that it names.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import CodeType, ModuleType

import msgspec

SECONDS_MAX = 1800
TRIAL_PROCESSOR_S_MAX = 100
"""A trial takes one or two; a mistake may have it run for ever."""


class Mutant(msgspec.Struct, forbid_unknown_fields=True):
    """A mistake: a piece of a module of `gossamer`, and its replacement."""

    module: str
    line: str
    instead: str
    several: bool = False
    """Trials of several shards look for it."""
    tests: list[str] = []
    """Tests that look for it where the trials do not find it."""


MUTANTS = msgspec.toml.decode(Path(__file__).with_name("mutants.toml").read_bytes(), type=dict[str, Mutant])


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the mutant's module with the mistake in it."""

    mutant: Mutant

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path).decode()
        assert source.count(self.mutant.line) == 1, (
            f"{self.mutant.line!r} stands {source.count(self.mutant.line)} times"
        )
        return compile(source.replace(self.mutant.line, self.mutant.instead), self.path, "exec")


class _Finder(MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != f"gossamer.{self._mutant.module}":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        loader = _Loader(fullname, spec.origin)
        loader.mutant = self._mutant
        spec.loader = loader
        return spec


def found_by(name: str, trials: int) -> str:
    """Run trials of a mutant in a process of its own, until one finds it, and then its tests; return what was found, or
    nothing.
    """
    return _said(name, "--trials", str(trials)) or (_said(name, "--tests") if MUTANTS[name].tests else "")


def _said(name: str, *how: str) -> str:
    command = [sys.executable, "-m", "tests.lab.mutants", *how, "--inside", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS_MAX} s"
    assert done.returncode in (0, 1), done.stdout + done.stderr
    failed = [line.partition(" - ")[0] for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    return done.stdout.strip() if "--tests" not in how else "".join(failed[:1])


def _in_trials(name: str, trials: int) -> int:
    from tests.faults.trial import run, trial, trial_of_several  # noqa: PLC0415 - with the mistake

    kind = trial_of_several if MUTANTS[name].several else trial
    signal.signal(signal.SIGPROF, _endless)
    for seed in range(1, trials + 1):
        signal.setitimer(signal.ITIMER_PROF, TRIAL_PROCESSOR_S_MAX)
        try:
            broken = run(seed, None, kind).broken
        except Exception as error:  # noqa: BLE001 - that it fails is a finding
            broken = [repr(error)]
        if broken:
            print(f"seed {seed}: {broken[0]}")
            return 1
    return 0


def _endless(_signal: int, _frame: object) -> None:
    raise TimeoutError(f"it took {TRIAL_PROCESSOR_S_MAX} s of processor time")


def _in_tests(name: str) -> int:
    import pytest  # noqa: PLC0415 - the trials need none

    return pytest.main(["-q", "-x", "-m", "not acceptance", "-p", "no:cacheprovider", *MUTANTS[name].tests])


def main() -> int:
    """Run mutants, and say which were found."""
    parser = argparse.ArgumentParser(description="Run fault trials of hand-made mistakes.")
    parser.add_argument("--trials", type=int, default=40, help="of each mutant")
    parser.add_argument("--tests", action="store_true", help="the tests that a mutant names, and no trials")
    parser.add_argument("--inside", default="", help="the mutant to be in this process")
    parser.add_argument("names", nargs="*", help="all, where none is named")
    given = parser.parse_args()
    if given.inside:
        sys.meta_path.insert(0, _Finder(MUTANTS[given.inside]))
        return _in_tests(given.inside) if given.tests else _in_trials(given.inside, given.trials)
    names = given.names or list(MUTANTS)
    trials = 0 if given.tests else given.trials
    by_trials = by_tests = 0
    for name in names:
        said = found_by(name, trials)
        by_tests += said.startswith("FAILED ")
        by_trials += said.startswith("seed ")
        print(f"{name:36} {said[:150] or 'SURVIVES'}", flush=True)
    print(f"{by_trials + by_tests} of {len(names)} found: {by_trials} in {trials} trials each, {by_tests} by tests")
    return 0


if __name__ == "__main__":
    sys.exit(main())
