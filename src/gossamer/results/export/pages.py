"""Pages: an export with the content of each page: Markdown, one file a page; and page files, as LARM kept them.

Markdown files begin with front matter; the main content follows. Page files keep contents in segments, and two logs
whose lines have tabs.
`store.log`: from-page, url, url-normalized, link-type, HTTP-response-code, MIME type, file size, HTML-title,
page file nr., offset in page file. `links.log`: from-page, to-page, to-page-normalized, link-type, anchor-text.
Link types are 0 ordinary, 1 frame, 2 redirect. Segments are `pagefile_1.pfl` and so on, 50 MB at most; a content is
the `file size` bytes from its offset.
"""

import hashlib
import re
from base64 import b32encode
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import tee
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.model.pages import PLAIN_TYPES
from gossamer.results.export.bodies import MarkdownPage, Means, RecordBodies
from gossamer.results.export.plan import Planned, PlanProgress, read_plan, rows_of
from gossamer.results.export.source import RowSource
from gossamer.results.export.tables import Advance
from gossamer.results.export.work import CHECKPOINT_BYTES, ExportFolder
from gossamer.world.files import AppendFile, sync_everything

PAGES_A_CHECKPOINT = 2_000
PAGES_MIN = 200
"""Contents of fewer are found by this process, before others would have begun."""
WRITTEN_TYPES = frozenset(("text/html", "application/xhtml+xml", *PLAIN_TYPES))
SLUG_CHARACTERS_MAX = 60
HOST_CHARACTERS_MAX = 100
DOCUMENT = "document"
"""`text_method` of a document that is no page: its text is in the table, as only a separate process can find it."""
_UNSAFE = re.compile(r"[^a-z0-9._-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")


def export_markdown(work: ExportFolder, plan: Path, warc_folder: Path, means: Means, advance: Advance) -> None:
    """Write `out/HOST/NAME.md` for each text page of the plan. Raises OSError: the disk is full."""
    step = work.step(PlanProgress)
    work.out.mkdir(exist_ok=True)
    for position, row, written in with_contents(plan, step.position, warc_folder, means):
        if written is not None:
            path = work.out / file_name(row.host, row.url, row.key)
            path.parent.mkdir(exist_ok=True)
            # A lone surrogate that some page's escapes made is no text.
            path.write_bytes(front_matter(msgspec.structs.asdict(row), written).encode("utf-8", "replace"))
        step.position = position
        if position % PAGES_A_CHECKPOINT == 0:
            sync_everything()
            work.save(step)
        advance(position)
    work.save(step)


def with_contents(
    plan: Path, start: int, warc_folder: Path, means: Means
) -> Iterator[tuple[int, Planned, MarkdownPage | None]]:
    """Yield the pages of a plan from a position on, with that behind each, and its content or text if there is one."""
    find = means.contents if means.contents_of is None or rows_of(plan) - start < PAGES_MIN else means.contents_of
    rows, ahead = tee(read_plan(plan, start))
    found = find(warc_folder, (row.record for _, row in ahead if _is_read(row)))
    for position, row in rows:
        content = row.found
        if row.document:
            content = MarkdownPage(row.document.replace("\n", "\n\n"), DOCUMENT, text=row.document)
        elif _is_read(row):
            content = next(found)
        elif content is not None and "language" not in content.facts and (language := means.language_of(content.text)):
            content = content._replace(facts={**content.facts, "language": language})
        yield position, row, content
    next(found, None)  # The processes of one that is at its end have ended.


def _is_read(row: Planned) -> bool:
    return not row.document and row.found is None and row.media_type in WRITTEN_TYPES


def file_name(host: str, url: str, key: str) -> str:
    """Return `HOST/SLUG-HASH.md`: safe on every file system for any URL, different for every key.

    The slug is of the path's last parts, in lower-case ASCII; the hash is 80 bits of the key's SHA-1.
    """
    path = url.partition("://")[2].partition("/")[2].partition("#")[0].partition("?")[0]
    words = safe("-".join(unquote(path, errors="replace").split("/")[-3:]))[-SLUG_CHARACTERS_MAX:].strip("-.")
    return f"{folder_of(host)}/{words or 'index'}-{hash_of(key)}.md"


def front_matter(row: Mapping[str, Any], written: MarkdownPage) -> str:
    """Return the file: YAML front matter between two lines of dashes, an empty line, the content."""
    fields = [(name, row[name]) for name in _FRONT]
    fields += [("text_method", written.text_method), *written.facts.items()]
    lines = [f"{name}: {value if isinstance(value, int) else quote(value)}" for name, value in fields if value != ""]
    return "---\n" + "\n".join(lines) + "\n---\n\n" + written.markdown.strip("\n") + "\n"


_FRONT = ("url", "title", "fetched_at", "host", "media_type", "depth", "referrer", "digest", "duplicate_of")


def quote(text: str) -> str:
    """Return the text as a double-quoted YAML scalar; invisible characters are escaped (YAML 1.2, 5.7)."""
    return '"' + "".join(_character(c) for c in text) + '"'


