"""Own: makes a processing module from a function."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from inspect import iscoroutinefunction

from gossamer.model.pages import Findings, Page

Look = Callable[[Page, Findings], None]
Kinds = Mapping[str, str]
"""Kinds of value by column."""


class FunctionModule:
    """A `ports.ProcessingModule` that calls a function."""

    def __init__(
        self, look: Look, media_types: tuple[str, ...], columns: Kinds, tables: Mapping[str, Kinds], *, isolated: bool
    ) -> None:
        self._look = look
        self._media_types = media_types
        self.name: str = getattr(look, "__name__", type(look).__name__)
        self.columns = columns
        self.tables = tables
        self.isolated = isolated
        self.__doc__ = look.__doc__

    def wants(self, media_type: str) -> bool:
        return any(fnmatchcase(media_type, pattern) for pattern in self._media_types)

    def process(self, page: Page, findings: Findings) -> None:
        self._look(page, findings)

    def __call__(self, page: Page, findings: Findings) -> None:
        """Call the function, as if it had not been decorated."""
        self._look(page, findings)


def processing_module(
    *media_types: str, columns: Kinds | None = None, tables: Mapping[str, Kinds] | None = None, isolated: bool = False
) -> Callable[[Look], FunctionModule]:
    """Make a processing module from a function of a page and its findings.

    `media_types` are the types that it processes (`text/html`, `image/*`); none: HTML. `columns` and `tables` declare
    what it adds to the tables, as names with kinds of value: `text`, `int`, `float`, `bool`, `time`, `texts`, `json`.
    With `isolated` it runs in a separate process.
    """
    if media_types and callable(media_types[0]):
        raise TypeError("write @processing_module(), with its brackets")

    def decorate(look: Look) -> FunctionModule:
        if iscoroutinefunction(look):
            raise TypeError(f"{look.__name__} is called without await: write def, not async def")
        return FunctionModule(look, media_types or ("text/html",), columns or {}, tables or {}, isolated=isolated)

    return decorate
