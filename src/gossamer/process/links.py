"""Links: the link extractor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from gossamer.model.links import FEED_FILE, HUB, SELF, Found
from gossamer.model.visits import Findings, Page
from gossamer.process.base import Base
from gossamer.process.html import HTML_TYPES, Markup, document_of
from gossamer.process.options import ProcessOptions
from gossamer.process.scan import Element

_RELATIONS = {
    "next": "next", "prev": "prev", "previous": "prev", "alternate": "alternate", "canonical": "canonical",
    "hub": HUB, "self": SELF,
}  # fmt: skip
_FEEDS = frozenset(("application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json"))
_SOURCES = {"area": ("href", "area"), "frame": ("src", "frame"), "iframe": ("src", "iframe")}
# HTML standard, section 4.2.5.3, shared declarative refresh steps.
_REFRESH = re.compile(
    r"[\t\n\f\r ]*(?:[0-9]+|(?=\.))[0-9.]*(?=[;,\t\n\f\r ])[\t\n\f\r ]*[;,]?[\t\n\f\r ]*(.*)", re.DOTALL
)
_REFRESH_URL = re.compile(r"[uU][rR][lL][\t\n\f\r ]*=[\t\n\f\r ]*(.*)", re.DOTALL)
_LINK_VALUE = re.compile(r"[\s,]*<([^>]*)>")
_LINK_PARAMETER = re.compile(r"\s*;\s*([^\s=;,\"]*)\s*(?:=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^\s;,\"]*)))?")


class LinkExtractor:
    """Finds the links of HTML pages: one for each distinct address and link type, anchors first, in order of mention.

    Of several the first anchor text that is not empty stands, and a link is `nofollow` only if all are. Links within
    `<template>`, comments and scripts are none. Costs 1 µs to 2 µs a link beyond reading the markup.
    """

    name = "links"

    def __init__(self, options: ProcessOptions | None = None) -> None:
        self._options = options or ProcessOptions()

    def wants(self, media_type: str) -> bool:
        return media_type in HTML_TYPES

    def process(self, page: Page, findings: Findings) -> None:
        document = document_of(page, self._options)
        markup, elements = document.markup, document.markup.elements()
        findings.charset = document.charset
        base = Base(page.url, base_href(elements), document.charset)
        links = Links(base, self._options)
        links.anchors(markup)
        for tag, attributes in elements:
            for link_type, href in _named_by(tag, attributes):
                links.add(link_type, href, attributes.get("alt") or "", attributes.get("rel") or "")
        findings.links.extend(links.found())


class HeaderLinks:
    """Finds the links in a reply's `Link` headers (RFC 8288), whatever its type: next, prev, alternate, canonical."""

    name = "header_links"

    def __init__(self, options: ProcessOptions | None = None) -> None:
        self._options = options or ProcessOptions()

    def wants(self, media_type: str) -> bool:  # noqa: ARG002  # headers come with any type
        return True

    def process(self, page: Page, findings: Findings) -> None:
        links: Links | None = None
        for name, value in page.headers:
            if len(name) == 4 and name.lower() == "link":
                links = links or Links(Base(page.url), self._options)
                for relation, href in link_header(utf8_again(value)):
                    links.add(relation, href)
        if links is not None:
            known = {(found.url, found.link_type) for found in findings.links}
            findings.links.extend(found for found in links.found() if (found.url, found.link_type) not in known)


class Links:
    """The links of one page as they come, each address and type once. Anchors, the bulk, have a way of their own."""

    def __init__(self, base: Base, options: ProcessOptions) -> None:
        self._base = base
        self._options = options
        self._anchors: dict[str, tuple[str, bool]] = {}
        """By address: text, nofollow."""
        self._others: dict[tuple[str, str], tuple[str, bool]] = {}

    def anchors(self, markup: Markup) -> None:
        """Take a page's `a` elements."""
        join, found, options, text_of = self._base.join, self._anchors, self._options, markup.anchor_text
        for href, rel, within in markup.anchors():
            url = join(href)
            if url is None or (len(url) > options.url_bytes_max):
                continue
            known = found.get(url)
            if known is None:
                if len(found) < options.links_max:
                    found[url] = collapsed(text_of(within), options.anchor_bytes_max), bool(rel) and _nofollow(rel)
            elif not known[0] or known[1]:
                found[url] = (
                    known[0] or collapsed(text_of(within), options.anchor_bytes_max),
                    known[1] and bool(rel) and _nofollow(rel),
                )

    def add(self, link_type: str, href: str, text: str = "", rel: str = "") -> None:
        """Take one link of another type."""
        url = self._base.join(href)
        if url is None or len(url) > self._options.url_bytes_max:
            return
        key = url, link_type
        known = self._others.get(key)
        if known is not None:
            self._others[key] = known[0] or collapsed(text, self._options.anchor_bytes_max), known[1] and _nofollow(rel)
        elif len(self._anchors) + len(self._others) < self._options.links_max:
            self._others[key] = collapsed(text, self._options.anchor_bytes_max), _nofollow(rel)

    def found(self) -> list[Found]:
        """Return what was taken: anchors in order of first mention, then the others in theirs."""
        links = [Found(url, "anchor", text, nofollow) for url, (text, nofollow) in self._anchors.items()]
        links += [Found(url, link_type, text, nofollow) for (url, link_type), (text, nofollow) in self._others.items()]
        return links


