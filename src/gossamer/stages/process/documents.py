"""Documents: text, links and metadata of office files, EPUB and e-mail, in separate processes.

All are read within bounds of bytes unpacked and text kept; except for workbooks and RTF, which libraries read, in
pieces. XML that declares entities is not read. The column `document` says whether a file was read to its end.
"""

import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import BinaryIO
from urllib.parse import unquote
from xml.parsers import expat

from gossamer.model.pages import Findings, Page
from gossamer.stages.process.charset import to_utf8
from gossamer.stages.process.facts import moment
from gossamer.stages.process.hidden import without_hidden
from gossamer.stages.process.html import as_html
from gossamer.stages.process.links import Base, Links, collapse_spaces, cut
from gossamer.stages.process.options import ProcessOptions, TypedModule
from gossamer.stages.process.scan import ScannedMarkup
from gossamer.stages.process.scripted import text_bytes
from gossamer.stages.process.text import DOCUMENT, HIDDEN, addresses
from gossamer.stages.process.xml import TOKEN_BYTES_MAX

WHOLE = "whole"
CUT = "cut"
ENCRYPTED = "encrypted"
DAMAGED = "damaged"
"""Values of the column `document`."""
UNPACKED_BYTES_MAX = 32_000_000
"""Unpacked size of all parts of one document together."""
DIRECTORY_BYTES_MAX = 4_000_000
"""Size of a ZIP file's directory: some 50,000 parts."""
CHAPTERS_MAX = 2_000
RELATIONS_MAX = 50_000
METADATA_CHARACTERS_MAX = 2_000
_PIECE_BYTES = 1 << 16
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_END_OF_DIRECTORY = b"PK\x05\x06"
_COMPOUND = b"\xd0\xcf\x11\xe0"
_FIELD = re.compile(r'HYPERLINK\s+"([^"]+)"')
COLUMNS: Mapping[str, str] = {
    "main_text": "text", "document": "text", "byline": "text", "published": "time", "modified": "time", **HIDDEN,
}  # fmt: skip
"""Columns that modules for documents add to `pages`."""


class Enough(Exception):  # noqa: N818 - no error: a bound is reached, what was found stays
    """Raised when a bound is reached and reading of a document stops."""


class Gathered:
    """The findings in one document, within bounds."""

    def __init__(self, url: str, options: ProcessOptions) -> None:
        self.links = Links(Base(url), options)
        self.facts: dict[str, str] = {}
        """`title`, `byline`, `published`, `modified`, as written."""
        self.outcome = WHOLE
        self.hidden_chars = 0
        self._options = options
        self._parts: list[str] = []
        self._room = options.text_bytes_max
        self._unpacked = UNPACKED_BYTES_MAX

    def add(self, text: str) -> None:
        """Add text. Raises Enough if there is too much."""
        self._parts.append(text)
        self._room -= len(text)
        if self._room < 0:
            raise Enough

    def unpack(self, piece: bytes) -> bytes:
        """Count unpacked bytes and return them. Raises Enough if there are too many."""
        self._unpacked -= len(piece)
        if self._unpacked < 0:
            raise Enough
        return piece

    def link(self, address: str) -> None:
        """Add a link with an absolute http address; other links lead into the document or to local files."""
        if address[:8].lower().startswith(("http://", "https://")):
            self.links.add("anchor", address)

    def fact(self, name: str, value: str) -> None:
        """Set a fact, unless it is set already."""
        if value.strip():
            self.facts.setdefault(name, " ".join(value[:METADATA_CHARACTERS_MAX].split()))

    def report(self, findings: Findings) -> None:
        """Add all that was found to the findings of a page."""
        lines = ("\t".join(cell.strip() for cell in line.split("\t")) for line in "".join(self._parts).splitlines())
        text = "\n".join(line.strip() for line in lines if line.strip())
        kept = cut(text, self._options.text_bytes_max)
        if len(kept) < len(text):
            self.outcome = CUT
        findings.text = findings.columns["main_text"] = kept
        findings.text_method = DOCUMENT
        findings.columns["document"] = self.outcome
        if self.hidden_chars:
            findings.columns["hidden_chars"] = self.hidden_chars
        findings.links.extend(self.links.take())
        findings.title = findings.title or collapse_spaces(self.facts.get("title", ""), self._options.title_bytes_max)
        if byline := self.facts.get("byline"):
            findings.columns["byline"] = byline[:500]
        for name in ("published", "modified"):
            if time := moment(self.facts.get(name, "")):
                findings.columns[name] = time


