"""Gossamer installs into clean environments: by the README's commands, from the wheel, and by tools for commands."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.model.extras import EXTRAS
from gossamer.model.product import __version__
from tests.docs.shown import Place, blocks, served
from tests.test_release import ROOT, build

pytestmark = [pytest.mark.acceptance, pytest.mark.together, pytest.mark.timeout(600)]
EXTRAS_THERE = (
    "import sys; from importlib.util import find_spec; print([one for one in sys.argv[1:] if find_spec(one)])"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build(ROOT, folder, 0o022)
    (made,) = folder.glob("*.whl")
    return made


def run(*words: str | Path, cwd: Path, home: Path | None = None) -> str:
    """Run a program in a clean environment and return its output."""
    # Of itself uv knows no certificates but its own.
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home or cwd), "LANG": "C.UTF-8", "UV_NATIVE_TLS": "true"}
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


def copy_source(directory: Path) -> Path:
    """Copy what the repository has, as a clone does, and return the copy."""
    listed = run(
        "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT
    )
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, directory / name)
    return directory


@pytest.mark.promise(
    "Operation", "The README's commands install Gossamer from a clone, and crawl, as they are written."
)
@pytest.mark.long
def test_the_commands_of_the_readme_work_in_a_clone_and_a_new_environment(tmp_path: Path) -> None:
    clone = copy_source(tmp_path / "clone")
    (first, install), crawl = (
        [block.text for block in blocks(ROOT / "README.md") if block.language == language]
        for language in ("console", "sh")
    )
    assert first == "$ make demo\n$ make test\n"  # CI runs both, in a fresh clone.
    programs = tmp_path / "gossamer/bin"
    (tmp_path / "python").mkdir()
    (tmp_path / "python/python3").symlink_to(sys.executable)
    run("sh", "-euc", f"PATH={tmp_path}/python:$PATH\n{install.replace('$ ', '')}", cwd=clone, home=tmp_path)
    assert (
        run(programs / "python", "-c", EXTRAS_THERE, *EXTRAS, cwd=tmp_path)
        == "['anyio', 'starlette', 'tantivy', 'uvicorn']\n"
    )
    with served() as port:
        place = Place(tmp_path / "work", port, python=programs / "python")
        for block in crawl:
            place.run(block)


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
