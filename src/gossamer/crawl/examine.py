"""Examine: the stage in which native code meets what strangers wrote: content coding off, processing modules on."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from gossamer.fetch.decoding import BoundedDecoder
from gossamer.model.modules import ModuleError
from gossamer.model.visits import Content, Findings, Page, Reply
from gossamer.process.chain import Processed
from gossamer.state.slots import STAGES, Slots
from gossamer.world.clock import Clock

_DECODE, _PROCESS = STAGES.index("decode"), STAGES.index("process")


Look = Callable[[Page], Processed]


class Examined(msgspec.Struct):
    """What a page came to."""

    content: Content
    findings: Findings
    errors: list[ModuleError]
    ran: list[str]
    """The modules that were given the page."""
    left: bool = False
    """It was decoded and not processed: a copy."""


class Examiner:
    """Decodes and processes one page at a time, saying so in slot 0 for whoever finds us dead."""

    def __init__(self, decoder: BoundedDecoder, look: Look, clock: Clock, slots: Slots | None) -> None:
        self._decoder = decoder
        self._look = look
        self._clock = clock
        self._slots = slots

    def examine(
        self, reply: Reply, fingerprint: int, link_type: str = "", is_left: Callable[[Content], bool] | None = None
    ) -> Examined:
        """Return a page's content and findings, without any where `is_left` says so of the content. May kill or hang
        the process: that is what the slot is for.
        """
        now = self._clock.now()
        try:
            content = self._stage_decode(reply, fingerprint, now)
            if is_left is not None and is_left(content):
                return Examined(content, Findings(), [], [], left=True)
            if self._slots is not None:
                self._slots.enter(0, fingerprint, _PROCESS, now)
            seen = self._look(page_of(reply, content, link_type))
            return Examined(content, seen.findings, list(seen.errors), list(seen.ran))
        finally:
            self._leave()

    def decode(self, reply: Reply, fingerprint: int) -> bytes:
        """Return the content of a reply that is no page: a robots.txt."""
        try:
            return self._stage_decode(reply, fingerprint, self._clock.now()).body
        finally:
            self._leave()

    def _stage_decode(self, reply: Reply, fingerprint: int, now: float) -> Content:
        if self._slots is not None:
            self._slots.enter(0, fingerprint, _DECODE, now)
        return self._decoder.decode(reply)

    def _leave(self) -> None:
        if self._slots is not None:
            self._slots.leave(0)


def page_of(reply: Reply, content: Content, link_type: str = "") -> Page:
    """Return what processing modules look at."""
    return Page(reply.url, reply.media_type, reply.charset, reply.headers, content.body, content.file, link_type)
