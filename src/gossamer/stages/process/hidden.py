"""Hidden: removes the elements that a page hides from all its readers, so that only a program would read them.

docs/reference/processing.md lists what counts, what stays because a reader can open it, and what is not covered.
Linear, about 5 µs a KB. Elements end as the HTML standard has it, as far as their own content decides.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gossamer.stages.process.foreign import ROOTS, end_of_plain_root
from gossamer.stages.process.raw import RAW_NAMES
from gossamer.stages.process.scan import (
    STEPS_MAX,
    attributes,
    automaton,
    breaker,
    end_of_raw,
    is_shadow_root,
    skip_comment,
    text_of,
)  # fmt: skip
from gossamer.stages.process.tokens import BLOCKS, ENDED_BEFORE, ENDS_P, NO_NAMES, PARAGRAPH, VOID

LARGE = 1_000
"""Characters of a hidden text that may be a page's content, which a script shows when it is ready."""
DEPTH_MAX = 400
NEAR_MAX = 50
"""Elements within a hidden one that are distinguished (deeper ones are counted), and those that a tag can end."""
SHEETS_BYTES_MAX = 500_000
PRELUDE_BYTES_MAX = 2_000
RULES_MAX = 200
REVEALS_MAX = 50
"""Style sheets of a page that are read, a selector, rules that hide, and names that are sought in the others."""
_SPACE = r"\t\n\f\r "
_NAMED = frozenset((*RAW_NAMES, *ROOTS, b"noscript", b"/noscript", b"plaintext", b"template"))
_BREAKER = breaker(sorted(map(bytes.decode, _NAMED)))
_MEDIA = frozenset(("", "all", "screen"))
_TEXT = re.compile(rb">[\t\n\f\r ]*+[^\t\n\f\r <]")
_TAG_BEGIN = "(?:[a-hj-z][^<>]*|i(?:(?:[^n<>]|n[^p<>])[^<>]*)?)"
"""Of all but `input`, which is often `hidden` and never text."""
_HIDDEN = (
    rf"""[{_SPACE}/"']hidden[{_SPACE}/>"'=]|aria-hidden"""
    rf"|style[{_SPACE}]*=[^<>]*(?:none|hidden|collapse|opacity|[:(][{_SPACE}]*-|[^0-9.]0|size[^0-9<>]*\.0|scale|clip|&|/\*)"
)
"""Words of which each start tag that hides by itself has one."""
_NAME = re.compile(rb"[\t\n\f\r />]")
_TAG = re.compile(rb"<(/?)([a-z][^\t\n\f\r />]*+)([^<>]*)>")
_BRACKETS = bytes.maketrans(b"<>", b"  ")
_NEVER = VOID | {"html", "body", "head", "main", "svg", "math", "title", "script", "style", "template"}
"""Elements that are no text, and those that a script shows when it is ready, or the page would have no readers."""
_REPLACED = ("audio", "canvas", "noscript", "video")
"""Elements whose content browsers show only in place of what they lack."""
_DIVIDING = ENDS_P - {"li", "dt", "dd"}
_NO_PARAGRAPHS = BLOCKS - PARAGRAPH
_ZERO = r"\s*:\s*[-+]?(?:0+(?:\.0*)?|\.0+)(?:px|r?em|pt|vw|vh|%)?\s*(?:!important\s*)?(?:;|\Z)"
_AWAY = r"\s*:\s*-(?:[5-9]\d\d|\d{4,})"
# Texts, not compiled patterns: few pages ask for one, and to compile all takes 2 % of a crawl's start.
_HIDING = (
    rf"(?<![\w-])(?:display\s*:\s*none\b|content-visibility\s*:\s*hidden\b"
    rf"|(?:left|top|right|bottom|text-indent|margin-left|margin-top){_AWAY}"
    rf"|clip\s*:\s*rect\(\s*[01](?:px)?(?:[\s,]+[01](?:px)?){{3}}\s*\)"
    rf"|clip-path\s*:\s*(?:inset\(\s*(?:50|100)%|circle\(\s*0)|font-size{_ZERO}"
    rf"|transform\s*:[^;]{{0,100}}(?:scale\(\s*0\s*\)|translate[xy]?\(\s*-\d{{4,}}))"
)
_CLIPPED = rf"(?<![\w-])(?:max-)?(?:height|width)(?:{_ZERO}|\s*:\s*1px)"
_FADED = rf"(?<![\w-])(?:visibility\s*:\s*(?:hidden|collapse)\b|opacity{_ZERO})"
_APPEARS = (
    r"transform|transition|will-change|animat|(?<![a-z])(?:aos|wow|fade|reveal|lazy|appear|in-?view|invisible|scroll)|cloak"
    r"|data-w-id|framer"
)
"""Of what is transparent: what shows it."""
_OPENED = (
    r"(?i)accordion|collaps|faq|answer|toggle|expand|spoiler|panel|carousel|slide|(?<![a-z])tabs?(?![a-z])|read-?more"
)
_CONTROL = automaton(r"""(?:aria-controls=|(?:href|data-target|data-bs-target|popovertarget)=["']?#)["']?([^"'<>]+)""")
_STREAMED = re.compile(r"[BPS]:[0-9a-z]+")
"""Ids of what React sends later, for a script to move to its place."""
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_BLOCK = automaton(
    r"\{[^{}]*(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*\.?0|font-size\s*:\s*0"
    r"|(?:left|top|indent)\s*:\s*-\d{3}|clip\s*:|clip-path\s*:)[^{}]*\}"
)
_SELECTOR = re.compile(
    r"""(\*|[a-z][\w-]*+)?((?>(?:[.#][\w-]++|\[[\w-]++(?:=(?:"[^"\]]*+"|'[^'\]]*+'|[\w-]++))?\])*))"""
)
_PART = re.compile(r"""[.#][\w-]+|\[[^\[\]]+\]""")
_SHOWS = r"[^{}]*\{[^{}]*(?:display\s*:\s*[^n\s]|visibility\s*:\s*v|opacity\s*:\s*(?:0?\.0*)?[1-9])"


