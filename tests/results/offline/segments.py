"""Segments made by hand, for crawls that fetch them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from gossamer.model.links import Link
from gossamer.results.offline.segment import Segment, SegmentInfo, SegmentWriter
from gossamer.url.name import Namer


def segment_of(path: Path, rows: Iterable[tuple[str, int, int]]) -> Path:
    """Write a segment of URLs with their levels and depths."""
    namer = Namer()
    links: list[tuple[Link, int]] = []
    for text, level, depth in rows:
        url = namer.name(text)
        assert url is not None
        links.append((Link(url, "anchor", depth, 0, f"http://{url.host}/" if depth else ""), level))
    links.sort(key=lambda row: (row[0].url.partition, row[0].url.site))
    with SegmentWriter(path, SegmentInfo(made_by="a test")) as writer:
        writer.write_links([link for link, _ in links], [level for _, level in links], [1] * len(links))
    return path


def urls_of(path: Path) -> list[str]:
    """Return the URLs of a segment, in order."""
    with closing(Segment(path)) as segment:
        return [link.url.text for rows in segment.links() for link in rows.links]
