"""Directives: what a page asks of those who index it (meta robots, X-Robots-Tag)."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer.model.visits import Findings, Page
from gossamer.process.html import HTML_TYPES, document_of
from gossamer.process.options import ProcessOptions

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