class HidingRule(NamedTuple):
    """A rule of a style sheet that hides: its selector in parts, and where in the sheet it is."""

    tag: str
    parts: frozenset[str]
    """`.class`, `#id`, `[attribute` and `[attribute=value`."""
    place: int
    declarations: str


def without_hidden(body: bytes) -> tuple[bytes, int]:
    """Return a page in UTF-8 without its hidden elements, and how many characters of text these hold.

    An element with most of a page's text is not hidden: a script shows it. So is all where nothing else is text.
    """
    page = _HidingPage(body)
    held = [(*one, len(" ".join(text_of(page.bare[one[1] : one[2]]).split()))) for one in page.ranges()]
    if any(size > LARGE or name == "noscript" for name, _, _, size in held):
        most = len(" ".join(text_of(page.bare).split())) / 2
        held = [one for one in held if one[3] <= most or (one[3] <= LARGE and one[0] != "noscript")]
    characters = sum(size for _, _, _, size in held)
    if not characters or _TEXT.search(b">" + _cut(page.bare, held)) is None:
        return body, 0
    return _cut(body, held), characters


def _cut(body: bytes, held: Iterable[tuple[str, int, int, int]]) -> bytes:
    pieces: list[bytes] = []
    position = 0
    for name, start, end, _ in held:
        pieces += [body[position:start], b"<div></div>" if name in _DIVIDING else b""]  # Blocks around it stay apart.
        position = end
    return b"".join([*pieces, body[position:]])


