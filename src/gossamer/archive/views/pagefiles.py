"""Page files: a crawl as LARM kept one: contents in segments, and two logs of lines with tabs.

`store.log`: from-page, url, url-normalized, link-type, HTTP-response-code, MIME type, file size, HTML-title,
page file nr., offset in page file. `links.log`: from-page, to-page, to-page-normalized, link-type, anchor-text.
Link types are 0 ordinary, 1 frame, 2 redirect. Segments are `pagefile_1.pfl` and so on, 50 MB at most; a content is
the `file size` bytes from its offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from gossamer.archive.views.bodies import Bodies
from gossamer.archive.views.parquet import Advance
from gossamer.archive.views.plan import Planned, planned
from gossamer.archive.views.source import Source
from gossamer.archive.views.work import CHECKPOINT_BYTES, Work
from gossamer.world.files import AppendFile

SEGMENT_BYTES_MAX = 50_000_000
NOT_STORED = -1
"""Page file and offset of a content that is larger than a segment, or not archived."""
_FRAMES = frozenset(("frame", "iframe"))
_REDIRECTS = frozenset(("redirect", "meta_refresh"))
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_LINK_COLUMNS = ["from_url", "to_url", "to_key", "link_type", "anchor_text"]


class Storing(msgspec.Struct):
    """How far it is: pages of the plan, then rows of `links`; and what of the files stands on disk."""

    pages: int = 0
    links: int = 0
    segment: int = 1
    segment_length: int = 0
    store_length: int = 0
    links_length: int = 0


def export_pagefiles(work: Work, plan: Path, links: Source, bodies: Bodies, advance: Advance) -> None:
    """Write segments and logs. In memory: one page, or one batch of links.

    Raises:
        OSError: the disk is full; what was noted stays done.
    """
    step = work.step(Storing)
    work.out.mkdir(exist_ok=True)
    _store(work, step, plan, bodies, advance)
    _link(work, step, links, advance)


def link_type(kind: str) -> int:
    """Return LARM's number of a link type: 0 ordinary, 1 frame, 2 redirect."""
    return 1 if kind in _FRAMES else 2 if kind in _REDIRECTS else 0


def escaped(text: str) -> str:
    r"""Return text for one field: tab, line ends and backslash as `\t`, `\n`, `\r`, `\\`."""
    return text.translate(_ESCAPES)


def _store(work: Work, step: Storing, plan: Path, bodies: Bodies, advance: Advance) -> None:
    log = AppendFile(work.out / "store.log", step.store_length)
    segment = _segment(work, step)
    unnoted_bytes = 0
    lines: list[bytes] = []
    try:
        for position, row in planned(plan, step.pages):
            # What cannot be stored is not read either: it may be larger than memory.
            page = bodies.page(row.place, row.original, row.url) if row.body_bytes <= SEGMENT_BYTES_MAX else None
            number, offset, body = NOT_STORED, NOT_STORED, page.body if page is not None else b""
            size = len(body) if page is not None else row.body_bytes
            if page is not None and len(body) <= SEGMENT_BYTES_MAX:
                if step.segment_length + len(body) > SEGMENT_BYTES_MAX:
                    segment.sync()
                    segment.close()
                    step.segment, step.segment_length = step.segment + 1, 0
                    segment = _segment(work, step)
                number, offset = step.segment, step.segment_length
                segment.write(body)
                step.segment_length += len(body)
                unnoted_bytes += len(body)
            lines.append(_store_line(row, size, number, offset))
            step.pages = position
            if unnoted_bytes >= CHECKPOINT_BYTES or len(lines) >= _LINES_HELD_MAX:
                segment.sync()
                step.store_length += _append(log, lines)
                work.save(step)
                lines, unnoted_bytes = [], 0
            advance(position)
        segment.sync()
        step.store_length += _append(log, lines)
        work.save(step)
    finally:
        segment.close()
        log.close()


_LINES_HELD_MAX = 20_000


def _link(work: Work, step: Storing, links: Source, advance: Advance) -> None:
    log = AppendFile(work.out / "links.log", step.links_length)
    try:
        noted = step.links_length
        for position, lines in _link_lines(links, step.links):
            log.write(lines)
            step.links_length += len(lines)
            step.links = position
            if step.links_length - noted >= CHECKPOINT_BYTES:
                log.sync()
                work.save(step)
                noted = step.links_length
            advance(position)
        log.sync()
        work.save(step)
    finally:
        log.close()


def _link_lines(links: Source, start: int) -> Iterator[tuple[int, bytes]]:
    if not links.rows:
        return
    for position, batch in links.batches(start, _LINK_COLUMNS):
        columns = [column.to_pylist() for column in batch.columns]
        lines = [
            f"{escaped(source)}\t{escaped(to)}\t{escaped(key)}\t{link_type(kind)}\t{escaped(text)}\n"
            for source, to, key, kind, text in zip(*columns, strict=True)
        ]
        yield position, "".join(lines).encode()


def _store_line(row: Planned, size: int, number: int, offset: int) -> bytes:
    fields = (
        escaped(row.referrer), escaped(row.url), escaped(row.key), str(link_type(row.link_type)), str(row.status),
        escaped(row.media_type), str(size), escaped(row.title), str(number), str(offset),
    )  # fmt: skip
    return ("\t".join(fields) + "\n").encode()


def _segment(work: Work, step: Storing) -> AppendFile:
    return AppendFile(work.out / f"pagefile_{step.segment}.pfl", step.segment_length)


def _append(log: AppendFile, lines: list[bytes]) -> int:
    data = b"".join(lines)
    log.write(data)
    log.sync()
    return len(data)
