"""Embeds: resources a page needs for display: images, scripts, stylesheets and their resources, media, fonts, objects.

Stylesheets name by `url()` and `@import` (CSS Syntax Level 3, sections 4.3.6 and 4.3.7), and by the strings of
`image-set()` (CSS Images Level 4, section 2.2). For replay of archived pages. Off unless `scope.embeds` asks for it.
"""

import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping

import msgspec

from gossamer.model.links import EMBED, Found
from gossamer.model.pages import Findings, Page
from gossamer.model.visits import lower_names
from gossamer.stages.process.html import HTML_TYPES, document_of
from gossamer.stages.process.links import Base, Links, documents, link_values, utf8_again
from gossamer.stages.process.options import ProcessOptions, TypedModule
from gossamer.stages.process.scan import attributes, reference_free
from gossamer.stages.process.walk import ElementWalk

# Possessive repeats and atomic groups, so that even a stylesheet of only opening brackets costs one pass.
_DOUBLE = r"""(?>[^"\\\n]*+(?:\\.[^"\\\n]*+)*)"""
_SINGLE = r"""(?>[^'\\\n]*+(?:\\.[^'\\\n]*+)*)"""
_BARE = r"""(?>[^)\\]*+(?:\\.[^)\\]*+)*)"""
_STRING = rf"""(?:"({_DOUBLE})(?:"|\Z)|'({_SINGLE})(?:'|\Z))"""
_URL = (
    rf"""url\([\t\n\f\r ]*+(?:{_STRING}|((?>(?:[^)\\"'(\t\n\f\r ]|\\[0-9a-f]{{1,6}}[\t\n\f\r ]?|\\.)*)))"""
    r"""[\t\n\f\r ]*+(?:\)|\Z)"""
)
_QUOTED = rf"""\\.|"{_DOUBLE}"?|'{_SINGLE}'?"""
# What looks like an address, or may hold what does: a text, a URL that is not valid, the name of a namespace.
_OTHER = rf"{_QUOTED}|url\({_BARE}\)?|@namespace\b[^;]*"
_NAMED = re.compile(rf"{_URL}|@import[\t\n\f\r ]*+{_STRING}|{_OTHER}", re.IGNORECASE | re.DOTALL)
_COMMENT = re.compile(
    rf"/\*.*?(?:\*/|\Z)|(?<![\w-])url\([\t\n\f\r ]*+(?![\"']){_BARE}\)?|{_QUOTED}", re.IGNORECASE | re.DOTALL
)
"""A comment, or a text or URL, where `/*` begins no comment."""
_NAME_CHARACTER = re.compile(r"[\w(\\-]")
"""Characters that would be one name, or a function, without a comment between them."""
_NEW_LINE = re.compile(r"\r\n?|\f")
_SET = "image-set("
# A string without end is one match too: within it each escaped quote would begin another.
_OF_SETS = re.compile(rf"{_URL}|(image-set)?(\()|(\))|{_STRING}|\"{_DOUBLE}|'{_SINGLE}", re.IGNORECASE | re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[\t\n\f\r ]?|(\n)|(.))", re.DOTALL)


def addresses(stylesheet: str) -> Iterator[str]:
    """Yield the addresses that a stylesheet, or a `style` attribute, names, as written, escapes undone.

    Comments are skipped. Linear; about 4 µs per KB of ordinary CSS.
    """
    for groups in _NAMED.findall(_plain(stylesheet)):
        address = next((group for group in groups if group), "")
        if address:
            yield _ESCAPE.sub(_unescape, address) if "\\" in address else address


def with_addresses(stylesheet: str, place: Callable[[str], str]) -> str:
    """Return a stylesheet without comments, each address replaced by what `place` returns for it. Linear."""

    def replace_address(match: re.Match[str]) -> str:
        address = next((group for group in match.groups() if group), "")
        if not address:
            return match[0]
        new = place(_ESCAPE.sub(_unescape, address)).replace("\\", "%5C").replace('"', "%22").replace("\n", "")
        return f'url("{new}")' if match[0][0] in "uU" else f'@import "{new}"'

    return _NAMED.sub(replace_address, _plain(stylesheet))