class _HidingPage:
    """A page whose comments, scripts and templates are blank, each byte of the rest in its place."""

    def __init__(self, body: bytes) -> None:
        self._sheets: list[str] = []
        self.bare = self._blank_out(body, body.lower())
        self._lower = self.bare.lower()
        self._css = _COMMENT.sub(" ", "\n".join(self._sheets)[:SHEETS_BYTES_MAX])
        self._rules = {key: rules for key, rules in _rules(self._css).items() if key.encode() in self._lower}
        self._known: dict[bytes, bool] = {}
        self._opened: dict[bytes, tuple[int, int]] = {}
        """Of each name how many elements are open before a place, and the place."""
        self._controlled: frozenset[str] | None = None
        self._reveals: dict[tuple[str, int], bool] = {}

    def _blank_out(self, body: bytes, lower: bytes) -> bytes:
        """Return the page with spaces for what is neither text nor an element, and without brackets within tags."""
        bare = bytearray(body)
        position = 0
        self._is_noscript = False
        for _ in range(STEPS_MAX):
            token = _BREAKER.search(lower, position)
            if token is None:
                return bytes(bare)
            start, end = token.span()
            found = lower[start:end]
            if found[1:-1] in _NAMED:
                position = self._skip_element(found[1:-1], bare, body, lower, start, end - 1)
            elif found[1:2].isalpha() or (found[1:2] == b"/" and found[2:3].isalpha()):
                position = attributes(body, start + 2)[1]
                bare[start + 1 : position - 1] = body[start + 1 : position - 1].translate(_BRACKETS)
            else:
                position = skip_comment(body, start) if found == b"<!--" else body.find(b">", start) + 1 or -1
                bare[start:position] = b" " * (position - start)
            if position < 0:
                break
        return bytes(bare[:start])

    def _skip_element(self, name: bytes, bare: bytearray, body: bytes, lower: bytes, start: int, position: int) -> int:
        """Skip an element whose content is not shown; return where to continue, or -1 if the page ends with it."""
        if name in ROOTS:
            return end_of_plain_root(lower, start) or position
        if name in (b"noscript", b"/noscript"):
            self._is_noscript = name == b"noscript"
            return position
        found, begin = attributes(body, position)
        if begin < 0 or name == b"plaintext" or (name == b"template" and is_shadow_root(found)):
            return -1 if name == b"plaintext" else begin
        if name == b"template":
            end = after = lower.find(b"</template", begin)
        else:
            end, after = end_of_raw(body, lower, name, begin)
        if name == b"style" and not self._is_noscript and found.get("media", "all").strip().lower() in _MEDIA:
            self._sheets.append(body[begin:end].decode("utf-8", "replace"))
        bare[begin:end] = b" " * (end - begin)
        return after

    def ranges(self) -> Iterator[tuple[str, int, int]]:
        """Yield name, start and end of the hidden elements, outermost only."""
        words = list(map(re.escape, sorted(self._rules)))
        names = "|".join(["dialog", *_REPLACED, *words])
        marks = "|".join([_HIDDEN, *words])
        search = automaton(rf"<(?:(?:{names})[{_SPACE}/>]|{_TAG_BEGIN}(?:{marks}))").search
        position = 0
        while (found := search(self._lower, position)) is not None:
            start = found.start()
            position = self._lower.find(b">", start) + 1
            if not position:
                return
            tag = self.bare[start:position]
            name = _NAME.split(self._lower[start + 1 : position], 1)[0].decode("latin-1")
            if tag not in self._known:
                named = attributes(tag, 1 + len(name))[0]
                self._known[tag] = name not in _NEVER and self._hides(name, named)
            if self._known[tag]:
                position = max(position, self._end(name, start, position))
                yield name, start, position

    def _hides(self, name: str, found: Mapping[str, str]) -> bool:
        if name in _REPLACED:
            return True
        if name == "dialog":
            return "open" not in found
        called = f"{found.get('class', '')} {found.get('id', '')}"
        # MediaWiki and MathJax show an image of the formula instead, which has no text.
        is_lone = "katex-html" in called and b"katex-mathml" not in self._lower
        if is_lone or "mwe-math-mathml" in called or name == "mjx-assistive-mml":
            return False
        about = f"{called} {' '.join(found)}".lower()
        words = dict.fromkeys([name, *called.lower().split(), *found])
        rules = (rule for word in words for rule in self._rules.get(word, ()))
        is_hidden = (
            found.get("hidden", "until-found").strip().lower() != "until-found"
            or found.get("aria-hidden", "").strip().lower() == "true"
            or _is_hiding(_COMMENT.sub("", found.get("style", "")).lower(), about)
            or any(_is_hiding(one.declarations, about) and self._applies(one, name, found) for one in rules)
        )
        return is_hidden and not self._is_opened(found, called)

    def _is_opened(self, found: Mapping[str, str], called: str) -> bool:
        if found.get("role") == "tabpanel" or re.search(_OPENED, called) is not None:
            return True
        if "id" in found and self._controlled is None:
            names = b" ".join(one[1] for one in _CONTROL.finditer(self.bare))
            self._controlled = frozenset(names.decode("utf-8", "replace").split())
        name = found.get("id", "")
        return name in (self._controlled or ()) or _STREAMED.fullmatch(name) is not None

    def _applies(self, rule: HidingRule, name: str, found: Mapping[str, str]) -> bool:
        classes = found.get("class", "").split()
        named = [*("." + one for one in classes), "#" + found.get("id", "")]
        if rule.tag not in ("", "*", name) or not rule.parts.issubset(
            (*named, *("[" + one for one in found), *(f"[{one}={value}" for one, value in found.items()))
        ):
            return False
        own = {part[1:] for part in rule.parts if part[0] != "["}
        return not any(self._is_revealed(one, 0 if one in own else rule.place) for one in (*own, *classes))

    def _is_revealed(self, name: str, place: int) -> bool:
        """Return whether a rule behind a place of the style sheets shows what has this name."""
        known = self._reveals.get((name, place))
        if known is None:
            pattern = automaton(rf"[.#]{re.escape(name)}(?:[^\w{{}}-]{_SHOWS}|{_SHOWS[6:]})")
            known = len(self._reveals) >= REVEALS_MAX or pattern.search(self._css.encode(), place) is not None
            self._reveals[name, place] = known
        return known

    def _end(self, name: str, start: int, position: int) -> int:
        stack = [name]
        deeper = 0
        for tag in _TAG.finditer(self._lower, position):
            one = tag[2].decode("latin-1")
            if tag[1]:
                if deeper:
                    deeper -= 1
                elif one in stack:
                    while stack.pop() != one:
                        pass
                    if not stack:
                        return tag.end()
                elif one in BLOCKS and self._is_open(tag[2], start):
                    return tag.start()
            elif one not in VOID:
                if one in ENDS_P:
                    _close(stack, PARAGRAPH, _NO_PARAGRAPHS)
                _close(stack, *ENDED_BEFORE.get(one, NO_NAMES))
                if not stack:
                    return tag.start()
                if len(stack) < DEPTH_MAX:
                    stack.append(one)
                else:
                    deeper += 1
        return len(self.bare)

    def _is_open(self, name: bytes, before: int) -> bool:
        count, place = self._opened.get(name, (0, 0))
        for tag in re.finditer(rb"<(/?)" + name + rb"(?=[\t\n\f\r />])", self._lower[place:before]):
            count = max(0, count - 1) if tag[1] else count + 1
        self._opened[name] = count, before
        return count > 0


