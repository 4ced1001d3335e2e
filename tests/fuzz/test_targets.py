"""Each target of the fuzzer holds for a few examples, the same ones each time. `make fuzz` goes on."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.fuzz.targets import TARGETS

FEW = settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_holds(name: str) -> None:
    FEW(TARGETS[name])()
