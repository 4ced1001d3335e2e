"""Listings: the links of directory listings and menus in other formats than HTML. Pure functions that do not raise.

The answer of an FTP server to LIST has no standard format (RFC 959, section 4.1.3). Supported are those of ls, DOS,
NetWare, VMS, AS/400, OS/2, VShell, numbers as modes, EPLF (cr.yp.to/ftp/list/eplf.html), and the answer to MLSD
(RFC 3659, section 7). Each line is parsed separately. Menus are those of Gopher servers (RFC 1436, 3.8; RFC 4266).
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple
from urllib.parse import quote_from_bytes

from gossamer.model.pages import Findings, Page
from gossamer.stages.process.links import Base, Links
from gossamer.stages.process.options import TypedModule
from gossamer.url.url import DEFAULT_PORTS

LINE_BYTES_MAX: Final = 8_192
"""Longer lines are ignored."""

Kind = Literal["file", "directory", "link"]

_DAY = (
    rb"\d{1,2}[^\s\d]{1,9}\s++\d{1,2}[^\s\d]{0,3}|[^\s\d]{3,24}\s++\d{1,2}\.?|"
    rb"\d{1,2}\.?\s++[^\s\d]{3,24}|\d{1,2}-\d{1,2}|\d{1,2}\s++\d{1,2}"
)
_DATE = rb"\d{1,4}[-/.](?:\d{1,2}|[A-Za-z]{3})[-/.]\d{2,4}"
_TIME = rb"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:\s[+-]\d{4})?"
_WHEN = (
    rb"(?:%b)\s++(?:%b|\d{4}[^\s\d]{0,3})\s|%b(?:\s++%b\s|\s++)|" % (_DAY, _TIME, _DATE, _TIME)
    + rb"[^\s\d]{3,24}\s++\d{1,2},\s++\d{4}\s++%b\s|" % _TIME
    + rb"\d{4}[^\s\d]{0,6}\s++\d{1,2}[^\s\d]{1,9}\s++\d{1,2}[^\s\d]{0,6}\s++"
)
_LS = rb".*?(?<!\d)\d++(?:\.\d++)?[kKMGT]?\s++(?:%b)" % _WHEN
"""Number of links, owner, group; size; day, time or year."""
_UNIX = re.compile(rb"([-dlbcps])[-rwxsStTlL]{9}[.+@]?%b(.+)" % _LS, re.DOTALL)
_NETWARE = re.compile(rb"([-d]) \[[-A-Z]{8}\]%b\s*+(.+)" % _LS, re.DOTALL)
_DOS = re.compile(
    rb"%b,?\s+\d{1,2}:\d\d(?::\d\d)?(?:\s?[AP]\.?(?:\s?M\.?)?)?\s+(<[A-Z]+>|[\d,.]+)\s+(.+)" % _DATE,
    re.DOTALL | re.IGNORECASE,
)
_VMS = re.compile(rb"([^\s;/]+?)(\.DIR)?;\d{1,5}(?:\s+(?![\s%]).*)?", re.DOTALL | re.IGNORECASE)
_AS400 = re.compile(rb"[^\s=]+\s+\d+\s+%b\s+%b\s+\*[A-Z]+\s+(\S.*?)(/?)" % (_DATE, _TIME), re.DOTALL)
_OS2 = re.compile(
    rb"\s*+\d++\s++(?:[RHSA]++\s++)?(DIR\s++)?(?:[RHSA]++\s++)?\d\d-\d\d-\d{2,3}\s++%b\s++(.+)" % _TIME, re.DOTALL
)
_VSHELL = re.compile(rb"\d++\s++[A-Z][a-z]{2} \d\d, \d{4} \d\d:\d\d ([^ ].*?)(/?)", re.DOTALL)
_NUMBERS = re.compile(rb"0?(10|4)[0-7]{4}(?:\s++\d++){4}\s++(.+)", re.DOTALL)
"""Mode as a number, owner, group, size, seconds since 1970."""
_MLSD = re.compile(
    rb"(?=[\w.-]+=)((?>(?:[\w.-]++=[^;]*+;)*)(?:[\w.-]++=[^; ]*+)?) (.+)", re.DOTALL
)  # Drafts: no last ;
_EPLF = re.compile(rb"\+([^\t]*)\t(.+)", re.DOTALL)


class ListingEntry(NamedTuple):
    """One line of a listing."""

    name: bytes
    kind: Kind
    target: bytes = b""
    """Target of a symbolic link, as written; empty if the listing does not have it."""


def entries(listing: bytes) -> Iterator[ListingEntry]:
    """Yield the entries of a listing, in order: files, directories and links; `.`, `..` and invalid lines are left out.
    A last line without an end may have been cut, and is left out too. About 2 µs a line.
    """
    for line in _lines(listing):
        entry = _entry(line)
        if entry is not None and entry.name not in (b".", b"..") and b"/" not in entry.name and b"\0" not in entry.name:
            yield entry


def _lines(data: bytes) -> Iterator[bytes]:
    """Yield the lines that have an end and any content, without those longer than `LINE_BYTES_MAX`."""
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        line = line.removesuffix(b"\r")
        if line and len(line) <= LINE_BYTES_MAX:
            yield line


def _entry(line: bytes) -> ListingEntry | None:
    for matches, read in _FORMATS:
        if (match := matches(line)) is not None:
            return read(*match.groups())
    return None


def _unix(mode: bytes, name: bytes) -> ListingEntry | None:
    if mode == b"l":
        name, _, target = name.partition(b" -> ")
        return ListingEntry(name, "link", target) if name else None
    return ListingEntry(name, "directory") if mode == b"d" else ListingEntry(name, "file") if mode == b"-" else None


def _dos(size: bytes, name: bytes) -> ListingEntry:
    if size[:1] != b"<":
        return ListingEntry(name, "file")
    if size.upper() in (b"<SYMLINK>", b"<SYMLINKD>", b"<JUNCTION>"):
        name, _, target = name.partition(b" [")
        return ListingEntry(name, "link", target.removesuffix(b"]").replace(b"\\", b"/"))
    return ListingEntry(name, "directory")


def _marked(name: bytes, mark: bytes | None) -> ListingEntry:
    # Of a file of VMS the version is left out: a name without one means the newest.
    return ListingEntry(name, "directory" if mark else "file")


def _marked_before(mark: bytes | None, name: bytes) -> ListingEntry:
    return ListingEntry(name, "directory" if mark and mark != b"10" else "file")


def _mlsd(facts: bytes, name: bytes) -> ListingEntry | None:
    for fact in facts.split(b";"):
        key, _, value = fact.partition(b"=")
        if key.lower() == b"type":
            kind = value.lower()
            if kind in (b"dir", b"file"):
                return ListingEntry(name, "directory" if kind == b"dir" else "file")
            if kind.startswith((b"os.unix=slink", b"os.unix=symlink")):
                return ListingEntry(name, "link", value.partition(b":")[2])
            return None
    return None


def _eplf(facts: bytes, name: bytes) -> ListingEntry | None:
    kinds = facts.split(b",")
    if b"/" in kinds:
        return ListingEntry(name, "directory")
    return ListingEntry(name, "file") if b"r" in kinds else None


_FORMATS: Final[tuple[tuple[Callable[[bytes], re.Match[bytes] | None], Callable[..., ListingEntry | None]], ...]] = (
    (_UNIX.fullmatch, _unix), (_DOS.fullmatch, _dos), (_MLSD.fullmatch, _mlsd), (_EPLF.fullmatch, _eplf),
    (_NETWARE.fullmatch, _unix), (_VMS.fullmatch, _marked), (_AS400.fullmatch, _marked),
    (_OS2.fullmatch, _marked_before), (_VSHELL.fullmatch, _marked), (_NUMBERS.fullmatch, _marked_before),
)  # fmt: skip


FOLLOWED: Final = frozenset("014569gIhsdpPXMrc;:")
"""Item types that can be fetched. Not: searches (7), which need words; sessions (2, 8, T); mirrors of the previous item
(+); texts and errors (i, 3)."""
SAFE: Final = "/!$&'()*+,;=:@~"
"""Characters that a path does not escape, beside letters, digits and `-._` (RFC 3986, section 3.3)."""
_HOST = re.compile(rb"[0-9A-Za-z_.:\x80-\xff-]{1,255}\Z")
_DOTS = re.compile(rb"(?:\A|/)\.{1,2}(?:/|\Z)")


def offers(menu: bytes) -> Iterator[tuple[str, str]]:
    """Yield address and text of the items of a menu that can be followed, in order, up to the line that ends it. A last
    line without an end may have been cut and is left out, and so are selectors with dot segments or control characters,
    which no URL can represent. About 3 µs a line.
    """
    for line in _lines(menu):
        if line == b".":
            return
        fields = line[1:].split(b"\t")
        if len(fields) >= 4 and chr(line[0]) in FOLLOWED and (url := _url(chr(line[0]), *fields[1:4])):
            yield url, fields[0].decode("utf-8", "replace")


def _url(kind: str, selector: bytes, host: bytes, port: bytes) -> str:
    for mark in (b"URL:", b"/URL:"):
        if kind == "h" and selector.startswith(mark):
            return quote_from_bytes(selector.removeprefix(mark), SAFE + "%?#[]")
    port = port.strip()
    if not _HOST.match(host) or not (port.isdigit() and len(port) <= 5) or _DOTS.search(selector):
        return ""
    if any(byte < 0x20 or byte == 0x7F for byte in selector):
        return ""
    name = host.decode("utf-8", "replace")
    shown_port = "" if int(port) == DEFAULT_PORTS["gopher"] else f":{int(port)}"
    authority = (f"[{name}]" if ":" in name else name) + shown_port
    if kind == "1" and not selector:
        return f"gopher://{authority}/"
    return f"gopher://{authority}/{kind}{quote_from_bytes(selector, SAFE)}"


_IN_NAME: Final = SAFE.replace("/", "").replace(";", "")
"""A semicolon would begin FTP's `;type=`."""
_EXTENSION = re.compile(rb".\.[A-Za-z][A-Za-z0-9]{0,7}\Z", re.DOTALL)


