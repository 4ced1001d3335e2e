"""Views: what a crawl makes of its tables and leaves in its directory: index, search index, logs, exports."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from gossamer.config import Config
from gossamer.model.errors import DamagedError
from gossamer.model.extras import require
from gossamer.model.paths import is_file_name, is_plain
from gossamer.model.product import FORGOTTEN
from gossamer.results.forget.holdings import ASIDE, ForgottenPages
from gossamer.results.search.folder import SUMS, indexes_of
from gossamer.stages.archive.cdxj import INDEX, entries_of_tables, write_index
from gossamer.stages.frontier.priority import RANKS_FILE
from gossamer.state import slots
from gossamer.world.files import publish, sync_directory, write_whole

EXPORTS: Final = frozenset((".parquet", ".jsonl", ".csv", ".cdxj", ".wacz"))
"""What files of exports end with."""
IN_FOLDERS: Final = EXPORTS | {".md", ".pfl", ".ndjson", ".html"}
"""What files end with in the folders that exports make."""
_OWN: Final = frozenset(("warc", "state", "logs", "search", "checkpoints", INDEX, "crawl.toml", FORGOTTEN))
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}+://[^\s\"'<>\\]+")
_NEW = "search.forgetting"
_READY = "ready.json"


def rewrite_index(directory: Path, config: Config) -> None:
    """Rewrite `index.cdxj` from the tables, where there is one."""
    for stray in directory.glob(f".{INDEX}-*"):
        shutil.rmtree(stray)
    if (directory / INDEX).exists():
        entries = entries_of_tables(sorted((directory / "pages").glob("*.parquet")))
        write_index(directory / INDEX, entries, config.archive.index_sort_bytes_max)


def rewrite_search(directory: Path, config: Config, pages: ForgottenPages) -> int:
    """Rewrite the search indexes without forgotten pages; return how many documents these were. Anchor texts leave
    an index: some stood on forgotten pages.

    Costs about 0.1 ms a page of 500 words.
    """
    return sum(_rewrite_search(directory, folder, config, pages) for folder in indexes_of(directory))


def _rewrite_search(directory: Path, folder: Path, config: Config, pages: ForgottenPages) -> int:
    require("tantivy", "search.enabled")
    from gossamer.results.search.build import rewrite  # noqa: PLC0415

    aside = directory / _NEW
    ready = aside / _READY
    gone = 0
    if not ready.exists():
        shutil.rmtree(aside, ignore_errors=True)
        gone = rewrite(folder, aside, config.search.memory_bytes_max, pages.has)
        if gone:
            names = sorted(path.name for path in aside.iterdir() if path.is_file() and not path.name.endswith(".lock"))
            write_whole(ready, msgspec.json.encode((str(folder.relative_to(directory)), names)))
    if ready.exists():
        named, names = msgspec.json.decode(ready.read_bytes(), type=tuple[str, list[str]])
        if not (is_plain(named) and all(map(is_file_name, names))):
            raise DamagedError(f"{ready} names files outside of an index; remove {aside}, then repeat the command")
        _take_place(directory / named, aside, names)
    shutil.rmtree(aside, ignore_errors=True)
    return gone


def _take_place(folder: Path, aside: Path, names: list[str]) -> None:
    """Replace the files of an index by those of the new one. May be repeated from any step."""
    for name in [*(name for name in names if name != SUMS), SUMS]:
        if (aside / name).exists():
            publish(aside / name, folder / name)
    for path in folder.iterdir():
        if path.is_file() and path.name not in names:
            path.unlink()
    sync_directory(folder)


def thin_logs(directory: Path, pages: ForgottenPages) -> int:
    """Take the lines that name forgotten pages out of the logs, and such names out of the slots; return how many lines
    these are.
    """
    removed = 0
    for path in (directory / "state").rglob(slots.FILE):
        slots.erase_page(path.parent, lambda says: any(map(pages.has, _addresses(says.encode()))))
    for path in sorted((directory / "logs").rglob("*.log*")):
        if path.name.endswith((ASIDE, ".new")):
            path.unlink(missing_ok=True)  # A kill left it.
            continue
        lines = path.read_bytes().splitlines(keepends=True)
        left = [line for line in lines if not any(map(pages.has, _addresses(line)))]
        if len(left) < len(lines):
            write_whole(path, b"".join(left))
            removed += len(lines) - len(left)
    return removed


def _addresses(line: bytes) -> Iterator[str]:
    for found in _ADDRESS.finditer(line.decode("utf-8", "replace")):
        yield found[0].rstrip(".,;:)]")
        yield found[0]


def remove_exports(directory: Path, named: set[str]) -> tuple[list[str], list[str]]:
    """Remove the exports that are in a crawl's directory, finished or not, and items that `gossamer extract` made;
    return their names, and those of other files, which were not changed. `named` are the files of the crawl.
    """
    removed = []
    others = []
    tables = {name.partition("/")[0] for name in named}
    for path in sorted(directory.glob("*/**/*.parquet")):
        name = str(path.relative_to(directory))
        if name.partition("/")[0] in tables and name not in named:
            path.unlink()
            removed.append(name)
    for path in sorted(directory.iterdir()):
        if path.name in _OWN | tables or path.name.startswith(_NEW):
            continue
        if _is_export(path):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            removed.append(path.name)
        else:
            others.append(path.name)
    return removed, others


def _is_export(path: Path) -> bool:
    if path.is_symlink():
        return False  # What it leads to is elsewhere.
    if path.is_file():
        return path.suffix in EXPORTS or path.name == RANKS_FILE
    begun = path.name.endswith(".part") and (path / "state.json").exists()
    return begun or any(inner.suffix in IN_FOLDERS for inner in path.rglob("*") if inner.is_file())
