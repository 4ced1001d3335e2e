"""Walling: ends visits that bot protection answered instead of the page, and has its hosts wait longer."""

from collections.abc import Callable
from functools import partial

from gossamer.model.links import Visit
from gossamer.model.visits import Reply
from gossamer.ports import Conclusion, ExaminedPage, VisitMiddleware
from gossamer.stages.frontier.scheduler import HostControl
from gossamer.stages.process.walls import Wall, Walls
from gossamer.url.url import Url

WALLED = frozenset((401, 403, 405, 406, 429, 468, 503, 999))
"""Statuses with which bot protection sends its pages, beside those of success; 468 is SafeLine's, 999 LinkedIn's."""
WALLS_MAX = 8
"""Consecutive walls after which a host is closed, except in a continuous crawl."""
WALLED_HOSTS_MAX = 10_000
"""Hosts whose walls are counted at the same time."""


class Walling(VisitMiddleware):
    """Recognizes bot protection. The exchange is archived, but is not content. The host's delay grows each time."""

    name = "walls"

    def __init__(
        self, walls: Walls, error_body: Callable[[Reply, Visit], bytes], control: HostControl, *, closes: bool
    ) -> None:
        """`error_body` decodes the body of an error; `closes`: a host closes after `WALLS_MAX` walls in a row."""
        self._walls = walls
        self._error_body = error_body
        self._control = control
        self._closes = closes
        self._counts: dict[str, int] = {}
        """By host: walls since the last page."""

    def settle(self, visit: Visit, reply: Reply, now: float) -> Conclusion | None:
        wall = self._walls.in_headers(reply.headers)
        if wall is None and reply.status in WALLED and is_html(reply.media_type):
            wall = self._walls.in_error(self._error_body(reply, visit))
        return self._challenge(wall, visit.url, reply) if wall is not None else None

    def settle_document(self, page: ExaminedPage, now: float) -> Conclusion | None:
        wall = self._in_page(page)
        if wall is not None and not wall.consent:
            return self._challenge(wall, page.visit.url, page.reply)
        page.row.wall = f"consent:{wall.name}" if wall is not None else ""
        if self._counts:
            self._counts.pop(page.visit.url.host, None)
        return None

    def is_page(self, page: ExaminedPage) -> bool:
        wall = self._in_page(page)
        return wall is None or wall.consent

    def _challenge(self, wall: Wall, url: Url, reply: Reply) -> Conclusion:
        why = f"bot protection ({wall.name}) answered instead of the page, HTTP {reply.status}"
        return Conclusion("challenged", why, columns={"wall": wall.name}, then=partial(self._back_off, url, wall.name))

    def _back_off(self, url: Url, name: str, now: float) -> None:
        if len(self._counts) >= WALLED_HOSTS_MAX:
            self._counts.clear()
        count = self._counts[url.host] = self._counts.get(url.host, 0) + 1
        if count >= WALLS_MAX and self._closes:
            self._control.close(url, f"its bot protection ({name}) answered {count} requests in a row", now)
        else:
            self._control.back_off(url, count, f"its bot protection ({name}) answered", now)

    def _in_page(self, page: ExaminedPage) -> Wall | None:
        reply = page.reply
        if not is_html(reply.media_type):
            return None
        return self._walls.in_page(reply.url, page.findings.title, page.content.body)


def is_html(media_type: str) -> bool:
    """Return whether a reply is a web page, or does not say what it is."""
    return media_type in ("text/html", "application/xhtml+xml", "")
