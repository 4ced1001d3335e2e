"""Options of the processing modules."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ProcessOptions(BaseModel):
    """Bounds on what one page may cost and yield."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    open_tags_max: int = Field(
        default=1000,
        ge=0,
        description="Pages with more start tags than end tags by this many are scanned in one line, not made a tree of "
        "(a tree's cost grows with the square of its nesting).",
    )
    tree_bytes_max: int = Field(
        default=65_536,
        ge=0,
        description="Longer pages are scanned: a tag's attributes, too, cost a tree the square of their number.",
    )
    links_max: int = Field(default=50_000, ge=0, description="Distinct links taken from one page; the rest is left.")
    url_bytes_max: int = Field(default=8_192, ge=1, description="Longer addresses are no links.")
    anchor_bytes_max: int = Field(default=1_000, ge=0, description="Anchor text kept of one link, in bytes of UTF-8.")
    title_bytes_max: int = Field(default=2_000, ge=0, description="Title kept of one page, in bytes of UTF-8.")
    text: bool = Field(
        default=False, description="Also find the plain text of each page (about as costly as the links)."
    )
    text_bytes_max: int = Field(default=1_000_000, ge=0, description="Plain text kept of one page, in bytes of UTF-8.")
    modules: tuple[str, ...] = Field(
        default=(), description="Further processing modules, each `module:Name` or a component's name, in order."
    )
