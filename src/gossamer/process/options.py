"""Options of the processing modules."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gossamer.model.live import BASIC

_PATTERN = re.compile(r"\*/\*|[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)")


class ProcessOptions(BaseModel):
    """Bounds on what one page may cost and yield."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
    markup_bytes_max: int = Field(
        default=33_554_432,
        ge=1,
        description="Of a page that was spilled to disk (fetch.body_memory_bytes_max) this much is read as text.",
    )
    types: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Modules in order, by media type: `text/html`, `image/*`, `*/*`. What is named here "
        "stands in place of what docs/reference/processing.md lists for that type; others stay as they are.",
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
        description="Names of modules that run in a process of their own, besides those that ask for it themselves.",
        json_schema_extra=BASIC,
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
    isolated_processes: int = Field(default=1, ge=1, le=64, description="Processes for isolated modules at once.")

    @field_validator("types")
    @classmethod
    def _patterns(cls, types: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for pattern in types:
            if not _PATTERN.fullmatch(pattern):
                raise ValueError(f'{pattern!r} is no media type; write "text/html", "image/*" or "*/*"')
        return types
