"""Count what Gossamer and warcio read in archives that others publish as tests, and how their counts differ.

    python benchmarks/compare_archives.py FOLDER

The folder has the WARC, ARC and WACZ files of one project in each of its folders; equal files count once. Prints how
many files of each project both readers find the same records in, and every other one with its difference.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tempfile
import zipfile
from collections import Counter
from contextlib import redirect_stderr
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from gossamer.model.errors import ConfigError
from gossamer.results.imports.capture import Refused, Room
from gossamer.results.imports.reading import captures_of
from gossamer.results.imports.sources import find_sources
from gossamer.world.spill import Spills

SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", ".wacz")


def read(path: Path) -> tuple[int, list[str]]:
    """Return the records that Gossamer reads, and why it refuses others."""
    refused: list[str] = []
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            sources = find_sources([str(path)])
        except ConfigError as error:
            return 0, [str(error).removeprefix(f"{path} ")]
        for source in sources:
            for item in captures_of(source, Room(Spills(Path(folder), "sha1"))):
                if isinstance(item, Refused):
                    refused.append(item.reason)
                else:
                    count += 1
    return count, refused


def read_with_warcio(path: Path) -> tuple[int, str]:
    """Return the records that warcio reads, and the error that ends it."""
    count = 0
    try:
        files = [path.read_bytes()]
        if path.suffix.lower() == ".wacz":
            package = zipfile.ZipFile(path)
            files = [package.read(name) for name in package.namelist() if name.startswith("archive/")]
        with redirect_stderr(io.StringIO()):
            for data in files:
                for _ in ArchiveIterator(io.BytesIO(data)):
                    count += 1
    except Exception as error:  # noqa: BLE001 - it has many
        return count, type(error).__name__
    return count, ""


def main() -> None:
    seen: set[bytes] = set()
    same: Counter[str] = Counter()
    files: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for path in sorted(Path(sys.argv[1]).rglob("*")):
        if not path.name.lower().endswith(SUFFIXES) or not path.is_file() or not path.stat().st_size:
            continue
        digest = hashlib.sha256(path.read_bytes()).digest()
        if digest in seen:
            continue
        seen.add(digest)
        project = path.relative_to(sys.argv[1]).parts[0]
        files[project] += 1
        count, refused = read(path)
        theirs, error = read_with_warcio(path)
        if (count, refused, error) == (theirs, [], ""):
            same[project] += 1
            continue
        kinds["reads on where warcio stops" if not refused else refused[0].partition("(")[0].strip()] += 1
        print(f"{path}: {count} records, refused {refused[:2]}; warcio {theirs} {error}")
    for project, number in sorted(files.items()):
        print(f"{project}: {number} files, {same[project]} with the same records")
    print(
        f"all: {files.total()} files, {same.total()} with the same records; others by the first reason: {dict(kinds)}"
    )


if __name__ == "__main__":
    main()
