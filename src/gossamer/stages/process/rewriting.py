"""Rewriting: replaces the addresses in a page by those of copies, so that it opens from files without a network.

A policy in each page (Content Security Policy Level 3) prevents the browser from requesting resources without a copy.
Browsers heed it in the HTML that SVG or other XML has, too.
Scripts are not changed: their other requests fail. A page that was rendered has none.
"""

import html
import re
from collections.abc import Callable, Mapping
from itertools import chain

from selectolax.lexbor import LexborHTMLParser, LexborNode

from gossamer.model.pages import Page
from gossamer.stages.process.elements import is_xml
from gossamer.stages.process.embeds import BACKGROUNDS, CSS, LATE, SETS, SOURCES, candidates, is_address, with_addresses
from gossamer.stages.process.html import HTML_TYPES, document_of
from gossamer.stages.process.links import Base, base_href, refresh_target
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.scan import unescape

Place = Callable[[str], str]
"""Returns the address in the copy for an absolute address."""

POLICY = "default-src 'self' file: data: blob: 'unsafe-inline' 'unsafe-eval'"
HEAD = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
XML_HEAD = f'<head xmlns="http://www.w3.org/1999/xhtml">{HEAD.partition(">")[2][:-1]}/></head>'
WITHIN_DEPTH_MAX = 2
"""Depth of documents in `srcdoc` and of templates within each other."""
_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    **SOURCES, "a": ("href", "xlink:href"), "area": ("href",), "link": ("href",), "form": ("action",), "q": ("cite",),
    "button": ("formaction",), "input": (*SOURCES["input"], "formaction"), "blockquote": ("cite",), "ins": ("cite",),
    "del": ("cite",),
}  # fmt: skip
_CONNECTING = frozenset(("preconnect", "dns-prefetch", "prefetch", "prerender", "modulepreload", "preload"))
"""Relations of links that only request early. One that is a stylesheet too, or that a script makes one, stays."""
_REPLACED = frozenset(("content-type", "content-security-policy", "content-security-policy-report-only"))
_UNUSED = ("integrity", "crossorigin", "ping", "nonce")
"""Attributes that compare bytes, ask for CORS, which files cannot answer, or send requests."""
_LATE_NAMES = frozenset(chain.from_iterable(LATE.values()))
_LINED = frozenset(("pre", "textarea", "listing"))
DOCTYPE_BYTES_MAX = 10_000
"""Where a doctype is sought, which only comments can precede."""
_DOCTYPE = re.compile(rb"<!doctype[^<>]*+>", re.IGNORECASE)
_BASE = re.compile(rb"<base[\t\n\f\r />]", re.IGNORECASE)
_CHARSET = re.compile(r'^@charset "[^"]*";')
_TEMPLATE = re.compile(r'<template(?>(?: [^ "=>]++="[^"]*+")*)>')
_ROWS = re.compile(r"\s*+<(?:t[rdh]|tbody|thead|tfoot|col|colgroup|caption)\b")
_MARK = "\ue000"
_PLACE = re.compile(f"{_MARK}([0-9]{{1,6}}){_MARK}")
_XML_SHOWN = (b"<?xml-stylesheet", b"http://www.w3.org/1999/xhtml", b"http://www.w3.org/2000/svg", b"<svg")
"""Signs of XML that browsers do not show as its source."""
_XML_STYLESHEET = re.compile(r"<\?xml-stylesheet\b[^<>]*+>")
_XML_ROOT = re.compile(r"""<\w(?>(?:[^>"']++|"[^"]*+"|'[^']*+')*)(?<!/)>""")
_SVG_ADDRESS = re.compile(r"""(\b(?:(?:xlink:)?href|(style))\s*=\s*)(?:"([^"<]*)"|'([^'<]*)')""")


