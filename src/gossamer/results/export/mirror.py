"""Mirror: an export of pages and what they show as files that open in a browser without a network.

A file's name follows its URL: `HOST/PATH/NAME.EXT`, in lower case, safe on every file system. The extension follows the
media type, and no directory ends in one, so that no file is in the way of a directory. Where two URLs want one name,
the second has a hash. Names are settled before the first file is written, so links can be relative.
"""

import html
import mimetypes
import posixpath
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from gossamer.results.export.bodies import ArchivedPage, Means, RecordBodies
from gossamer.results.export.pages import folder_of, hash_of, safe
from gossamer.results.export.plan import Planned, PlanProgress, read_plan, rows_of
from gossamer.results.export.source import RowSource
from gossamer.results.export.tables import Advance
from gossamer.results.export.work import ExportFolder, ExportPiece
from gossamer.world.files import publish, sync_everything

Place = Callable[[str], str]
KeyOf = Callable[[str], str]
"""Makes the key of an address; empty for another text."""

NAMES = "names.sqlite"
INDEX = "index.html"
INDEX_LINKS_MAX = 1_000
PAGES_A_CHECKPOINT = 500
PAGES_MIN = 1_000
"""Fewer are written by this process, before others would have begun."""
DIRECTORIES_MAX = 16
PART_CHARACTERS_MAX = 60
STEM_CHARACTERS_MAX = 80
HOPS_MAX = 10
_FIND = "SELECT (SELECT name FROM files WHERE key = :key), (SELECT target FROM moves WHERE key = :key)"
NAMES_HELD_MAX = 10_000
"""Addresses whose names are held: pages of a site link to the same ones."""
NAMES_MAX = 100
"""Names that are tried for a URL: a site can have addresses that spell the hashes of others."""
_EXTENSION = re.compile(r"\.(?=[0-9]*[a-z])[a-z0-9]{1,16}$")
"""Extensions of files, which no directory has. One of digits alone is part of a version."""
_KINDS = {
    "text/html": ".html", "application/xhtml+xml": ".html", "text/css": ".css", "text/javascript": ".js",
    "application/javascript": ".js", "application/x-javascript": ".js", "image/jpeg": ".jpg", "image/png": ".png",
    "image/gif": ".gif", "image/webp": ".webp", "image/avif": ".avif", "image/svg+xml": ".svg",
    "image/x-icon": ".ico", "image/vnd.microsoft.icon": ".ico", "font/woff": ".woff", "font/woff2": ".woff2",
    "text/plain": ".txt", "application/json": ".json", "application/pdf": ".pdf", "application/ogg": ".ogg",
    "application/xml": ".xml", "video/mp4": ".mp4",
}  # fmt: skip
_SUFFIXES = {"xml": ".xml", "json": ".json"}
"""By the suffix of media types without an extension of their own, such as those of feeds."""
_ANY = frozenset(
    ("application/octet-stream", "binary/octet-stream", "application/x-download", "application/force-download")
)
"""Media types that say nothing: what servers send downloads as, and fonts."""
_DOCUMENTS = frozenset((".htm", ".html", ".mht", ".mhtml", ".shtml", ".svg", ".xht", ".xhtml", ".xml"))
"""A browser would run their scripts, and without the media type no policy is in them."""
_SAME = {".htm": ".html", ".jpeg": ".jpg", ".mjs": ".js", ".xhtml": ".html"}


def export_mirror(
    work: ExportFolder, plan: Path, pages: Sequence[ExportPiece], warc_folder: Path, means: Means, advance: Advance
) -> None:
    """Write `out/HOST/…` for each page of the plan, and `out/index.html` with links to the seeds. In memory: one page,
    and addresses of some hundred. Of a share, it writes the pages whose records that has; names and links are those of
    the whole. Raises OSError: the disk is full; what was noted stays done.
    """
    step = work.step(PlanProgress)
    work.out.mkdir(exist_ok=True)
    file = work.folder / NAMES
    has = work.order.share.has if work.order.share is not None else lambda _: True
    is_short = rows_of(plan) - step.position < PAGES_MIN
    write = partial(write_files, means) if means.write_files is None or is_short else means.write_files
    with Names.make(file, plan, pages, means.key_of) as names:
        planned = (row for _, row in read_plan(plan, step.position))
        named = (replace(row.record, file=names.of_key(row.key) if has(row.place.file) else "") for row in planned)
        for position, _ in enumerate(write(warc_folder, named, work.out, file), step.position + 1):
            step.position = position
            if position % PAGES_A_CHECKPOINT == 0:
                sync_everything()
                work.save(step)
            advance(position)
        (work.out / INDEX).write_text(_index(plan, names), encoding="utf-8")
    work.save(step)


def write_files(
    means: Means, warc_folder: Path, pages: Iterable[ArchivedPage], out: Path, names_file: Path
) -> Iterator[None]:
    """Write pages as files of a mirror, in this process. See `WriteFiles`."""
    with RecordBodies(warc_folder, means.decode) as bodies, Names(names_file, means.key_of) as names:
        for one in pages:
            if (page := bodies.page(one) if one.file else None) is not None:
                path = out / one.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(means.rewrite(page, names.place(posixpath.dirname(one.file))))
            yield


