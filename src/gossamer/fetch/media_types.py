"""Media types: what a file is by its name, where no protocol says it."""

from __future__ import annotations

import mimetypes
from typing import Final

FTP_LISTING: Final = "text/x-ftp-listing"
"""The answer to LIST or MLSD, as the server wrote it."""
GOPHER_MENU: Final = "application/gopher-menu"
URI_LIST: Final = "text/uri-list"
"""RFC 2483, section 5."""

# Python's own table and not the system's: the same crawl has the same types on every machine.
_TABLE: Final = mimetypes.MimeTypes()
_CODED: Final = {"gzip": "application/gzip", "bzip2": "application/x-bzip2", "xz": "application/x-xz", "br": ""}


def media_type_of(name: str) -> str:
    """Return the media type of a file by the end of its name, empty when that says nothing. About 2 µs."""
    kind, coding = _TABLE.guess_type("/" + name.rpartition("/")[2])
    return _CODED.get(coding, "") if coding else (kind or "")
