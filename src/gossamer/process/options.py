"""Options of the processing modules, and rules that extract items."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from gossamer.model.errors import ConfigError
from gossamer.model.modules import NAME, TABLES_TAKEN
from gossamer.model.options import BASIC, Section

ISOLATED = frozenset(("pdf_links", "pdf_text", "documents", "mail"))
"""Our modules that always run in a separate process."""
_PATTERN = re.compile(r"\*/\*|[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)")


class ProcessOptions(Section):
    """Bounds on what one page may cost and yield."""

    tree_tags_max: int = Field(
        default=1000,
        ge=0,
        description="Links and titles of pages with more start tags are found by a scan, which needs no tree "
        "(a tree's cost grows with the square of its nesting). Both find the same.",
    )
    tree_bytes_max: int = Field(
        default=65_536,
        ge=0,
        description="So are those of longer pages: a tag's attributes, too, cost a tree the square of their number.",
    )
    open_tags_max: int = Field(
        default=1000,
        ge=0,
        description="Start tags less end tags at any place of a page (elements open at once) beyond which its main "
        "text and its Markdown are the whole visible text. The column text_method says so.",
    )
    links_max: int = Field(
        default=50_000,
        ge=0,
        description="Distinct links taken from one page, and as many repeats of them; the rest is left.",
    )
    url_bytes_max: int = Field(default=8_192, ge=1, description="Longer addresses are no links.")
    anchor_bytes_max: int = Field(default=1_000, ge=0, description="Anchor text kept of one link, in bytes of UTF-8.")
    title_bytes_max: int = Field(default=2_000, ge=0, description="Title kept of one page, in bytes of UTF-8.")
    text: bool = Field(
        default=False,
        description="Also find the plain text of each page (about as costly as the links).",
        json_schema_extra=BASIC,
    )
    text_bytes_max: int = Field(default=1_000_000, ge=0, description="Plain text kept of one page, in bytes of UTF-8.")
    items_bytes_max: int = Field(
        default=4_194_304,
        ge=0,
        description="Longer pages are not searched for items by CSS or XPath. Pages above tree_bytes_max are, where "
        "their elements nest in order.",
    )
    markup_bytes_max: int = Field(
        default=33_554_432,
        ge=1,
        description="Of a page that was spilled to disk (fetch.body_memory_bytes_max) this much is read as text.",
    )
    walls_file: str = Field(
        default="",
        description="File of rules that recognize bot protection and consent pages, instead of the package's own; "
        "an empty file recognizes none.",
    )
    types: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Modules in order, by media type: `text/html`, `image/*`, `*/*`. What is named here "
        "replaces what docs/reference/processing.md lists for that type; others stay as they are.",
        json_schema_extra=BASIC,
    )
    modules: tuple[str, ...] = Field(
        default=(),
        description="Further processing modules, for the types that they want themselves, each a name of ours, "
        "`module:Name`, `file.py:Name` or a component's name, in order.",
        json_schema_extra=BASIC,
    )
    isolated: tuple[str, ...] = Field(
        default=(),
        description="Names of modules that run in separate processes, beside those that declare it themselves.",
    )
    module_s_max: float = Field(
        default=10.0,
        gt=0,
        description="Processor time of one module on one page, and a tenth of the time it may take on a busy machine: "
        "then it is given up, and the others go on.",
    )
    isolated_bytes_max: int = Field(
        default=2_147_483_648, ge=1, description="Memory (address space) of a process for isolated modules."
    )
    sandbox: Literal["auto", "on", "off"] = Field(
        "off",
        description="Whether the processes of `gossamer crawl` may open nothing but the crawl's directory, what the "
        "configuration names, and the system's programs (Linux 5.19). auto: where the system can, and no component "
        "or command is your own. on: or else the crawl is refused.",
    )
    isolated_processes: int = Field(
        default=1, ge=1, le=64, description="Processes for isolated modules; each looks at one page at a time."
    )

    @field_validator("types")
    @classmethod
    def _patterns(cls, types: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for pattern in types:
            if not _PATTERN.fullmatch(pattern):
                raise ValueError(f'{pattern!r} is no media type; write "text/html", "image/*" or "*/*"')
        return types


ITEM_COLUMNS = ("url", "key", "fetched_at", "item")
"""First columns of each table of items; no field has such a name."""
SELECTORS = ("css", "xpath", "jsonpath")


def _require_compiled(kind: str, selector: str) -> None:
    # Only where there are rules: what parses selectors takes 0.1 s to import.
    from gossamer.process import selectors  # noqa: PLC0415

    try:
        selectors.compiled(kind, selector)
    except ConfigError as error:
        raise ValueError(f"{kind}: {error}") from None


class Selector(Section):
    """What selects elements of a page, or values of its JSON. A text is a CSS selector."""

    css: str = Field("", description="CSS selector.")
    xpath: str = Field("", description="XPath 1.0 expression.")
    jsonpath: str = Field(
        "", description="JSONPath query (RFC 9535) over a JSON document, or over the list of a page's JSON-LD blocks."
    )

    @model_validator(mode="before")
    @classmethod
    def _css_alone(cls, given: object) -> object:
        return {"css": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = [kind for kind in SELECTORS if getattr(self, kind)]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other; keep one of them")
        for kind in given:
            _require_compiled(kind, getattr(self, kind))
        return self

    @property
    def kind(self) -> str:
        """Return which of `SELECTORS` it has; empty: it takes the page or element itself."""
        return next((kind for kind in SELECTORS if getattr(self, kind)), "")


class FieldRule(Selector):
    """One field of an item."""

    re: str = Field("", description="Regular expression (RE2) over what is selected: its first group, else the match.")
    attribute: str = Field("", description="Attribute of the selected element, in place of its text.")
    type: Literal["text", "integer", "number", "boolean", "date", "url", "html"] = Field(
        "text", description="Type of the value."
    )
    format: str = Field("", description="How a date is written, as in strptime; empty: ISO 8601 or as in e-mail.")
    list: bool = Field(False, description="Take all values instead of the first.")
    required: bool = Field(False, description="Leave out an item that lacks this field.")
    fields: dict[str, FieldRule] = Field(
        default_factory=dict, description="Fields of the selected elements, which become objects."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.re:
            _require_compiled("re", self.re)
        if self.attribute and self.kind in ("xpath", "jsonpath"):
            raise ValueError(f"attribute goes with css; in {self.kind} write it into the expression")
        if self.format and self.type != "date":
            raise ValueError('format goes with type = "date"')
        if self.fields and (self.re or self.attribute or self.type != "text"):
            raise ValueError("with fields it is an object; remove re, attribute and type")
        return self


class ItemRule(Section):
    """One kind of item: which pages have it, where, and its fields."""

    urls: tuple[str, ...] = Field((), description="Regular expressions (RE2) of pages with such items; none means all.")
    items: Selector = Field(
        default_factory=Selector, description="Selects the elements that are items; empty: the page is one item."
    )
    identity: str = Field("", description="Field that identifies an item among those of its page.")
    fields: dict[str, FieldRule] = Field(default_factory=dict, description="Fields by name.")

    @field_validator("urls")
    @classmethod
    def _are_patterns(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in urls:
            _require_compiled("re", pattern)
        return urls

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
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
        return self

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
            from gossamer.process import selectors  # noqa: PLC0415 - as above

            try:
                selectors.require_relative(rule.xpath)
            except ConfigError as error:
                raise ValueError(f"field {name}: {error}") from None
        _require_one_tree(rule.kind or within, rule.fields)


class ExtractOptions(BaseModel):
    """Items that pages have: each key names a kind of item, its value is a table."""

    model_config = ConfigDict(frozen=True, extra="allow")

    __pydantic_extra__: dict[str, ItemRule]

    @model_validator(mode="after")
    def _names(self) -> Self:
        for name in self.rules:
            if not NAME.fullmatch(name) or name in TABLES_TAKEN:
                raise ConfigError(f"no items can be called {name!r}; use small letters, digits and _")
        return self

    @property
    def rules(self) -> dict[str, ItemRule]:
        """By name."""
        return self.__pydantic_extra__
