"""The web-platform-tests' cases for addresses, read from beside the checkout: they are not copied into it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
UPSTREAM = "https://github.com/web-platform-tests/wpt, url/resources/"


@cache
def cases(name: str) -> list[dict[str, Any]]:
    """Return the cases of a file, comments left out. Where it is not there the test is skipped, and the summary says
    how to get it: the project must pass on a machine that has nothing but the project.
    """
    beside = [folder / "shared/data" / f"wpt-{name}" for folder in ROOT.parents]
    found = next((path for path in beside if path.exists()), None)
    if found is None:
        pytest.skip(
            f"{beside[0]} is missing: put there {name} of the web-platform-tests ({UPSTREAM}{name}), "
            f"as shared/data/wpt-{name} beside the checkout"
        )
    return [case for case in json.loads(found.read_text(encoding="utf-8")) if isinstance(case, dict)]
