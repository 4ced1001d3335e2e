"""Options of the processing modules, and rules that extract items."""

import re
from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Literal

from gossamer.model.errors import ConfigError
from gossamer.model.modules import NAME, RESERVED
from gossamer.options import Key, NamedSection, Section

ISOLATED = frozenset(("pdf_links", "pdf_text", "documents", "mail"))
"""Our modules that always run in a separate process."""
_PATTERN = re.compile(r"\*/\*|[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)")


def _require_media_type(pattern: str) -> None:
    if not _PATTERN.fullmatch(pattern):
        raise ValueError(f'{pattern!r} is no media type; write "text/html", "image/*" or "*/*"')


class ProcessOptions(Section, frozen=True):
    """Processing modules, and bounds on the cost and results of one page."""

    tree_tags_max: Annotated[
        int,
        Key(
            "Links and titles of pages with more start tags are found by a scan, which needs no tree (a tree's cost "
            "grows with the square of its nesting). Both find the same.",
            ge=0,
        ),
    ] = 1000
    tree_bytes_max: Annotated[
        int,
        Key("The same for longer pages: the attributes of a tag, too, cost a tree the square of their number.", ge=0),
    ] = 65_536
    open_tags_max: Annotated[
        int,
        Key(
            "Start tags less end tags at any place of a page (elements open at once) beyond which its main text and "
            "its Markdown are the whole visible text. The column text_method says so.",
            ge=0,
        ),
    ] = 1000
    links_max: Annotated[
        int, Key("Distinct links taken from one page, and as many repeats of them; the others are ignored.", ge=0)
    ] = 50_000
    url_bytes_max: Annotated[int, Key("Longer addresses do not count as links.", ge=1)] = 8_192
    anchor_bytes_max: Annotated[int, Key("Anchor text kept of one link, in bytes of UTF-8.", ge=0)] = 1_000
    title_bytes_max: Annotated[int, Key("Title kept of one page, in bytes of UTF-8.", ge=0)] = 2_000
    text: Annotated[
        bool, Key("Also extract the plain text of each page (costs about as much as extracting links).", basic=True)
    ] = False
    text_bytes_max: Annotated[int, Key("Plain text kept of one page, in bytes of UTF-8.", ge=0)] = 1_000_000
    items_bytes_max: Annotated[
        int,
        Key("Longer pages have no items by CSS or XPath; nor those above tree_bytes_max that are ill nested.", ge=0),
    ] = 4_194_304
    markup_bytes_max: Annotated[
        int, Key("Of a page that was spilled to disk (fetch.body_memory_bytes_max) this much is read as text.", ge=1)
    ] = 33_554_432
    walls_file: Annotated[
        str, Key("File of rules for bot protection and consent pages, instead of ours; empty: none.", path="read")
    ] = ""
    types: Annotated[
        dict[str, tuple[str, ...]],
        Key(
            "Modules in order, by media type: `text/html`, `image/*`, `*/*`. What is named here replaces what "
            "docs/reference/processing.md lists for that type; others stay as they are.",
            basic=True,
            names=_require_media_type,
            path="component",
        ),
    ] = {}
    modules: Annotated[
        tuple[str, ...],
        Key(
            "Further processing modules, in order, for the types that they declare: a built-in name, `module:Name`, "
            "`file.py:Name` or the name of a component.",
            basic=True,
            path="component",
        ),
    ] = ()
    isolated: Annotated[
        tuple[str, ...],
        Key("Names of modules that run in separate processes, beside those that ask for it.", path="component"),
    ] = ()
    module_s_max: Annotated[
        float,
        Key(
            "Processor time of the modules on one page together, in seconds; they may take ten times as long on a busy "
            "machine. A module that uses it up is interrupted, and those after it have a tenth of that time.",
            ge=0.01,
        ),
    ] = 10.0
    isolated_bytes_max: Annotated[int, Key("Memory (address space) of a process for isolated modules.", ge=1)] = (
        2_147_483_648
    )
    sandbox: Annotated[
        Literal["auto", "on", "off"],
        Key(
            "Whether the processes of `gossamer crawl` may open nothing but the crawl's directory, what the "
            "configuration names, and the system's programs (Linux 5.19). auto: if the system can, and no component "
            "or command is your own. on: if the system cannot, the crawl does not start."
        ),
    ] = "off"
    isolated_processes: Annotated[
        int, Key("Processes for isolated modules; each looks at one page at a time.", ge=1, le=64)
    ] = 1


ITEM_COLUMNS = ("url", "key", "fetched_at", "item")
"""First columns of each table of items; no field has such a name."""
SELECTORS = ("css", "xpath", "jsonpath")


class TypedModule:
    """Base of processing modules for some media types."""

    media_types: ClassVar[Collection[str]] = ()
    reads_announced: ClassVar[bool] = False
    """Whether it also reads seeds, and what links announce as sitemaps and feeds, of any media type."""

    def __init__(self, options: ProcessOptions | None = None) -> None:
        self._options = options or ProcessOptions()

    def wants(self, media_type: str) -> bool:
        """Return whether pages of this type are for it."""
        return media_type in self.media_types


