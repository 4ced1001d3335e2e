"""What a release consists of: wheel and sdist, built alike each time, and the files that people and tools look for."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from gossamer.model.product import FORMAT, __version__

ROOT = Path(__file__).parents[1]
EPOCH = 1_700_000_000
SDIST_BYTES_MAX = 10_000_000


def build(source: Path, into: Path, umask: int) -> tuple[bytes, bytes]:
    """Return the wheel and the sdist that a source tree makes, whatever the machine's habits."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)}
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(into)]
    done = subprocess.run(command, cwd=source, env=environment, umask=umask, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,), (sdist,) = into.glob("*.whl"), into.glob("*.tar.gz")
    return wheel.read_bytes(), sdist.read_bytes()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    return build(ROOT, tmp_path_factory.mktemp("built"), 0o022)


@pytest.mark.heavy
@pytest.mark.promise("Operation", "Wheel and sdist are reproducible: the same source makes the same bytes.")
def test_the_sdist_builds_the_same_wheel_and_itself(built: tuple[bytes, bytes], tmp_path: Path) -> None:
    sdist = built[1]
    with tarfile.open(fileobj=io.BytesIO(sdist)) as packed:
        packed.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    (source / "PKG-INFO").unlink()  # Made by the build, and so not of the source.
    for path in source.rglob("*"):
        os.utime(path, (1, 1))
    again = build(source, tmp_path / "again", 0o077)
    assert [hashlib.sha256(one).hexdigest() for one in again] == [hashlib.sha256(one).hexdigest() for one in built]
    assert len(sdist) < SDIST_BYTES_MAX


@pytest.mark.heavy
def test_the_wheel_has_all_of_the_package_and_nothing_else(built: tuple[bytes, bytes]) -> None:
    with zipfile.ZipFile(io.BytesIO(built[0])) as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read(f"gossamer-{__version__}.dist-info/METADATA").decode()
    source = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*") if path.is_file()}
    assert {name for name in names if name.startswith("gossamer/")} == {
        name for name in source if "__pycache__" not in name
    }
    assert "gossamer/py.typed" in names
    assert {name for name in names if not name.startswith("gossamer/")} == {
        f"gossamer-{__version__}.dist-info/{name}"
        for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    } | {f"gossamer-{__version__}.data/data/share/man/man1/{page.name}" for page in (ROOT / "man").iterdir()}
    assert f"\nVersion: {__version__}\n" in metadata
    assert "\nProvides-Extra: all\n" in metadata


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == __version__
    assert (citation["title"], citation["license"]) == ("Gossamer", project["license"])
    assert citation["cff-version"] == "1.2.0"
    assert set(citation["keywords"]) >= set(project["keywords"])


def test_the_changelog_has_a_section_for_this_version() -> None:
    headings = re.findall(r"^## \[([^]]+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"Unreleased", __version__} & set(headings[:1])


@pytest.mark.parametrize(
    "template", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name
)
def test_issue_templates_are_forms(template: Path) -> None:
    """As https://docs.github.com/communities/using-templates describes them."""
    form = yaml.safe_load(template.read_text(encoding="utf-8"))
    if template.name == "config.yml":
        assert form["blank_issues_enabled"] is False
        return
    assert {"name", "description", "body"} <= form.keys()
    fields = [one for one in form["body"] if one["type"] != "markdown"]
    assert all(one["attributes"]["label"] for one in fields)
    assert len({one["id"] for one in fields}) == len(fields)


def test_the_page_on_versions_names_the_format() -> None:
    page = (ROOT / "docs/reference/versions.md").read_text(encoding="utf-8")
    assert f"`format = {FORMAT}`" in page


def test_what_builds_the_wheel_is_locked() -> None:
    text = (ROOT / "deploy/build.txt").read_text(encoding="utf-8")
    entries = text.split("\n")
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    wanted = {re.split(r"[>=<]", one)[0] for one in required}
    closed = set(wanted)
    while wanted:  # And what that needs itself.
        needed = {Requirement(one) for name in wanted for one in distribution(name).requires or ()}
        wanted = {one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})} - closed
        closed |= wanted
    assert {entry.partition("==")[0] for entry in entries if "==" in entry} == closed
    assert all(entry.startswith("    --hash=sha256:") for entry in entries if entry and "==" not in entry)


@pytest.mark.parametrize("lock", ["deploy/requirements.txt"])
def test_the_lock_holds_every_requirement_with_hashes_and_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if not entry.startswith("#")]
    locked = {re.split(r"==", entry)[0] for entry in entries}
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    assert "://" not in text
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.split(r"[\[\],]", project["optional-dependencies"]["all"][0])[1:-1]
    wanted = [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]
    assert {re.split(r"[>=<\[;]", one)[0].lower() for one in wanted} <= locked
