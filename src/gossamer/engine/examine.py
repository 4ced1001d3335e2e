"""Examine: the stage in which native code reads untrusted bytes: removes content codings, runs processing modules."""

from collections.abc import Callable, Generator
from typing import TypeVar

import msgspec

from gossamer.model.modules import ModuleError, whole
from gossamer.model.pages import Findings, Page, Rendered
from gossamer.model.visits import Content, Reply
from gossamer.stages.fetch.decoding import BoundedDecoder
from gossamer.stages.process.chain import Slices
from gossamer.state.slots import STAGES, ShardSlots
from gossamer.world.clock import Clock

_DECODE = STAGES.index("decode")
_PROCESS = STAGES.index("process")

Made = TypeVar("Made")


class Examined(msgspec.Struct):
    """Content and findings of a page."""

    content: Content
    findings: Findings
    errors: list[ModuleError]
    ran: list[str]
    """The modules that processed the page."""
    skipped: bool = False
    """Whether the page was decoded but not processed, as a copy."""
    died: bool = False
    """Whether a process died of the page, so that nothing is known of it."""
    rendering: str = ""
    """Result of rendering (`PageRow.rendered`)."""
    rendering_error: str = ""
    """Why it is not rendered, for people."""
    rendered: Rendered | None = None
    """Set if the page was rendered: then `content` and `findings` are those of the rendered page."""
    sent: Content | None = None
    """The content as sent, if the page was rendered."""
    links_gained: int | None = None
    render_reason: str = ""
    """Why it was rendered or not (`PageRow.render_reason`)."""


def dead() -> Examined:
    """Return the result for a page that killed a process: no content and no findings."""
    return Examined(Content(b""), Findings(), [], [], died=True)


class NoSlots:
    """The slots of a process whose parent knows which page it has."""

    def name(self, url: str) -> None:
        """Note nothing."""

    def enter(self, slot: int, fingerprint: int, stage: int, now: float) -> None:
        """Note nothing."""

    def leave(self, slot: int) -> None:
        """Note nothing."""


class Examiner:
    """Decodes and processes one page at a time. Slot 0 holds the page's fingerprint, in case this process dies."""

    def __init__(
        self, decoder: BoundedDecoder, process: Callable[[Page], Slices], clock: Clock, slots: ShardSlots | NoSlots
    ) -> None:
        """`process` processes a page, in slices."""
        self._decoder = decoder
        self._process = process
        self._clock = clock
        self._slots = slots

    def examine(self, reply: Reply, fingerprint: int, link_type: str = "") -> Examined:
        """Return a page's content and findings. The page may crash or hang the process, so the slot is set."""
        return whole(self.examine_in_slices(reply, fingerprint, link_type))

    def examine_in_slices(
        self,
        reply: Reply,
        fingerprint: int,
        link_type: str = "",
        is_skipped_copy: Callable[[Content], bool] | None = None,
    ) -> Generator[None, None, Examined]:
        """As `examine`; no findings if `is_skipped_copy` is true of the content. Yields where other work may run."""
        self._slots.name(reply.url)
        content = yield from self._in_slot(self._decoder.decode_in_slices(reply), fingerprint, _DECODE)
        if is_skipped_copy is not None and is_skipped_copy(content):
            return Examined(content, Findings(), [], [], skipped=True)
        seen = yield from self._in_slot(self._process(page_of(reply, content, link_type)), fingerprint, _PROCESS)
        return Examined(content, seen.findings, list(seen.errors), list(seen.ran))

    def _in_slot(self, steps: Generator[None, None, Made], fingerprint: int, stage: int) -> Generator[None, None, Made]:
        """Do work with the page's fingerprint in the slot, which is idle between slices."""
        while True:
            try:
                self._slots.enter(0, fingerprint, stage, self._clock.now())
                next(steps)
            except StopIteration as end:
                made: Made = end.value
                return made
            finally:
                self._slots.leave(0)
            yield

    def process_again(self, reply: Reply, content: Content, fingerprint: int, url: str) -> Examined:
        """Return the findings of a page's rendered content; its scripts may have changed its address to `url`."""
        self._slots.name(url)
        page = msgspec.structs.replace(page_of(reply, content), url=url)
        seen = whole(self._in_slot(self._process(page), fingerprint, _PROCESS))
        return Examined(content, seen.findings, list(seen.errors), list(seen.ran))

    def content(self, reply: Reply, fingerprint: int) -> Content:
        """Return the decoded content of a reply that is not a page."""
        self._slots.name(reply.url)
        return whole(self._in_slot(self._decoder.decode_in_slices(reply), fingerprint, _DECODE))


def page_of(reply: Reply, content: Content, link_type: str = "") -> Page:
    """Return the input of processing modules."""
    is_cut = bool(reply.truncated or content.truncated or content.error or content.file is not None)
    return Page(
        reply.url, reply.media_type, reply.charset, reply.headers, content.body, content.file, link_type, is_cut,
        reply.started_at,
    )  # fmt: skip
