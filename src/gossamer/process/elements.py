"""Elements: rules of the HTML standard for elements by name, as far as an outline needs them."""

from __future__ import annotations

BLOCKS = frozenset([
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "dir", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "li", "listing", "main", "menu", "nav", "ol", "p", "pre", "search", "section",
    "summary", "table", "caption", "tbody", "thead", "tfoot", "tr", "td", "th", "colgroup", "ul", "button",
    "label", "legend", "noscript", "video", "audio", "object", "html", "head", "frameset",
])  # fmt: skip
"""Elements whose edges divide text."""
ENDS_P = BLOCKS - frozenset([
    "caption", "tbody", "thead", "tfoot", "tr", "td", "th", "colgroup", "button", "label", "legend", "noscript",
    "video", "audio", "object", "html", "head", "body",
])  # fmt: skip
HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
VOID = frozenset([
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "image", "input",
    "keygen", "link", "meta", "param", "source", "track", "wbr",
])  # fmt: skip
RAW = frozenset(["plaintext", "script", "style", "textarea", "xmp", "noembed", "noframes", "iframe", "title"])
DROPPED = RAW | frozenset(["template", "svg", "math", "select"])
"""Left out with their content; `math` and formulas in scripts stay as one event."""
TABLES = frozenset(["table", "caption", "colgroup", "tbody", "thead", "tfoot", "tr", "td", "th"])
MARKERS = frozenset(["table", "caption", "td", "th", "object", "applet", "marquee"])
"""Elements that an end tag inside does not close, except end tags of tables."""
SPECIAL = BLOCKS | MARKERS
_ROWS = frozenset(("tbody", "thead", "tfoot"))
_CELLS = frozenset(("td", "th"))
_TERMS = frozenset(("dt", "dd"))
ENDED_BEFORE = {
    "li": (frozenset(("li",)), frozenset(["ul", "ol", "menu", "dir", "table"])),
    **dict.fromkeys(_TERMS, (_TERMS, frozenset(("dl", "table")))),
    **dict.fromkeys(_CELLS, (_CELLS, frozenset(("tr", "table")))),
    "tr": (frozenset(("tr",)), _ROWS | {"table"}),
    **dict.fromkeys(_ROWS, (_ROWS, frozenset(("table",)))),
    "body": (frozenset(("head",)), frozenset[str]()),
    "option": (frozenset(("option",)), frozenset(("table",))),
    "a": (frozenset(("a",)), MARKERS),
    "button": (frozenset(("button",)), MARKERS),
}
"""By start tag: the open elements that it closes, and the elements beyond which it closes none."""
PARAGRAPH = frozenset(("p",))
ONCE = frozenset(("html", "head", "body"))
"""Elements that are opened only once."""
