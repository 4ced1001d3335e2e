"""Scan: extracts the same data as the tree, in one pass over arbitrary bytes.

Follows the tokenizer of the HTML standard (section 13.2.5) for all that decides where a tag is: comments, raw text,
quoted attribute values. Tags within SVG and MathML are read as `process.foreign` says, the content of `<noframes>` for
its links. It builds no tree, so it has nothing to say about misnesting: an anchor ends at its end tag or at the next
anchor, and a frame outside a frameset counts. The text of an anchor around a tag with `<` in an attribute differs, too.

Cost: linear. Every search continues where the last one ended, and the first that reaches the end of the page ends the
scan, as in the standard. Beyond the limits below a page is ignored: 32 MB of the shortest tags would take a minute.
"""

import html
import html.entities
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, cast

import re2

from gossamer.stages.process.foreign import ROOTS, WATCHED, ForeignContent, end_of_plain_root
from gossamer.stages.process.raw import RAW, RAW_NAMES, end_tag
from gossamer.stages.process.tokens import NEEDED

_NAMED = (
    *NEEDED, "area", "frame", "link", "base", "meta", "template", "/template", "noframes", "/noframes", "plaintext",
    "svg", "math", *RAW,
)  # fmt: skip
_SPACE = r"\t\n\f\r "


# The rest of a plain tag: quotes paired, no angle bracket in them. Atomic: on anything else it fails at once. Python
# 3.11.2 matches wrongly what would be shorter, possessive repeats of groups (CPython gh-106052).
PLAIN_TAG = r"""[^<>"']*+(?>(?:"[^"<>]*+"[^<>"']*+)*)(?>(?:'[^'<>]*+'[^<>"']*+)*)"""
# All that breaks the line of plain tags and text, sought in the page in lower case: a tag that is to be looked at, a
# comment or what counts as one, a tag that is not plain. Plain tags of no interest are never matched, so that passing
# over them costs no step in Python. RE2's automaton does in 1.5 ns a byte what `re` does in 5; it cannot say "at once",
# so that a tag is not plain is spelled out: what may follow when neither a quote nor the tag can go on.
_DOUBLE = r"""(?:"[^"<>]*"[^<>"']*)*"""
_SINGLE = r"""(?:'[^'<>]*'[^<>"']*)"""


