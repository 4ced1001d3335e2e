"""Processing modules and a prioritizer that die, hang or fail, each on pages or addresses that hold its marker."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from gossamer.model.links import Link
from gossamer.model.pages import Findings, Page


class _OnMarker:
    name = "deadly"

    def wants(self, media_type: str) -> bool:
        return media_type == "text/html"

    def process(self, page: Page, findings: Findings) -> None:
        if f"marker-{type(self).__name__}".encode() in page.body:
            self.act()

    def act(self) -> None:
        raise NotImplementedError


class Segfault(_OnMarker):
    def act(self) -> None:
        _die_of(signal.SIGSEGV)


class Abort(_OnMarker):
    def act(self) -> None:
        _die_of(signal.SIGABRT)


class Sleep(_OnMarker):
    def act(self) -> None:
        time.sleep(3600)


class Blind(_OnMarker):
    """Hangs in C, looks for no signal and holds the interpreter's lock: nothing in the process could end it."""

    def act(self) -> None:
        sum(range(10**15))


class Raise(_OnMarker):
    def act(self) -> None:
        raise ZeroDivisionError("a module's own mistake")


class _Once(_OnMarker):
    """Does it the first time only, as the file that `DEADLY_ONCE` names tells."""

    def act(self) -> None:
        path = Path(os.environ["DEADLY_ONCE"])
        if not path.exists():
            path.touch()
            self.act_once()

    def act_once(self) -> None:
        raise NotImplementedError


class SegfaultOnce(_Once):
    def act_once(self) -> None:
        _die_of(signal.SIGSEGV)


class KillOnce(_Once):
    def act_once(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Fatal:
    """A prioritizer: the process dies outside of any page's content."""

    def level(self, link: Link) -> int:
        if "page-3" in link.url.text:
            _die_of(signal.SIGSEGV)
        return 0


class Failing:
    """A prioritizer that fails at the links of a page, or of every page."""

    def level(self, link: Link) -> int:
        if link.referrer and "bad" in link.url.text:
            raise ZeroDivisionError("a room's own mistake")
        return 0


def _die_of(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(60)