def rewritten(page: Page, place: Place, *, is_still: bool = False) -> bytes:
    """Return the content of a page, a stylesheet, an SVG image or other XML that browsers lay out in UTF-8, with its
    addresses replaced by `place`; content of other media types unchanged. Builds a tree of each page. With `is_still`,
    for a sandbox without scripts: late images are shown at once, links open in their own frame, and an immediate
    refresh becomes a link. So it is for a page that was rendered, which loses its scripts and `noscript`.

    A page that is nested too deeply for a tree keeps its addresses, but gets the policy too.
    """
    options = ProcessOptions()
    is_still = is_still or page.is_rendered
    shows_xml = is_xml(page.media_type) and any(mark in page.body for mark in _XML_SHOWN)
    if page.media_type not in HTML_TYPES and page.media_type != CSS and not shows_xml:
        return page.body
    document = document_of(page, options)
    if page.media_type == CSS:
        text = _CHARSET.sub("", document.characters())
        return with_addresses(text, _Placing(Base(page.url), place, is_still)).encode("utf-8", "replace")
    base = Base(page.url, None, document.charset)
    if shows_xml:
        return _xml(document.characters(), _Placing(base, place, is_still)).encode("utf-8", "replace")
    tree = document.tree
    declared = _DOCTYPE.search(document.utf8(), 0, DOCTYPE_BYTES_MAX)
    doctype = declared[0].decode("utf-8", "replace") if declared is not None else ""
    if tree is None:
        return (doctype + HEAD).encode("utf-8", "replace") + document.utf8()
    if _BASE.search(document.utf8()):  # Few pages have one, and the markup is another tree.
        base = Base(page.url, base_href(document.markup.elements), document.charset)
    templates = _rewrite(tree, _Placing(base, place, is_still, page.is_rendered), 0)
    if tree.head is not None:
        tree.head.inner_html = HEAD + (tree.head.inner_html or "")
    # The tree has only the doctype's name; the rest decides by which rules browsers lay out a page.
    copied = _with_templates(tree.html or "", templates)
    return (copied.replace("<!DOCTYPE html>", doctype, 1) if doctype else copied).encode("utf-8", "replace")


class _Placing:
    """Joins an address as written with the page's own, and places the result, its fragment kept."""

    def __init__(self, base: Base, place: Place, is_still: bool, is_rendered: bool = False) -> None:
        self._base = base
        self._place = place
        self.is_still = is_still
        self.dropped = ("base", "script", "noscript") if is_rendered else ("base",)

    def __call__(self, address: str) -> str:
        address = address.strip("\t\n\f\r ")
        bare, mark, fragment = address.partition("#")
        if not bare:
            return address  # A place in the page itself, or nothing.
        whole = self._base.join(bare)
        if whole is None or not whole.startswith(("http://", "https://")):
            return address
        return self._place(whole) + mark + fragment


def _rewrite(tree: LexborHTMLParser, placed: _Placing, depth: int) -> list[str]:
    """Replace the addresses in a tree. Return the templates, whose content is in no tree: a mark has their place."""
    templates: list[str] = []
    leads: list[str] = []
    twins: list[LexborNode] = []
    for node in tree.css("*"):
        tag = node.tag or ""
        if tag in placed.dropped or _is_dropped(tag, node):
            node.decompose()
            continue
        if tag == "noscript" and placed.is_still and _repeats_late(node):
            twins.append(node)
        if tag == "template" and depth < WITHIN_DEPTH_MAX and (new := _template(node.html or "", placed, depth)):
            node.replace_with(f"{_MARK}{len(templates)}{_MARK}")
            templates.append(new)
            continue
        if tag in _LINED and (first := node.first_child) and first.tag == "-text" and first.text()[:1] == "\n":
            first.insert_before("\n")  # Parsers drop the line break at the beginning of these elements.
        if placed.is_still:
            _show_still(tag, node)
        _element(tag.lower(), node, placed, depth)
        if tag == "amp-img" and placed.is_still and node.first_child is None:
            node.inner_html = f'<img src="{html.escape(node.attributes.get("src") or "")}">'
        if tag == "meta" and (target := _next_page(node, placed.is_still)):
            node.decompose()
            leads.append(f'<p><a href="{html.escape(target)}">This page leads to another one.</a></p>')
    for node in twins:  # Not before: the elements within one were still to come.
        node.decompose()
    if leads and tree.body is not None:
        tree.body.inner_html = "".join(leads) + (tree.body.inner_html or "")
    return templates