def automaton(pattern: str) -> Any:  # RE2 has no types.
    """Return a pattern over arbitrary bytes: as UTF-8 it would not match invalid bytes."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern.encode(), options)  # type: ignore[no-untyped-call]


def breaker(names: Iterable[str]) -> Any:
    """Return what finds tags of names in lower case, comments, declarations, and all tags that are not plain."""
    return automaton(
        rf"<(?:(?:{'|'.join(names)})[{_SPACE}/>]"
        r"|!--|[!?]|/[^a-z>]"
        rf"""|[a-z/][^<>"']*{_DOUBLE}(?:<|"[^"<>]*(?:[<>]|\z)|{_SINGLE}*'[^'<>]*(?:[<>]|\z)|{_SINGLE}+[<"]))"""
    )


_INSIDE = dict.fromkeys((*_NAMED, *WATCHED))
"""Tags that are read within a drawing or formula."""
_BREAKER = breaker(_NAMED)
_INSIDE_BREAKER = breaker(_INSIDE)
# Within a line of plain tags: an anchor's attributes and all markup up to where it ends. The first two groups are the
# href of an anchor as most are written: lower case, double quotes, no rel, no reference; without a label, or with text.
# The first of them has no repeated group, which would cost a quarter of the search.
_OTHERS = r"""(?>(?:[ \n](?!href=|rel=)[a-z-]++="[^"<>]*+")*)"""
_TEXT = rf"""(?=[^<{_SPACE}]|(?>(?:<(?!/?[aA][{_SPACE}/>])[^<>]*+>|[{_SPACE}]++)+)[^<{_SPACE}])"""
_ANCHOR = re.compile(
    (
        rf"""<[aA](?=[{_SPACE}/])"""
        r"""(?:(?: (?:class|id)="[^"<>]*+"|) href="([^"&<>]++)"(?: (?:class|id)="[^"<>]*+"|)"""
        rf"""(?:>| title="[^"<>]*+">{_TEXT})"""
        rf"""|{_OTHERS}[ \n]href="([^"&]++)"{_OTHERS}>{_TEXT}"""
        rf"""|({PLAIN_TAG})>)"""
        rf"""([^<]*+(?>(?:<(?!/?[aA][{_SPACE}/>])[^<]*+)*))(?=(<?))"""
    ).encode()
)
_Anchor = tuple[bytes, bytes, bytes, bytes, bytes]
"""The groups of `_ANCHOR`."""
_ANCHOR_EDGE = re.compile(rf"</?[aA](?=[{_SPACE}/>])".encode())
_NEEDED = {name.encode(): attribute for name, attribute in NEEDED.items()}
_KEPT = frozenset((b"area", b"frame", b"link", b"base", b"meta", *_NEEDED))
_INLINE = frozenset((b"<area", b"<frame", b"<link", b"<base", b"<meta", *(b"<" + name for name in _NEEDED)))
_ROOTS = frozenset(b"<" + name for name in ROOTS)
_PASSED = frozenset(f"<{name}".encode() for name in {*WATCHED} - {*_NAMED})
"""Tags that matter only within a drawing or formula, and need not divide the text there."""
_NO_FRAMES = frozenset((b"noframes", b"/noframes"))
_OF_PAGE = frozenset((b"base", b"meta"))
"""Elements that say something about a page, and so not where its frames are missing."""
CDATA = b"<![CDATA["
_IN_LINE = r"(?:b|code|em|i|span|strong|tt)"
_SIMPLE = re.compile(rf"(?>(?:<{_IN_LINE}(?: [^<>]*+)?>)*)([^<&]*+)(?>(?:</{_IN_LINE}>)*)".encode()).fullmatch
"""Matches an anchor's markup if it is a text in elements that change nothing of it, as most markup is."""
_IMAGE = re.compile(rb"<[iI][mM][gG](?=[\t\n\f\r /])")
_SILENT = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(script|style)(?=[\t\n\f\r />]).*?(?:</\1[^<>]*+>|\Z)", re.DOTALL | re.IGNORECASE
)
"""Contents of an anchor that are not text."""
_COMMENT_END = re.compile(rb"--!?>")
_NAMES = frozenset(f"<{name}".encode() for name in _INSIDE)
"""Of the breakers those that have one more character."""
# The search itself passes over what is between attributes; a repeat for it would try each of its bytes as a beginning.
_ATTRIBUTE = re.compile(
    rb"([^\t\n\f\r />][^\t\n\f\r />=]*+)"
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\t\n\f\r >\"'][^\t\n\f\r >]*+)|(?=>|\Z)))?"
)
_ATTRIBUTE_NAME = re.compile(rb"[\t\n\f\r /]*+(?:(>)|([^\t\n\f\r />][^\t\n\f\r />=]*+)[\t\n\f\r ]*+)")
_SPACES = re.compile(rb"[\t\n\f\r ]*")
_UNQUOTED = re.compile(rb"[^\t\n\f\r >]*")
_TAG = re.compile(rb"<[a-zA-Z/!?][^<>]*>")
_CUT_TAG = re.compile(rb"</?[a-zA-Z]")
# By first letters, each in both cases: half of what a list of names costs whose case is ignored.
_BREAK = re.compile(
    rb"</?(?:[aA](?i:ddress|rticle|side)|[bB](?i:lockquote|ody|r)|[cC](?i:aption|enter)|"
    rb"[dD](?i:d|etails|ialog|ir|iv|l|t)|[fF](?i:ieldset|igcaption|igure|ooter|orm)|[hH](?i:[1-6]|eader|group|r)|"
    rb"[lL](?i:egend|i)|[mM](?i:ain|enu)|[nN](?i:av)|[oO](?i:l|ption)|[pP](?i:|re)|[sS](?i:ection|ummary)|"
    rb"[tT](?i:able|body|d|foot|h|head|itle|r)|[uU](?i:l))(?:[\t\n\f\r /][^<>]*)?>"
)
_DIVIDER = re.compile(_BREAK.pattern + rb"|<(?:!--|(?i:script|style)[\t\n\f\r />])")
divides = re.compile(_DIVIDER.pattern.decode()).search
"""Finds what makes the text of an element in a tree another one than `anchor_text_of` its markup."""
_REFERENCE = re.compile(r"&(?:#[0-9]{1,9};?|#[xX][0-9a-fA-F]{1,9};?|[A-Za-z][A-Za-z0-9]{0,40};?)")
_EMPHASIS = automaton(r"(?i)</?(?:h[1-6]|b|strong)[\t\n\f\r />]")
EMPHASIS_CHARACTERS_MAX = 10_000
"""Headings and bold text of a page that are read: what is all bold emphasizes nothing."""
ANCHOR_SCAN_BYTES_MAX = 8_192
"""Markup that is read for one anchor's text."""
STEPS_MAX = 100_000
"""Tags, comments and declarations of a page that are examined individually. Ordinary pages have a few thousand."""
ANCHORS_MAX = 100_000
ELEMENTS_MAX = 20_000
"""Anchors, and other elements, that are taken from one page."""
STEPS_AT_ONCE = 1_000
ANCHORS_AT_ONCE = 1_000
"""How many of them are read in a slice of a scan: up to 10 ms."""
ATTRIBUTES_MAX = 1_000
ATTRIBUTES_PASSED_MAX = 100_000
"""Attributes of one tag that are read, and that are skipped to find its end."""
REFERENCES_MAX = 100_000
"""Character references that are replaced in one attribute."""
TITLE_SCAN_BYTES_MAX = 65_536
"""Markup that is read for a title."""
_LONG_BYTES = 8_192
"""A shorter tag, or stretch of plain tags, cannot hold many attributes or anchors: there they are not counted."""
XLINK_HREF = "xlink:href"
"""Attribute of an SVG 1.1 anchor in place of `href`."""


