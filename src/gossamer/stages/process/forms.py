"""Forms: the fields of a form as a browser would send them, and whether a page shows something."""

import re
from collections.abc import Collection, Sequence
from hashlib import sha256
from itertools import chain
from urllib.parse import urlencode

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from gossamer.stages.process.charset import encoding_of_label, python_codec, to_utf8
from gossamer.url.join import join

MARKUP_BYTES_MAX = 1 << 20
"""Bytes that are read of a page with a form, for which a tree is always built."""
TAGS_MAX = 20_000
"""Pages with more tags are not searched for forms, because the cost of a tree may grow with the square of its depth."""
FIELDS_MAX = 200
_CONTROLS = "input, select, textarea, button"
_UNSENT = frozenset({"button", "reset", "file"})
_LABEL = "Submit"
"""Value of a button that declares none."""
_CHARSET = "_charset_"
"""Name of a hidden field in which browsers send the name of the encoding."""
_Pairs = list[tuple[str, str]]
_URLENCODED = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_PLAIN = "text/plain"
_LINE_END = re.compile(r"\r\n?|\n")
_SPACES = re.compile(r"[\t\n\f\r ]+")
_IN_NAME = str.maketrans({"\r": "%0D", "\n": "%0A", '"': "%22"})


class Form(msgspec.Struct, frozen=True):
    """A form, with the values that its page has."""

    action: str
    """Absolute address."""
    method: str
    """`get` or `post`."""
    fields: list[tuple[str, str]]
    codec: str = "utf-8"
    """Python's name of the encoding in which a browser sends the fields."""
    enctype: str = _URLENCODED

    def encode(self, pairs: Sequence[tuple[str, str]]) -> tuple[bytes, str]:
        """Return names and values as the form sends them, and the media type (HTML standard, section 4.10.21)."""
        pairs = [(_LINE_END.sub("\r\n", name), _LINE_END.sub("\r\n", value)) for name, value in pairs]
        missing = "xmlcharrefreplace"  # As browsers send what the encoding lacks (WHATWG Encoding, section 4.1).
        if self.enctype == _PLAIN:
            text = "".join(f"{name}={value}\r\n" for name, value in pairs)
            return text.encode(self.codec, missing), _PLAIN
        if self.enctype != _MULTIPART:
            return urlencode(pairs, encoding=self.codec, errors=missing).encode(), _URLENCODED
        boundary = f"----{sha256(repr(pairs).encode()).hexdigest()[:32]}"  # No value holds a digest of itself.
        text = "".join(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name.translate(_IN_NAME)}"\r\n\r\n{value}\r\n'
            for name, value in pairs
        )
        return f"{text}--{boundary}--\r\n".encode(self.codec, missing), f"{_MULTIPART}; boundary={boundary}"


def form_of(body: bytes, charset: str, url: str, names: Collection[str], selector: str = "") -> Form | None:
    """Return the first form of a page that has fields of all these names, or the one that a CSS selector finds; None
    where there is none. Hidden fields (CSRF tokens) are among its fields, and its button: servers look at it for what
    to do. That is the one named, or else the first, as for who presses Enter.
    """
    markup, encoding = to_utf8(body[:MARKUP_BYTES_MAX], charset)
    tree = _tree(markup)
    if tree is None:
        return None
    base = tree.css_first("base[href]")
    base_url = join(url, base.attributes.get("href") or "") if base is not None else None
    controls = _Controls(tree)
    for form in tree.css(selector or "form"):
        used = _encoding(form.attributes.get("accept-charset"), encoding)
        fields, buttons = _fields(controls.of(form), used)
        if selector or set(names) <= {name for name, _ in chain(fields, *(sent for _, sent in buttons))}:
            named = (button for button in buttons if any(name in names for name, _ in button[1]))
            button, sent = next(named, buttons[0] if buttons else (form, []))
            fields += [pair for pair in sent if pair[0] not in names]
            action = join(base_url or url, _submission(button, form, "action")) or url
            method = _submission(button, form, "method").strip().lower() or "get"
            enctype = _submission(button, form, "enctype").lower()
            return Form(action, method, fields, python_codec(used), enctype)
    return None


def _submission(button: LexborNode, form: LexborNode, name: str) -> str:
    """Return an attribute of the submission, which the button may override (HTML, 4.10.18.6)."""
    return button.attributes.get(f"form{name}") or form.attributes.get(name) or ""


def _encoding(accepted: str | None, encoding: str) -> str:
    """Return the encoding of a form: the first it accepts that is known, else its page's (HTML, section 4.10.21.5)."""
    if accepted is not None:
        encoding = next(filter(None, map(encoding_of_label, accepted.split())), "utf-8")
    return encoding


