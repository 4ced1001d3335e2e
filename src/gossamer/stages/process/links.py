"""Links: a page's base address, and the links in its markup and its headers."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote

from gossamer.model.links import FEED_FILE, HUB, RELATED, SELF, Found
from gossamer.model.pages import Findings, Page
from gossamer.model.visits import first_values, lower_names
from gossamer.stages.process.charset import python_codec
from gossamer.stages.process.html import HTML_TYPES, HtmlDocument, Markup, document_of
from gossamer.stages.process.options import ProcessOptions, TypedModule
from gossamer.stages.process.scan import Element, automaton, reference_free
from gossamer.stages.process.walk import ElementWalk
from gossamer.url.join import Joiner, join, location_of

AT_ONCE = 1_000
"""Elements that are handled in a slice: up to 10 ms."""
JOINED_MAX = 50_000
"""Spellings of addresses that are remembered."""
One = TypeVar("One")
_Known = dict[tuple[str, str, str], Found | None]
_IN_FRAGMENT = "!#$%&'()*+,;=:@/?[]^{|}\\"
"""Characters that a fragment keeps (WHATWG URL, fragment percent-encode set), beside letters, digits and `-._~`."""
_LEAVE = frozenset((
    "javascript", "mailto", "data", "tel", "sms", "about", "blob", "callto", "skype", "whatsapp", "cid", "mid",
    "view-source",
))  # fmt: skip
"""Schemes of addresses that cannot be fetched."""


def slices_of(some: Sequence[One]) -> Iterator[Sequence[One]]:
    """Split a sequence into slices of `AT_ONCE`; a shorter one is its only slice."""
    if len(some) < AT_ONCE:
        return iter((some,))
    return (some[begin : begin + AT_ONCE] for begin in range(0, len(some), AT_ONCE))


class Base:
    """A page's base address (HTML standard, section 2.4.3) and the joins made from it so far."""

    def __init__(self, page_url: str, base_href: str | None = None, charset: str = "utf-8") -> None:
        """`base_href` is the href of the page's first `base` element; an invalid one is ignored."""
        self.url = page_url
        if base_href is not None:
            joined = join(page_url, base_href)
            if joined is not None and joined[: joined.index(":")] not in ("javascript", "data"):
                self.url = joined
        self.join = _Joined(Joiner(self.url, python_codec(charset)).join).__getitem__
        """Returns the absolute address of an href, without fragment, or None if it is not valid or cannot be fetched.

        Each spelling is joined once a page; plain paths take 0.5 µs, all else 2 µs.
        """


class _Joined(dict[str, str | None]):
    """Addresses by hrefs: a known one takes no call of a function of Python."""

    def __init__(self, join: Callable[[str], str | None]) -> None:
        self._join = join

    def __missing__(self, href: str) -> str | None:
        shown, fragment, _ = href.partition("#")
        # A space before the fragment belongs to the path, one at the end does not.
        if fragment and (shown[-1:] > " " or not shown):
            joined = self[shown]
        else:
            joined = self._join(href)
            if joined is not None and joined[:11] == "javascript:":
                joined = next(map(self._join, _leads(href.encode("utf-8", "replace"))), None)
            if joined is not None and joined[:4] != "http" and joined.partition(":")[0] in _LEAVE:
                joined = None
        if len(self) >= JOINED_MAX:
            self.clear()
        self[href] = joined
        return joined


