"""What all tests share: they leave no modules of their own behind."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _modules_are_forgotten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget modules that a test wrote and imported: another test's may have the same name."""
    before = set(sys.modules)
    yield
    written = str(tmp_path_factory.getbasetemp())
    for name in sys.modules.keys() - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(written):
            del sys.modules[name]
