"""Headers: parses the head of a reply. Pure functions that raise for no input."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from gossamer.model.visits import HeaderFields, content_type, lower_names

_STATUS_LINE = re.compile(rb"HTTP/(\d(?:\.\d)?)[ \t]++(\d{3})(?:[ \t]++([^\r\n]*+))?\r?\n?\Z")


class Head(NamedTuple):
    """A reply's status line and headers."""

    http_version: str
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]

    @property
    def is_redirect(self) -> bool:
        """Whether it leads to another address, so that browsers do not need its body."""
        return 300 <= self.status < 400 and any(name.lower() == "location" for name, _ in self.headers)


def parse_head(lines: Sequence[bytes]) -> Head | None:
    """Parse a head from its lines, with line ends, as libcurl passes them.

    Interim replies (RFC 9110, section 15.2) are dropped, and so are trailers after the head. A line that begins with
    white space continues the previous one (RFC 9112, section 5.2); a line without a colon is dropped. Values are
    decoded as latin-1, so that they can be written back byte for byte. None if there is no status line.
    """
    begin = 0
    for end in [at for at, line in enumerate(lines) if line in LINE_ENDS]:
        head = _parse_block(lines[begin:end])
        if head is not None and (head.status >= 200 or head.status == 101):
            return head
        begin = end + 1
    head = _parse_block(lines[begin:])
    return head if head is not None and head.status >= 200 else None


UNKNOWN_TYPES = frozenset((
    "", "unknown/unknown", "application/unknown", "text/*", "text/htm", "text/x-html", "text/xhtml", "application/html",
    "application/xhtml", "text/x-server-parsed-html", "httpd/unix-directory", "magnus-internal/cgi",
))  # fmt: skip
"""Types without meaning (MIME Sniffing, section 7), and wrong names of HTML, where only its marks make it HTML."""
LINE_ENDS = (b"\r\n", b"\n")
_BLANK = " \t\r"


LINES_MAX = 1_000
LINE_BYTES_MAX = 200
"""Number and length of remembered header lines."""


class _Lines(dict[bytes, tuple[tuple[str, str], tuple[str, str]]]):
    """Headers by their lines, since a server repeats most of them: name and value, and both with the name in lower
    case. Looking up a line that is not one whole header raises KeyError.
    """

    def __missing__(self, line: bytes) -> tuple[tuple[str, str], tuple[str, str]]:
        headers = _parse_lines((line,))
        if len(headers) != 1 or line.find(b"\n") != len(line) - 1:
            raise KeyError(line)
        name, value = headers[0]
        header = (name, value), (lower_names[name], value)
        if len(line) <= LINE_BYTES_MAX:
            if len(self) >= LINES_MAX:
                self.clear()
            self[line] = header
        return header


_lines = _Lines()


def _parse_block(block: Sequence[bytes]) -> Head | None:
    match = _STATUS_LINE.match(block[0]) if block else None
    if match is None:
        return None
    version, status, reason = match.groups()
    try:
        headers = [_lines[line] for line in block[1:]]
    except KeyError:
        headers = [(header, (lower_names[header[0]], header[1])) for header in _parse_lines(block[1:])]
    fields = HeaderFields([header for header, _ in headers])
    headers.reverse()
    fields.first = dict([lower for _, lower in headers])
    return Head(version.decode(), int(status), (reason or b"").rstrip(b" \t").decode("latin-1"), fields)


def _parse_lines(lines: Sequence[bytes]) -> list[tuple[str, str]]:
    headers: list[tuple[str, str]] = []
    for line in b"".join(lines).decode("latin-1").split("\n"):
        name, colon, value = line.partition(":")
        if name[:1] not in _BLANK:
            if colon:
                headers.append((name.rstrip(_BLANK) if name[-1:] in _BLANK else name, value.strip(_BLANK)))
        elif line and headers and line[0] != ":":
            name, value = headers[-1]
            headers[-1] = (name, f"{value} {line.strip(_BLANK)}".strip(_BLANK))
    return headers


def is_wanted(head: Sequence[bytes], media_types: tuple[str, ...]) -> bool:
    """Return whether a body is wanted, by its head: for a document, only if it has one of these types."""
    parsed = parse_head(head)
    if parsed is None or not 200 <= parsed.status < 300:
        return True
    kind = content_type(parsed.headers)[0]
    return kind in UNKNOWN_TYPES or any(one in (kind, kind.partition("/")[0] + "/*", "*/*") for one in media_types)