_RELATIONS = {
    "next": "next", "prev": "prev", "previous": "prev", "alternate": "alternate", "canonical": "canonical",
    "amphtml": "alternate", "hub": HUB, "self": SELF,
}  # fmt: skip
_RELATED = frozenset((
    "appendix", "author", "chapter", "contents", "copyright", "first", "glossary", "help", "index", "last", "license",
    "privacy-policy", "search", "section", "sitemap", "start", "subsection", "terms-of-service", "toc", "top", "up",
))  # fmt: skip
"""Relations to documents, of HTML (section 4.6.6), HTML 4 (section 6.12), IANA's and the microformats' registries."""
_FEEDS = frozenset(("application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json"))
_SOURCES = {
    "area": ("href", "area"), "frame": ("src", "frame"), "iframe": ("src", "iframe"),
    "turbo-frame": ("src", "iframe"), "include-fragment": ("src", "iframe"),
    **dict.fromkeys(("blockquote", "q", "ins", "del"), ("cite", "cite")),
}  # fmt: skip
_NESTED = {"object": "data", "embed": "src"}
"""Elements that show a page as an iframe does, if their `type` says so (HTML, sections 4.8.6 and 4.8.7)."""
SRCDOC_DEPTH_MAX = 3
SRCDOC_MAX = 1_000
"""Documents within `srcdoc` within `srcdoc` that are read, and documents of one page."""
# HTML standard, section 4.2.5.3, shared declarative refresh steps.
_REFRESH = re.compile(
    r"[\t\n\f\r ]*+(?:[0-9]++|(?=\.))[0-9.]*+(?=[;,\t\n\f\r ])[\t\n\f\r ]*+[;,]?[\t\n\f\r ]*+(.*)", re.DOTALL
)
_REFRESH_URL = re.compile(r"[uU][rR][lL][\t\n\f\r ]*+=[\t\n\f\r ]*+(.*)", re.DOTALL)
BARE_BYTES_MAX = 8_192
"""Size up to which a page without links is searched for a script that leads on."""
_SHOWN = frozenset(("anchor", "area", "frame", "iframe", "meta_refresh"))
_LEADS_ON = automaton(
    r"(?:((?:var|let|const)[ \t]+|(?:[\w$\])]+\.)*)\blocation(?:[ \t\r\n]*(=)|\.href[ \t\r\n]*=|"
    r"""\.(?:replace|assign)[ \t]*\()|window\.open\()[ \t\r\n]*(?:"((?:[^"<>\s\\]|\\/)+)"|'((?:[^'<>\s\\]|\\/)+)')"""
    r"[ \t]*(?:[,;)}<\"'\r\n]|\z|\+[ \t]*(?:window\.|document\.)?location\.(?:search|hash))"
).finditer
"""Finds where a script leads to an address that is written there, which may be followed by the query of this one. The
first groups are the objects before `location`, and the mark of an assignment to it.
"""
_WINDOWS = frozenset((b"", b"window", b"document", b"self", b"top", b"parent", b"opener", b"this"))
"""Objects whose `location` is the address of a document."""
_CHOOSES = automaton(
    r"(?:\blocation(?:(?:\.href)?[ \t\r\n]*=|\.(?:replace|assign)\()[ \t]*|window\.open\()[\w.\[\]]+\.value\b"
    r"|MM_jumpMenu\("
).search
"""Finds where a script leads to the chosen option."""
_HREF, _GET, _ON_CLICK, _LOCATION = [automaton(name).search for name in ("-href=", "-get=", "onclick", "location")]
"""Searches for what such elements have: RE2 finds a literal in half of the time that `in` takes."""
_CLICKED = automaton(
    r"(?i)<(?:a|area|article|button|div|h[1-6]|i|img|input|label|li|option|p|section|span|t[dhr])[\t\n\f\r /][^<>]*?"
    r"(?:(onclick)|data-href|up-href|hx-get)[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\"<>]*)\"|'([^'<>]*)')"
).finditer
"""Finds elements that lead on where they are clicked or scroll into view: of htmx, Unpoly, Wix, and by scripts."""
_LEADS = ("onclick", "data-href", "up-href", "hx-get", "data-hx-get")
_LOADED = frozenset(("link", "style", "use"))
_WALK = ElementWalk(())
_CHOICES = ElementWalk(("select", "option"))
_LINK_VALUE = re.compile(r"[\s,]*+<([^>]*+)>")
_LINK_PARAMETER = re.compile(r"\s*+;\s*+([^\s=;,\"]*+)\s*+(?:=\s*+(?:\"((?:[^\"\\]|\\.)*)\"|([^\s;,\"]*)))?")