class ListingLinks(TypedModule):
    """Finds the links of FTP listings, Gopher menus and lists of addresses (RFC 2483), as anchors.

    In an FTP listing a symbolic link represents its target, so that links back into a tree end. A target that the
    listing does not name counts as a file if its name has an extension, else as a directory. About 6 µs a line.
    """

    name = "listings"

    def wants(self, media_type: str) -> bool:
        return media_type in _READERS

    def process(self, page: Page, findings: Findings) -> None:
        links = Links(Base(page.url), self._options)
        for href, text in _READERS[page.media_type](page):
            links.add("anchor", href, text)
        findings.links.extend(links.take())


def _ftp_links(page: Page) -> Iterator[tuple[str, str]]:
    url = page.url.partition("#")[0]
    directory = url if url.endswith("/") else f"{url}/"  # What is listed is a directory, also without a slash.
    start = url.index("://") + 3 if "://" in url else 0
    root = directory[: directory.index("/", start) + 1]
    links: list[ListingEntry] = []
    names: set[bytes] = set()
    for entry in entries(_end_last_line(page)):
        if entry.kind == "link":
            links.append(entry)
            continue
        names.add(entry.name)
        slash = "/" if entry.kind == "directory" else ""
        yield directory + quote_from_bytes(entry.name, _IN_NAME) + slash, _text(entry.name)
    for link in links:
        target = link.target or link.name
        if target.removeprefix(b"./").rstrip(b"/") in names:
            continue
        is_directory = target.endswith(b"/") or _EXTENSION.search(target.rpartition(b"/")[2]) is None
        written = "/".join(quote_from_bytes(part, _IN_NAME) for part in target.strip(b"/").split(b"/"))
        slashed = written + "/" if is_directory else written
        yield (root if target.startswith(b"/") else directory) + slashed, _text(link.name)


def _text(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("latin-1")


def _end_last_line(page: Page) -> bytes:
    """Return a page's lines; the last one of a page that was not cut may lack its end."""
    return page.body if page.is_cut or page.body[-1:] == b"\n" else page.body + b"\n"


def _url_list_links(page: Page) -> Iterator[tuple[str, str]]:
    """Yield the lines of a list of addresses; those that begin with # are remarks."""
    body = _end_last_line(page)
    for line in body[: body.rfind(b"\n") + 1].split(b"\n"):
        line = line.strip()
        if line and line[:1] != b"#":
            yield line.decode("utf-8", "replace"), ""


_READERS: Final[dict[str, Callable[[Page], Iterator[tuple[str, str]]]]] = {
    "text/x-ftp-listing": _ftp_links,
    "application/gopher-menu": lambda page: offers(_end_last_line(page)),
    "text/uri-list": _url_list_links,
}