def _character(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    if c.isprintable() and c != "\ufeff":
        return c
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def folder_of(host: str) -> str:
    """Return the folder of a host: its name where every file system takes that."""
    name = safe(host.strip("[]").replace(":", "_"))
    if name == host and len(name) <= HOST_CHARACTERS_MAX and not name.startswith(".") and not name.endswith("."):
        return name
    return f"{name[:HOST_CHARACTERS_MAX].strip('.-') or 'host'}-{hash_of(host)}"


def safe(text: str) -> str:
    """Return text as a part of a file's name: lower-case ASCII, and no name that Windows keeps for itself."""
    name = _UNSAFE.sub("-", text.lower())
    return f"_{name}" if _RESERVED.match(name) else name


def hash_of(text: str) -> str:
    """Return 80 bits of a text's SHA-1, as 16 characters."""
    digest = hashlib.sha1(text.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return b32encode(digest[:10]).decode().lower()


SEGMENT_BYTES_MAX = 50_000_000
NOT_STORED = -1
"""Page file and offset of a content that is larger than a segment, or not archived."""
_FRAMES = frozenset(("frame", "iframe"))
_REDIRECTS = frozenset(("redirect", "meta_refresh"))
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_LINK_COLUMNS = ["from_url", "to_url", "to_key", "link_type", "anchor_text"]


class PagefilesProgress(msgspec.Struct):
    """Progress: pages of the plan, then rows of `links`; and the lengths of the files on disk."""

    pages: int = 0
    links: int = 0
    segment: int = 1
    segment_length: int = 0
    store_length: int = 0
    links_length: int = 0


def export_pagefiles(
    work: ExportFolder, plan: Path, links: RowSource, bodies: RecordBodies, advance: Advance, advance_links: Advance
) -> None:
    """Write segments and logs, and count pages and links. Raises OSError: the disk is full."""
    step = work.step(PagefilesProgress)
    work.out.mkdir(exist_ok=True)
    _store(work, step, plan, bodies, advance)
    with closing(AppendFile(work.out / "links.log", step.links_length)) as log:
        for position, lines in _link_lines(links, step.links):
            log.write(lines)
            step.links_length += len(lines)
            step.links = position
            if log.unsynced_bytes >= CHECKPOINT_BYTES:
                log.sync()
                work.save(step)
            advance_links(position)
        log.sync()
        work.save(step)


def link_type(kind: str) -> int:
    """Return LARM's number of a link type: 0 ordinary, 1 frame, 2 redirect."""
    return 1 if kind in _FRAMES else 2 if kind in _REDIRECTS else 0


def escape(text: str) -> str:
    r"""Return text for one field: tab, line ends and backslash as `\t`, `\n`, `\r`, `\\`."""
    return text.translate(_ESCAPES)


def _store(work: ExportFolder, step: PagefilesProgress, plan: Path, bodies: RecordBodies, advance: Advance) -> None:
    log = AppendFile(work.out / "store.log", step.store_length)
    segment = _segment(work, step)
    unnoted_bytes = 0
    lines: list[bytes] = []
    try:
        for position, row in read_plan(plan, step.pages):
            # What cannot be stored is not read either: it may be larger than memory.
            record = msgspec.structs.replace(row.record, is_rendered=False)  # The digest is of what was sent.
            page = bodies.page(record) if row.body_bytes <= SEGMENT_BYTES_MAX else None
            number = NOT_STORED
            offset = NOT_STORED
            body = page.body if page is not None else b""
            size = len(body) if page is not None else row.body_bytes
            if page is not None and len(body) <= SEGMENT_BYTES_MAX:
                if step.segment_length + len(body) > SEGMENT_BYTES_MAX:
                    segment.sync()
                    segment.close()
                    step.segment = step.segment + 1
                    step.segment_length = 0
                    segment = _segment(work, step)
                number = step.segment
                offset = step.segment_length
                segment.write(body)
                step.segment_length += len(body)
                unnoted_bytes += len(body)
            lines.append(_store_line(row, size, number, offset))
            step.pages = position
            if unnoted_bytes >= CHECKPOINT_BYTES or len(lines) >= _LINES_HELD_MAX:
                segment.sync()
                step.store_length += _append(log, lines)
                work.save(step)
                lines = []
                unnoted_bytes = 0
            advance(position)
        segment.sync()
        step.store_length += _append(log, lines)
        work.save(step)
    finally:
        segment.close()
        log.close()


_LINES_HELD_MAX = 20_000


def _link_lines(links: RowSource, start: int) -> Iterator[tuple[int, pa.Buffer]]:
    for position, batch in links.batches(start, _LINK_COLUMNS):
        source, to, key, kind, text = (column.cast(pa.string()) for column in batch.columns)
        kinds = kind.dictionary_encode()
        number = pa.array([str(link_type(one)) for one in kinds.dictionary.to_pylist()], pa.string())
        fields = (_escape_all(source), _escape_all(to), _escape_all(key), number.take(kinds.indices))
        ended = pc.binary_join_element_wise(_escape_all(text), "\n", "")
        lines = pc.binary_join_element_wise(*fields, ended, "\t")
        yield position, pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "")[0].as_buffer()


def _escape_all(texts: pa.Array) -> pa.Array:
    """As `escape`, of a column."""
    for code, escaped in _ESCAPES.items():
        texts = pc.replace_substring(texts, chr(code), str(escaped))
    return texts


def _store_line(row: Planned, size: int, number: int, offset: int) -> bytes:
    fields = (
        escape(row.referrer), escape(row.url), escape(row.key), str(link_type(row.link_type)), str(row.status),
        escape(row.media_type), str(size), escape(row.title), str(number), str(offset),
    )  # fmt: skip
    return ("\t".join(fields) + "\n").encode()


def _segment(work: ExportFolder, step: PagefilesProgress) -> AppendFile:
    return AppendFile(work.out / f"pagefile_{step.segment}.pfl", step.segment_length)


def _append(log: AppendFile, lines: list[bytes]) -> int:
    data = b"".join(lines)
    log.write(data)
    log.sync()
    return len(data)
