"""Options: the section `scope` of the configuration."""

import difflib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from pydantic import Field, field_validator

from gossamer.model.links import LINK_TYPES
from gossamer.model.options import BASIC, BASIC_LIVE, LIVE, Section
from gossamer.model.patterns import PatternSet
from gossamer.scope.lists import ExcludedHost

_MEDIA_TYPE = re.compile(r"[\w.+-]+/(?:\*|[\w.+-]+)|\*/\*", re.ASCII).fullmatch
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*").fullmatch
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*").fullmatch

Mode = Literal["prefix", "host", "domain", "any"]

FOLLOWED = (
    "seed", "anchor", "area", "frame", "iframe", "redirect", "meta_refresh", "sitemap", "feed", "sitemap_file",
    "cite", "request", "script",
)  # fmt: skip
"""Types of link that are always followed; the others are recorded, and followed where `follow` names them."""


USELESS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Apache's listings in another order, of versions 2 and 1.3; nginx's fancyindex uses the former with &.
        "listing_order": r"/\?(?:C=[NMSD][;&]O=[AD]|O=[AD][;&]C=[NMSD]|[NMSD]=[AD])$",
        # MediaWiki: sources, histories and forms of a page.
        "wiki_actions": r"[?&](?:action=(?:edit|history|raw|info|delete|protect|submit|watch)|oldid=|diff=|redlink=1)",
        # WordPress: the form that answers a comment, on a page that is there without it.
        "reply_forms": r"[?&](?:replytocom|like_comment)=",
        # Buttons that hand the page on to others.
        "share_links": r"[?&]share=(?:facebook|twitter|x|email|reddit|linkedin|tumblr|pinterest|pocket|telegram)\b",
    }
)
"""Kinds of address that only show again what others show."""

USELESS_DEFAULT: Final = ("listing_order",)
"""Those that are left out unless configured."""


