"""Progress: a bar below the cell of a notebook in which a crawl runs."""

import asyncio
import html
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from gossamer.config import Config
from gossamer.model.status import Status, limit_share, read_status
from gossamer.model.words import counted, duration

REDRAWN_S = 0.5


class NotebookProgress:
    """A bar that is redrawn in place twice a second, about 0.1 ms each time. Its errors do not end the crawl."""

    def __init__(self, status: Callable[[], dict[str, object]]) -> None:
        self._status = status
        self._handle: Any = None

    async def run(self) -> None:
        """Redraw until cancelled."""
        while True:
            self.show()
            await asyncio.sleep(REDRAWN_S)

    def show(self) -> None:
        """Draw the present status."""
        with suppress(Exception):
            shown = bundle_of(read_status(self._status()))
            if self._handle is not None:
                self._handle.update(shown, raw=True)
                return
            self._handle = import_module("IPython.display").display(shown, raw=True, display_id=True)


def notebook_progress(config: Config, status: Callable[[], dict[str, object]]) -> NotebookProgress | None:
    """Return the progress bar of a crawl; None outside notebooks, and with `quiet`."""
    notebook = sys.modules.get("IPython")
    if notebook is None or config.progress.style == "quiet":
        return None
    return NotebookProgress(status) if hasattr(notebook.get_ipython(), "kernel") else None


def bundle_of(status: Status) -> dict[str, str]:
    """Return a status as text and as HTML: a line, and how far the nearest limit or what was found is used up."""
    # Without a limit: what is known so far.
    share = limit_share(status) or min(1.0, status.terminal / (status.discovered or 1))
    parts = [counted(status.pages, "page"), f"{status.pages_s:.1f} pages/s", f"{status.queued:,} queued"]
    parts += [duration(status.elapsed_s), status.ended_says or status.waiting_for or status.state]
    line = ", ".join(parts)
    bar = f'<progress value="{share:.3f}" max="1" style="width:20em"></progress>'
    return {"text/plain": line, "text/html": f"{bar} {html.escape(line)}"}