class LinkExtractor(TypedModule):
    """Finds the links of HTML pages: one for each occurrence, anchors first, in order; of links within the page itself
    (`#part`) only the first.

    Each occurrence has its own text and `nofollow`; an address is followed if any of its occurrences may be.
    `<template>` and comments are ignored, and scripts but for addresses that they assign to `location` or open: where a
    small page has no links, the first of these is a refresh. Costs 1 µs to 2 µs a link in addition to the markup.
    """

    name = "links"
    media_types = HTML_TYPES

    def process(self, page: Page, findings: Findings) -> None:
        for _ in self.process_in_slices(page, findings):
            pass

    def process_in_slices(self, page: Page, findings: Findings) -> Iterator[None]:
        """As `process`. Yields each few milliseconds, where other work may run."""
        document = document_of(page, self._options)
        yield from document.read()
        findings.charset = document.charset
        links: Links | None = None
        scripted: list[tuple[str, str]] = []
        for base, part in documents(document, page.url, self._options):
            if links is None:
                links = Links(base, self._options)
            links.base = base
            markup = part.markup
            yield from links.anchors_in_slices(markup)
            for some in slices_of(markup.elements):
                for tag, attributes in some:
                    for link_type, href in _addresses_in(tag, attributes):
                        links.add(link_type, href, attributes.get("alt") or "", attributes.get("rel") or "")
                if len(some) == AT_ONCE:
                    yield
            for in_script, href in _clicked(part.utf8()):
                if in_script:
                    scripted.append(("anchor", href))
                else:
                    links.add("anchor", href)
            findings.links.extend(links.take())
        if page.body_bytes <= BARE_BYTES_MAX and _SHOWN.isdisjoint(one.link_type for one in findings.links):
            scripted = [("meta_refresh", href) for href in islice(_leads(document.utf8()), 1)]
        if links is not None and scripted:
            for link_type, href in scripted:
                links.add(link_type, href)
            findings.links.extend(links.take())


_LEADING = frozenset(("link", "refresh"))


class HeaderLinks(TypedModule):
    """Finds the links in the headers of a reply of any type: those of `Link` (RFC 8288), and that of `Refresh`."""

    name = "header_links"

    def wants(self, media_type: str) -> bool:  # headers come with any type
        return True

    def process(self, page: Page, findings: Findings) -> None:
        if _LEADING.isdisjoint(first_values(page.headers)):
            return
        links = Links(Base(page.url), self._options)
        for name, value in page.headers:
            if lower_names[name] == "link":
                for relation, href in link_header(utf8_again(value)):
                    links.add(relation, href)
            elif lower_names[name] == "refresh" and (target := refresh_target(utf8_again(value))) is not None:
                links.add("meta_refresh", target)
        findings.links.extend(links.take())


class Links:
    """The links of a page, with every occurrence of an address. Anchors, the majority, have a separate, faster method.

    At most `links_max` addresses, and as many repeats; then only repeats that take `nofollow` from an address.
    """

    def __init__(self, base: Base, options: ProcessOptions) -> None:
        self.base = base
        """The base with which addresses are joined."""
        self._options = options
        self._anchors: list[Found] = []
        self._others: list[Found] = []
        self._nofollow: dict[tuple[str, str] | str, bool] = {}
        """By address (for anchors), and by type: whether every occurrence so far is `nofollow`."""
        self._repeats = 0

    def anchors_in_slices(self, markup: Markup) -> Iterator[None]:
        """Add a page's `a` elements. Half of them are repeats, or lead within the page itself."""
        known: _Known = {}
        in_page = False
        for some in slices_of(markup.anchors):
            in_page = self._take(some, markup, known, in_page=in_page)
            if len(some) == AT_ONCE:
                yield

    def _take(self, some: Sequence[tuple[str, str, Any]], markup: Markup, known: _Known, *, in_page: bool) -> bool:
        """Add some anchors; return whether any so far leads within the page. `known` has those that were added."""
        join = self.base.join
        text_of = markup.anchor_text
        options = self._options
        named = self._nofollow
        url_bytes_max = options.url_bytes_max
        links_max = options.links_max
        left = links_max - len(named)
        characters_max = options.anchor_bytes_max // 4
        for href, rel, within in some:
            if href[:1] == "#":
                if in_page:
                    continue
                in_page = not (rel and _nofollow(rel))  # One that may be followed is enough.
            key = href, rel, text_of(within)
            if key in known:
                found = known[key]
                if found is not None:
                    self._repeats += 1
                    if self._repeats <= links_max:
                        self._anchors.append(found)
                continue
            url = join(href)
            if url is None or url[url_bytes_max:]:  # Of a short one an empty slice, which costs less than its length.
                known[key] = None
                continue
            nofollow = bool(rel) and _nofollow(rel)
            if left > 0 and url not in named:
                named[url] = nofollow
                left -= 1
            elif not self._room(url, nofollow):
                continue
            text = key[2]
            is_long = text[characters_max:]
            text = collapse_spaces(text, options.anchor_bytes_max) if is_long else " ".join(text.split())
            found = known[key] = Found(url, "anchor", text, nofollow)
            self._anchors.append(found)
        return in_page

    def add(self, link_type: str, href: str, text: str = "", rel: str = "") -> None:
        """Add one link of another type."""
        url = self.base.join(href)
        if url is None or len(url) > self._options.url_bytes_max:
            return
        nofollow = _nofollow(rel)
        if self._room((url, link_type), nofollow):
            self._others.append(Found(url, link_type, collapse_spaces(text, self._options.anchor_bytes_max), nofollow))

    def take(self) -> list[Found]:
        """Return the links that were added since the last call: anchors in order, then the others in order."""
        taken = self._anchors + self._others
        self._anchors = []
        self._others = []
        return taken

    def _room(self, key: tuple[str, str] | str, nofollow: bool) -> bool:
        """Return whether one more occurrence may be added, and count it."""
        if key not in self._nofollow:
            if len(self._nofollow) >= self._options.links_max:
                return False
            self._nofollow[key] = nofollow
            return True
        if self._nofollow[key] and not nofollow:
            self._nofollow[key] = False
        elif self._repeats >= self._options.links_max:
            return False
        self._repeats += 1
        return True


