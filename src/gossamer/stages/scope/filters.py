"""Filters: the tests that a link must pass, one small class each, and their order. `why` shows the name of a filter.

To add one, write its class here and its option in `ScopeOptions`, and put the class in its place in `FILTERS`. A class
declares `keys`, the options that it depends on, and `by_place`: whether it judges the place of a link and how it was
found (true) or the address itself (false). The chain, the rules for queued URLs when options change (`judges_again`),
and the check of `docs/reference/scope.md`, which has an example of each filter, derive from these.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol, Self

from gossamer.model.links import EMBED, FEED_FILE, OUTLINK, SITEMAP_FILE, Link
from gossamer.model.patterns import PatternSet
from gossamer.options import keys_of
from gossamer.ports import Filter
from gossamer.stages.scope.lists import ExcludedHost, Given, Whitelist
from gossamer.stages.scope.options import FOLLOWED, USELESS, ScopeOptions
from gossamer.stages.scope.pages import MediaType
from gossamer.stages.scope.roots import Roots
from gossamer.url.name import host_of
from gossamer.url.site import site_of


class Declared(Protocol):
    """A filter that is built from options."""

    name: str
    keys: tuple[str, ...]
    """The options that it depends on, by their names in the section `scope`."""
    by_place: bool
    """Whether it judges the place of a link or how it was found; false: the address itself."""

    @classmethod
    def make(cls, given: Given) -> Filter | None:
        """Return the filter; None if it would never reject, since the chain runs for every link of every page."""

    def rejects(self, link: Link) -> bool:
        """Return whether this filter rejects a link."""


class _Bounded(Declared):
    """Base of filters with an upper bound, the first of their options. None: no such filter."""

    by_place = False

    def __init__(self, most: int) -> None:
        self._most = most

    @classmethod
    def make(cls, given: Given) -> Self | None:
        most: int | None = getattr(given.options, cls.keys[0])
        return cls(most) if most is not None else None


class Scheme:
    """Schemes that are not visited."""

    name = "scheme"
    keys: tuple[str, ...] = ("schemes",)
    by_place = False

    def __init__(self, schemes: Sequence[str]) -> None:
        self._starts = tuple(scheme + "://" for scheme in schemes)

    @classmethod
    def make(cls, given: Given) -> Self:
        return cls(given.options.schemes)

    def rejects(self, link: Link) -> bool:
        return not link.url.text.startswith(self._starts)


class Length(_Bounded):
    """Addresses longer than `url_bytes_max` bytes."""

    name = "length"
    keys = ("url_bytes_max",)

    def rejects(self, link: Link) -> bool:
        # Joined addresses are ASCII, so characters are bytes.
        return len(link.url.text) > self._most

    def detail(self, link: Link) -> str:
        return f"it has {len(link.url.text):,} bytes, more than {self._most:,}"


class LinkType:
    """Links that are recorded only: `canonical`, `alternate` and others, unless configured."""

    name = "link_type"
    keys: tuple[str, ...] = ("follow", "embeds", "outlinks")
    by_place = True

    def __init__(self, followed: Iterable[str]) -> None:
        self._followed = frozenset(followed)

    @classmethod
    def make(cls, given: Given) -> Self:
        options = given.options
        more = (*((EMBED,) if options.embeds else ()), *((OUTLINK,) if options.outlinks else ()))
        return cls((*FOLLOWED, *options.follow, *more))

    def rejects(self, link: Link) -> bool:
        return link.link_type not in self._followed


class PathDepth(_Bounded):
    """Paths of more than `path_segments_max` segments: traps have them, sites do not."""

    name = "path_depth"
    keys = ("path_segments_max",)

    def rejects(self, link: Link) -> bool:
        text = link.url.text
        # Two slashes come before the host; a query may contain more.
        if text.count("/") <= self._most + 2:
            return False
        return text.partition("?")[0].count("/") > self._most + 2


class RepeatedPath(_Bounded):
    """Paths that repeat one segment more than `path_repeats_max` times, such as `/a/b/a/b/a/b/a/b`. By default never:
    `/00/00/00/00/17/` of a collection looks like the relative links of a trap, which `traps` tells apart by content.
    """

    name = "repeated_path"
    keys = ("path_repeats_max", "path_segments_max")

    @classmethod
    def make(cls, given: Given) -> Self | None:
        repeats_max = given.options.path_repeats_max
        return cls(repeats_max) if repeats_max < given.options.path_segments_max else None

    def rejects(self, link: Link) -> bool:
        text = link.url.text
        if text.count("/") <= self._most + 2:
            return False
        segments = text.partition("?")[0].split("/")[3:]
        return len(segments) > self._most and max(Counter(segments).values()) > self._most

    def detail(self, link: Link) -> str:
        segment, count = Counter(link.url.text.partition("?")[0].split("/")[3:]).most_common(1)[0]
        return f"its path has the segment {segment!r} {count} times, more than {self._most}"


class UselessPath:
    """Addresses that only repeat what others show: the selected kinds of `USELESS`."""

    name = "useless_path"
    keys: tuple[str, ...] = ("useless_paths",)
    by_place = False

    def __init__(self, kinds: Sequence[str]) -> None:
        self._kinds = [kind for kind in USELESS if kind in kinds]
        self._patterns = PatternSet([USELESS[kind] for kind in self._kinds])
        self._mark = "/" if "code_histories" in kinds else "?"
        """All other kinds are recognized by their query."""

    @classmethod
    def make(cls, given: Given) -> Self | None:
        return cls(given.options.useless_paths) if given.options.useless_paths else None

    def rejects(self, link: Link) -> bool:
        text = link.url.text
        return self._mark in text and self._patterns.matches(text)

    def detail(self, link: Link) -> str:
        return next((f"of the kind {self._kinds[at]}" for at in self._patterns.matching(link.url.text)), "")


class _Patterns(Declared):
    """Base of filters by regular expressions, from the first of their options and from a file."""

    by_place = False

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = PatternSet(patterns)

    @classmethod
    def make(cls, given: Given) -> Self | None:
        patterns = (*getattr(given.options, cls.keys[0]), *getattr(given.lists, cls.keys[0]))
        return cls(patterns) if patterns else None


class ExcludePatterns(_Patterns):
    """Addresses that match an `exclude` pattern."""

    name = "exclude"
    keys = ("exclude", "exclude_file")

    def rejects(self, link: Link) -> bool:
        return self.patterns.matches(link.url.text)

    def detail(self, link: Link) -> str:
        return f"the pattern {self.patterns.first(link.url.text)!r} is found in it"


ASKED_FOR = ("seed", EMBED, OUTLINK, SITEMAP_FILE)
"""Types of link that need not be in the scope: the operator gave a seed, an embed is part of a page in scope, an
outlink leads out of the scope by intent, and the links in a sitemap are judged by themselves."""


class ScopeRoots:
    """Addresses under no root. A seed is its own root, and the page to which it redirects is fetched; an embed belongs
    to its page, an outlink is outside by intent.
    """

    name = "scope"
    keys: tuple[str, ...] = ("scope",)
    by_place = True

    def __init__(self, roots: Roots) -> None:
        self._contains = roots.contains

    @classmethod
    def make(cls, given: Given) -> Self | None:
        return cls(given.roots) if given.options.scope != "any" else None

    def rejects(self, link: Link) -> bool:
        return not self._contains(link.url) and link.link_type not in ASKED_FOR and not link.seed


class OwnSite:
    """Addresses outside the site (the registrable domain) of the page that links to them."""

    name = "own_site"
    keys: tuple[str, ...] = ("own_site",)
    by_place = True

    def __init__(self) -> None:
        self._referrer = self._site = ""

    @classmethod
    def make(cls, given: Given) -> Self | None:
        return cls() if given.options.own_site else None

    def rejects(self, link: Link) -> bool:
        referrer = link.referrer
        if not referrer or link.link_type in ASKED_FOR:
            return False
        # Links of one page come one after another, and share one string as their referrer.
        if referrer is not self._referrer:
            self._referrer, self._site = referrer, site_of(host_of(referrer, None) or "")
        return link.url.site != self._site

    def detail(self, link: Link) -> str:
        return f"it is of the site {link.url.site}, and {link.referrer} is not"


class Include(_Patterns):
    """Addresses that match no `include` pattern. Seeds, embeds, outlinks, sitemaps and feeds need no match."""

    name = "include"
    keys = ("include", "include_file")
    by_place = True

    def rejects(self, link: Link) -> bool:
        return link.link_type not in (*ASKED_FOR, FEED_FILE) and not self.patterns.matches(link.url.text)


class Hops(_Bounded):
    """Redirects that follow more than `hops_max` others."""

    name = "hops"
    keys = ("hops_max",)
    by_place = True

    @property
    def hops_max(self) -> int:
        """The bound."""
        return self._most

    def rejects(self, link: Link) -> bool:
        return link.hops > self._most

    def detail(self, link: Link) -> str:
        redirected = f"{link.referrer} redirects to it, and that is" if link.referrer else "it is"
        return f"{redirected} redirect number {link.hops} in a row; at most {self._most} are followed"


class Depth(_Bounded):
    """Links more than `depth_max` clicks from every seed, as far as is known. Embeds belong to their page."""

    name = "depth"
    keys = ("depth_max",)
    by_place = True

    def rejects(self, link: Link) -> bool:
        return link.depth > self._most and link.link_type != "embed"

    def detail(self, link: Link) -> str:
        return f"it is {link.depth} clicks from a seed, more than {self._most}"


FILTERS: tuple[type[Declared], ...] = (
    Scheme, Length, LinkType, PathDepth, RepeatedPath, ExcludedHost, UselessPath, ExcludePatterns, ScopeRoots, OwnSite,
    Whitelist, Include, MediaType, Hops, Depth,
)  # fmt: skip
"""In the order of the chain. The operator's own filters come before `Depth`."""
LIVE_KEYS = frozenset(name for name, field in keys_of(ScopeOptions).items() if field.key.live)
"""Options that may change while the crawl runs."""


def judges_again(one: Filter | type[Declared]) -> bool:
    """Return whether a filter judges queued URLs again after options have changed.

    Filters that judge the address itself do. Filters that judge how a link was found do only if their options can
    change while the crawl runs; otherwise their first decision holds. Filters that declare no options do not.
    """
    keys: tuple[str, ...] = getattr(one, "keys", ())
    return bool(keys) and (not getattr(one, "by_place", False) or not LIVE_KEYS.isdisjoint(keys))
