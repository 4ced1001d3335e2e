"""Modules by name, as the assembly makes them."""

from __future__ import annotations

from typing import cast

from gossamer.plugins import build
from gossamer.ports import ProcessingModule
from gossamer.stages.process.choice import MODULES
from gossamer.stages.process.options import ProcessOptions


def made(name: str, key: str = "") -> ProcessingModule:
    return cast("ProcessingModule", build(MODULES[name], key, options=ProcessOptions()))
