"""Markdown: one file a page: front matter, then the main content."""

from __future__ import annotations

import hashlib
import re
from base64 import b32encode
from pathlib import Path
from urllib.parse import unquote

import msgspec

from gossamer.archive.views.bodies import Bodies
from gossamer.archive.views.means import Content
from gossamer.archive.views.parquet import Advance
from gossamer.archive.views.plan import Planned, planned
from gossamer.archive.views.work import Work
from gossamer.world.files import sync_everything

PAGES_A_CHECKPOINT = 2_000
WRITTEN_TYPES = frozenset(("text/html", "application/xhtml+xml", "text/plain"))
SLUG_CHARACTERS_MAX = 60
HOST_CHARACTERS_MAX = 100
_UNSAFE = re.compile(r"[^a-z0-9._-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")


class Writing(msgspec.Struct):
    """How far it is: pages of the plan."""

    position: int = 0


def export_markdown(work: Work, plan: Path, bodies: Bodies, content_of: Content, advance: Advance) -> None:
    """Write `out/HOST/NAME.md` for each page of the plan that is text. In memory: one page.

    Raises:
        OSError: the disk is full; what was noted stays done.
    """
    step = work.step(Writing)
    work.out.mkdir(exist_ok=True)
    for position, row in planned(plan, step.position):
        if row.media_type in WRITTEN_TYPES:
            page = bodies.page(row.place, row.original, row.url)
            if page is not None:
                path = work.out / file_name(row.host, row.url, row.key)
                path.parent.mkdir(exist_ok=True)
                # A lone surrogate that some page's escapes made is no text.
                path.write_bytes(document(row, *content_of(page)).encode("utf-8", "replace"))
        step.position = position
        if position % PAGES_A_CHECKPOINT == 0:
            sync_everything()
            work.save(step)
        advance(position)
    work.save(step)


def file_name(host: str, url: str, key: str) -> str:
    """Return `HOST/SLUG-HASH.md`: safe on every file system, different for every key, whatever the URL says.

    The slug is of the path's last parts, in lower-case ASCII; the hash is 80 bits of the key's SHA-1.
    """
    path = url.partition("://")[2].partition("/")[2].partition("#")[0].partition("?")[0]
    words = _safe("-".join(unquote(path, errors="replace").split("/")[-3:]))[-SLUG_CHARACTERS_MAX:].strip("-.")
    return f"{_folder(host)}/{words or 'index'}-{_hash(key)}.md"


def document(row: Planned, content: str, text_method: str) -> str:
    """Return the file: YAML front matter between two lines of dashes, an empty line, the content."""
    fields: list[tuple[str, str | int]] = [
        ("url", row.url),
        ("title", row.title),
        ("fetched_at", row.fetched_at),
        ("host", row.host),
        ("media_type", row.media_type),
        ("depth", row.depth),
        ("referrer", row.referrer),
        ("digest", row.digest),
        ("duplicate_of", row.duplicate_of),
        ("text_method", text_method),
    ]
    lines = [f"{name}: {value if isinstance(value, int) else quoted(value)}" for name, value in fields if value != ""]
    return "---\n" + "\n".join(lines) + "\n---\n\n" + content.strip("\n") + "\n"


def quoted(text: str) -> str:
    """Return the text as a double-quoted YAML scalar; all that does not show itself is escaped (YAML 1.2, 5.7)."""
    return '"' + "".join(_character(c) for c in text) + '"'


def _character(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    if c.isprintable() and c != "\ufeff":
        return c
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _folder(host: str) -> str:
    name = _safe(host.strip("[]").replace(":", "_"))
    if name == host and len(name) <= HOST_CHARACTERS_MAX and not name.startswith(".") and not name.endswith("."):
        return name
    return f"{name[:HOST_CHARACTERS_MAX].strip('.-') or 'host'}-{_hash(host)}"


def _safe(text: str) -> str:
    name = _UNSAFE.sub("-", text.lower())
    return f"_{name}" if _RESERVED.match(name) else name


def _hash(text: str) -> str:
    digest = hashlib.sha1(text.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return b32encode(digest[:10]).decode().lower()