def gather(read: Callable[[BinaryIO, Gathered], None], page: Page, findings: Findings, options: ProcessOptions) -> None:
    """Report what `read` finds in a page's content; after an error, what was found before."""
    found = Gathered(page.url, options)
    try:
        with page.open() as file:
            read(file, found)
    except Enough:
        found.outcome = CUT
    except (zipfile.BadZipFile, zlib.error, expat.ExpatError, EOFError, LookupError, NotImplementedError, ValueError):
        found.outcome = DAMAGED
    found.report(findings)


class Documents(TypedModule):
    """Finds the text of word-processor files and books, one line a paragraph or table row (cells divided by tabs), the
    addresses that they link to, title, author and dates. About 25 ms a MB of XML.
    """

    name = "documents"
    isolated = True
    columns = COLUMNS

    def wants(self, media_type: str) -> bool:
        needed = _LIBRARIES.get(media_type)
        return media_type in _READERS if needed is None else find_spec(needed) is not None

    def process(self, page: Page, findings: Findings) -> None:
        if page.media_type.endswith("/rtf"):
            gather(_rtf, page, findings, self._options)
            return
        read = _READERS[page.media_type]

        def read_archive(file: BinaryIO, found: Gathered) -> None:
            if page.body[:4] == _COMPOUND:
                found.outcome = ENCRYPTED  # Office puts a ZIP file with a password into its older container.
                return
            _require_small_directory(file)
            with zipfile.ZipFile(file) as archive:
                parts = archive.infolist()
                if any(part.flag_bits & 1 for part in parts):
                    found.outcome = ENCRYPTED
                    return
                if any(part.compress_type not in _PACKED for part in parts):
                    raise zipfile.BadZipFile  # No document is; some of the others take gigabytes.
                read(archive, found)

        gather(read_archive, page, findings, self._options)


