"""Bodies: what servers sent, read back from WARC files by place."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import BinaryIO, Self

import msgspec
from fastwarc.warc import ArchiveIterator, WarcRecordType

from gossamer.archive.members import is_sound
from gossamer.archive.views.whole import broken, ended_early, is_zstd
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.model.visits import Page, Reply
from gossamer.ports import Decoder

BODY_BYTES_MAX = 64_000_000
"""Of a body, as sent, no more is read."""
READ_WHOLE_BYTES_MAX = 8_000_000
"""A longer record is not read in one piece."""


class Place(msgspec.Struct, frozen=True):
    """Where a record lies."""

    file: str
    offset: int
    length: int


class Bodies:
    """Reads records; one file is open at a time. About 60 µs a record of 26 KB. Use as a context."""

    def __init__(self, warc_folder: Path, decoder: Decoder) -> None:
        self._folder = warc_folder
        self._decoder = decoder
        self._name = ""
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def page(self, place: Place, original: Place | None = None, url: str = "") -> Page | None:
        """Return the page of a record, its content coding removed; that of `original` when the record is a revisit.
        `url` is what is asked for, for people.

        None when neither holds a body.

        Raises:
            ConfigError: the file is not here: it may be in an object store alone.
            DamagedError: the record is not what was written; the line names file, offset and `url`.
        """
        page = self._page(place, url)
        if page is None and original is not None:
            page = self._page(original, url)
        return page

    def _page(self, place: Place, url_asked: str) -> Page | None:
        for record in ArchiveIterator(self._member(place, url_asked)):
            if record.record_type == WarcRecordType.revisit:
                return None
            url = record.headers["WARC-Target-URI"]
            headers: tuple[tuple[str, str], ...] = ()
            kind, status = record.headers.get("Content-Type") or "", 200
            if record.record_type == WarcRecordType.response:
                http = record.http_headers
                headers, status = tuple(http.astuples()), http.status_code or 0
                kind = http.get("Content-Type") or ""
            body = record.reader.read(BODY_BYTES_MAX)
            reply = Reply(url, status, headers, body, "", 0.0, 0.0, len(body))
            media_type, charset = _media_type(kind)
            return Page(url, media_type, charset, headers, self._decoder.decode(reply).body)
        return None

    def _member(self, place: Place, url: str) -> BinaryIO:
        if place.file != self._name or self._file is None:
            if self._file is not None:
                self._file.close()
                self._file = None
            path = self._folder / place.file
            try:
                self._file = path.open("rb")
            except FileNotFoundError:
                growing = path.with_name(path.name + ".open")
                # Between the two looks the crawl may have finished the file.
                if not growing.exists() and not path.exists():
                    raise ConfigError(f"{path} is not here; copy it from the crawl's object store") from None
                self._file = (growing if growing.exists() else path).open("rb")
            self._name = place.file
        path = self._folder / place.file
        if os.fstat(self._file.fileno()).st_size < place.offset + place.length:
            raise ended_early(path)
        if fault := is_sound(self._file, place.offset, place.length, zstd=is_zstd(path)):
            leave = f"{broken(path, place.offset, url, fault)}, or leave the page out: --where \"url <> '{url}'\""
            raise DamagedError(leave)
        self._file.seek(place.offset)
        return io.BytesIO(self._file.read(place.length)) if place.length <= READ_WHOLE_BYTES_MAX else self._file


def _media_type(content_type: str) -> tuple[str, str]:
    kind, *parameters = content_type.split(";")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return kind.strip().lower(), value.strip().strip("\"'")
    return kind.strip().lower(), ""
