"""Xml: reads untrusted documents with expat, in pieces and within bounds. Nothing is expanded, fetched or kept.

Expat knows few encodings, stops at the first error, and would expand entities. So the text is converted to UTF-8 first,
one with a bare `&` or an entity of HTML is repaired and read once more, and entity declarations end the reading.
"""

import codecs
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from html.entities import html5
from typing import BinaryIO, Protocol
from xml.parsers import expat

DEPTH_MAX = 100
TEXT_MAX = 16_384
"""Characters kept of one element's text."""
TOKEN_BYTES_MAX = 1 << 20
"""A longer tag or comment ends the document, because expat reads incomplete tokens again with every piece."""
PIECE_BYTES = 1 << 16
NAMES_MAX = 10_000
"""Approximate number of different names of elements and attributes: expat keeps each, for 300 bytes and up to 5 µs."""
MENDS_MAX = 100_000
"""Errors of one document that are repaired; it ends with the next."""
_HELD_BYTES = 32
"""Longest text between `&` and `;`."""
_CONTROLS = bytes(code for code in range(32) if code not in (9, 10, 13))
_REFERENCE = re.compile(rb"&(?:#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6});|([A-Za-z][A-Za-z0-9]{0,30});)?")
_OWN = frozenset((b"amp", b"lt", b"gt", b"quot", b"apos"))


class Handler(Protocol):
    """Receives the elements of a document; with `characters` all text, too. May raise `StopParsing` to end it."""

    def start(self, name: str, attributes: Mapping[str, str], depth: int) -> None:
        """An element begins; the outermost is at depth 1. Names are as written, prefix included."""

    def end(self, name: str, text: str, depth: int) -> None:
        """An element ends; `text` is its text since the last tag, cut at `TEXT_MAX`."""


class StopParsing(Exception):  # noqa: N818 - no error: the handler has seen enough
    """Raised by a handler to stop reading; its text says why, empty if there is no error."""


def read_xml(
    open_: Callable[[], BinaryIO], codec: str, handler: Callable[[], Handler], elements_max: int
) -> Generator[None, None, str]:
    """Read a document, in slices of `PIECE_BYTES`; return why it was not read completely, empty if it was.

    Each call of `open_` gives its bytes from the start; `codec` is Python's name of their encoding. A document with an
    error that can be repaired is read twice, the second time by a new handler. Linear; about 1 µs an element.
    """
    error, mendable = yield from _read(_pieces(open_, codec), handler(), elements_max)
    if error and mendable:
        error, _ = yield from _read(repair(_pieces(open_, codec)), handler(), elements_max)
    return error


