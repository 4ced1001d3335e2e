"""Listings: the links of directories and menus that are no HTML, as their servers sent them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote_from_bytes

from gossamer.model.visits import Findings, Page
from gossamer.process.base import Base
from gossamer.process.directory import Entry, entries
from gossamer.process.links import Links
from gossamer.process.menu import SAFE, offers
from gossamer.process.options import ProcessOptions

_IN_NAME: Final = SAFE.replace("/", "").replace(";", "")
"""A semicolon would begin FTP's `;type=`."""
_EXTENSION = re.compile(rb".\.[A-Za-z][A-Za-z0-9]{0,7}\Z", re.DOTALL)


class ListingLinks:
    """Finds the links of FTP listings, Gopher menus and lists of addresses (RFC 2483), as anchors.

    In an FTP listing a symbolic link stands for what it leads to, so that links back into a tree come to an end. What
    the listing itself does not name counts as a file if its name has an extension, else as a directory. About 6 µs a
    line.
    """

    name = "listings"

    def __init__(self, options: ProcessOptions | None = None) -> None:
        self._options = options or ProcessOptions()

    def wants(self, media_type: str) -> bool:
        return media_type in _READERS

    def process(self, page: Page, findings: Findings) -> None:
        links = Links(Base(page.url), self._options)
        for href, text in _READERS[page.media_type](page):
            links.add("anchor", href, text)
        findings.links.extend(links.taken())


def _listed(page: Page) -> Iterator[tuple[str, str]]:
    """Yield what an FTP listing names."""
    url = page.url.partition("#")[0]
    start = url.index("://") + 3 if "://" in url else 0
    slash = url.find("/", start)
    root, directory = (url + "/", url + "/") if slash < 0 else (url[: slash + 1], url[: url.rindex("/") + 1])
    links: list[Entry] = []
    names: set[bytes] = set()
    for entry in entries(page.body):
        if entry.kind == "link":
            links.append(entry)
            continue
        names.add(entry.name)
        yield directory + _named(entry.name, is_directory=entry.kind == "directory"), _text(entry.name)
    for link in links:
        target = link.target or link.name
        if target.removeprefix(b"./").rstrip(b"/") in names:
            continue
        is_directory = target.endswith(b"/") or _EXTENSION.search(target.rpartition(b"/")[2]) is None
        written = "/".join(quote_from_bytes(part, _IN_NAME) for part in target.strip(b"/").split(b"/"))
        slashed = written + "/" if is_directory else written
        yield (root if target.startswith(b"/") else directory) + slashed, _text(link.name)


def _named(name: bytes, *, is_directory: bool) -> str:
    return quote_from_bytes(name, _IN_NAME) + ("/" if is_directory else "")


def _text(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("latin-1")


def _offered(page: Page) -> Iterator[tuple[str, str]]:
    """Yield what a Gopher menu offers."""
    for offer in offers(page.body):
        yield offer.url, offer.text


def _addressed(page: Page) -> Iterator[tuple[str, str]]:
    """Yield the lines of a list of addresses; those that begin with # are remarks."""
    body = page.body[: page.body.rfind(b"\n") + 1]
    for line in body.split(b"\n"):
        line = line.strip()
        if line and line[:1] != b"#":
            yield line.decode("utf-8", "replace"), ""


_READERS: Final[dict[str, Callable[[Page], Iterator[tuple[str, str]]]]] = {
    "text/x-ftp-listing": _listed,
    "application/gopher-menu": _offered,
    "text/uri-list": _addressed,
}