def _require_small_directory(file: BinaryIO) -> None:
    """Refuse a ZIP file whose list of parts alone would fill memory, before that is read."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 65_557))
    tail = file.read(65_557)
    at = tail.rfind(_END_OF_DIRECTORY)
    if at < 0 or at + 16 > len(tail):
        raise zipfile.BadZipFile
    if int.from_bytes(tail[at + 12 : at + 16], "little") > DIRECTORY_BYTES_MAX:
        raise Enough
    file.seek(0)


def _pieces(archive: zipfile.ZipFile, name: str, found: Gathered) -> Iterator[bytes]:
    with archive.open(name) as part:
        while piece := part.read(_PIECE_BYTES):
            yield found.unpack(piece)


class _Xml:
    """Walks one part: calls `start` and `end` with local names, `text` with the text between tags."""

    def __init__(self) -> None:
        self._parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.EntityDeclHandler = self._entity
        parser.StartElementHandler = lambda name, found: self.start(_local(name), found)
        parser.EndElementHandler = lambda name: self.end(_local(name))
        parser.CharacterDataHandler = self.text

    def read(self, archive: zipfile.ZipFile, name: str, found: Gathered) -> None:
        """Read a part; one that declares entities is not read on. Raises ExpatError."""
        fed = since = index = 0
        for piece in _pieces(archive, name, found):
            self._parser.Parse(piece)
            fed += len(piece)
            if self._parser.CurrentByteIndex != index:
                index = self._parser.CurrentByteIndex
                since = fed
            elif fed - since > TOKEN_BYTES_MAX:
                raise Enough
        self._parser.Parse(b"", True)

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """Text, in pieces."""

    def _entity(self, *_: object) -> None:
        raise zipfile.BadZipFile("it declares entities")


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _attribute(attributes: Mapping[str, str], name: str) -> str:
    return next((value for key, value in attributes.items() if _local(key) == name), "")


class _Body(_Xml):
    """The text of a part of Office Open XML or OpenDocument: with paragraphs, tables and links."""

    _BREAKS = {"br": "\n", "cr": "\n", "line-break": "\n", "tab": "\t", "s": " "}  # noqa: RUF012 - never changed
    _PARAGRAPHS = frozenset(("p", "h"))
    _CELLS = frozenset(("tc", "table-cell"))
    _ROWS = frozenset(("tr", "table-row"))
    _HIDDEN = frozenset(("annotation", "tracked-changes", "pPr", "rPr", "Fallback"))
    """Elements without text, or with text that is also elsewhere."""

    def __init__(self, found: Gathered, relations: Mapping[str, str], texts: frozenset[str]) -> None:
        """`texts` are the elements that hold text; in ODT all within a paragraph."""
        super().__init__()
        self._found = found
        self._relations = relations
        self._texts = texts
        self._within = self._cells = self._hidden = 0
        self._is_vanished = False
        """Whether the text of this run is not shown (ECMA-376, part 1, section 17.3.2.41)."""
        self._field: list[str] | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "vanish":
            self._is_vanished = _attribute(attributes, "val") not in ("0", "false", "off")
        elif name == "hlinkClick" or (name in ("hyperlink", "a") and not self._hidden):  # The first is in the `rPr`.
            self._found.link(self._relations.get(_attribute(attributes, "id")) or _attribute(attributes, "href"))
        elif name in self._HIDDEN:
            self._hidden += 1
        elif self._hidden:
            return
        elif name in self._texts:
            self._within += 1
        elif name in self._CELLS:
            self._cells += 1
        elif name == "instrText":
            self._field = []
        elif name == "sld" and attributes.get("show") in ("0", "false"):
            self._hidden += 1
        if name in self._BREAKS and not self._hidden:
            self._found.add(" " if self._cells else self._BREAKS[name])

    def end(self, name: str) -> None:
        if name in ("r", "pPr"):
            self._is_vanished = False
        if name in self._HIDDEN:
            self._hidden -= 1
        elif self._hidden:
            return
        if name in self._texts:
            self._within -= 1
        if name in self._PARAGRAPHS:
            self._found.add(" " if self._cells else "\n")
        elif name in self._CELLS:
            self._cells -= 1
            self._found.add("\t")
        elif name in self._ROWS:
            self._found.add("\n")
        elif name == "instrText" and self._field is not None:
            for address in _FIELD.findall("".join(self._field)):
                self._found.link(address)
            self._field = None

    def text(self, text: str) -> None:
        if self._field is not None:
            if len(self._field) < _PIECE_BYTES:
                self._field.append(text[:METADATA_CHARACTERS_MAX])
        elif self._is_vanished:
            self._found.hidden_chars += len(text)
        elif self._within and not self._hidden:
            self._found.add(text.replace("\n", " "))


class _Values(_Xml):
    """The first text of each element of a small part, by local name; and what elements of some names say."""

    def __init__(self, *elements: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.elements: list[tuple[str, dict[str, str]]] = []
        self._names = frozenset(elements)
        self._text: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._text = []
        if name in self._names and len(self.elements) < RELATIONS_MAX:
            named = sorted(attributes.items(), key=lambda one: " " in one[0])  # The `r:id` of a slide, not its `id`.
            self.elements.append((name, {_local(key): value for key, value in named}))

    def end(self, name: str) -> None:
        if len(self.values) < RELATIONS_MAX:
            self.values.setdefault(name, "".join(self._text))
        self._text = []

    def text(self, text: str) -> None:
        if len(self._text) < METADATA_CHARACTERS_MAX:
            self._text.append(text[:METADATA_CHARACTERS_MAX])


_FACTS = {"title": "title", "creator": "byline", "initial-creator": "byline", "created": "published",
          "creation-date": "published", "modified": "modified", "date": "modified"}  # fmt: skip


def _facts(archive: zipfile.ZipFile, name: str, found: Gathered, names: Mapping[str, str] = _FACTS) -> None:
    if name in archive.NameToInfo:
        values = _Values()
        values.read(archive, name, found)
        for element, fact in names.items():
            found.fact(fact, values.values.get(element, ""))


_MAIN_RELATION = "/officeDocument"


def _docx(archive: zipfile.ZipFile, found: Gathered) -> None:
    """Office Open XML (ECMA-376, part 1, section 17): body, then foot- and endnotes."""
    _facts(archive, "docProps/core.xml", found)
    main = _main_part(archive, found)
    for name in (main, "word/footnotes.xml", "word/endnotes.xml"):
        if name == main or name in archive.NameToInfo:
            _Body(found, _relation_targets(archive, name, found), frozenset("t")).read(archive, name, found)


def _relation_targets(archive: zipfile.ZipFile, name: str, found: Gathered) -> dict[str, str]:
    folder, _, file = name.rpartition("/")
    related = f"{folder}/_rels/{file}.rels"
    relations = _Values("Relationship")
    if related in archive.NameToInfo:
        relations.read(archive, related, found)
    return {one.get("Id", ""): one.get("Target", "") for _, one in relations.elements}


def _pptx(archive: zipfile.ZipFile, found: Gathered) -> None:
    """Office Open XML presentation (ECMA-376, part 1, section 19): the slides in their order, hidden ones left out."""
    _facts(archive, "docProps/core.xml", found)
    order = _Values("sldId")
    order.read(archive, "ppt/presentation.xml", found)
    targets = _relation_targets(archive, "ppt/presentation.xml", found)
    for _, one in order.elements[:CHAPTERS_MAX]:
        name = posixpath.normpath(posixpath.join("/ppt", targets.get(one.get("id", ""), ""))).lstrip("/")
        if name in archive.NameToInfo:
            _Body(found, _relation_targets(archive, name, found), frozenset("t")).read(archive, name, found)
        else:
            found.outcome = DAMAGED


def _main_part(archive: zipfile.ZipFile, found: Gathered) -> str:
    """Return the part with the text: some programs call it `document2.xml`."""
    usual = "word/document.xml"
    if usual in archive.NameToInfo or "_rels/.rels" not in archive.NameToInfo:
        return usual
    relations = _Values("Relationship")
    relations.read(archive, "_rels/.rels", found)
    targets = (one.get("Target", "") for _, one in relations.elements if one.get("Type", "").endswith(_MAIN_RELATION))
    return next(targets, usual).lstrip("/")


def _odt(archive: zipfile.ZipFile, found: Gathered) -> None:
    """OpenDocument text, workbook or presentation (OASIS OpenDocument 1.3, part 3)."""
    if "META-INF/manifest.xml" in archive.NameToInfo:
        manifest = _Values("encryption-data")
        manifest.read(archive, "META-INF/manifest.xml", found)
        if manifest.elements:
            found.outcome = ENCRYPTED
            return
    _facts(archive, "meta.xml", found)
    _Body(found, {}, frozenset(("p", "h"))).read(archive, "content.xml", found)


def _epub(archive: zipfile.ZipFile, found: Gathered) -> None:
    """EPUB 3.3, sections 4 and 5: the chapters in the order of the spine."""
    container = _Values("rootfile")
    container.read(archive, "META-INF/container.xml", found)
    place = container.elements[0][1].get("full-path", "") if container.elements else ""
    package = _Values("item", "itemref")
    package.read(archive, place, found)
    for element, fact in {**_FACTS, "date": "published"}.items():
        found.fact(fact, package.values.get(element, ""))
    files = {one.get("id", ""): one.get("href", "") for name, one in package.elements if name == "item"}
    chapters = [files.get(one.get("idref", ""), "") for name, one in package.elements if name == "itemref"]
    for chapter in chapters[:CHAPTERS_MAX]:
        name = posixpath.normpath(posixpath.join(posixpath.dirname(place), unquote(chapter.partition("#")[0])))
        if name not in archive.NameToInfo:
            found.outcome = DAMAGED
            continue
        body = as_html(to_utf8(b"".join(_pieces(archive, name, found)), "")[0])
        if not add_html(body, found) and text_bytes(body.partition(b"<body")[2].partition(b">")[2]):
            found.outcome = DAMAGED  # It has text that HTML does not show.
    if len(chapters) > CHAPTERS_MAX:
        found.outcome = CUT


def add_html(body: bytes, found: Gathered) -> str:
    """Take the visible text of HTML in UTF-8, and its links to the web; return the text."""
    visible, hidden = without_hidden(body)
    markup = ScannedMarkup(body)
    for href, _, _ in markup.anchors:
        found.link(href)
    found.hidden_chars += hidden
    text = (ScannedMarkup(visible) if hidden else markup).text()
    found.add(text + "\n")
    return text


def add_plain(text: str, found: Gathered) -> None:
    """Take text, and the whole addresses in it."""
    for address in addresses(text):
        found.link(address)
    found.add(text + "\n")


def _xlsx(archive: zipfile.ZipFile, found: Gathered) -> None:
    from gossamer.stages.process.office import workbook_lines  # noqa: PLC0415 - by a package of an extra

    if sum(part.file_size for part in archive.infolist()) > UNPACKED_BYTES_MAX or archive.fp is None:
        raise Enough
    archive.fp.seek(0)
    for line in workbook_lines(archive.fp):
        add_plain(line, found)


def _rtf(file: BinaryIO, found: Gathered) -> None:
    from gossamer.stages.process.office import rtf_text  # noqa: PLC0415 - as above

    add_plain(rtf_text(found.unpack(file.read(UNPACKED_BYTES_MAX + 1))), found)


_OFFICE = "application/vnd.openxmlformats-officedocument"
XLSX = f"{_OFFICE}.spreadsheetml.sheet"
_LIBRARIES = {XLSX: "python_calamine", "application/rtf": "striprtf", "text/rtf": "striprtf"}
"""Types that are read by packages of an extra: without these, such files have no text."""
_READERS: Mapping[str, Callable[[zipfile.ZipFile, Gathered], None]] = {
    f"{_OFFICE}.wordprocessingml.document": _docx,
    XLSX: _xlsx,
    **dict.fromkeys((f"{_OFFICE}.presentationml.presentation", f"{_OFFICE}.presentationml.slideshow"), _pptx),
    **{f"application/vnd.oasis.opendocument.{kind}": _odt for kind in ("text", "spreadsheet", "presentation")},
    "application/epub+zip": _epub,
}