def repair(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield UTF-8 with common errors repaired: a bare `&`, an entity of HTML. CDATA is not changed."""
    held = b""
    inside = False
    left = MENDS_MAX
    for piece in pieces:
        data = held + piece
        made = []
        position = 0
        left -= 0 if inside else data.count(b"&") - data.count(b";")  # Roughly: those that are bare.
        if left < 0:
            return  # Too many mistakes for a genuine document.
        while position < len(data):
            mark = b"]]>" if inside else b"<![CDATA["
            at = data.find(mark, position)
            if at >= 0:
                part = data[position : at + len(mark)]
                made.append(part if inside else _REFERENCE.sub(_mend, part))
                position = at + len(mark)
                inside = not inside
                continue
            end = max(position, len(data) - _HELD_BYTES)
            if not inside and (last := data.rfind(b"&", position, end)) >= 0 and end - last < _HELD_BYTES:
                end = last
            made.append(data[position:end] if inside else _REFERENCE.sub(_mend, data[position:end]))
            break
        else:
            end = len(data)
        held = data[end:]
        yield b"".join(made)
    yield held if inside else _REFERENCE.sub(_mend, held)


def _mend(match: re.Match[bytes]) -> bytes:
    name = match[1]
    if name is None:
        return match[0] if len(match[0]) > 1 else b"&amp;"
    if name in _OWN:
        return match[0]
    known = html5.get(name.decode("ascii") + ";")
    return known.encode() if known is not None else b"&amp;" + match[0][1:]


def _read(pieces: Iterable[bytes], handler: Handler, elements_max: int) -> Generator[None, None, tuple[str, bool]]:
    reader = _XmlReader(handler, elements_max)
    try:
        for piece in pieces:
            reader.feed(piece)
            if len(piece) >= PIECE_BYTES // 2:
                yield
        reader.end()
    except StopParsing as stop:
        return str(stop), False
    except expat.ExpatError as error:
        what = expat.errors.messages.get(error.code, "error")
        return f"XML: {what} in line {error.lineno}", what in _MENDABLE
    return "", False


_MENDABLE = frozenset(
    (expat.errors.XML_ERROR_INVALID_TOKEN, expat.errors.XML_ERROR_UNDEFINED_ENTITY, expat.errors.XML_ERROR_SYNTAX)
)


class _XmlReader:
    """Expat, with its bounds."""

    def __init__(self, handler: Handler, elements_max: int) -> None:
        self._handler = handler
        self._left = elements_max
        self._depth = 0
        self._text: list[str] = []
        self._room = TEXT_MAX
        self._fed = 0
        self._since = 0
        parser = self._parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = getattr(handler, "characters", self._characters)
        parser.EntityDeclHandler = self._entity

    def feed(self, piece: bytes) -> None:
        before = self._parser.CurrentByteIndex
        self._parser.Parse(piece)
        self._fed += len(piece)
        if self._parser.CurrentByteIndex != before:
            self._since = self._fed
        elif self._fed - self._since > TOKEN_BYTES_MAX:
            raise StopParsing(f"XML: a tag of more than {TOKEN_BYTES_MAX:,} bytes")
        if len(self._parser.intern) > NAMES_MAX:
            raise StopParsing(f"XML: more than {NAMES_MAX:,} names of elements and attributes")

    def end(self) -> None:
        self._parser.Parse(b"", True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._left -= 1
        self._depth += 1
        if self._left < 0:
            raise StopParsing("XML: too many elements; the rest is left")
        if self._depth > DEPTH_MAX:
            raise StopParsing(f"XML: elements nested deeper than {DEPTH_MAX}")
        self._text.clear()
        self._room = TEXT_MAX
        self._handler.start(name, attributes, self._depth)

    def _end(self, name: str) -> None:
        self._handler.end(name, "".join(self._text).strip(), self._depth)
        self._text.clear()
        self._room = TEXT_MAX
        self._depth -= 1

    def _characters(self, text: str) -> None:
        if self._room > 0:
            self._text.append(text[: self._room])
            self._room -= len(text)

    def _entity(self, *_: object) -> None:
        raise StopParsing("XML: it declares entities; they are not read")


_DECLARATION = re.compile(r"<\?xml\s")


def _drop_preamble(text: str) -> str:
    """Return the beginning of a document from its declaration on, which may be quoted in a comment or CDATA."""
    depth = position = 0
    for match in _DECLARATION.finditer(text, 1):
        start = match.start()
        if text.find("<![CDATA[", position, start) >= 0:
            break
        # None of these marks goes on over a `<`, so that each is in one piece. `<!-->` is two.
        depth += text.count("<!--", position, start) - text.count("-->", position, start)
        if depth <= 0:
            return text[start:]
        position = start
    return text


def _pieces(open_: Callable[[], BinaryIO], codec: str) -> Iterator[bytes]:
    """Yield a document in UTF-8, without its byte order mark and without characters that XML forbids."""
    first = True
    for text in decode_pieces(open_, codec):
        if first and text:
            text = _drop_preamble(text.removeprefix("\ufeff").lstrip())
            first = not text
        yield text.encode("utf-8", "replace").translate(None, _CONTROLS)


def decode_pieces(open_: Callable[[], BinaryIO], codec: str) -> Iterator[str]:
    """Yield a document's text; what its encoding does not have becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder(codec)("replace")
    with open_() as file:
        while piece := file.read(PIECE_BYTES):
            yield decoder.decode(piece)
    yield decoder.decode(b"", True)
