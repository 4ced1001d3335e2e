"""Options: the section `scope` of the configuration."""

import pkgutil
import re
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Final, Literal

from gossamer.model.errors import ConfigError
from gossamer.model.links import LINK_TYPES
from gossamer.model.patterns import regular
from gossamer.options import Key, Section, nearest
from gossamer.stages.scope.hosts import HostSet

Mode = Literal["prefix", "host", "domain", "any"]
SeedRedirects = Literal["page", "site"]

FOLLOWED = (
    "seed", "anchor", "area", "frame", "iframe", "redirect", "meta_refresh", "sitemap", "feed", "sitemap_file",
    "next", "prev", "related", "cite", "request", "script",
)  # fmt: skip
"""Types of link that are always followed; others are recorded, and followed if `follow` names them."""

_useless = (pkgutil.get_data("gossamer.stages.scope", "useless.toml") or b"").decode()
USELESS: Final = {kind: "|".join(one.values()) for kind, one in tomllib.loads(_useless).items()}
"""Patterns of addresses that only repeat what others show, by kind."""

USELESS_DEFAULT: Final = ("listing_order",)
"""The kinds that are rejected by default."""


def _names(names: tuple[str, ...], *, known: Sequence[str], what: str) -> tuple[str, ...]:
    for name in names:
        if name not in known:
            hint = nearest(name, known, f"known are {', '.join(known)}")
            raise ValueError(f"no {what} is called {name!r}{hint}")
    return names


_link_types = partial(_names, known=LINK_TYPES, what="type of link")
_kinds = partial(_names, known=tuple(USELESS), what="kind of useless path")