def _close(stack: list[str], names: frozenset[str], barriers: frozenset[str]) -> None:
    """End the innermost element of these names that is open, unless one of the barriers is within."""
    for at in range(len(stack) - 1, max(-1, len(stack) - NEAR_MAX), -1):
        if stack[at] in names:
            del stack[at:]
            return
        if stack[at] in barriers:
            return


def _is_hiding(declarations: str, called: str) -> bool:
    """Return whether declarations hide an element; what they make transparent may be shown by what it is called."""
    if re.search(_HIDING, declarations) or ("overflow" in declarations and re.search(_CLIPPED, declarations)):
        return True
    return re.search(_FADED, declarations) is not None and re.search(_APPEARS, declarations + called) is None


def _rules(css: str) -> dict[str, list[HidingRule]]:
    """Return the unconditional rules that hide, of one element's selectors, by a word that each such tag holds."""
    rules: dict[str, list[HidingRule]] = {}
    data = css.encode()
    depth = position = 0
    for block in _BLOCK.finditer(data):
        depth += data.count(b"{", position, block.start()) - data.count(b"}", position, block.start())
        position = block.start()
        declarations = block[0][1:-1].decode("utf-8", "replace").lower()
        if depth or not _is_hiding(declarations, ""):
            continue
        before = data[max(0, position - PRELUDE_BYTES_MAX) : position]
        prelude = before[max(map(before.rfind, (b"{", b"}", b";"))) + 1 :].decode("utf-8", "replace")
        for selector in prelude.split(","):
            found = _SELECTOR.fullmatch(selector.strip())
            if found is not None and (found[1] or found[2]) and len(rules) < RULES_MAX:
                parts = [re.sub("[\"'\\]]", "", part) for part in _PART.findall(found[2])]
                word = parts[0][1:].partition("=")[0] if parts else found[1]
                rule = HidingRule(found[1] or "", frozenset(parts), position, declarations)
                rules.setdefault(word.lower(), []).append(rule)
    return rules
