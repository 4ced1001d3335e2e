"""Usage: what a page's headers and markup state about its use, and whether its links may be followed.

Looks at headers by name and at elements that the links module has read: a page without a statement is not parsed.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gossamer.model.pages import Findings, Page
from gossamer.model.usage import AI, Rank, Statement, commons, content_signal, content_usage, statement, tdm_reservation
from gossamer.model.visits import first_values, lower_names
from gossamer.stages.process.facts import moment
from gossamer.stages.process.html import HTML_TYPES, HtmlDocument, document_of
from gossamer.stages.process.links import Base, base_href, link_values, utf8_again
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.scan import Element

PRODUCT = "gossamer"
RSL_TYPE = "application/rsl+xml"
_NOFOLLOW = frozenset(("nofollow", "none"))
_NOINDEX = frozenset(("noindex", "none"))
_REFUSALS = {
    "noindex": ("search",), "none": ("search",), "noarchive": ("archive",), "nosnippet": ("ai-input",),
    "max-snippet:0": ("ai-input",), "noai": AI, "noimageai": (),
}  # fmt: skip
"""Purposes that a directive refuses. `noimageai` speaks of images alone."""
_UNTIL = "unavailable_after"
# Directives that have a colon of their own: in a header the word before it is no agent.
_VALUED = frozenset((_UNTIL, "max-snippet", "max-image-preview", "max-video-preview"))
_HEADERS = frozenset(
    ("x-robots-tag", "content-usage", "content-signal", "content-signals", "tdm-reservation", "tdm-policy", "link")
)
_TDM = frozenset(("tdm-reservation", "tdm-policy"))


class Directives:
    """Reads statements about use, `nofollow`, `noindex`, for all or one of the `tokens`. The stricter word wins."""

    name = "directives"

    def __init__(
        self, options: ProcessOptions | None = None, tokens: Sequence[str] = (PRODUCT,), *, obeys: bool = True
    ) -> None:
        """`obeys`: whether `nofollow` counts."""
        self._options = options or ProcessOptions()
        self._nofollow = _NOFOLLOW if obeys else frozenset()
        self._agents = frozenset(("robots", "*", *(token.lower() for token in tokens)))

    def wants(self, media_type: str) -> bool:  # headers come with any type
        return True

    def process(self, page: Page, findings: Findings) -> None:
        if not _HEADERS.isdisjoint(first_values(page.headers)):
            named: dict[str, list[str]] = {}
            for name, value in page.headers:
                if (lower := lower_names[name]) in _HEADERS and (lower != "link" or "license" in value.lower()):
                    named.setdefault(lower, []).append(value)
            self._headers(page, named, findings)
        if page.media_type in HTML_TYPES:
            self._markup(page, document_of(page, self._options), findings)

    def words_of(self, page: Page, elements: Iterable[Element]) -> Iterator[str]:
        """Yield the directives of a page's headers and elements that are for these tokens or for all."""
        for name, value in page.headers:
            if lower_names[name] == "x-robots-tag":
                yield from self._of_header(value)
        for tag, attributes in elements:
            if tag == "meta" and self._names_us((attributes.get("name") or "").strip().lower()):
                yield from _words(attributes.get("content") or "")

    def _names_us(self, name: str) -> bool:
        # A list of names is for each of them, as crawlers of search engines read it.
        return name in self._agents or ("," in name and not self._agents.isdisjoint(_texts(name)))

    def _headers(self, page: Page, named: dict[str, list[str]], findings: Findings) -> None:
        found = findings.statements
        for value in named.get("x-robots-tag", ()):
            words = list(self._of_header(value))
            found += self._directives(page, words, Rank.HEADER, "header", "X-Robots-Tag", value, findings)
        if usage := named.get("content-usage"):
            value = ", ".join(usage)  # One field, in any number of lines (RFC 9651, section 4.2).
            answers = content_usage(value.encode("latin-1", "replace"))
            found.append(statement(Rank.HEADER, "header", "Content-Usage", value, answers))
        for value in (*named.get("content-signal", ()), *named.get("content-signals", ())):
            found.append(statement(Rank.HEADER, "header", "Content-Signal", value, content_signal(value)))
        for name in ("tdm-reservation", "tdm-policy"):
            found += (_tdm(name, value, Rank.HEADER, "header") for value in named.get(name, ())[:1])
        for value in named.get("link", ()):
            for parameters, target in link_values(utf8_again(value)):
                if _is_license(parameters.get("rel")) and "anchor" not in parameters:
                    found.append(_license(Base(page.url), target, parameters.get("type", ""), "header"))

    def _markup(self, page: Page, document: HtmlDocument, findings: Findings) -> None:
        found = findings.statements
        markup = document.markup
        licenses: list[tuple[str, str]] = []
        elements = markup.elements
        for tag, attributes in elements:
            if tag == "meta":
                name = (attributes.get("name") or "").strip().lower()
                if self._names_us(name):
                    content = attributes.get("content") or ""
                    words = list(_words(content))
                    found += self._directives(page, words, Rank.MARKUP, "meta", name, content, findings)
                elif name in _TDM:
                    found.append(_tdm(name, attributes.get("content") or "", Rank.MARKUP, "meta"))
            elif tag == "link" and _is_license(attributes.get("rel")):
                licenses.append((attributes.get("href") or "", attributes.get("type") or ""))
        licenses += [(href, "") for href, rel, _ in markup.anchors if rel and _is_license(rel)]
        if licenses:
            base = Base(page.url, base_href(elements), document.charset)
            found += (_license(base, href, media_type, "link") for href, media_type in licenses)

    def _directives(
        self, page: Page, words: list[str], rank: Rank, source: str, kind: str, raw: str, findings: Findings
    ) -> Iterator[Statement]:
        """Note what the words of one header or element say of links and indexing; yield what they say of uses."""
        single = [one for word in words for one in word.split()]  # Some pages write spaces in place of commas.
        findings.nofollow = findings.nofollow or not self._nofollow.isdisjoint(single)
        findings.noindex = findings.noindex or not _NOINDEX.isdisjoint(single)
        if not _REFUSALS.keys().isdisjoint(single):
            refused = {purpose: False for one in single for purpose in _REFUSALS.get(one, ())}
            if "noimageai" in single and page.media_type.startswith("image/"):
                refused |= dict.fromkeys(AI, False)
            yield statement(rank, source, kind, raw, refused)
        for at, word in enumerate(words):
            if word.startswith(_UNTIL):
                date = word.partition(":")[2].strip().upper()  # ISO 8601 has T and Z.
                # RFC 850 has a comma behind the day of the week.
                until = moment(date) or moment(", ".join((date, *words[at + 1 : at + 2])))
                if until is not None:
                    refusal = statement(rank, source, kind, raw, {"search": False})
                    yield msgspec.structs.replace(refusal, since=until.timestamp())

    def _of_header(self, value: str) -> Iterator[str]:
        """Yield the directives of one header that are for us: `agent:` rules until the next agent."""
        ours = True
        for part in _texts(value):
            agent, colon, rest = part.partition(":")
            agent = agent.strip()
            if colon and agent not in _VALUED and " " not in agent:
                ours = agent in self._agents
                part = rest
            if ours:
                yield from _words(part)


def _texts(value: str) -> list[str]:
    return [part.strip() for part in value.lower().replace(";", ",").split(",")]


def _words(value: str) -> Iterator[str]:
    for part in _texts(value):
        name, colon, rest = part.partition(":")
        yield f"{name.strip()}:{rest.strip()}" if colon else part.strip()


def _is_license(rel: str | None) -> bool:
    return rel is not None and len(rel) >= len("license") and "license" in rel.lower().split()


def _tdm(name: str, value: str, rank: Rank, source: str) -> Statement:
    return statement(rank, source, name, value, tdm_reservation(value) if name == "tdm-reservation" else None)


def _license(base: Base, href: str, media_type: str, source: str) -> Statement:
    """Return a link to a license: Creative Commons says what it allows, others are kept as they are."""
    url = base.join(href) or href
    rank = Rank.HEADER if source == "header" else Rank.MARKUP
    if media_type.partition(";")[0].strip().lower() == RSL_TYPE:
        return statement(rank, source, "RSL", url)
    return statement(Rank.LICENSE, source, "license", url, commons(url))