def _nofollow(rel: str) -> bool:
    # Search engines divide by commas, too.
    return "nofollow" in rel.lower().replace(",", " ").split()


def collapse_spaces(text: str, bytes_max: int) -> str:
    """Return text with white space collapsed, cut to at most `bytes_max` bytes of UTF-8."""
    # White space aside, no more can be kept than this.
    return cut(" ".join(text[: 2 * bytes_max].split()), bytes_max)


def cut(text: str, bytes_max: int) -> str:
    """Return text cut to `bytes_max` bytes of UTF-8, between two characters."""
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
    """Yield (link type, target as written) for the known relations in a Link header (RFC 8288, section 3).

    Links with an `anchor` are about another resource and are left out.
    """
    for parameters, target in link_values(value):
        if "anchor" not in parameters:
            for link_type in _types(parameters.get("rel", ""), parameters.get("type", "")):
                yield link_type, target


def link_values(value: str) -> Iterator[tuple[dict[str, str], str]]:
    """Yield the parameters of each link in a Link header, names in lower case, with its target as written."""
    position = 0
    while (target := _LINK_VALUE.match(value, position)) is not None:
        position = target.end()
        parameters: dict[str, str] = {}
        while (match := _LINK_PARAMETER.match(value, position)) is not None:
            position = match.end()
            text = match[2] if match[2] is not None else (match[3] or "").strip("'")
            parameters.setdefault(match[1].lower(), re.sub(r"\\(.)", r"\1", text))
        yield parameters, target[1]
        comma = value.find(",", position)
        position = len(value) if comma < 0 else comma + 1


def redirect_target(reply_url: str, headers: Iterable[tuple[str, str]]) -> str | None:
    """Return the target of a redirect, absolute, without fragment; None without a Location that can be fetched.

    Location is often sent as raw bytes or with white space around it; this is handled as in browsers.
    """
    location = _location(headers)
    target = join(reply_url, location) if location else None
    return None if target is None or target[: target.index(":")] in _LEAVE else target


def redirect_fragment(headers: Iterable[tuple[str, str]]) -> str:
    """Return the percent-encoded `#fragment` of a redirect's target, or "" (RFC 9110, section 10.2.2)."""
    fragment = _location(headers).partition("#")[2]
    return f"#{quote(fragment, safe=_IN_FRAGMENT)}" if fragment else ""


def _location(headers: Iterable[tuple[str, str]]) -> str:
    return location_of([value for name, value in headers if lower_names[name] == "location"])


def utf8_again(value: str) -> str:
    """Return a header's value, which was decoded as latin-1, decoded as UTF-8 if it is valid UTF-8."""
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def documents(document: HtmlDocument, url: str, options: ProcessOptions) -> Iterator[tuple[Base, HtmlDocument]]:
    """Return a page's document and those in the `srcdoc` of its iframes, each with its base.

    A document without a `base` element has the base of the one that holds it (HTML standard, section 4.8.5). Together
    they are hardly longer than the page: each is an attribute of another.
    """
    return islice(_documents(document, url, options, 0), 1 + SRCDOC_MAX)


