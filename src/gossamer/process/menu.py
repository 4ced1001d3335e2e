"""Menu: what a Gopher menu offers (RFC 1436, section 3.8; addresses: RFC 4266). Pure; never raises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import quote_from_bytes

FOLLOWED: Final = frozenset("014569gIhsdpPXMrc;:")
"""Item types that lead to something to fetch. Not: searches (7), which need words; sessions (2, 8, T); mirrors of the
item before (+); what only speaks (i, 3)."""
LINE_BYTES_MAX: Final = 8_192
"""Longer lines offer nothing."""
GOPHER_PORT: Final = 70
SAFE: Final = "/!$&'()*+,;=:@~"
"""What stands in a path as it is, beside letters, digits and `-._` (RFC 3986, section 3.3)."""
_HOST = re.compile(rb"[0-9A-Za-z_.:\x80-\xff-]{1,255}\Z")
_DOTS = re.compile(rb"(?:\A|/)\.{1,2}(?:/|\Z)")


class Offer(NamedTuple):
    """One item of a menu that can be followed."""

    url: str
    text: str


def offers(menu: bytes) -> Iterator[Offer]:
    """Yield what a menu offers, in order, up to the line that ends it. A last line without end may have been cut and
    is left out, and so is a selector with dot segments or control characters: no URL can carry it. About 3 µs a line.
    """
    for line in menu[: menu.rfind(b"\n") + 1].split(b"\n"):
        line = line.removesuffix(b"\r")
        if line == b".":
            return
        if not line or len(line) > LINE_BYTES_MAX or chr(line[0]) not in FOLLOWED:
            continue
        fields = line[1:].split(b"\t")
        if len(fields) >= 4:
            url = _url(chr(line[0]), *fields[1:4])
            if url:
                yield Offer(url, fields[0].decode("utf-8", "replace"))


def _url(kind: str, selector: bytes, host: bytes, port: bytes) -> str:
    """Return the address of an item, empty where it has none."""
    for mark in (b"URL:", b"/URL:"):
        if kind == "h" and selector.startswith(mark):
            return quote_from_bytes(selector.removeprefix(mark), SAFE + "%?#[]")
    port = port.strip()
    if not _HOST.match(host) or not (port.isdigit() and len(port) <= 5) or _DOTS.search(selector):
        return ""
    if any(byte < 0x20 or byte == 0x7F for byte in selector):
        return ""
    name = host.decode("utf-8", "replace")
    authority = (f"[{name}]" if ":" in name else name) + ("" if int(port) == GOPHER_PORT else f":{int(port)}")
    if kind == "1" and not selector:
        return f"gopher://{authority}/"
    return f"gopher://{authority}/{kind}{quote_from_bytes(selector, SAFE)}"
