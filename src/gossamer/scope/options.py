"""Options: the section `scope` of the configuration."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gossamer.model.links import LINK_TYPES
from gossamer.scope.exclusions import ExcludedHost
from gossamer.scope.patterns import PatternSet
from gossamer.url.name import SCHEMES

Mode = Literal["prefix", "host", "domain", "any"]

FOLLOWED = ("seed", "anchor", "area", "frame", "iframe", "redirect", "meta_refresh")
"""Types of link that are always followed; the others are recorded, and followed where `follow` names them."""


class ScopeOptions(BaseModel):
    """Which links are ours. A pattern or an excluded host that cannot be one raises ConfigError."""

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
    embeds: bool = Field(
        default=False,
        description="Also fetch what pages need to be shown (images, scripts, stylesheets, fonts, media, frames), one "
        "hop beyond the scope.",
    )

    @field_validator("follow")
    @classmethod
    def _known_types(cls, follow: tuple[str, ...]) -> tuple[str, ...]:
        return _known(follow, LINK_TYPES, "type of link")

    @field_validator("schemes")
    @classmethod
    def _known_schemes(cls, schemes: tuple[str, ...]) -> tuple[str, ...]:
        return _known(schemes, SCHEMES, "scheme")

    @field_validator("include", "exclude")
    @classmethod
    def _regular(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if "" in patterns:
            raise ValueError("an empty pattern is found in every URL; leave it out, or write what you look for")
        PatternSet(patterns)
        return patterns

    @field_validator("exclude_hosts")
    @classmethod
    def _hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        ExcludedHost(hosts)
        return hosts


def _known(names: tuple[str, ...], known: Sequence[str], what: str) -> tuple[str, ...]:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise ValueError(f"no {what} is called {name!r}; {hint}")
    return names