def shows(body: bytes, charset: str, text: str = "", selector: str = "") -> bool:
    """Return whether a page's markup has a text, or an element that a CSS selector finds."""
    if text:
        return text.encode() in to_utf8(body, charset)[0]
    tree = _tree(to_utf8(body[:MARKUP_BYTES_MAX], charset)[0])
    return tree is not None and tree.css_first(selector) is not None


def has_login_form(body: bytes, charset: str) -> bool:
    """Return whether a page asks for one password; forms for new passwords ask for two or more."""
    beginning = body[:MARKUP_BYTES_MAX]
    if b"password" not in beginning.lower():
        return False
    tree = _tree(to_utf8(beginning, charset)[0])
    return tree is not None and len(tree.css("input[type=password i]")) == 1


def is_selector(text: str) -> bool:
    """Return whether a text is a valid CSS selector."""
    try:
        LexborHTMLParser(b"<p>").css_first(text)
    except Exception:  # noqa: BLE001 - the parser names no class of its own
        return False
    return True


def _tree(markup: bytes) -> LexborHTMLParser | None:
    return LexborHTMLParser(markup) if markup.count(b"<") <= TAGS_MAX else None


class _Controls:
    """The controls of a page's forms."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._named: dict[str, list[LexborNode]] = {}
        self._after: dict[int, list[LexborNode]] = {}
        """Those between a form and the next one, in or behind it."""
        following: list[LexborNode] = []
        for node in tree.css(f"form, {_CONTROLS}"):
            if node.tag == "form":
                following = self._after[node.mem_id] = []
            elif owner := node.attributes.get("form"):
                self._named.setdefault(owner, []).append(node)
            else:
                following.append(node)

    def of(self, form: LexborNode) -> list[LexborNode]:
        """Return those in a form and those that name it. Where a form begins between the rows of a table the tree has
        it empty, and those after it are its own (HTML standard, section 13.2.6.4.9).
        """
        after = self._after.get(form.mem_id, [])
        inside = form.css(_CONTROLS) if form.child is not None else after
        # The first form of an id has it.
        named = self._named.pop(form.attributes.get("id") or "", [])
        return [one for one in inside if "form" not in one.attributes] + named


def _fields(controls: list[LexborNode], encoding: str) -> tuple[_Pairs, list[tuple[LexborNode, _Pairs]]]:
    fields: _Pairs = []
    buttons: list[tuple[LexborNode, _Pairs]] = []
    for node in controls[:FIELDS_MAX]:
        name = node.attributes.get("name") or ""
        kind = (node.attributes.get("type") or ("submit" if node.tag == "button" else "text")).lower()
        if _is_disabled(node):
            continue
        if kind == "submit" and node.tag in ("input", "button"):
            value = _value(node, _LABEL if node.tag == "input" else "")
            buttons.append((node, [(name, value)] if name else []))
        elif kind == "image":
            buttons.append((node, [(f"{name}.{axis}" if name else axis, "0") for axis in "xy"]))
        elif kind == "hidden" and name.lower() == _CHARSET:
            shown = "utf-8" if python_codec(encoding) == "utf-8" else encoding
            fields.append((name, shown if shown.startswith("windows") else shown.upper()))
        elif name:
            fields += [(name, value) for value in _values(node, kind)]
    return fields, buttons


def _is_disabled(node: LexborNode) -> bool:
    """Return whether a control or option is disabled, or its group outside of the first legend (section 4.10.19.5)."""
    legend: int | None = None
    above: LexborNode | None = node
    while above is not None:
        if "disabled" in above.attributes and (above is node or above.tag in ("fieldset", "optgroup")):
            first = next((child for child in above.iter() if child.tag == "legend"), None)
            if first is None or first.mem_id != legend:
                return True
        legend = above.mem_id
        above = above.parent
    return False


def _values(node: LexborNode, kind: str) -> list[str]:
    if node.tag == "textarea":
        return [node.text()]
    if node.tag == "select":
        enabled = [option for option in node.css("option") if not _is_disabled(option)]
        chosen = node.css("option[selected]")
        if "multiple" not in node.attributes:
            chosen = chosen[-1:] or enabled[:1]
        sent = {option.mem_id for option in enabled}
        return [_value(one, _SPACES.sub(" ", one.text()).strip(" ")) for one in chosen if one.mem_id in sent]
    if kind in ("checkbox", "radio"):
        return [_value(node, "on")] if "checked" in node.attributes else []
    return [] if kind in _UNSENT else [_value(node, "")]


def _value(node: LexborNode, missing: str) -> str:
    return node.attributes["value"] or "" if "value" in node.attributes else missing
