"""Media types: what a file is by its name, or by how it begins, where no protocol says it."""

from __future__ import annotations

import mimetypes
import re
from typing import Final

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
    """Return the media type of a body that came without one, as browsers tell it; empty when it begins as none.

    WHATWG MIME Sniffing, section 7.1, for what bears links. About 1 µs.
    """
    if _BEGINS_AS_HTML(body):
        return "text/html"
    if _BEGINS_AS_XML(body):
        return "text/xml"
    return "application/pdf" if body.startswith(b"%PDF-") else ""
