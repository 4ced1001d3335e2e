"""Bodies: bounds the memory of bodies in flight, and finds a body's media type by its name or its beginning."""

import errno
import mimetypes
import re
from collections.abc import Callable
from functools import cache
from typing import Final

from gossamer.model.visits import LargeBody
from gossamer.stages.fetch.decoding import BEGINNING_BYTES, beginning, content_codings
from gossamer.stages.fetch.headers import UNKNOWN_TYPES
from gossamer.stages.fetch.options import FetchOptions
from gossamer.world.spill import Spill, Spills

SPILL_BYTES_MIN: Final = 64 * 1024
"""Smaller bodies stay in memory even beyond the bound, since a file for each would cost too much."""


class InFlight:
    """A transfer in flight, of any protocol."""

    __slots__ = ("lags",)

    lags: bool
    """Whether it brings next to nothing."""


class BodyMemory:
    """The memory that all bodies in flight share, and the transfers in flight, of all protocols. Without `spills` no
    body goes to disk, and only the bound of each body applies.

    An ordinary page costs two comparisons.
    """

    __slots__ = ("_spills", "at_limit", "each_bytes_max", "held_bytes", "held_bytes_max", "received_bytes", "running")

    def __init__(self, options: FetchOptions, spills: Spills | None = None) -> None:
        self._spills = spills
        self.each_bytes_max = options.body_memory_bytes_max if spills is not None else options.body_bytes_max
        self.held_bytes = 0
        """Memory of all bodies in flight."""
        self.received_bytes = 0
        """Length of all bodies in flight so far."""
        self.at_limit: Callable[[], bool] = bool
        """Returns whether they use up what the crawl may receive: then they end."""
        self.running: set[InFlight] = set()
        self.held_bytes_max = options.bodies_memory_bytes_max if spills is not None else 1 << 62

    def spill(self, body: bytes | memoryview) -> Spill | None:
        """Return a file with the body's beginning; None if the body may stay in memory. Raises OSError: the disk
        refuses.
        """
        if self._spills is None or len(body) < min(SPILL_BYTES_MIN, self.each_bytes_max):
            return None
        try:
            spill = self._spills.make()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                return None  # Without a free descriptor it is better to keep the body in memory than to fail the page.
            raise
        spill.write(body)
        return spill


FTP_LISTING: Final = "text/x-ftp-listing"
"""The answer to LIST or MLSD, as the server wrote it."""
GOPHER_MENU: Final = "application/gopher-menu"
URI_LIST: Final = "text/uri-list"
"""RFC 2483, section 5."""
_CODED: Final = {"gzip": "application/gzip", "bzip2": "application/x-bzip2", "xz": "application/x-xz", "br": ""}
# MIME Sniffing, section 7.1: a tag ends with a space or >, and may have white space before it.
_BEGINS_AS_HTML = re.compile(
    rb"[\t\n\f\r ]*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)[ >]",
    re.IGNORECASE,
).match
_BEGINS_AS_XML = re.compile(rb"[\t\n\f\r ]*<\?xml").match


XHTML: Final = "application/xhtml+xml"
_OTHER_XML: Final = frozenset((XHTML, "image/svg+xml", "application/rss+xml", "application/atom+xml"))
begins_as_xhtml = re.compile(
    rb"(?:\xef\xbb\xbf)?(?>(?:[\t\n\f\r ]++|<\?(?>(?:[^?]|\?(?!>))*)\?>|<!--(?>(?:[^-]|-(?!->))*)-->"
    rb"|<!DOCTYPE[^<>\[]*+(?:\[[^\]]*+\][^<>]*+)?>)*)<html[\t\n\f\r >]"
).match
"""Matches the beginning of an XML document whose outermost element is `html`."""


GENERIC_TYPES: Final = frozenset((
    "application/octet-stream", "binary/octet-stream", "application/binary", "application/download",
    "application/x-download", "application/force-download", "application/x-force-download", "application/save",
    "application/x-pdf", "application/zip", "application/x-zip-compressed", "application/msword",
))  # fmt: skip
"""Types by which servers send documents of any kind: to be saved, archives, and what was once the only kind."""
_PACKED_BEGINS = re.compile(
    rb"PK\x03\x04.{4}\0\0.{16}\x08\0\0\0mimetype(application/(?:epub\+zip|vnd\.oasis\.opendocument\.[a-z-]++))",
    re.DOTALL,
).match
_OFFICE_PART = re.compile(rb"PK\x03\x04.{26}(word|xl|ppt)/", re.DOTALL).search
_OFFICE: Final = {
    b"word": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    b"xl": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    b"ppt": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}