def _nofollow(rel: str) -> bool:
    return "nofollow" in rel.lower().split()


def collapsed(text: str, bytes_max: int) -> str:
    """Return text with white space collapsed, cut to at most so many bytes of UTF-8."""
    if len(text) > 2 * bytes_max:
        text = text[: 2 * bytes_max]  # White space aside, no more can be kept.
    text = " ".join(text.split())
    if len(text) * 4 <= bytes_max:
        return text
    # A lone surrogate has no UTF-8.
    return text.encode("utf-8", "replace")[:bytes_max].decode("utf-8", "ignore")


def refresh_target(content: str) -> str | None:
    """Return the address in a meta refresh's content, as written, or None if it has none or is not valid."""
    match = _REFRESH.fullmatch(content)
    if match is None or not match[1]:
        return None
    named = _REFRESH_URL.fullmatch(match[1])
    target = named[1] if named is not None else match[1]
    if named is not None or target[:1] in ("'", '"'):
        quote = target[:1]
        if quote in ("'", '"'):
            target = target[1:].partition(quote)[0]
    return target


def link_header(value: str) -> Iterator[tuple[str, str]]:
    """Yield (link type, target as written) for the relations we know in a Link header (RFC 8288, section 3).

    Links with an `anchor` speak of another resource and are left out.
    """
    position = 0
    while (target := _LINK_VALUE.match(value, position)) is not None:
        position = target.end()
        parameters: dict[str, str] = {}
        while (match := _LINK_PARAMETER.match(value, position)) is not None:
            position = match.end()
            text = match[2] if match[2] is not None else (match[3] or "")
            parameters.setdefault(match[1].lower(), re.sub(r"\\(.)", r"\1", text))
        if "anchor" not in parameters:
            for link_type in _types(parameters.get("rel", ""), parameters.get("type", "")):
                yield link_type, target[1]
        position = _after_comma(value, position)


def redirect_target(reply_url: str, headers: Iterable[tuple[str, str]]) -> str | None:
    """Return where a redirect leads: absolute, without fragment; None without a Location that names something to fetch.

    Location is often sent as raw UTF-8 or with white space about it; what browsers read is read here.
    """
    for name, value in headers:
        if len(name) == 8 and name.lower() == "location":
            return Base(reply_url).join(utf8_again(value))
    return None


def utf8_again(value: str) -> str:
    """Return a header's value, read as latin-1, as the UTF-8 it really was, if it was."""
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def base_href(elements: Iterable[Element]) -> str | None:
    """Return the href of the first `base` that has one."""
    for tag, attributes in elements:
        if tag == "base" and "href" in attributes:
            return attributes["href"] or ""
    return None


def _named_by(tag: str, attributes: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """Yield (link type, address as written) for all that one element names."""
    if tag in _SOURCES:
        name, link_type = _SOURCES[tag]
        href = attributes.get(name)
        # An area may lead to the page itself; a frame without source shows nothing.
        if href or (tag == "area" and name in attributes):
            yield link_type, href or ""
    elif tag == "link":
        href, rel = attributes.get("href"), attributes.get("rel")
        if href and rel:
            for link_type in _types(rel, attributes.get("type") or ""):
                yield link_type, href
    elif tag == "meta" and (attributes.get("http-equiv") or "").strip().lower() == "refresh":
        target = refresh_target(attributes.get("content") or "")
        if target is not None:
            yield "meta_refresh", target


def _types(rel: str, media_type: str = "") -> list[str]:
    """Return the link types that a relation means; an alternate of these types is a feed (HTML, section 4.6.6.1)."""
    words = rel.lower().split()
    if "stylesheet" in words:
        return []
    if "alternate" in words and media_type.partition(";")[0].strip().lower() in _FEEDS:
        return [FEED_FILE]
    return list(dict.fromkeys(_RELATIONS[word] for word in words if word in _RELATIONS))


def _after_comma(value: str, position: int) -> int:
    """Pass over what is no parameter, up to the next link."""
    comma = value.find(",", position)
    return len(value) if comma < 0 else comma + 1