def _show_still(tag: str, node: LexborNode) -> None:
    """Show at once what a script would show, and have links open where they are: a sandbox opens no other window."""
    found = node.attributes
    if tag in ("a", "area") and "target" in found:
        del node.attrs["target"]
    if tag == "link" and "media" in (loaded := found.get("onload") or ""):
        node.attrs["media"] = ""
    elif tag == "link" and "stylesheet" in loaded:
        node.attrs["rel"] = "stylesheet"
    for name, names in LATE.items():
        late = next((found[one] or "" for one in names if one in found), "")
        if is_address("data-", late.partition(" ")[0]):
            node.attrs[name] = late


def _repeats_late(node: LexborNode) -> bool:
    """Return whether an element for browsers without scripts is beside an image that is shown at once in its place."""
    previous = node.prev
    following = node.next
    if previous is not None and previous.tag == "-text" and not (previous.text() or "").strip():
        previous = previous.prev
    if following is not None and following.tag == "-text" and not (following.text() or "").strip():
        following = following.next
    return any(one is not None and not _LATE_NAMES.isdisjoint(one.attributes) for one in (previous, following))


def _next_page(node: LexborNode, is_still: bool) -> str:
    """Return where a refresh leads that is not followed: to the web; with `is_still`, in less than ten seconds."""
    seconds, _, target = (node.attributes.get("content") or "").partition("; url=")
    return target if (len(seconds.partition(".")[0]) == 1 if is_still else "://" in target) else ""


def _template(markup: str, placed: _Placing, depth: int) -> str:
    """Return a template with its addresses replaced; empty for one that stays as it is, such as rows of a table."""
    begin = _TEMPLATE.match(markup)
    content = markup[begin.end() :].removesuffix("</template>") if begin is not None else ""
    if begin is None or not content or _ROWS.match(content) is not None:
        return ""
    inner = LexborHTMLParser(content, is_fragment=True)
    return f"{begin[0]}{_rewritten(inner, placed, depth + 1)}</template>"


def _rewritten(tree: LexborHTMLParser, placed: _Placing, depth: int) -> str:
    templates = _rewrite(tree, placed, depth)  # Changes the tree.
    return _with_templates(tree.html or "", templates)


def _with_templates(markup: str, templates: list[str]) -> str:
    def put(found: re.Match[str]) -> str:
        at = int(found[1])
        return templates[at] if at < len(templates) else found[0]

    return _PLACE.sub(put, markup) if templates else markup


def _is_dropped(tag: str, node: LexborNode) -> bool:
    """Return whether an element must not be in the copy: it names another encoding, or requests early."""
    if tag == "meta":
        return "charset" in node.attributes or (node.attributes.get("http-equiv") or "").strip().lower() in _REPLACED
    if tag != "link" or "stylesheet" in (node.attributes.get("onload") or ""):
        return False
    relations = (node.attributes.get("rel") or "").lower().split()
    return not _CONNECTING.isdisjoint(relations) and "stylesheet" not in relations


def _element(tag: str, node: LexborNode, placed: _Placing, depth: int) -> None:
    found = node.attributes
    if not found and tag != "style":
        return
    changed = node.attrs
    for name in _ATTRIBUTES.get(tag, ()):
        address = found.get(name) or ""
        if is_address(name, address):
            changed[name] = placed(address)
    for name in SETS.get(tag, ()):
        if value := found.get(name):
            changed[name] = _placed_set(name, value, placed)
    if (value := found.get("style")) and "(" in value:
        changed["style"] = with_addresses(value, placed)
    _backgrounds(node, placed)
    for name in _UNUSED:
        if name in found:
            del changed[name]
    if tag == "style" and (sheet := node.text()):
        node.inner_html = with_addresses(sheet, placed)
    elif tag == "meta" and (found.get("http-equiv") or "").strip().lower() == "refresh":
        _refresh(found.get("content") or "", changed, placed)
    elif tag == "iframe":
        _frame(node, placed, depth)