class ScopeOptions(Section):
    """Which links are ours. A pattern or an excluded host that cannot be one raises ConfigError."""

    scope: Mode = Field(
        default="host",
        description="What a seed brings in: its directory (prefix), host, registrable domain, or the whole web (any).",
        json_schema_extra=BASIC,
    )
    own_site: bool = Field(
        default=False,
        description="Follow links only within the registrable domain of the page that names them.",
        json_schema_extra=BASIC,
    )
    include: tuple[str, ...] = Field(
        json_schema_extra=BASIC_LIVE,
        default=(),
        description="Regular expressions (RE2); a URL must contain a match of one, unless it is a seed.",
    )
    exclude: tuple[str, ...] = Field(
        json_schema_extra=BASIC_LIVE,
        default=(),
        description="Regular expressions (RE2); a URL that contains a match of one is not visited.",
    )
    exclude_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts whose owners asked us not to come; `.example.org` is the domain and all under it.",
        json_schema_extra=BASIC,
    )
    only_hosts: tuple[str, ...] = Field(
        default=(),
        description="Request these hosts alone, also if redirects, sitemaps or a robots.txt name others; "
        "`.example.org` is the domain and all under it. None: all.",
    )
    include_file: str = Field(default="", description="A file of further include patterns, one a line, # a comment.")
    exclude_file: str = Field(default="", description="A file of further exclude patterns, one a line, # a comment.")
    exclude_hosts_file: str = Field(
        default="",
        description="A file of further excluded hosts, one a line, # a comment; read again when it changes.",
        json_schema_extra=BASIC,
    )
    exclude_hosts_reread_s: float = Field(
        default=5.0, gt=0, allow_inf_nan=False, description="How often that file is looked at while the crawl runs."
    )
    against: tuple[str, ...] = Field(
        default=(),
        description="Directories of earlier crawls; what they have is not fetched again, seeds, sitemaps and feeds "
        "excepted.",
    )
    forgotten_file: str = Field(
        default="",
        description="A list of forgotten pages that crawls share; `gossamer forget` adds to it, a start reads it.",
    )
    whitelist_file: str = Field(
        default="",
        description="A file of domains, one a line, # a comment; only their sites are visited.",
        json_schema_extra=BASIC,
    )
    useless_paths: tuple[str, ...] = Field(
        json_schema_extra=LIVE,
        default=USELESS_DEFAULT,
        description=f"Kinds of address that only show again what others show: {', '.join(USELESS)}.",
    )
    media_types: tuple[str, ...] = Field(
        json_schema_extra=BASIC_LIVE,
        default=(),
        description="Media types that are read, such as `text/html` or `text/*`, by extension before and by header "
        "after the request; none means all.",
    )
    languages: tuple[str, ...] = Field(
        json_schema_extra=BASIC_LIVE,
        default=(),
        description="Languages, such as `de`, of pages whose links are followed; none means all.",
    )
    depth_max: int | None = Field(
        json_schema_extra=BASIC_LIVE, default=None, ge=0, description="Clicks from a seed; none means no limit."
    )
    hops_max: int = Field(json_schema_extra=LIVE, default=5, ge=0, description="Redirects in a row.")
    url_bytes_max: int = Field(json_schema_extra=LIVE, default=2048, ge=16, description="Length of a URL.")
    schemes: tuple[str, ...] = Field(
        default=("http", "https"),
        description="Schemes that are visited: those of docs/reference/fetching.md and of components.protocols.",
        json_schema_extra=BASIC,
    )
    path_segments_max: int = Field(
        json_schema_extra=LIVE, default=40, ge=1, description="Segments of a path: `/a/b/c` has three."
    )
    path_repeats_max: int = Field(
        json_schema_extra=LIVE, default=3, ge=1, description="How often one segment may occur in a path."
    )
    follow: tuple[str, ...] = Field(
        default=(),
        description=f"Types of link to follow beside {', '.join(FOLLOWED[1:])}: next, prev, alternate, canonical …",
        json_schema_extra=BASIC,
    )
    embeds: bool = Field(
        default=False,
        description="Also fetch what pages need to be shown (images, scripts, stylesheets, fonts, media, frames), one "
        "hop beyond the scope.",
        json_schema_extra=BASIC,
    )
    outlinks: bool = Field(
        default=False,
        description="Also request the pages outside the scope that pages link to, for their status alone: content and "
        "links of these are not used.",
    )

    traps: bool = Field(
        default=True,
        description="Cut off templates of addresses, and hosts of a site, that grow without end and bring nothing.",
        json_schema_extra=BASIC,
    )
    trap_pages_min: int = Field(
        default=150,
        ge=40,
        description="Pages of a template, or hosts of a site, fetched before these may be called a trap.",
    )
    trap_near_pages_min: int = Field(
        default=1_000, ge=40, description="The same where its pages are only nearly the same as others."
    )
    trap_maze_pages_max: int = Field(
        default=10_000,
        ge=1_000,
        description="Pages of a template, or hosts of a site, that may all be new while nearly all that they name of "
        "it is new, too.",
    )
    trap_exempt: tuple[str, ...] = Field(
        default=(),
        description="Regular expressions (RE2); addresses that contain a match are never counted as a trap's.",
    )

    @field_validator("follow")
    @classmethod
    def _known_types(cls, follow: tuple[str, ...]) -> tuple[str, ...]:
        return _known(follow, LINK_TYPES, "type of link")

    @field_validator("schemes")
    @classmethod
    def _schemes(cls, schemes: tuple[str, ...]) -> tuple[str, ...]:
        if unwritable := next((one for one in schemes if not _SCHEME(one)), ""):
            raise ValueError(f"{unwritable!r} is no scheme; write one such as 'https' or 'ftp', without colon")
        return schemes

    @field_validator("useless_paths")
    @classmethod
    def _known_kinds(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        return _known(kinds, tuple(USELESS), "kind of useless path")

    @field_validator("media_types")
    @classmethod
    def _types(cls, types: tuple[str, ...]) -> tuple[str, ...]:
        for one in types:
            if not _MEDIA_TYPE(one):
                raise ValueError(f"{one!r} is no media type; write one such as 'text/html' or 'image/*'")
        return types

    @field_validator("languages")
    @classmethod
    def _ranges(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        for one in languages:
            if not _LANGUAGE(one):
                raise ValueError(f"{one!r} is no language; write its tag, such as 'de' or 'pt-BR'")
        return languages

    @field_validator("include", "exclude", "trap_exempt")
    @classmethod
    def _regular(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if "" in patterns:
            raise ValueError("an empty pattern is found in every URL; leave it out, or write what you look for")
        PatternSet(patterns)
        return patterns

    @field_validator("exclude_hosts", "only_hosts")
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
