"""Former names of modules, which programs and configurations of others hold."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib import import_module

import pytest

from gossamer.moved import FUNCTIONS, PLACES, present_name

NAMES = {
    "gossamer.frontier.wrapping": "WrappedFrontier",
    "gossamer.frontier.strategy": "Strategy",
    "gossamer.process.html": "HtmlPage",
    "gossamer.process.links": "LinkExtractor",
    "gossamer.revisit.policies": "Adaptive",
    "gossamer.archive.views.export": "export",
}
"""A name of each kind that stood in a configuration, a program or the documentation."""


@pytest.mark.parametrize(("former", "present"), PLACES.items())
def test_each_moved_package_has_its_former_name(former: str, present: str) -> None:
    sys.modules.pop(former, None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert import_module(former) is import_module(present)
    assert f"{former} is {present} now" in [str(warning.message) for warning in caught]


@pytest.mark.parametrize(("module", "name"), NAMES.items())
def test_a_former_name_means_the_present_class_and_not_a_second_one(module: str, name: str) -> None:
    script = f"""
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
from {module} import {name} as former
from gossamer.moved import present_name
from importlib import import_module
present = import_module(present_name("{module}"))
assert former is getattr(present, "{name}")
assert present.__spec__.name == present.__name__ == present_name("{module}")
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize("module", FUNCTIONS)
def test_functions_of_a_module_have_their_former_names(module: str) -> None:
    sys.modules.pop(module, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        former = import_module(module)
    present = import_module(present_name(module))
    for name, now in FUNCTIONS[module].items():
        assert getattr(former, name) is getattr(present, now)


def test_a_name_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("gossamer.frontiers")
