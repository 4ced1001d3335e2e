"""Further cases of a test: more of what its first one shows. `make acceptance` runs a seventh of them each day, as of
long tests (tests/sampled.py), `make test` none.
"""

from __future__ import annotations

from typing import Any

import pytest

MARKS = (pytest.mark.acceptance, pytest.mark.long, pytest.mark.further)


def with_further(first: object, *further: object) -> list[Any]:
    """Return parameters for `parametrize` or a fixture, of which all but the first are left to `make acceptance`.

    Args:
        first: a value, or a tuple where a test takes several.
        further: more of the same.
    """
    cases = (one if isinstance(one, tuple) else (one,) for one in further)
    return [first, *(pytest.param(*case, marks=MARKS) for case in cases)]
