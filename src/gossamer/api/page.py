"""Page: one finished attempt, as a program sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from gossamer.api.given import SuggestsAttributes
from gossamer.model import pages
from gossamer.model.links import Found
from gossamer.model.pages import PageRow, Visited

if TYPE_CHECKING:
    from gossamer.stages.process.items import ItemPage, Selection

NOT_ENTERED: Final = "iterate inside `async with`: async with Crawler(...) as crawler: async for page in crawler: ..."


class CrawledPage(SuggestsAttributes):
    """One finished attempt: the row of `pages`, and the content while it is in memory."""

    _others = "page"

    def __init__(self, visited: Visited, text_of: Callable[[Visited], str]) -> None:
        self._visited = visited
        self._text_of = text_of

    @property
    def row(self) -> PageRow:
        """All columns of `pages`."""
        return self._visited.row

    @property
    def url(self) -> str:
        """The address as it was fetched."""
        return self._visited.row.url

    @property
    def outcome(self) -> str:
        """How the attempt ended; `fetched` when there is content."""
        return self._visited.row.outcome

    @property
    def status(self) -> int | None:
        """The HTTP status; None when no reply came."""
        return self._visited.row.status

    @property
    def title(self) -> str:
        return self._visited.row.title

    @property
    def depth(self) -> int:
        """Clicks from a seed."""
        return self._visited.row.depth

    @property
    def links(self) -> list[Found]:
        """The links found in it, each with `url`, `link_type`, `anchor_text` and `nofollow`."""
        return self._visited.links

    @property
    def columns(self) -> dict[str, object]:
        """Values that processing modules reported, by column."""
        findings = self._visited.findings
        return findings.columns if findings is not None else {}

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The reply's headers in the order received."""
        reply = self._visited.reply
        return reply.headers if reply is not None else ()

    @property
    def body(self) -> bytes:
        """The content, its content coding removed; of a body too large for memory its beginning (see `open`)."""
        content = self._visited.content
        return content.body if content is not None else b""

    def open(self) -> BinaryIO:
        """Return a reader of the whole content, from its first byte."""
        content = self._visited.content
        return content.file.open() if content is not None and content.file is not None else BytesIO(self.body)

    @cached_property
    def text(self) -> str:
        """The visible text, one line a block. Extracted when first asked for, about 0.3 ms."""
        return self._text_of(self._visited)

    def css(self, selector: str) -> Selection:
        """Return the elements that a CSS selector finds. The page is parsed once, about 0.1 ms. Raises ConfigError: it
        is not a CSS selector; SelectError: the page is too large or too deeply nested, or is not HTML.
        """
        return self._item_page.css(selector)

    def xpath(self, expression: str) -> Selection:
        """Return the elements or values that an XPath 1.0 expression finds. Raises as `css`."""
        return self._item_page.xpath(expression)

    def jsonpath(self, query: str) -> Selection:
        """Return the values that a JSONPath query finds in a JSON document, or in `json_ld`. Raises as `css`."""
        return self._item_page.jsonpath(query)

    def re(self, pattern: str) -> list[str]:
        """Return the first group of each match in the markup (RE2), else the match. Raises ConfigError."""
        return self._item_page.re(pattern)

    @property
    def json_ld(self) -> list[Any]:
        """The JSON-LD blocks of an HTML page."""
        return self._item_page.json_ld

    @property
    def parsed(self) -> pages.Page:
        """The page as processing modules see it."""
        reply = self._visited.reply
        content = self._visited.content
        kind, charset = (reply.media_type, reply.charset) if reply is not None else ("text/html", "")
        file = content.file if content is not None else None
        return pages.Page(self.url, kind, charset, self.headers, self.body, file)

    @cached_property
    def _item_page(self) -> ItemPage:
        from gossamer.stages.process.items import ItemPage  # noqa: PLC0415 - only where a program selects

        return ItemPage.of(self.parsed)

    def __reduce__(self) -> tuple[type[CrawledPage], tuple[Visited, Callable[[Visited], str]]]:
        """Pickle the page without what was parsed from it, such as for another process."""
        return CrawledPage, (self._visited, self._text_of)

    def __repr__(self) -> str:
        return f"<Page {self.url} {self.outcome} {self.status or ''}>"


async def wait_for_end(crawl: asyncio.Task[Any], hurry: Callable[[], None]) -> BaseException | None:
    """Wait for a stopping crawl; return its exception. If cancelled, call `hurry`, wait on, and raise it at the end."""
    cancelled: asyncio.CancelledError | None = None
    while not crawl.done():
        try:
            await asyncio.wait([crawl])
        except asyncio.CancelledError as again:
            cancelled = again
            hurry()
    if cancelled is not None:
        raise cancelled
    return crawl.exception() if not crawl.cancelled() else None
