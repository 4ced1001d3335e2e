"""Puts the fakes beside this file in the place of the rooms that the commands call, in every Python started with it."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent
FAKES = {
    "gossamer.api": HERE / "fake_api.py",
    "gossamer.api.asking": HERE.parents[2] / "src/gossamer/api/asking.py",
    "gossamer.results.report.report": HERE / "fake_report.py",
    "gossamer.results.report.text": HERE / "fake_report.py",
    "gossamer.results.report.figures": HERE / "fake_report.py",
    "gossamer.results.report.html": HERE / "fake_report.py",
    "gossamer.lab.simulate.taken": HERE / "fake_report.py",
    "gossamer.lab.simweb": HERE / "fake_simweb.py",
    "gossamer.lab.simweb.options": HERE / "fake_simweb.py",
    "gossamer.lab.simweb.process": HERE / "fake_simweb.py",
    "gossamer.state.slots": HERE / "fake_slots.py",
}


class Fakes:
    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name not in FAKES:
            return None
        inner: list[str] | None = [] if name in ("gossamer.api", "gossamer.lab.simweb") else None
        return importlib.util.spec_from_file_location(name, FAKES[name], submodule_search_locations=inner)


sys.meta_path.insert(0, Fakes)
