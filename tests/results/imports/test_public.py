"""Archives of other programs, as their projects publish them: the table in the guide, and an independent reader."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer.results.imports.capture import Refused
from tests.commands import run
from tests.results.imports.archives import rows
from tests.results.imports.test_records import items_of

DATA = Path(__file__).parent / "data"
GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "import.md"
_ROW = re.compile(r"^\| `([^`]+)` \|[^|]*\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", re.MULTILINE)
TABLE = {name: tuple(map(int, numbers)) for name, *numbers in _ROW.findall(GUIDE.read_text())}
NAMES = sorted(path.name for path in DATA.iterdir() if path.suffix != ".md")


def archives_in(path: Path) -> Iterator[BinaryIO]:
    if path.suffix == ".wacz":
        with zipfile.ZipFile(path) as package:
            yield from (io.BytesIO(package.read(name)) for name in package.namelist() if name.startswith("archive/"))
    else:
        with path.open("rb") as file:
            yield file


def test_the_guide_has_them_all() -> None:
    assert sorted(TABLE) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_records(name: str) -> None:
    """Each record that warcio finds is a capture, is left out, or is refused with a reason."""
    theirs = Counter(one.rec_type.lower() for file in archives_in(DATA / name) for one in ArchiveIterator(file))
    items = items_of(DATA / name)
    ours = Counter(item.kind.partition(" ")[0] for item in items if not isinstance(item, Refused))
    theirs["filedesc"] = theirs.pop("arc_header", 0)
    if name.endswith(".arc"):
        ours["response"] += ours.pop("resource", 0)  # Without a head of HTTP.
    if refused := sum(isinstance(item, Refused) for item in items):
        assert ours <= theirs
        assert theirs.total() - ours.total() == refused
    else:
        assert ours == +theirs
    assert TABLE[name][0] == theirs.total()


@pytest.mark.parametrize("name", NAMES)
def test_pages(tmp_path: Path, name: str) -> None:
    directory = tmp_path / "crawl"
    status, _, err = run("import", str(DATA / name), "-o", str(directory))
    assert (status == 0) == bool(TABLE[name][1]), err
    assert status in (0, 3)
    pages = len(rows(directory, "url")) if any((directory / "pages").glob("*.parquet")) else 0
    links = len(rows(directory, "to_url", "links")) if any((directory / "links").glob("*.parquet")) else 0
    refused = (directory / "logs" / "info.log").read_text().count('"record_refused"') if err else 0
    assert (pages, links, refused) == TABLE[name][1:]
    assert run("verify", str(directory), "--deep")[0] == 0
    if pages:
        target = tmp_path / "out.wacz"
        assert run("export", str(directory), "--to", "wacz", "-o", str(target))[0] == 0
        with zipfile.ZipFile(target) as package:
            assert json.loads(package.read("datapackage.json"))["wacz_version"] == "1.1.1"