def _documents(
    document: HtmlDocument, outer: str, options: ProcessOptions, depth: int
) -> Iterator[tuple[Base, HtmlDocument]]:
    elements = document.markup.elements
    base = Base(outer, base_href(elements), document.charset)
    yield base, document
    for tag, attributes in elements if depth < SRCDOC_DEPTH_MAX else ():
        if tag == "iframe" and (srcdoc := attributes.get("srcdoc")):
            inner = Page(outer, "text/html", "utf-8", (), srcdoc.encode("utf-8", "replace"))
            yield from _documents(HtmlDocument(inner, options), base.url, options, depth + 1)


def base_href(elements: Iterable[Element]) -> str | None:
    """Return the href of the first `base` that has one."""
    for tag, attributes in elements:
        if tag == "base" and "href" in attributes:
            return attributes["href"] or ""
    return None


def _leads(script: bytes) -> Iterator[str]:
    """Yield the addresses to which a script leads, as written. `location` of other objects is a place of the world."""
    for objects, assigns, *written in (found.groups(b"") for found in _LEADS_ON(script)):
        address = b"".join(written).replace(b"\\/", b"/").decode("utf-8", "replace")
        if address[0] != "#" and "{" not in address and not (assigns and {*objects.split(b".")} - _WINDOWS):
            yield address


def _clicked(body: bytes) -> Iterator[tuple[bool, str]]:
    """Yield the addresses of other elements than anchors that lead on, as written, and whether a script element's."""
    may_lead = _LOCATION(body) is not None or b"window.open(" in body
    has_leads = may_lead and next(_leads(body), "") != ""
    has_choices = (may_lead or b"MM_jumpMenu(" in body) and _CHOOSES(body) is not None
    if not (has_leads or has_choices or _HREF(body) or _GET(body) or _ON_CLICK(body)):
        return
    is_choice = False
    for step in (_CHOICES if has_choices else _WALK).over(body):
        named = step.attributes
        if step.name == "script":
            yield from ((True, href) for href in _leads(body[step.start : step.end] if has_leads else b""))
        elif step.name == "select":
            is_choice = _CHOOSES(named.get("onchange", "").encode("utf-8", "replace")) is not None
        elif step.name not in _LOADED:
            some = [(name == "onclick", named[name]) for name in _LEADS if name in named]
            if step.name == "option" and is_choice:
                some.append((False, named.get("value", "")))
            some.extend(
                (bool(one[1]), reference_free((one[2] or one[3] or b"").decode("utf-8", "replace")))
                for one in (() if step.name else _CLICKED(body, step.start, step.end))
            )
            for is_script, href in some:
                address = next(_leads(href.encode("utf-8", "replace")), "") if is_script else href
                if address.strip() and address[0] != "#" and "{" not in address:
                    yield False, address


def _addresses_in(tag: str, attributes: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """Yield (link type, address as written) for all addresses in one element."""
    if tag in _SOURCES:
        name, link_type = _SOURCES[tag]
        href = attributes.get(name)
        if tag == "iframe" and href in (None, "", "about:blank"):  # A script moves its address to `src` once it shows.
            late = (attributes.get(one) or "" for one in ("data-src", "data-lazy-src"))
            href = next((one for one in late if "/" in one or "." in one), None)
        # An area may lead to the page itself; a frame without source shows nothing.
        if href or (tag == "area" and name in attributes):
            yield link_type, href or ""
    elif tag in _NESTED:
        href = attributes.get(_NESTED[tag])
        if href and _media_type(attributes.get("type") or "") in HTML_TYPES:
            yield "iframe", href
    elif tag == "link":
        href = attributes.get("href")
        rel = attributes.get("rel")
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
    if "feed" in words or ("alternate" in words and _media_type(media_type) in _FEEDS):
        return [FEED_FILE]
    found = dict.fromkeys(_RELATIONS[word] for word in words if word in _RELATIONS)
    # Searches have descriptions, and licenses forms, for machines.
    if not found and not _RELATED.isdisjoint(words):
        may_be_page = "sitemap" in words or _media_type(media_type) in ("", *HTML_TYPES)
        return [RELATED] if may_be_page else []
    return list(found)


def _media_type(value: str) -> str:
    return value.partition(";")[0].strip().lower()
