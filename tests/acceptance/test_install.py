"""The wheel installs into clean environments: from a package index, and from the lock with all extras."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.model.extras import EXTRAS
from gossamer.model.product import __version__
from tests.test_release import ROOT, build

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]
EXTRAS_THERE = (
    "import sys; from importlib.util import find_spec; print([one for one in sys.argv[1:] if find_spec(one)])"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build(ROOT, folder, 0o022)
    (made,) = folder.glob("*.whl")
    return made


def run(*words: str | Path, cwd: Path) -> str:
    """Run a program in a clean environment and return its output."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment_in(directory: Path) -> Path:
    """Make a clean environment and return where its programs are."""
    run(sys.executable, "-m", "venv", directory, cwd=directory.parent)
    return directory / "bin"


def test_a_plain_installation_crawls_and_has_its_manual(wheel: Path, tmp_path: Path) -> None:
    programs = environment_in(tmp_path / "plain")
    run(programs / "pip", "install", "--quiet", wheel, cwd=tmp_path)
    run(programs / "pip", "check", cwd=tmp_path)
    assert run(programs / "python", "-c", EXTRAS_THERE, *EXTRAS, cwd=tmp_path) == "[]\n"
    assert run(programs / "gossamer", "--version", cwd=tmp_path) == f"{__version__}\n"
    assert "pages fetched in" in run(programs / "gossamer", "demo", cwd=tmp_path)
    assert (tmp_path / "plain/share/man/man1/gossamer-crawl.1").is_file()
