"""Options: the section `scope` of the configuration."""

from __future__ import annotations

import difflib
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gossamer.model.links import LINK_TYPES

Mode = Literal["prefix", "host", "domain", "any"]

FOLLOWED = ("seed", "anchor", "area", "frame", "iframe", "redirect", "meta_refresh")
"""Types of link that are always followed; the others are recorded, and followed where `follow` names them."""


class ScopeOptions(BaseModel):
    """Which links are ours."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scope: Mode = Field(
        default="host",
        description="What a seed brings in: its directory (prefix), host, registrable domain, or the whole web (any).",
    )
    include: tuple[str, ...] = Field(
        default=(),
        description="Regular expressions (RE2); a URL must contain a match of one, unless it is a seed.",
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="Regular expressions (RE2); a URL that contains a match of one is not visited."
    )
    exclude_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts whose owners asked us not to come; `.example.org` is the domain and all under it.",
    )
    depth_max: int | None = Field(default=None, ge=0, description="Clicks from a seed; none means no limit.")
    hops_max: int = Field(default=5, ge=0, description="Redirects in a row.")
    url_bytes_max: int = Field(default=2048, ge=16, description="Length of a URL.")
    schemes: tuple[str, ...] = Field(default=("http", "https"), description="Schemes that are visited.")
    path_segments_max: int = Field(default=40, ge=1, description="Segments of a path: `/a/b/c` has three.")
    path_repeats_max: int = Field(default=3, ge=1, description="How often one segment may stand in a path.")
    follow: tuple[str, ...] = Field(
        default=(),
        description=f"Types of link to follow besides {', '.join(FOLLOWED[1:])}: next, prev, alternate, canonical …",
    )

    @field_validator("follow")
    @classmethod
    def _known_types(cls, follow: tuple[str, ...]) -> tuple[str, ...]:
        for link_type in follow:
            if link_type not in LINK_TYPES:
                near = difflib.get_close_matches(link_type, LINK_TYPES, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"the types are {', '.join(LINK_TYPES)}"
                raise ValueError(f"no type of link is called {link_type!r}; {hint}")
        return follow
