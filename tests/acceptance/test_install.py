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
    # Of itself uv knows no certificates but its own.
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LANG": "C.UTF-8", "UV_NATIVE_TLS": "true"}
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


@pytest.mark.long
def test_a_plain_installation_crawls_and_has_its_manual(wheel: Path, tmp_path: Path) -> None:
    programs = environment_in(tmp_path / "plain")
    run(programs / "pip", "install", "--quiet", wheel, cwd=tmp_path)
    run(programs / "pip", "check", cwd=tmp_path)
    assert run(programs / "python", "-c", EXTRAS_THERE, *EXTRAS, cwd=tmp_path) == "[]\n"
    assert run(programs / "gossamer", "--version", cwd=tmp_path) == f"{__version__}\n"
    assert "pages fetched in" in run(programs / "gossamer", "demo", cwd=tmp_path)
    assert (tmp_path / "plain/share/man/man1/gossamer-crawl.1").is_file()


@pytest.mark.parametrize("command", [("pipx", "install"), ("uv", "tool", "install")], ids=["pipx", "uv"])
@pytest.mark.long
def test_tools_that_install_commands_install_it(wheel: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    programs = environment_in(tmp_path / "tools")
    run(programs / "pip", "install", "--quiet", command[0], cwd=tmp_path)
    python = ("--python", str(Path(sys.executable).resolve()))
    run(programs / command[0], *command[1:], *python, wheel, cwd=tmp_path)
    assert run(tmp_path / ".local/bin/gossamer", "--version", cwd=tmp_path) == f"{__version__}\n"