def _plain(stylesheet: str) -> str:
    """Return a stylesheet without comments, with `url()` around the addresses of each `image-set()`."""
    if "\r" in stylesheet or "\f" in stylesheet:
        stylesheet = _NEW_LINE.sub("\n", stylesheet)
    if "/*" in stylesheet:
        stylesheet = _without_comments(stylesheet)
    if _SET not in stylesheet.lower():
        return stylesheet
    brackets: list[bool] = []  # Those that are open, and whether they are of an `image-set`: a string is an address.

    def mark_address(match: re.Match[str]) -> str:
        if match[5]:
            brackets.append(bool(match[4]))
        elif match[6]:
            if brackets:
                brackets.pop()
        elif match.lastindex in (7, 8) and brackets and brackets[-1]:
            return f"url({match[0]})"
        return match[0]

    return _OF_SETS.sub(mark_address, stylesheet)


def _without_comments(stylesheet: str) -> str:
    def drop_comment(match: re.Match[str]) -> str:
        if match[0][:2] != "/*":
            return match[0]
        before = stylesheet[match.start() - 1 : match.start()]
        after = stylesheet[match.end() : match.end() + 1]
        return "/**/" if _NAME_CHARACTER.match(before) and _NAME_CHARACTER.match(after) else ""

    return _COMMENT.sub(drop_comment, stylesheet)


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        number = int(match[1], 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return match[3] or ""


CSS = "text/css"
SVG = "image/svg+xml"


class _Names(msgspec.Struct, frozen=True):
    """The tables of embeds.toml."""

    relations: frozenset[str]
    backgrounds: frozenset[str]
    late: dict[str, tuple[str, ...]]
    sources: dict[str, tuple[str, ...]]
    sets: dict[str, tuple[str, ...]]


_names = msgspec.toml.decode(pkgutil.get_data("gossamer.stages.process", "embeds.toml") or b"", type=_Names)
BACKGROUNDS = _names.backgrounds
LATE = _names.late
LAZY = LATE["src"]
SOURCES = _names.sources | {"img": (*_names.sources["img"], *LAZY)}
SETS = _names.sets | {name: (*_names.sets[name], *LATE["srcset"]) for name in ("img", "source")}
_WALK = ElementWalk((*SOURCES, *SETS))
_STYLE = re.compile(rb"[\t\n\f\r ](?i:style)[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"([^\"<>]*+)\"|'([^'<>]*+)')")
_BACKGROUND = re.compile(
    rf"[\t\n\f\r ]((?i:{'|'.join(sorted(BACKGROUNDS, reverse=True))}))[\t\n\f\r ]*+="
    r"[\t\n\f\r ]*+(?:\"([^\"<>]*+)\"|'([^'<>]*+)'|([^\t\n\f\r \"'<>]++))".encode()
)
_STYLESHEET_INSTRUCTION = re.compile(rb"<\?xml-stylesheet[\t\n\f\r ]((?>(?:[^?<>]|\?(?!>))*))\?>")
_CANDIDATE = re.compile(r"[\t\n\f\r ,]*+([^\t\n\f\r ]++)")
_DESCRIPTORS = re.compile(r"(?>(?:[^,(]++|\([^)]*+\)?)*)")

Named = tuple[str, str]
"""An address as written, and its alternative text (an image's `alt`)."""


class EmbedExtractor(TypedModule):
    """Finds what HTML, SVG and stylesheets need for display, as links of type `embed`. `Link` headers name it too.

    A frame is one too: its document is part of the page, on any host. Scripts are not read: what they load at run time
    is not found. Costs about as much as a scan of the page; always linear.
    """

    name = "embeds"

    def wants(self, media_type: str) -> bool:
        return media_type in HTML_TYPES or media_type in (CSS, SVG)

    def process(self, page: Page, findings: Findings) -> None:
        document = document_of(page, self._options)
        findings.charset = document.charset
        findings.links.extend(_of_headers(page, self._options))
        if page.media_type == CSS:
            # Addresses in a stylesheet are in UTF-8, in any encoding of the sheet (CSS Values Level 4, section 4.5.1).
            links = Links(Base(page.url), self._options)
            for address in addresses(document.characters()):
                _add(links, address)
        else:
            links = Links(Base(page.url, None, document.charset), self._options)
            parts = documents(document, page.url, self._options) if page.media_type != SVG else [(links.base, document)]
            for links.base, part in parts:
                for address, words in resources_in(part.utf8()):
                    _add(links, address, words)
        findings.links.extend(links.take())


def _of_headers(page: Page, options: ProcessOptions) -> list[Found]:
    """Return the resources that `Link` headers name (RFC 8288): browsers load them like those of `link` elements."""
    links = Links(Base(page.url), options)
    for name, value in page.headers:
        if lower_names[name] == "link":
            for parameters, target in link_values(utf8_again(value)):
                if "anchor" not in parameters and _is_resource(parameters.get("rel", "")):
                    _add(links, target)
    return links.take()


def _is_resource(rel: str) -> bool:
    return not _names.relations.isdisjoint(rel.lower().split())


def resources_in(body: bytes) -> Iterator[Named]:
    """Yield all resources in markup (UTF-8), in order. Comments, templates and the text of scripts are ignored."""
    for instruction in _STYLESHEET_INSTRUCTION.findall(body[:4096]):
        found, _ = attributes(instruction + b">", 0)
        yield found.get("href", ""), ""
    lower = body.lower()
    styled = b"url(" in lower or _SET.encode() in lower
    is_late = any(name.encode() in lower for name in BACKGROUNDS)
    for name, found, start, end in _WALK.over(body):
        if name:
            yield from _of_element(name, found)
            if name == "style":
                sheet = body[start:end].decode("utf-8", "replace")
                yield from ((address, "") for address in addresses(sheet))
            continue
        if styled:
            yield from _styles(body, start, end)
        if is_late:
            yield from _late_backgrounds(body, start, end)


def srcset(value: str) -> Iterator[str]:
    """Yield the addresses of a `srcset`."""
    return (address for address, _ in candidates(value))


def candidates(value: str) -> Iterator[tuple[str, str]]:
    """Yield the addresses of a `srcset`, each with its unjudged descriptors (HTML standard, section 4.8.4.2.1)."""
    position = 0
    while (match := _CANDIDATE.match(value, position)) is not None:
        address = match[1]
        position = match.end()
        words = ""
        if address.endswith(","):
            address = address.rstrip(",")
        else:
            descriptors = _DESCRIPTORS.match(value, position)
            assert descriptors is not None
            position = descriptors.end()
            words = descriptors[0].strip()
        if address:
            yield address, words


def _of_element(tag: str, found: Mapping[str, str]) -> Iterator[Named]:
    if tag == "link":
        if found.get("href") and _is_resource(found.get("rel", "")):
            yield found["href"], ""
    elif tag != "input" or found.get("type", "").strip().lower() == "image":
        for name in SOURCES.get(tag, ()):
            value = found.get(name, "")
            if is_address(name, value):
                yield value, found.get("alt", "")
    for name in SETS.get(tag, ()):
        for address in srcset(found.get(name, "")):
            if is_address(name, address):
                yield address, found.get("alt", "")
    if "style" in found:
        yield from ((address, "") for address in addresses(found["style"]))
    for name in sorted(BACKGROUNDS.intersection(found)):
        yield from ((address, "") for address in of_background(name, found[name]))


def of_background(attribute: str, value: str) -> Iterator[str]:
    """Yield the addresses of an attribute of `BACKGROUNDS`; colors have none."""
    if attribute == "data-bgset":
        yield from (one for part in value.split("|") for one in srcset(part) if is_address(attribute, one))
    elif "(" in value:
        yield from addresses(value)
    elif is_address(attribute, value):
        yield value


def is_address(attribute: str, value: str) -> bool:
    """Return whether a value in an attribute of `SOURCES` or `SETS` is an address: some are numbers for scripts."""
    if attribute[:5] != "data-":
        return value != ""
    return ("/" in value or "." in value) and "{" not in value and " " not in value.strip()


def _styles(body: bytes, start: int, end: int) -> Iterator[Named]:
    """Yield what style attributes name within a stretch of plain tags and text."""
    for quoted, ticked in _STYLE.findall(body, start, end):
        style = quoted or ticked
        if b"(" in style:
            yield from ((address, "") for address in addresses(reference_free(style.decode("utf-8", "replace"))))


def _late_backgrounds(body: bytes, start: int, end: int) -> Iterator[Named]:
    """Yield what attributes of `BACKGROUNDS` name within a stretch of plain tags and text."""
    for name, *values in _BACKGROUND.findall(body, start, end):
        value = reference_free(b"".join(values).decode("utf-8", "replace"))
        yield from ((address, "") for address in of_background(name.decode().lower(), value))


def _add(links: Links, address: str, words: str = "") -> None:
    address = address.strip("\t\n\f\r ")
    # An address that is only a fragment names a place in the page itself; data: may be megabytes long.
    if address and address[0] != "#" and address[:5].lower() != "data:":
        links.add(EMBED, address, words)
