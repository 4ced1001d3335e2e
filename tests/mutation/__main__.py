"""The laboratory: which tests reach a mutant, and whether one of them fails with it."""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import coverage
import pytest
from hypothesis import Phase, settings

from tests.mutation import PACKAGES
from tests.mutation.mutants import SOURCE, Mutant, sample

FOLDERS = (*PACKAGES, "ring", "lab")
"""Of the tests that are run."""
KNOWN = Path(__file__).with_name("known.toml")
SECONDS_MAX = 60.0
"""Of tests, for one mutant, measured without it."""
MEMORY_BYTES_MAX = 6 << 30


class Laboratory:
    """A plugin of pytest: after the tests are collected, it runs them in copies of this process, one at a time."""

    def __init__(self, mutants: list[Mutant], measured: Path | None) -> None:
        self._mutants = mutants
        self._folders = {one.file.parent for one in mutants}
        self._measured = measured or Path()
        self._failed = self._seconds = 0.0
        self._base = Path()
        self._known = {name for one in tomllib.loads(KNOWN.read_text()).values() for name in one}
        self.unknown = 0
        """Mutants that live, and that `known.toml` does not list."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds += report.duration
        self._failed += report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure the tests where that is not done, then try the mutants."""
        self._base = session.config._tmp_path_factory.getbasetemp()
        for folder in self._folders:
            for file in folder.glob("*.py"):
                importlib.import_module(".".join(file.relative_to(SOURCE.parent).with_suffix("").parts))
        if self._measured == Path():
            self._measured = self._base / "measured.json"
        if not self._measured.exists():
            self._in_a_copy(session, lambda say: self._measure(session, say), 3600)
        measured = json.loads(self._measured.read_text())
        alive: dict[tuple[str, str, int], list[FunctionType]] = {}
        gc.unfreeze()  # What `tests/conftest.py` has frozen is not listed.
        for one in gc.get_objects():
            if isinstance(one, FunctionType):
                code = one.__code__
                alive.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(one)
        gc.freeze()  # So that copies share the memory.
        for number, mutant in enumerate(self._mutants, 1):
            self._try(session, mutant, number, measured, alive)
        return True

    def _try(self, session: pytest.Session, mutant: Mutant, number: int, measured: dict, alive: dict) -> None:
        chosen = _chosen(session, mutant, measured)
        seconds = sum(measured["seconds"][item.nodeid] for item in chosen)
        began = time.monotonic()
        said = "uncovered"
        if chosen:
            hunt = lambda say: self._hunt(mutant, chosen, measured, alive, say)  # noqa: E731 - read where it is used
            said = self._in_a_copy(session, hunt, 60 + 4 * seconds)
        kind, _, test = said.partition(" ")
        if kind in {"survives", "uncovered", "unknown"}:
            kind = "known" if mutant.name in self._known else kind
            self.unknown += kind != "known"
        lasted_s = time.monotonic() - began
        print(f"{number:4} {kind:9} {lasted_s:6.1f} s  {mutant.name}  (line {mutant.line}; {test})", flush=True)

    def _in_a_copy(self, session: pytest.Session, act: Callable[[Callable[[str], None]], None], limit_s: float) -> str:
        """Run something in a copy of this process; return what it said last, or how it ended."""
        folder = Path(tempfile.mkdtemp(dir=self._base))
        note = folder / "said"
        if (pid := os.fork()) == 0:
            try:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                quiet = os.open(os.devnull, os.O_WRONLY)
                os.dup2(quiet, 1)
                os.dup2(quiet, 2)
                resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
                session.config._tmp_path_factory._basetemp = folder
                act(lambda said: note.write_text(said) and None)
                os._exit(0)
            finally:
                os._exit(1)
        ends = time.monotonic() + limit_s
        try:
            while not (done := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < ends:
                time.sleep(0.02)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        if not done[0]:
            os.waitpid(pid, 0)
        said = note.read_text() if note.exists() else ""
        shutil.rmtree(folder, ignore_errors=True)
        if done[0] and done[1] == 0:
            return said
        return f"{'crashed' if done[0] else 'endless'} {said}"

    def _run(self, item: pytest.Item, following: pytest.Item | None) -> None:
        self._failed = self._seconds = 0.0
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def _measure(self, session: pytest.Session, say: Callable[[str], None]) -> None:
        """Run all tests; write which lines each reaches, and its seconds, except of those that fail."""
        measuring = coverage.Coverage(data_file=None, config_file=False, source=[str(one) for one in self._folders])
        measuring.start()
        seconds = {}
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            measuring.switch_context(item.nodeid)
            self._run(item, following)
            if self._failed:
                print(f"left out, for it fails without a mutant: {item.nodeid}", file=sys.__stderr__)
            else:
                seconds[item.nodeid] = self._seconds
        measuring.stop()
        data = measuring.get_data()
        lines = {file: data.contexts_by_lineno(file) for file in data.measured_files()}
        self._measured.write_text(json.dumps({"seconds": seconds, "lines": lines}))
        say("measured")

    def _hunt(self, mutant: Mutant, chosen: list[pytest.Item], measured: dict, alive: dict, say: Callable) -> None:
        if not mutant.apply(alive):
            say("unknown")
            return
        for item, following in zip(chosen, [*chosen[1:], None], strict=True):
            say(f"in {item.nodeid}")
            limit_s = 20 + 5 * measured["seconds"][item.nodeid]
            item.add_marker(pytest.mark.timeout(limit_s), append=False)
            self._run(item, following)
            if self._failed:
                say(f"killed {item.nodeid}")
                return
        say("survives")


def _chosen(session: pytest.Session, mutant: Mutant, measured: dict) -> list[pytest.Item]:
    """The tests that reach the line of a mutant, in the order in which they should run."""
    lines = measured["lines"].get(str(mutant.file), {})
    seconds = measured["seconds"]
    reached = set(lines.get(str(mutant.line), ())) or set(lines.get(str(_statement(mutant)), ()))
    folder = f"tests/{mutant.file.parent.relative_to(SOURCE)}/"
    found = [item for item in session.items if item.nodeid in reached and item.nodeid in seconds]
    found.sort(key=lambda item: seconds[item.nodeid] * (1 if item.nodeid.startswith(folder) else 3))
    chosen, left = [], SECONDS_MAX
    for item in found:
        left -= seconds[item.nodeid]
        if left < 0:
            break
        chosen.append(item)
    return chosen


def _statement(mutant: Mutant) -> int:
    """The first line of the innermost statement that holds the change."""
    tree = ast.parse(mutant.text)
    around = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= mutant.line <= (n.end_lineno or 0)]
    return max(n.lineno for n in around)


