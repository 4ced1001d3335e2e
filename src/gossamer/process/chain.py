"""Chain: all modules that a page's media type calls for, in order."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gossamer.model.visits import Findings, Page
from gossamer.ports import ProcessingModule
from gossamer.process.directives import Directives
from gossamer.process.html import Document, HtmlPage
from gossamer.process.links import HeaderLinks, LinkExtractor
from gossamer.process.listings import ListingLinks
from gossamer.process.options import ProcessOptions
from gossamer.process.text import TitleAndText


class ModuleError(msgspec.Struct, frozen=True):
    """A module of ours (or a user's) failed on a page; the others went on."""

    module: str
    error: str
    """The exception, as `Type: text`."""


class Processed(msgspec.Struct, frozen=True):
    """What all modules made of one page."""

    findings: Findings
    errors: tuple[ModuleError, ...] = ()


def standard_modules(options: ProcessOptions) -> tuple[ProcessingModule, ...]:
    """Return the modules that a crawl has unless configured otherwise, in order."""
    return (
        LinkExtractor(options),
        ListingLinks(options),
        HeaderLinks(options),
        TitleAndText(options),
        Directives(options),
    )


class Modules:
    """Runs modules over pages. A page is decoded and parsed at most once, when the first module asks."""

    def __init__(self, modules: Sequence[ProcessingModule], options: ProcessOptions) -> None:
        self._modules = tuple(modules)
        self._options = options
        self._chosen: dict[str, tuple[ProcessingModule, ...]] = {}

    def wants(self, media_type: str) -> bool:
        """Say whether any module would look at such a page."""
        return bool(self._for(media_type))

    def process(self, page: Page) -> Processed:
        """Return all that the modules find. A module that raises is an error in the list; the rest still run."""
        carried = HtmlPage(
            url=page.url,
            media_type=page.media_type,
            charset=page.charset,
            headers=page.headers,
            body=page.body,
            document=Document(page, self._options),
        )
        findings = Findings()
        errors = []
        for module in self._for(page.media_type):
            try:
                module.process(carried, findings)
            except Exception as error:  # noqa: BLE001  # Any module's mistake is that module's alone.
                errors.append(ModuleError(module.name, f"{type(error).__name__}: {error}"))
        return Processed(findings, tuple(errors))

    def _for(self, media_type: str) -> tuple[ProcessingModule, ...]:
        chosen = self._chosen.get(media_type)
        if chosen is None:
            chosen = tuple(module for module in self._modules if module.wants(media_type))
            if len(self._chosen) < CHOICES_MAX:  # Media types are what servers say they are.
                self._chosen[media_type] = chosen
        return chosen


CHOICES_MAX = 256
"""Media types whose modules are remembered."""