class Labeled(NamedTuple):
    """The markup within an anchor that may be without text, and what the anchor is called then."""

    markup: bytes
    label: str


Anchor = tuple[str, str, bytes | Labeled]
"""href, rel, and the markup within: most pages name an address many times, and one text of it is enough."""
Element = tuple[str, Mapping[str, str | None]]
"""Tag in lower case, attributes by lower-case name; the value of one without value is empty or None."""


def reference_free(value: str) -> str:
    """Return an attribute's value with its character references replaced.

    Unlike in text, `&copy=1` stays what it is (HTML standard, section 13.2.5.73).
    """
    if "&" not in value:
        return value

    def replace_reference(match: re.Match[str]) -> str:
        name = match[0]
        if name[1] == "#":
            return html.unescape(name)
        if name[-1] != ";" and value[match.end() : match.end() + 1] == "=":
            return name
        return html.entities.html5.get(name[1:], name)

    return _REFERENCE.sub(replace_reference, value, REFERENCES_MAX)


def text_of(markup: bytes) -> str:
    """Return the text of a piece of markup: tags gone, references replaced, white space unchanged."""
    if b"<" in markup:
        markup = _TAG.sub(b"", markup)
    return unescape(markup.decode("utf-8", "replace"))


def unescape(text: str) -> str:
    """Return a text with its character references replaced."""
    if "&" not in text:
        return text
    try:
        return html.unescape(text)
    except ValueError:  # A number of thousands of digits.
        return text


def anchor_text_of(markup: bytes) -> str:
    """Return the text of an anchor's markup, with spaces where a line or block ends, or its first image's alt text."""
    if (simple := _SIMPLE(markup)) is not None:
        return simple[1].decode("utf-8", "replace")
    if _DIVIDER.search(markup):
        markup = _BREAK.sub(b" ", _SILENT.sub(b"", markup))
    text = text_of(markup)
    if not text or text.isspace():
        for image in _IMAGE.finditer(markup):
            found, _ = attributes(markup, image.end())
            if found.get("alt"):
                return found["alt"]
    return text


def _labeled(markup: bytes, found: Mapping[str, str]) -> bytes | Labeled:
    """Return the markup within an anchor; where that may be without text, with the anchor's label."""
    label = found.get("aria-label") or found.get("title")
    if not label or (b"<" not in markup and not markup.isspace() and markup):
        return markup
    return Labeled(markup, label)


