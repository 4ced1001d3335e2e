"""Modules by name, as the assembly makes them."""

from __future__ import annotations

from typing import cast

from gossamer.plugins import build
from gossamer.ports import ProcessingModule
from gossamer.process.options import ProcessOptions
from gossamer.process.registry import MODULES


def made(name: str, key: str = "") -> ProcessingModule:
    return cast("ProcessingModule", build(MODULES[name], key, options=ProcessOptions()))