class Names(AbstractContextManager["Names"]):
    """The file of each URL, in a database beside the export: memory does not grow with their number."""

    def __init__(self, path: Path, key_of: KeyOf) -> None:
        self._database = sqlite3.connect(path)
        self._key_of = key_of
        self.of = lru_cache(maxsize=NAMES_HELD_MAX)(self._find)

    @classmethod
    def make(cls, path: Path, plan: Path, pages: Sequence[ExportPiece], key_of: KeyOf) -> Self:
        """Choose all names, unless an earlier run did."""
        if not path.exists():
            new = path.with_name(path.name + ".new")
            new.unlink(missing_ok=True)
            with closing(sqlite3.connect(new)) as database, database:
                database.execute("CREATE TABLE files (key TEXT PRIMARY KEY, name TEXT UNIQUE) WITHOUT ROWID")
                database.execute("CREATE TABLE moves (key TEXT PRIMARY KEY, target TEXT) WITHOUT ROWID")
                for _, row in read_plan(plan):
                    _settle(database, row)
                database.executemany("INSERT OR REPLACE INTO moves VALUES (?, ?)", _moves(pages))
            publish(new, path)
        return cls(path, key_of)

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def of_key(self, key: str) -> str:
        """Return the name of a key's file; empty where it has none."""
        found = self._database.execute("SELECT name FROM files WHERE key = ?", (key,)).fetchone()
        return str(found[0]) if found is not None else ""

    def _find(self, url: str) -> str:
        """Return the name of a URL's file, redirects followed; empty where it has none."""
        for _ in range(HOPS_MAX):
            name, target = self._database.execute(_FIND, {"key": self._key_of(url)}).fetchone()
            if name or not target:
                return name or ""
            url = target
        return ""

    def place(self, directory: str) -> Place:
        """Return the reference to a URL from within a directory: its file, or the URL itself if it has none."""

        def relative_name(url: str) -> str:
            name = self.of(url)
            return posixpath.relpath(name, directory or ".") if name else url

        return relative_name


def _settle(database: sqlite3.Connection, row: Planned) -> None:
    stem, extension = file_of(row.host, row.url, row.media_type)
    for number in range(NAMES_MAX):
        mark = f"-{hash_of(row.key * number)}" if number else ""
        found = (row.key, f"{stem}{mark}{extension}")
        if database.execute("INSERT OR IGNORE INTO files VALUES (?, ?)", found).rowcount:
            return


def _moves(pages: Sequence[ExportPiece]) -> Iterator[tuple[str, str]]:
    source = RowSource(pages, "outcome = 'redirected' AND redirect_to IS NOT NULL", "pages")
    for _, batch in source.batches(0, ["key", "redirect_to"]):
        yield from zip(batch["key"].to_pylist(), batch["redirect_to"].to_pylist(), strict=True)


def file_of(host: str, url: str, media_type: str) -> tuple[str, str]:
    """Return the name of a URL's file, up to its extension, and that."""
    parts = urlsplit(url)
    *directories, last = unquote(parts.path, errors="replace").lstrip("/").split("/")
    folders = [_directory(one) for one in directories[:DIRECTORIES_MAX]]
    stem = safe(safe(last).strip("-."))  # Twice: what was stripped may have hidden a reserved name.
    extension = _extension(stem, media_type)
    if stem.endswith(extension):
        stem = stem.removesuffix(extension)
    if last and not stem:
        stem = "_"  # The name of the folder's own page is for that.
    if parts.query:
        stem = (stem or "index") + "-" + safe(unquote(parts.query, errors="replace")).strip("-.")
    stem = stem[:STEM_CHARACTERS_MAX].strip(".") or "index"
    folder = folder_of(host)
    return posixpath.join(folder + "_" if folder == INDEX else folder, *folders, stem), extension


def _directory(part: str) -> str:
    name = safe(safe(part)[:PART_CHARACTERS_MAX].strip(".-")) or "_"
    return name + "_" if _EXTENSION.search(name) else name


def _extension(stem: str, media_type: str) -> str:
    """Return the extension by which a browser knows the media type of a file: the URL's own, where it says the same."""
    found = _EXTENSION.search(stem)
    own = found[0] if found is not None else ""
    wanted = _KINDS.get(media_type) or mimetypes.guess_extension(media_type or "") or ""
    wanted = wanted if _EXTENSION.fullmatch(wanted) else ""
    if own and _SAME.get(own, own) == wanted:
        return own
    if media_type not in _KINDS and own in mimetypes.guess_all_extensions(media_type):
        return own
    if own == _SUFFIXES.get(media_type.rpartition("+")[2]) or (own and media_type in _ANY and own not in _DOCUMENTS):
        return own
    return wanted or own or _SUFFIXES.get(media_type.rpartition("+")[2], ".bin")


def _index(plan: Path, names: Names) -> str:
    rows = (row for _, row in read_plan(plan) if row.depth == 0 and row.link_type == "seed")
    return index_of((names.of_key(row.key), row.title or row.url) for row in islice(rows, INDEX_LINKS_MAX))


def index_of(pages: Iterable[tuple[str, str]]) -> str:
    """Return the page that links to the seeds, given by file and title."""
    links = "".join(f'<li><a href="{html.escape(name)}">{html.escape(text)}</a></li>\n' for name, text in pages)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Mirror</title>\n'
        '<meta name="viewport" content="width=device-width">\n'
        "<style>body { font: 16px/1.6 system-ui; margin: 2rem; overflow-wrap: anywhere }</style>\n"
        f"<main><h1>Mirror</h1>\n<ul>\n{links}</ul></main>\n"
    )