TEXT_TYPES: Final = frozenset(("text/plain", "text/html"))
"""Types that servers and scripts state for files whose type they do not know."""
_SIGNATURES: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF87a": "image/gif", b"GIF89a": "image/gif",
    b"PK\x03\x04": "application/zip", b"%PDF-": "application/pdf", b"7z\xbc\xaf": "application/x-7z-compressed",
    b"Rar!\x1a\x07": "application/vnd.rar", b"\xfd7zXZ\0": "application/x-xz", b"BZh": "application/x-bzip2",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "application/x-ole-storage", b"OggS\0": "application/ogg",
    b"ID3": "audio/mpeg", b"\x1a\x45\xdf\xa3": "video/webm", b"\x7fELF": "application/x-executable",
    b"MZ": "application/x-msdownload", b"RIFF": "", b"wOFF": "font/woff", b"wOF2": "font/woff2",
    b"\xed\xab\xee\xdb": "application/x-rpm",
}  # fmt: skip
_BINARY: Final = tuple(_SIGNATURES)
"""Beginnings of files that are no text."""
_HAS_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]").search
_UTF_16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_SIGNATURE_BYTES: Final = 1_445
"""Bytes in which a file that is no text shows it (MIME Sniffing, section 7.2)."""


@cache
def _types() -> mimetypes.MimeTypes:
    """Return Python's table and not the system's, which it reads first: a crawl has the same types on every machine."""
    return mimetypes.MimeTypes()


def media_type_of(name: str) -> str:
    """Return the media type of a file by its extension; empty if unknown. About 2 µs."""
    kind, coding = _types().guess_type("/" + name.rpartition("/")[2])
    return _CODED.get(coding, "") if coding else (kind or "")


def sniff(body: bytes) -> str:
    """Return the media type of a body that came without one, as browsers detect it; empty if none matches.

    WHATWG MIME Sniffing, section 7.1, only for types with links; XHTML is a type apart from other XML. About 1 µs.
    """
    if _BEGINS_AS_HTML(body):
        return "text/html"
    if _BEGINS_AS_XML(body):
        return XHTML if begins_as_xhtml(body) else "text/xml"
    return sniff_document(body)


def sniff_document(body: bytes) -> str:
    """Return the media type of a PDF, an RTF, an EPUB or an office document by its beginning; empty for other files."""
    if body.startswith(b"%PDF-"):
        return "application/pdf"
    if body.startswith(b"{\\rtf"):
        return "application/rtf"
    if packed := _PACKED_BEGINS(body):
        return packed[1].decode()
    part = _OFFICE_PART(body) if body.startswith(b"PK\x03\x04") and b"[Content_Types].xml" in body else None
    return _OFFICE[part[1]] if part is not None else ""


def sniff_binary(stated: str, body: bytes) -> str:
    """Return the media type of a file that is no text although its type says so; `stated` if it may be one.

    Browsers save such a file that is sent as plain text (MIME Sniffing, section 7.2). Beyond their rule, one that is
    sent as HTML is known by its signature, and a plain text of no known kind must have zeros at odd and even places, so
    that old texts with a few control characters and UTF-16 stay texts. About 0.3 µs.
    """
    if not body.startswith(_BINARY):
        if stated != "text/plain" or 0 not in body[:_SIGNATURE_BYTES] or body.startswith(_UTF_16_MARKS):
            return stated
        begun = body[:_SIGNATURE_BYTES]
        return "application/octet-stream" if 0 in begun[::2] and 0 in begun[1::2] else stated
    if _HAS_CONTROLS(body, 0, _SIGNATURE_BYTES) is None:
        return stated
    signature = next(one for one in _BINARY if body.startswith(one))
    return sniff_document(body) or _SIGNATURES[signature] or "application/octet-stream"


def read_as(stated: str, headers: tuple[tuple[str, str], ...], body: bytes, file: LargeBody | None, url: str) -> str:
    """Return the media type as which a reply is read: that which it states, unless that says nothing, may be any file,
    says text of a binary file, or XML of a document whose elements are those of XHTML. Then its content decides.
    Stylesheets do not begin in a way of their own: without a type they are known by their names.
    """
    if stated == "text/html" and file is None and not body.startswith(_BINARY):
        return stated  # Nearly all pages. To look into a compressed one would cost 43 to 111 µs.
    is_unknown = stated in UNKNOWN_TYPES
    is_generic = stated in GENERIC_TYPES
    is_text = stated in TEXT_TYPES
    may_be_xhtml = stated.endswith(("/xml", "+xml")) and stated not in _OTHER_XML
    if not is_unknown and not is_generic and not is_text and not may_be_xhtml:
        return stated
    begun = body
    if file is not None:
        with file.open() as reader:
            begun = reader.read(BEGINNING_BYTES)
    codings = content_codings(headers)
    begun = beginning(codings, begun) if codings else begun
    if is_text:
        return sniff_binary(stated, begun[:BEGINNING_BYTES])
    if is_unknown:
        is_css = not stated and url.partition("?")[0].endswith(".css")
        return sniff(begun) or ("text/css" if is_css else stated)
    if is_generic:
        return sniff_document(begun[:BEGINNING_BYTES]) or stated
    return XHTML if begins_as_xhtml(begun) else stated
