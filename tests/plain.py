"""An environment as a plain `pip install gossamer` makes it: only what Gossamer needs at run time is in it.

It is made of links to what is installed here, so that it takes no network and a fraction of a second.
"""

from __future__ import annotations

import sysconfig
import venv
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement


def plain_python(directory: Path, *more: str) -> Path:
    """Make the environment in `directory` and return its interpreter; `more` are distributions to have besides."""
    venv.create(directory, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(directory), "platbase": str(directory)}))
    for name in {*_closure("gossamer", set()), *more}:
        for path in _top_level(metadata.distribution(name)):
            link = packages / path.name
            if not link.exists():
                link.symlink_to(path)
    return directory / "bin/python"


def _closure(name: str, known: set[str]) -> set[str]:
    """Add a distribution and all that it requires without its extras to those that are known."""
    if name not in known:
        known.add(name)
        for text in metadata.requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                assert not requirement.extras, f"{name} requires an extra: {text}"
                _closure(requirement.name, known)
    return known


def _top_level(distribution: metadata.Distribution) -> Iterator[Path]:
    for name in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
        yield Path(str(distribution.locate_file(name)))
