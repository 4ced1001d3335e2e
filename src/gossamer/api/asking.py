"""Asking: answers requests to a crawl in this process as its control socket does, also before and after the crawl."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from gossamer.crawl.control import Verb, answer_of, refusal
from gossamer.crawl.logs import Logs

ALWAYS = "status"
"""The verb that has an answer whether the crawl runs or not."""


class Asking:
    """Passes requests to the running crawl; else answers with the status, or that the crawl does not run."""

    def __init__(self, status: Callable[[], Mapping[str, object]]) -> None:
        self._status = status
        self._open: tuple[Mapping[str, Verb], Logs] | None = None

    async def ask(self, request: dict[str, object]) -> dict[str, object]:
        """Return the answer: `ok` with `result`, or `error` with its `kind`. Never raises."""
        if self._open is not None:
            verbs, logs = self._open
            return await answer_of(verbs, request, logs)
        status = self._status()
        if request.get("verb") == ALWAYS:
            return {"ok": True, "result": status}
        state = status.get("state")
        says = "it is starting; try again" if state == "starting" else f"it is {state}"
        return refusal("conflict", f"the crawl does not answer: {says}")

    @contextmanager
    def open(self, verbs: Mapping[str, Verb], logs: Logs) -> Iterator[None]:
        """Have these verbs answer while the context is open."""
        self._open = (verbs, logs)
        try:
            yield
        finally:
            self._open = None