def main() -> None:
    """Try the sample, and say which mutants live."""
    parser = argparse.ArgumentParser(description="Try mutants of the packages of a crawl's decisions.")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    every = sorted(str(one.parent.relative_to(SOURCE)) for one in SOURCE.rglob("__init__.py"))
    parser.add_argument("--of", default="", choices=("", *every), help="one package to change, with its own tests")
    parser.add_argument("--beside", default="", help="further folders of tests for it, such as `ring lab`")
    parser.add_argument("--only", default="", help="a piece of the names of those to try")
    parser.add_argument("--measured", type=Path, help="where to keep which test reaches which line, for another run")
    given, others = parser.parse_known_args()
    settings.register_profile("mutants", database=None, phases=[Phase.explicit, Phase.generate])  # A failure is enough.
    settings.load_profile("mutants")
    mutants = [one for one in sample(given.seed, given.count, given.of) if given.only in one.name]
    folders = [f"tests/{folder}" for folder in ((given.of, *given.beside.split()) if given.of else FOLDERS)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that no copy goes on.
    options = ["-q", "-s", "-m", "not acceptance", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    options += ["-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider", *others]
    laboratory = Laboratory(mutants, given.measured)
    status = pytest.main([*options, *folders], plugins=[laboratory])
    print(f"{len(mutants)} mutants; {laboratory.unknown} live and are not in {KNOWN.name}")
    sys.exit(status or min(laboratory.unknown, 1))


if __name__ == "__main__":
    main()