def _frame(node: LexborNode, placed: _Placing, depth: int) -> None:
    found = node.attributes
    if (value := found.get("srcdoc")) and depth < WITHIN_DEPTH_MAX:
        node.attrs["srcdoc"] = _rewritten(LexborHTMLParser(value), placed, depth + 1)
    if "sandbox" in found and "allow-scripts" not in (found["sandbox"] or ""):
        node.attrs["sandbox"] = f"{found['sandbox'] or ''} allow-same-origin"  # Else it would show no files.


def _placed_set(name: str, value: str, placed: _Placing) -> str:
    return ", ".join(
        f"{placed(one) if is_address(name, one) else one} {words}".strip() for one, words in candidates(value)
    )


def _backgrounds(node: LexborNode, placed: _Placing) -> None:
    found = node.attributes
    for name in sorted(BACKGROUNDS.intersection(found)):
        value = found[name] or ""
        if name == "data-bgset":
            node.attrs[name] = " | ".join(_placed_set(name, one, placed) for one in value.split("|"))
        elif "(" in value or is_address(name, value):
            new = with_addresses(value, placed) if "(" in value else placed(value)
            node.attrs[name] = new
            if placed.is_still:
                image = new if "(" in value else f'url("{new}")'
                node.attrs["style"] = f"{node.attributes.get('style') or ''};background-image:{image}"


def _refresh(content: str, changed: object, placed: _Placing) -> None:
    if target := refresh_target(content):
        seconds = re.match(r"\s*[\d.]*", content)
        changed["content"] = f"{(seconds[0].strip() if seconds else '') or '0'}; url={placed(target)}"  # type: ignore[index]


def _xml(text: str, placed: _Placing) -> str:
    """Return XML with its addresses replaced, the policy, no stylesheet of the web, and no name of an encoding."""
    text = text.partition("?>")[2] if text.startswith("<?xml ") else text
    text = _XML_STYLESHEET.sub(lambda one: "" if "://" in one[0] else one[0], _svg(text, placed))
    at = text.find("<")
    while text.startswith(("<?", "<!"), at):
        end = "-->" if text.startswith("<!--", at) else ">"
        if "[" in text[at : text.find(">", at)] and text.startswith("<!DOCTYPE", at):
            end = "]>"
        closes = text.find(end, at)
        at = text.find("<", closes) if closes >= 0 else -1
    root = _XML_ROOT.match(text, at) if at >= 0 else None
    return f"{text[: root.end()]}{XML_HEAD}{text[root.end() :]}" if root is not None else text


def _svg(text: str, placed: _Placing) -> str:
    def one(match: re.Match[str]) -> str:
        before, style, double, single = match.groups()
        value = unescape(double or single or "")
        return f'{before}"{html.escape(with_addresses(value, placed) if style else placed(value))}"'

    first, *others = text.split("<style")
    pieces = [_SVG_ADDRESS.sub(one, first)]
    for other in others:
        tag, mark, rest = other.partition(">")
        sheet, end, after = rest.partition("</style")
        if not end or tag.endswith("/"):
            pieces.append(f"<style{tag}{mark}{_SVG_ADDRESS.sub(one, rest)}")
            continue
        is_raw = "<![CDATA[" in sheet
        new = with_addresses(sheet if is_raw else unescape(sheet), placed)
        new = new if is_raw else html.escape(new, quote=False)
        pieces.append(f"<style{tag}{mark}{new}{end}{_SVG_ADDRESS.sub(one, after)}")
    return "".join(pieces)