class ScannedMarkup:
    """The parts of a page's bytes (UTF-8) that modules need."""

    def __init__(self, body: bytes, *, scanned: bool = True) -> None:
        """With `scanned` False call `scan` and go through it before anything else."""
        self._body = body
        self._lower = body.lower()
        self.anchors: list[Anchor] = []
        """Every `a` that has an href, in order."""
        self.elements: list[Element] = []
        """Every area, frame, iframe, link, base and meta, and every quotation and edit with a cite, in order."""
        self.title: str | None = None
        """The text of the first title, unchanged."""
        self._lines: list[tuple[int, int]] = []
        self._template = 0
        self._foreign = ForeignContent()
        self._is_drawn = False
        self._no_frames = False
        self._silent = False
        """Whether the text here is not shown, though its links count."""
        self._search = _BREAKER.search
        self._texts: dict[bytes, str] = {}
        """Texts by markup of anchors, which pages repeat."""
        if scanned:
            for _ in self.scan():
                pass

    def anchor_text(self, within: bytes | Labeled) -> str:
        """Return what `anchor_text_of` an anchor returns; its label where that is blank."""
        if isinstance(within, Labeled):
            text = self.anchor_text(within.markup)
            return text if text and not text.isspace() else within.label
        if b"<" not in within and b"&" not in within:
            return within.decode("utf-8", "replace")
        found = self._texts.get(within)
        if found is None:
            found = self._texts[within] = anchor_text_of(within[:ANCHOR_SCAN_BYTES_MAX])
        return found

    def text(self) -> str:
        """Return the visible text, one line a block."""
        return block_text(self._body, self._lines)

    def emphasis(self) -> str:
        """Return the headings and bold text."""
        return emphasis_of(self._body, self._lines)

    def scan(self) -> Iterator[None]:
        """Scan the page, once. Yields each few milliseconds."""
        body = self._body
        lower = self._lower
        search = self._search
        line_from = position = steps = 0
        while (token := search(lower, position)) is not None:
            start, end = token.span()
            found = lower[start:end]
            hidden = self._template
            silent = self._silent
            late = None
            steps += 1
            if steps > STEPS_MAX:
                break
            if steps % STEPS_AT_ONCE == 0:
                yield
            if found[:-1] in _NAMES:
                position, divides = self._read_tag(found[:-1], start, end - 1)
                search = self._search
                if not divides:
                    continue
            elif found == b"<!--":
                position = skip_comment(body, start)
            elif found[1:2].isalpha() or (found[1:2] == b"/" and found[2:3].isalpha()):
                late = self._odd
            else:
                late = self._declaration
            if not hidden:
                yield from self._line(line_from, start, silent=silent)
            if late is not None:
                position = late(start)  # It may add what comes after the line.
            if position < 0:
                return
            line_from = position
        self._lower = b""
        if not self._template:
            last = _end_of_tags(body) if token is None else start
            yield from self._line(line_from, last, silent=self._silent)

    def _line(self, start: int, end: int, *, silent: bool) -> Iterable[None]:
        """Read a piece of plain tags and text, in slices if it is long."""
        if start >= end:
            return ()
        if not silent:
            self._lines.append((start, end))
        if end - start > _LONG_BYTES:
            return self._long_line(start, end)
        self._take(_ANCHOR.findall(self._body, start, end), end)
        return ()

    def _long_line(self, start: int, end: int) -> Iterator[None]:
        found = islice(_ANCHOR.finditer(self._body, start, end), max(0, ANCHORS_MAX - len(self.anchors)))
        while some := [match.groups(b"") for match in islice(found, ANCHORS_AT_ONCE)]:
            self._take(cast("list[_Anchor]", some), end)
            yield

    def _take(self, found: Iterable[_Anchor], end: int) -> None:
        anchors = self.anchors
        for unlabeled, texted, tag, markup, edge in found:
            usual = unlabeled or texted
            if usual:
                href = usual.decode("utf-8", "replace")
                rel = ""
            else:
                named = _plain_attributes(tag)
                target = named.get("href", named.get(XLINK_HREF))
                if target is None:
                    continue
                href = target
                rel = named.get("rel", "")
            if not edge:  # The line was broken inside the anchor.
                markup = self._up_to_edge(end - len(markup), end)
            anchors.append((href, rel, markup if usual else _labeled(markup, named)))

    def _odd(self, start: int) -> int:
        """Read a tag in which quotes or angle brackets are ambiguous."""
        body = self._body
        found, end = attributes(body, start + 2)
        # Of the names of interest only `a` comes here: the others are known by their names alone.
        href = found.get("href", found.get(XLINK_HREF))
        if end >= 0 and href is not None and not self._template and _ANCHOR_EDGE.match(body, start, start + 3):
            self.anchors.append((href, found.get("rel", ""), _labeled(self._up_to_edge(end, end), found)))
        return end

    def _up_to_edge(self, start: int, search_from: int) -> bytes:
        edge = _ANCHOR_EDGE.search(self._body, search_from, start + ANCHOR_SCAN_BYTES_MAX)
        end = edge.start() if edge is not None else start + ANCHOR_SCAN_BYTES_MAX
        return self._body[start:end]

    def _read_tag(self, name: bytes, start: int, position: int) -> tuple[int, bool]:
        """Read one tag of interest; return as `_element`, and whether the tag divides the line that it is in."""
        body = self._body
        if name in _INLINE:
            position = self._element(name[1:], position)
            return position, position < 0 or not is_plain(body, start, position)
        if name in _ROOTS and (end := end_of_plain_root(self._lower, start)):
            return end, False
        silent = self._silent
        position = self._element(name[1:], position)
        passes = self._is_drawn and name in _PASSED and silent is self._silent and position >= 0
        return position, not (passes and is_plain(body, start, position))

    def _element(self, name: bytes, position: int) -> int:
        """Read one tag of interest; return where to continue, or -1 at the end of the page."""
        body = self._body
        begin = position
        found, position = attributes(body, position)
        if position < 0:
            return -1
        if (self._is_drawn or name in ROOTS) and self._is_foreign(name, found, body[begin : position - 1]):
            return position
        if name == b"template":
            self._template += self._template > 0 or not is_shadow_root(found)
        elif name == b"/template":
            self._template = max(0, self._template - 1)
        elif name in RAW_NAMES:
            return self._raw(name, found, position)
        elif name in _NO_FRAMES:
            self._no_frames = name == b"noframes"
            self._silent = self._no_frames
        elif name in _KEPT and not self._template and (name not in _NEEDED or _NEEDED[name] in found):
            self._add(name, found)
        return -1 if name == b"plaintext" else position

    def _is_foreign(self, name: bytes, found: Mapping[str, str], tag: bytes) -> bool:
        """Take a tag at or within a root of SVG or MathML."""
        is_foreign = self._foreign.takes(name, found, tag)
        self._silent = self._no_frames or self._foreign.hides
        self._is_drawn = bool(self._foreign)
        self._search = _INSIDE_BREAKER.search if self._is_drawn else _BREAKER.search
        return is_foreign

    def _declaration(self, start: int) -> int:
        """Return the place after a declaration, or what counts as a comment; in SVG and MathML also CDATA."""
        body = self._body
        if not self._foreign.is_foreign or not body.startswith(CDATA, start):
            return body.find(b">", start + 2) + 1 or -1
        end = body.find(b"]]>", start)
        if not self._silent and not self._template:
            self._lines.append((~(start + len(CDATA)), end if end >= 0 else len(body)))
        return end + 3 if end >= 0 else -1

    def _add(self, name: bytes, found: Mapping[str, str | None]) -> None:
        if len(self.elements) < ELEMENTS_MAX and not (self._no_frames and name in _OF_PAGE):
            self.elements.append((name.decode(), found))

    def _raw(self, name: bytes, found: dict[str, str], position: int) -> int:
        if name == b"iframe" and not self._template:
            self._add(name, found)
        end, after = end_of_raw(self._body, self._lower, name, position)
        if name == b"title" and self.title is None and not self._template and not self._no_frames:
            title = self._body[position : min(end, position + TITLE_SCAN_BYTES_MAX)]
            self.title = text_of(title.replace(b"<", b"&lt;"))
        return after


