"""Forms: the fields of a form as a browser would send them, and whether a page shows something."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from gossamer.process.charset import to_utf8
from gossamer.url.join import join

MARKUP_BYTES_MAX = 1 << 20
"""Bytes that are read of a page with a form, since its tree is always built."""
TAGS_MAX = 20_000
"""A page with more tags has no form that we read: the cost of a tree may grow with the square of its depth."""
FIELDS_MAX = 200
_UNSENT = frozenset({"submit", "button", "image", "reset", "file"})


class Form(msgspec.Struct, frozen=True):
    """A form, filled in as its page has it."""

    action: str
    """Absolute."""
    method: str
    """`get` or `post`."""
    fields: list[tuple[str, str]]


def form_of(body: bytes, charset: str, url: str, names: Collection[str], selector: str = "") -> Form | None:
    """Return the first form of a page that has fields of all these names, or the one that a CSS selector finds; None
    where there is none. Hidden fields (CSRF tokens) are among its fields.
    """
    tree = _tree(body, charset)
    if tree is None:
        return None
    base = tree.css_first("base[href]")
    base_url = join(url, base.attributes.get("href") or "") if base is not None else None
    for form in tree.css(selector or "form"):
        fields = _fields(form)
        if selector or set(names) <= {name for name, _ in fields}:
            action = join(base_url or url, form.attributes.get("action") or "") or url
            return Form(action, (form.attributes.get("method") or "get").strip().lower(), fields)
    return None


def shows(body: bytes, charset: str, text: str = "", selector: str = "") -> bool:
    """Say whether a page holds a text in its markup, or an element that a CSS selector finds."""
    if text:
        return text.encode() in to_utf8(body, charset)[0]
    tree = _tree(body, charset)
    return tree is not None and tree.css_first(selector) is not None


def is_selector(text: str) -> bool:
    """Say whether a text is a CSS selector that can be looked for."""
    try:
        LexborHTMLParser(b"<p>").css_first(text)
    except Exception:  # noqa: BLE001 - the parser names no class of its own
        return False
    return True


def _tree(body: bytes, charset: str) -> LexborHTMLParser | None:
    markup = to_utf8(body[:MARKUP_BYTES_MAX], charset)[0]
    return LexborHTMLParser(markup) if markup.count(b"<") <= TAGS_MAX else None


def _fields(form: LexborNode) -> list[tuple[str, str]]:
    fields = []
    for node in form.css("input[name], select[name], textarea[name]")[:FIELDS_MAX]:
        name, kind = node.attributes.get("name") or "", (node.attributes.get("type") or "text").lower()
        if node.tag == "textarea":
            fields.append((name, node.text()))
        elif node.tag == "select":
            chosen = node.css_first("option[selected]") or node.css_first("option")
            if chosen is not None:
                fields.append((name, chosen.attributes.get("value") or chosen.text()))
        elif kind in ("checkbox", "radio"):
            if "checked" in node.attributes:
                fields.append((name, node.attributes.get("value") or "on"))
        elif kind not in _UNSENT:
            fields.append((name, node.attributes.get("value") or ""))
    return fields
