"""Sheets: writing one odd page and, in the same breath, what stands in it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gossamer.lab.simweb.answers import Answer, Headers, Made, Mark
from gossamer.lab.simweb.hosts import Host
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.words import Words


class Place(msgspec.Struct, frozen=True):
    """What a corner knows of the web around it."""

    host: Host
    origin: str
    options: SimwebOptions
    words: Words
    hosts: Sequence[Host]
    port: str
    """`:8080`, or empty for port 80."""

    def other(self, steps: int = 1) -> Host:
        """Return another host than this one, if there is one."""
        return self.hosts[(self.host.index + steps) % len(self.hosts)]

    def front(self, host: Host) -> str:
        """Return the address of a host's front page."""
        return f"http://{host.name}{self.port}/"

    def some(self, sentences: int, *what: object) -> str:
        """Return text that depends on `what`, of this host alone."""
        return self.words.some(hash_of(self.host.index, *what), sentences)


def hash_of(*what: object) -> int:
    """Return a small number from `what`, the same in every process."""
    value = 7
    for byte in "/".join(map(str, what)).encode():
        value = (value * 131 + byte) & 0xFFFFFFFF
    return value


class Sheet:
    """One HTML page in the making."""

    def __init__(self, place: Place, path: str, title: str = "", about: object = None) -> None:
        """The text depends on the path, or where that is given, on what the page is `about`."""
        self._place = place
        self._about = path if about is None else about
        self._title = title or path
        self._head: list[str] = []
        self._body: list[str] = []
        self._marks: list[Mark] = []

    def head(self, html: str, *marks: Mark) -> Sheet:
        """Add to the head an element, and the links that it makes."""
        self._head.append(html)
        self._marks += marks
        return self

    def tag(self, html: str, *marks: Mark) -> Sheet:
        """Add to the body an element, and the links that it makes."""
        self._body.append(html)
        self._marks += marks
        return self

    def anchor(
        self, href: str, to: str = "", *, text: str = "", nofollow: bool = False, optional: bool = False, key: str = ""
    ) -> Sheet:
        """Add a link. `to` is the absolute address it leads to; needed unless `href` begins with `/`."""
        rel = ' rel="nofollow"' if nofollow else ""
        mark = Mark(to or self._place.origin + href, "anchor", text or href, nofollow, key, optional)
        return self.tag(f'<p><a href="{href.replace("&", "&amp;")}"{rel}>{text or href}</a></p>', mark)

    def html(self, charset: str = "utf-8", *, declare: bool = True) -> str:
        """Return the text of the page."""
        host, some = self._place.host.name, self._place.some(12, self._about)
        meta = f'<meta charset="{charset}">' if declare else ""
        head = (
            f"<!DOCTYPE html>\n<html><head>{meta}<title>{self._title} at {host}</title>{''.join(self._head)}</head>\n"
        )
        return f"{head}<body><h1>{self._title}</h1>\n<p>{some}</p>\n{''.join(self._body)}\n</body></html>\n"

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What was written so far."""
        return tuple(self._marks)

    def made(self, *, headers: Headers = (), also: tuple[str, ...] = ()) -> Made:
        """Return the page as plain UTF-8 HTML with status 200."""
        return self.sent(self.html().encode(), headers=headers, also=also)

    def sent(
        self,
        body: bytes,
        media_type: str = "text/html; charset=utf-8",
        headers: Headers = (),
        also: tuple[str, ...] = (),
    ) -> Made:
        """Return the page with a body that somebody else encoded."""
        whole = (("Content-Type", media_type), *headers) if media_type else headers
        return Made((Answer(200, whole, body),), self.marks, also)


def leaf(place: Place, path: str, title: str = "") -> Made:
    """Return a page without links."""
    return Sheet(place, path, title).made()