def end_of_raw(body: bytes, lower: bytes, name: bytes, position: int) -> tuple[int, int]:
    """Return where the raw content that begins here ends, and the place after its end tag: -1 when the page ends."""
    found = end_tag(lower, name, position)
    if found is None:
        return len(body), -1
    after = found.end() + 1 if body.startswith(b">", found.end()) else attributes(body, found.end())[1]
    return found.start(), after


def is_shadow_root(found: Mapping[str, str | None]) -> bool:
    """Return whether a template with these attributes is shown (HTML standard, section 4.12.3)."""
    return (found.get("shadowrootmode") or "").lower() in ("open", "closed")


def _end_of_tags(body: bytes) -> int:
    """Return where a page ends, without a tag that is cut off."""
    last = body.rfind(b"<")
    return last if last > body.rfind(b">") and _CUT_TAG.match(body, last) is not None else len(body)


def is_plain(body: bytes, start: int, end: int) -> bool:
    """Return whether a tag has no angle brackets inside."""
    return body.find(b">", start) == end - 1 and body.find(b"<", start + 1, end) < 0


def attributes(body: bytes, position: int) -> tuple[dict[str, str], int]:
    """Read the attributes of a tag from just after its name; return them and the place after its `>`.

    -1 when the page ends first: then there is no tag. First of equal names wins (HTML standard, section 13.2.5.33).
    """
    end = body.find(b">", position)
    if end < 0:
        return {}, -1
    tag = body[position:end]
    double = tag.count(b'"')
    single = tag.count(b"'")
    if (double and single) or double % 2 or single % 2:
        return _attributes_exactly(body, position)
    return _plain_attributes(tag), end + 1


