"""Paths that come from outside: from a checkpoint, a manifest or a row, before a file is opened by them."""

import re
import unicodedata

from gossamer.model.product import LOCK

_PART_BYTES_MAX = 255
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]|[. ]$')
"""Characters that separate, begin a stream or a drive, or are dropped, on some system."""
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)", re.IGNORECASE)
_NOT_FILES = frozenset(("", "logs", "search", "checkpoints", "exports", LOCK))
"""First parts that no file of a commit has: it has a folder, and these hold other files."""
EXTRACTED = "extracted.parquet"
"""The one file of a table of items that `gossamer extract` makes, not the crawl."""
_TABLE_NUMBERS = re.compile(r"-\d{3,}-\d{4,}-\d{6,}\.parquet")
_WARC = re.compile(r"(?:gossamer-\d{3,}-\d{4,}-\d{6,}|linked-\d{5,}-[\w.-]+)\.(?:warc(?:\.gz|\.zst)?(?:\.open)?|wacz)")


def is_of_table(table: str, name: str) -> bool:
    """Return whether a crawl gives this name to a file of a table such as `items/book`. Copies that people and other
    programs put beside it have other names: `x (1).parquet`, `Copy of x.parquet`, `._x.parquet`.
    """
    return name == EXTRACTED or _TABLE_NUMBERS.fullmatch(name.removeprefix(table.replace("/", "."))) is not None


def is_warc(name: str) -> bool:
    """Return whether a crawl gives this name to a WARC file, or to its link to an archive of others."""
    return _WARC.fullmatch(name) is not None


def is_plain(name: str) -> bool:
    """Return whether a relative path leads to a file below the folder that it is joined to, on every system."""
    return all(
        part not in ("", ".", "..")
        and not _FORBIDDEN.search(part)
        and not _DEVICE.match(part)
        and len(part.encode("utf-8", "surrogatepass")) <= _PART_BYTES_MAX
        for part in name.split("/")
    )


def is_file_name(name: str) -> bool:
    """Return whether a path has one part and is plain."""
    return "/" not in name and is_plain(name)


def is_of_crawl(name: str) -> bool:
    """Return whether a path may be that of a file of a commit: a plain one in a folder of archive, tables or state."""
    folder = name.rpartition("/")[0].partition("/")[0]
    return folder not in _NOT_FILES and not folder.startswith(".") and is_plain(name)


def fold_name(name: str) -> str:
    """Return a name as file systems compare it that ignore case or the form of an accent."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
