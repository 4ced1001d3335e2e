"""Bodies: how much of what is under way is held in memory, and what a body is by its name or by how it begins."""

from __future__ import annotations

import errno
import mimetypes
import re
from typing import Final

from gossamer.fetch.options import FetchOptions
from gossamer.world.spill import Spill, Spills

SPILL_BYTES_MIN: Final = 64 * 1024
"""Smaller ones stay in memory even when there is none left for them: a page is not worth a file."""


class BodyMemory:
    """The memory that all bodies under way share. Without `spills` there is no disk, and no bound but each body's own.

    An ordinary page costs two comparisons.
    """

    __slots__ = ("_spills", "each_bytes_max", "held_bytes", "held_bytes_max")

    def __init__(self, options: FetchOptions, spills: Spills | None = None) -> None:
        self._spills = spills
        self.each_bytes_max = options.body_memory_bytes_max if spills is not None else options.body_bytes_max
        self.held_bytes = 0
        """Of all bodies under way."""
        self.held_bytes_max = options.bodies_memory_bytes_max if spills is not None else 1 << 62

    def spilled(self, body: bytes | memoryview) -> Spill | None:
        """Return a file that holds a body's beginning now; None for one that may stay in memory.

        Raises:
            OSError: the disk refuses.
        """
        if self._spills is None or len(body) < min(SPILL_BYTES_MIN, self.each_bytes_max):
            return None
        try:
            spill = self._spills.make()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                return None  # Better a body in memory than a page that ends for want of a descriptor.
            raise
        spill.write(body)
        return spill


FTP_LISTING: Final = "text/x-ftp-listing"
"""The answer to LIST or MLSD, as the server wrote it."""
GOPHER_MENU: Final = "application/gopher-menu"
URI_LIST: Final = "text/uri-list"
"""RFC 2483, section 5."""

# Python's own table and not the system's: the same crawl has the same types on every machine.
_TABLE: Final = mimetypes.MimeTypes()
_CODED: Final = {"gzip": "application/gzip", "bzip2": "application/x-bzip2", "xz": "application/x-xz", "br": ""}
# MIME Sniffing, section 7.1: a tag ends with a space or >, white space may stand before it.
_BEGINS_AS_HTML = re.compile(
    rb"[\t\n\f\r ]*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)[ >]",
    re.IGNORECASE,
).match
_BEGINS_AS_XML = re.compile(rb"[\t\n\f\r ]*<\?xml").match


def media_type_of(name: str) -> str:
    """Return the media type of a file by the end of its name, empty when that says nothing. About 2 µs."""
    kind, coding = _TABLE.guess_type("/" + name.rpartition("/")[2])
    return _CODED.get(coding, "") if coding else (kind or "")


def sniffed(body: bytes) -> str:
    """Return the media type of a body that came without one, as browsers detect it; empty if none matches.

    WHATWG MIME Sniffing, section 7.1, for what bears links. About 1 µs.
    """
    if _BEGINS_AS_HTML(body):
        return "text/html"
    if _BEGINS_AS_XML(body):
        return "text/xml"
    return "application/pdf" if body.startswith(b"%PDF-") else ""