def _require_compiled(kind: str, selector: str) -> None:
    # Only where there are rules: what parses selectors takes 0.1 s to import.
    from gossamer.stages.process import expressions  # noqa: PLC0415

    try:
        expressions.compile_selector(kind, selector)
    except ConfigError as error:
        raise ValueError(f"{kind}: {error}") from None


class Selector(Section, frozen=True):
    """Selects elements of a page, or values of its JSON. A text is a CSS selector."""

    TEXT: ClassVar[str] = "css"

    css: Annotated[str, Key("CSS selector.")] = ""
    xpath: Annotated[str, Key("XPath 1.0 expression.")] = ""
    jsonpath: Annotated[
        str, Key("JSONPath query (RFC 9535) over a JSON document, or over the list of a page's JSON-LD blocks.")
    ] = ""

    def __post_init__(self) -> None:
        given = [kind for kind in SELECTORS if getattr(self, kind)]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other; keep one of them")
        for kind in given:
            _require_compiled(kind, getattr(self, kind))

    @property
    def kind(self) -> str:
        """Return which of `SELECTORS` it has; empty: it takes the page or element itself."""
        return next((kind for kind in SELECTORS if getattr(self, kind)), "")


class FieldRule(Selector, frozen=True):
    """One field of an item."""

    re: Annotated[str, Key("Regular expression (RE2) over what is selected: its first group, else the match.")] = ""
    attribute: Annotated[str, Key("Attribute of the selected element, in place of its text.")] = ""
    type: Annotated[
        Literal["text", "integer", "number", "boolean", "date", "url", "html"], Key("Type of the value.")
    ] = "text"
    format: Annotated[str, Key("How a date is written, as in strptime; empty: ISO 8601 or as in e-mail.")] = ""
    list: Annotated[bool, Key("Take all values instead of the first.")] = False
    required: Annotated[bool, Key("Leave out an item that lacks this field.")] = False
    fields: Annotated[dict[str, "FieldRule"], Key("Fields of the selected elements, which become objects.")] = {}

    def __post_init__(self) -> None:
        Selector.__post_init__(self)
        if self.re:
            _require_compiled("re", self.re)
        if self.attribute and self.kind in ("xpath", "jsonpath"):
            raise ValueError(f"attribute goes with css; in {self.kind} write it into the expression")
        if self.format and self.type != "date":
            raise ValueError('format goes with type = "date"')
        if self.fields and (self.re or self.attribute or self.type != "text"):
            raise ValueError("with fields it is an object; remove re, attribute and type")


def _all_compiled(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        _require_compiled("re", pattern)
    return patterns


class ItemRule(Section, frozen=True):
    """One kind of item: which pages have it, where, and its fields."""

    urls: Annotated[
        tuple[str, ...], Key("Regular expressions (RE2) of pages with such items; none means all.", check=_all_compiled)
    ] = ()
    items: Annotated[Selector, Key("Selects the elements that are items; empty: the page is one item.")] = Selector()
    identity: Annotated[str, Key("Field that identifies an item among those of its page.")] = ""
    fields: Annotated[dict[str, FieldRule], Key("Fields by name.")] = {}

    def __post_init__(self) -> None:
        if not self.fields:
            raise ValueError('it has no fields; add some, such as fields = { title = "h1" }')
        for name in self.fields:
            if not NAME.fullmatch(name) or name in ITEM_COLUMNS:
                raise ValueError(
                    f"no field can be called {name!r}; use small letters, digits and _, and not "
                    f"{', '.join(ITEM_COLUMNS)}, which each item has"
                )
        if self.identity and (self.identity not in self.fields or self.kind_of(self.identity) in ("json", "texts")):
            raise ValueError(f"identity names no field with one value: {self.identity!r}")
        _require_one_tree(self.items.kind, self.fields)

    def kind_of(self, field: str) -> str:
        """Return the kind of a field's column (`model.modules.KINDS`)."""
        rule = self.fields[field]
        if rule.fields:
            return "json"
        kind = _COLUMN_KINDS[rule.type]
        return kind if not rule.list else "texts" if kind == "text" else "json"

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of all fields' columns."""
        return {name: self.kind_of(name) for name in self.fields}


_COLUMN_KINDS = {
    "text": "text", "integer": "int", "number": "float", "boolean": "bool", "date": "time", "url": "text",
    "html": "text",
}  # fmt: skip


def _require_one_tree(within: str, fields: Mapping[str, FieldRule]) -> None:
    for name, rule in fields.items():
        if within and rule.kind and rule.kind != within:
            raise ValueError(f"field {name} selects by {rule.kind} within what {within} selected; use {within}")
        if within == "xpath" and rule.xpath:
            from gossamer.stages.process import expressions  # noqa: PLC0415 - as above

            try:
                expressions.require_relative(rule.xpath)
            except ConfigError as error:
                raise ValueError(f"field {name}: {error}") from None
        _require_one_tree(rule.kind or within, rule.fields)


def _require_name(name: str) -> None:
    if not NAME.fullmatch(name) or name in RESERVED:
        raise ValueError(f"no items can be called {name!r}; use small letters, digits and _")


class ExtractOptions(NamedSection, frozen=True):
    """Items that pages have: each key names a kind of item, its value is a table."""

    rules: Annotated[dict[str, ItemRule], Key("By name.", names=_require_name)] = {}
