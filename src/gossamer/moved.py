"""Moved: former names of modules and functions, kept for a release: programs and configurations of others hold them."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

PLACES = {
    "gossamer.archive.search": "gossamer.results.search",
    "gossamer.archive.views": "gossamer.results.export",
    **{
        f"gossamer.{name}": f"gossamer.stages.{name}"
        for name in ("archive", "fetch", "frontier", "process", "resolve", "robots", "scope", "seen")
    },
    **{f"gossamer.{name}": f"gossamer.features.{name}" for name in ("identity", "render", "revisit")},
    **{f"gossamer.{name}": f"gossamer.results.{name}" for name in ("forget", "isolated", "offline", "report")},
}
"""Present names of packages, by their former names; a longer former name comes before a shorter one."""
FUNCTIONS = {
    "gossamer.fetch.bodies": {"sniffed": "sniff"},
    "gossamer.fetch.cookies": {"parsed": "parse_cookie"},
    "gossamer.process.charset": {"decoded": "decode_body", "detected": "guess_encoding"},
    "gossamer.process.embeds": {"embedded": "resources_in"},
    "gossamer.process.items": {"converted": "convert_value"},
    "gossamer.process.kept": {"kept": "build_tree"},
    "gossamer.process.outline": {"outlined": "outline_of"},
    "gossamer.resolve.guard": {"guarded": "filter_addresses", "refused": "why_refused"},
}
"""Present names of functions, by their former names, in modules that are imported by theirs."""


def present_name(name: str) -> str:
    """Return the present name of a module, or nothing if it was not moved."""
    for former, present in PLACES.items():
        if name == former or name.startswith(f"{former}."):
            return present + name.removeprefix(former)
    return ""


class FormerNames:
    """Finds modules by their former names: the module is the present one, not a second copy.

    No class of importlib.abc, which imports pathlib and tempfile: 5 ms of each process.
    """

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Return how to load a module, if its name is a former one."""
        present = fullname.startswith("gossamer.") and present_name(fullname)
        return ModuleSpec(fullname, self, origin=present) if present else None  # type: ignore[arg-type]  # It has the methods.

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module by its present name."""
        present = present_name(spec.name)
        warnings.warn(f"{spec.name} is {present} now", DeprecationWarning, stacklevel=2)
        module = import_module(present)
        self._specs[spec.name] = module.__spec__
        for former, now in FUNCTIONS.get(spec.name, {}).items():
            setattr(module, former, getattr(module, now))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own specification back, which the import system has replaced."""
        if module.__spec__ is not None:
            module.__spec__ = self._specs.pop(module.__spec__.name)


def install() -> None:
    """Let former names be imported. They must be asked for first: the path of a moved package finds its modules."""
    sys.meta_path.insert(0, FormerNames())
