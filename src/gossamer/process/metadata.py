"""Metadata: what a page says of itself to machines, and how often each element is in it, as in Mercator's tag counter.

Whether it may be indexed and its links followed; Open Graph, JSON-LD, canonical address, description, dates, license.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from gossamer.model.visits import Findings, Page
from gossamer.process.facts import COLUMNS, MEANING, facts
from gossamer.process.html import HTML_TYPES, Document, document_of
from gossamer.process.links import Base, base_href, collapsed
from gossamer.process.options import ProcessOptions
from gossamer.process.walk import Walk

PRODUCT = "gossamer"
_NOFOLLOW = frozenset(("nofollow", "none"))
_NOINDEX = frozenset(("noindex", "none"))
# Directives that have a colon of their own: in a header the word before it is no agent.
_VALUED = frozenset(("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"))


class Directives:
    """Reads `nofollow` and `noindex` meant for all or for us, from headers and from markup. The stricter word wins."""

    name = "directives"

    def __init__(self, options: ProcessOptions | None = None, product_token: str = PRODUCT) -> None:
        self._options = options or ProcessOptions()
        self._agents = frozenset(("robots", "*", product_token.lower()))

    def wants(self, media_type: str) -> bool:  # noqa: ARG002  # headers come with any type
        return True

    def process(self, page: Page, findings: Findings) -> None:
        words: set[str] = set()
        for name, value in page.headers:
            if len(name) == 12 and name.lower() == "x-robots-tag":
                words.update(self._of_header(value))
        if page.media_type in HTML_TYPES:
            for tag, attributes in document_of(page, self._options).markup.elements():
                if tag == "meta" and (attributes.get("name") or "").strip().lower() in self._agents:
                    words.update(_words(attributes.get("content") or ""))
        if words:
            findings.nofollow = findings.nofollow or not words.isdisjoint(_NOFOLLOW)
            findings.noindex = findings.noindex or not words.isdisjoint(_NOINDEX)

    def _of_header(self, value: str) -> Iterator[str]:
        """Yield the directives of one header that are for us: `agent:` rules until the next agent."""
        ours = True
        for part in value.lower().split(","):
            agent, colon, rest = part.partition(":")
            agent = agent.strip()
            if colon and agent not in _VALUED and " " not in agent:
                ours = agent in self._agents
                part = rest
            if ours:
                yield from _words(part)


def _words(value: str) -> Iterator[str]:
    for part in value.lower().split(","):
        yield part.strip()


PROPERTIES_MAX = 200
"""Open Graph properties kept of one page."""
BLOCKS_MAX = 50
"""JSON-LD blocks kept of one page."""
_PREFIXES = ("og:", "article:", "book:", "profile:", "music:", "video:", "twitter:")
_WALK = Walk(("html",))
_JSON_LD = re.compile(r"[\t\n\f\r ]*application/ld\+json[\t\n\f\r ]*(?:;.*)?", re.IGNORECASE | re.DOTALL)


class Metadata:
    """Reads what pages tell search engines and social networks, as far as it is well-formed.

    The columns: `description`; `canonical`, absolute; `declared_language` (`html lang`); `open_graph`, one JSON object
    of properties to lists of values; `json_ld`, one JSON list of the page's blocks as they stand; and those of
    `process.facts`: `published`, `modified`, `byline`, `license`, `schema_types`.
    """

    name = "metadata"
    columns = {  # noqa: RUF012 - declared once, never changed
        "description": "text",
        "canonical": "text",
        "declared_language": "text",
        "open_graph": "json",
        "json_ld": "json",
        **COLUMNS,
    }

    def __init__(self, options: ProcessOptions | None = None) -> None:
        self._options = options or ProcessOptions()

    def wants(self, media_type: str) -> bool:
        return media_type in HTML_TYPES

    def process(self, page: Page, findings: Findings) -> None:
        document, columns = document_of(page, self._options), findings.columns
        elements = document.markup.elements()
        graph: dict[str, list[str]] = {}
        metas: dict[str, str] = {}
        base = Base(page.url, base_href(elements), document.charset)
        for tag, found in elements:
            if tag == "meta":
                name = (found.get("property") or found.get("name") or found.get("itemprop") or "").strip().lower()
                content = found.get("content") or ""
                self._meta(name, content, graph, columns)
                if name in MEANING:
                    metas.setdefault(name, collapsed(content, self._options.title_bytes_max))
            elif tag == "link" and found.get("rel"):
                self._relation((found["rel"] or "").lower().split(), found.get("href") or "", base, columns)
        if graph:
            columns["open_graph"] = graph
        blocks = self._walked(document.utf8(), columns)
        licensed = str(columns.get("license", "")) or self._license(document, base)
        columns.update(facts(blocks, metas, licensed))

    def _relation(self, relations: list[str], href: str, base: Base, columns: dict[str, object]) -> None:
        for name in ("canonical", "license"):
            if href and name in relations and name not in columns:
                joined = base.join(href)
                if joined is not None and len(joined) <= self._options.url_bytes_max:
                    columns[name] = joined

    def _license(self, document: Document, base: Base) -> str:
        """Return the target of the first anchor with `rel=license`."""
        for href, rel, _ in document.markup.anchors():
            if rel and "license" in rel.lower().split():
                return base.join(href) or ""
        return ""

    def _meta(self, name: str, content: str, graph: dict[str, list[str]], columns: dict[str, object]) -> None:
        if name == "description":
            columns.setdefault("description", collapsed(content, self._options.title_bytes_max))
        elif name.startswith(_PREFIXES) and len(name) <= 64 and len(graph) < PROPERTIES_MAX:
            values = graph.setdefault(name, [])
            if len(values) < PROPERTIES_MAX:
                values.append(collapsed(content, self._options.title_bytes_max))

    def _walked(self, body: bytes, columns: dict[str, object]) -> list[object]:
        blocks: list[object] = []
        room = self._options.text_bytes_max
        for name, found, start, end in _WALK.over(body):
            if name == "html" and found.get("lang"):
                columns.setdefault("declared_language", found["lang"].strip()[:35])
            elif name == "script" and _JSON_LD.fullmatch(found.get("type", "")) and end - start <= room:
                try:
                    blocks.append(msgspec.json.decode(body[start:end]))
                except (msgspec.DecodeError, RecursionError):
                    continue
                room -= end - start
                if len(blocks) == BLOCKS_MAX:
                    break
        if blocks:
            columns["json_ld"] = blocks
        return blocks


TAGS_MAX = 500
"""Different names counted on one page; real ones have some forty."""
_START = re.compile(rb"<([a-zA-Z][^\t\n\f\r />]{0,63})")
_TAG_WALK = Walk(())


class TagCounter:
    """Counts start tags into the table `tags`, most frequent first. About 3 µs a KB."""

    name = "tags"
    columns = {"tag_count": "int"}  # noqa: RUF012 - declared once, never changed
    tables = {"tags": {"tag": "text", "count": "int"}}  # noqa: RUF012 - as above

    def __init__(self, options: ProcessOptions | None = None) -> None:
        self._options = options or ProcessOptions()

    def wants(self, media_type: str) -> bool:
        return media_type in HTML_TYPES

    def process(self, page: Page, findings: Findings) -> None:
        body = document_of(page, self._options).utf8()
        counts: Counter[bytes] = Counter()
        named: Counter[str] = Counter()
        for step in _TAG_WALK.over(body):
            if step.name:
                named[step.name] += 1
            else:
                counts.update(_START.findall(body, step.start, step.end))
        for name, count in counts.items():
            named[name.decode("utf-8", "replace").lower()] += count
        findings.columns["tag_count"] = named.total()
        findings.rows["tags"] = [{"tag": name, "count": count} for name, count in named.most_common(TAGS_MAX)]