def _each(pattern: str, problem: str) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Return a check that each of some texts matches a pattern. Its error begins with the text that does not."""
    matches = re.compile(pattern, re.ASCII).fullmatch

    def check(some: tuple[str, ...]) -> tuple[str, ...]:
        for one in some:
            if not matches(one):
                raise ValueError(f"{one!r} {problem}")
        return some

    return check


_schemes = _each(r"[a-z][a-z0-9+.-]*", "is no scheme; write one such as 'https' or 'ftp', without colon")
_media_types = _each(r"[\w.+-]+/(?:\*|[\w.+-]+)|\*/\*", "is no media type; write one such as 'text/html' or 'image/*'")
_languages = _each(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*", "is no language; write its tag, such as 'de' or 'pt-BR'")


def _patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    if "" in patterns:
        raise ValueError("an empty pattern is found in every URL; leave it out, or write what you look for")
    return regular(patterns)


def _hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        HostSet(hosts)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return hosts


class ScopeOptions(Section, frozen=True):
    """Which links are followed."""

    scope: Annotated[
        Mode, Key("What each seed adds to the scope: its directory (prefix), host, domain, or all (any).", basic=True)
    ] = "host"
    seed_redirects: Annotated[
        SeedRedirects,
        Key(
            "What a seed adds that redirects to another site: only the page reached (page), or what a seed there "
            "would add, for seeds of a file the page's directory (site). Its own site is always added."
        ),
    ] = "page"
    own_site: Annotated[
        bool, Key("Follow links only within the registrable domain of the page that names them.", basic=True)
    ] = False
    include: Annotated[
        tuple[str, ...],
        Key("Regular expressions (RE2); a URL needs a match, or is a seed.", basic=True, live=True, check=_patterns),
    ] = ()
    exclude: Annotated[
        tuple[str, ...],
        Key("Regular expressions (RE2); a URL with a match is not visited.", basic=True, live=True, check=_patterns),
    ] = ()
    exclude_hosts: Annotated[
        tuple[str, ...],
        Key("Hosts not visited; `.example.org` is the domain and all hosts under it.", basic=True, check=_hosts),
    ] = ()
    only_hosts: Annotated[
        tuple[str, ...],
        Key(
            "Request only these hosts, even if redirects, sitemaps or a robots.txt name others; `.example.org` is "
            "the domain and all hosts under it. None: all hosts.",
            check=_hosts,
        ),
    ] = ()
    include_file: Annotated[str, Key("A file of further include patterns, one a line, # a comment.", path="read")] = ""
    exclude_file: Annotated[str, Key("A file of further exclude patterns, one a line, # a comment.", path="read")] = ""
    exclude_hosts_file: Annotated[
        str, Key("File of further excluded hosts, one a line; read again when it changes.", basic=True, path="replaced")
    ] = ""
    exclude_hosts_reread_s: Annotated[
        float, Key("How often exclude_hosts_file is checked for changes, in seconds.", gt=0, le=3_600)
    ] = 5.0
    against: Annotated[
        tuple[str, ...],
        Key(
            "Directories of earlier crawls, whose pages are not fetched again but for seeds, sitemaps and feeds.",
            path="read",
        ),
    ] = ()
    forgotten_file: Annotated[
        str, Key("Forgotten pages, for all crawls: `gossamer forget` adds to it, starting crawls read it.", path="read")
    ] = ""
    whitelist_file: Annotated[
        str, Key("A file of domains, one a line, # a comment; only their sites are visited.", basic=True, path="read")
    ] = ""
    useless_paths: Annotated[
        tuple[str, ...],
        Key(f"Kinds of addresses to skip, because they repeat others: {', '.join(USELESS)}.", live=True, check=_kinds),
    ] = USELESS_DEFAULT
    media_types: Annotated[
        tuple[str, ...],
        Key(
            "Media types that are read, such as `text/html` or `text/*`, by extension before and by header after the "
            "request; none means all.",
            basic=True,
            live=True,
            check=_media_types,
        ),
    ] = ()
    languages: Annotated[
        tuple[str, ...],
        Key("Languages (`de`) of pages whose links are followed; none: all.", basic=True, live=True, check=_languages),
    ] = ()
    depth_max: Annotated[int | None, Key("Clicks from a seed; none: no limit.", ge=0, basic=True, live=True)] = None
    hops_max: Annotated[int, Key("Redirects in a row.", ge=0, live=True)] = 5
    url_bytes_max: Annotated[int, Key("Length of a URL.", ge=16, live=True)] = 2048
    schemes: Annotated[
        tuple[str, ...],
        Key("Schemes visited: see docs/reference/fetching.md and components.protocols.", basic=True, check=_schemes),
    ] = ("http", "https")
    path_segments_max: Annotated[int, Key("Segments of a path: `/a/b/c` has three.", ge=1, live=True)] = 40
    path_repeats_max: Annotated[
        int,
        Key(
            "How often one segment may occur in a path. Paths of ids and tiles repeat segments too, and traps are "
            "recognized by what their pages say: lower it for sites that you know.",
            ge=1,
            live=True,
        ),
    ] = 40
    follow: Annotated[
        tuple[str, ...],
        Key(
            f"Types of link to follow beside {', '.join(FOLLOWED[1:])}: alternate, canonical …",
            basic=True,
            check=_link_types,
        ),
    ] = ()
    embeds: Annotated[
        bool,
        Key("Fetch what pages need, one hop beyond the scope: images, scripts, styles, fonts, media …", basic=True),
    ] = False
    outlinks: Annotated[
        bool, Key("Also request pages outside the scope that pages link to, for their status alone, not their content.")
    ] = False

    traps: Annotated[
        bool, Key("Cut off spider traps and host farms: endless URL templates, or hosts, with nothing new.", basic=True)
    ] = True
    trap_pages_min: Annotated[
        int, Key("Pages of a template, or hosts of a site, fetched before these may be called a trap.", ge=40)
    ] = 150
    trap_near_pages_min: Annotated[int, Key("The same for pages that are nearly the same as others.", ge=40)] = 1_000
    trap_maze_pages_max: Annotated[
        int, Key("Pages of a template, or hosts of a site, with new content that name only new ones of it.", ge=1_000)
    ] = 10_000
    trap_exempt: Annotated[
        tuple[str, ...],
        Key("Regular expressions (RE2); addresses with a match never count as part of a trap.", check=_patterns),
    ] = ()