def _plain_attributes(tag: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, quoted, ticked, bare in _groups(_ATTRIBUTE, tag, 0, len(tag), ATTRIBUTES_MAX):
        key = name.decode("utf-8", "replace").lower()
        if key not in found:
            found[key] = reference_free((quoted or ticked or bare).decode("utf-8", "replace"))
    return found


def _groups(
    pattern: re.Pattern[bytes], body: bytes, start: int, end: int, most: int
) -> Iterable[tuple[bytes, bytes, bytes, bytes]]:
    """Return the groups of a pattern's matches; of a long stretch at most `most`."""
    if end - start <= _LONG_BYTES:
        return pattern.findall(body, start, end)
    matches = islice(pattern.finditer(body, start, end), max(0, most))
    return cast("Iterable[tuple[bytes, bytes, bytes, bytes]]", (match.groups(b"") for match in matches))


def _attributes_exactly(body: bytes, position: int) -> tuple[dict[str, str], int]:
    """Do the same, state by state, for tags in which a quote or an angle bracket may be anything."""
    found: dict[str, str] = {}
    passed = 0
    while (match := _ATTRIBUTE_NAME.match(body, position)) is not None and passed < ATTRIBUTES_PASSED_MAX:
        position = match.end()
        passed += 1
        if match[1]:
            return found, position
        raw = b""
        if body[position : position + 1] == b"=":
            position = _SPACES.match(body, position + 1).end()  # type: ignore[union-attr]  # matches the empty string
            quote = body[position : position + 1]
            if quote in (b'"', b"'"):
                end = body.find(quote, position + 1)
                if end < 0:
                    return {}, -1
                raw = body[position + 1 : end]
                position = end + 1
            else:
                value = _UNQUOTED.match(body, position)
                assert value is not None
                raw = value[0]
                position = value.end()
        key = match[2].decode("utf-8", "replace").lower()
        if key not in found and len(found) < ATTRIBUTES_MAX:
            found[key] = reference_free(raw.decode("utf-8", "replace"))
    return {}, -1


def skip_comment(body: bytes, start: int) -> int:
    """Return the place after a comment; -1 at the end of the page."""
    for abrupt in (b">", b"->"):
        if body.startswith(abrupt, start + 4):
            return start + 4 + len(abrupt)
    end = _COMMENT_END.search(body, start + 4)
    return end.end() if end is not None else -1


def emphasis_of(body: bytes, pieces: list[tuple[int, int]]) -> str:
    """Return the headings and bold text of the pieces, `EMPHASIS_CHARACTERS_MAX` of it at most. Linear."""
    found: list[bytes] = []
    depth = 0
    for start, end in pieces:
        begin = start
        for edge in _EMPHASIS.finditer(body, start, end) if start >= 0 else ():
            if depth:
                found.append(body[begin : edge.start()])
            begin = edge.start()
            sign = edge[0][1:2]
            depth = max(0, depth - 1) if sign == b"/" else 1 if sign in b"hH" else depth + 1  # A heading closes others.
        if depth and start >= 0:
            found.append(body[begin:end])
    return " ".join(text_of(_BREAK.sub(b" ", b" ".join(found))).split())[:EMPHASIS_CHARACTERS_MAX]


def block_text(body: bytes, pieces: list[tuple[int, int]]) -> str:
    """Return the text of the pieces, one line a block, spaces collapsed. Linear.

    A piece whose start is inverted (`~`) holds no markup.
    """
    markup = b"".join(
        [
            body[start:end] if start >= 0 else body[~start:end].replace(b"&", b"&amp;").replace(b"<", b"&lt;")
            for start, end in pieces
        ]
    )
    text = text_of(_BREAK.sub(b"\n", markup))
    return "\n".join([" ".join(words) for line in text.split("\n") if (words := line.split())])
