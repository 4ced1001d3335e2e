"""Filters: the questions a link must pass, one small class each. A filter's name is what `why` shows.

Each class declares `keys`, the options in `ScopeOptions` that it is built from, and `by_place`: whether it judges where
a link is and how it was found (true) or the address itself (false). `chain` derives from these two declarations which
filters judge queued URLs again. `docs/rules.md` shows each filter with an example.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gossamer.model.links import FEED_FILE, SITEMAP_FILE, Link
from gossamer.scope.patterns import PatternSet
from gossamer.scope.roots import Roots
from gossamer.url.name import host_of
from gossamer.url.site import site_of


class Scheme:
    """Schemes that are not visited."""

    name = "scheme"
    keys = ("schemes",)
    by_place = False

    def __init__(self, schemes: Sequence[str]) -> None:
        self._starts = tuple(scheme + "://" for scheme in schemes)

    def rejects(self, link: Link) -> bool:
        return not link.url.text.startswith(self._starts)


class Length:
    """Addresses longer than `url_bytes_max` bytes."""

    name = "length"
    keys = ("url_bytes_max",)
    by_place = False

    def __init__(self, url_bytes_max: int) -> None:
        self._url_bytes_max = url_bytes_max

    def rejects(self, link: Link) -> bool:
        # Joined addresses are ASCII: a character is a byte.
        return len(link.url.text) > self._url_bytes_max

    def detail(self, link: Link) -> str:
        return f"it has {len(link.url.text):,} bytes, more than {self._url_bytes_max:,}"


class LinkType:
    """Links that are recorded only: `canonical`, `alternate` and others, unless configured."""

    name = "link_type"
    keys = ("follow", "embeds")
    by_place = True

    def __init__(self, followed: Iterable[str]) -> None:
        self._followed = frozenset(followed)

    def rejects(self, link: Link) -> bool:
        return link.link_type not in self._followed


class PathDepth:
    """Paths of more than `path_segments_max` segments: no site has so many, traps do."""

    name = "path_depth"
    keys = ("path_segments_max",)
    by_place = False

    def __init__(self, path_segments_max: int) -> None:
        self._segments_max = path_segments_max

    def rejects(self, link: Link) -> bool:
        text = link.url.text
        # Two slashes stand before the host; a query may hold more.
        if text.count("/") <= self._segments_max + 2:
            return False
        return text.partition("?")[0].count("/") > self._segments_max + 2


class RepeatedPath:
    """Paths in which one segment stands more than `path_repeats_max` times: `/a/b/a/b/a/b/a/b`, the mark of a trap."""

    name = "repeated_path"
    keys = ("path_repeats_max",)
    by_place = False

    def __init__(self, path_repeats_max: int) -> None:
        self._repeats_max = path_repeats_max

    def rejects(self, link: Link) -> bool:
        text = link.url.text
        if text.count("/") <= self._repeats_max + 2:
            return False
        segments = text.partition("?")[0].split("/")[3:]
        return len(segments) > self._repeats_max and max(Counter(segments).values()) > self._repeats_max

    def detail(self, link: Link) -> str:
        segment, count = Counter(link.url.text.partition("?")[0].split("/")[3:]).most_common(1)[0]
        return f"the segment {segment!r} stands {count} times in its path, more than {self._repeats_max}"


class Exclude:
    """Addresses that match an `exclude` pattern."""

    name = "exclude"
    keys = ("exclude", "exclude_file")
    by_place = False

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = PatternSet(patterns)

    def rejects(self, link: Link) -> bool:
        return self.patterns.matches(link.url.text)

    def detail(self, link: Link) -> str:
        return f"the pattern {self.patterns.first(link.url.text)!r} is found in it"


ASKED_FOR = ("seed", "embed", SITEMAP_FILE)
"""Types of link that need not lie in the scope: the operator named a seed, an embed is part of a page that does, and a
sitemap is no page: what it names is judged by itself."""


class Scope:
    """Addresses under no root. A seed is its own root, an embed belongs to its page."""

    name = "scope"
    keys = ("scope",)
    by_place = True

    def __init__(self, roots: Roots) -> None:
        self._contains = roots.contains

    def rejects(self, link: Link) -> bool:
        return not self._contains(link.url) and link.link_type not in ASKED_FOR


class OwnSite:
    """Addresses that are not of the site (the registrable domain) of the page that names them."""

    name = "own_site"
    keys = ("own_site",)
    by_place = True

    def __init__(self) -> None:
        self._referrer = self._site = ""

    def rejects(self, link: Link) -> bool:
        referrer = link.referrer
        if not referrer or link.link_type in ASKED_FOR:
            return False
        if (
            referrer is not self._referrer
        ):  # Links of one page come one after another, and have one text for its address.
            self._referrer, self._site = referrer, site_of(host_of(referrer, None) or "")
        return link.url.site != self._site

    def detail(self, link: Link) -> str:
        return f"it is of the site {link.url.site}, and {link.referrer} is not"


class Include:
    """Addresses that match no `include` pattern. Seeds are asked for by name and need no match, nor do embeds and
    what names pages.
    """

    name = "include"
    keys = ("include", "include_file")
    by_place = True

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = PatternSet(patterns)

    def rejects(self, link: Link) -> bool:
        return link.link_type not in (*ASKED_FOR, FEED_FILE) and not self.patterns.matches(link.url.text)


class Hops:
    """Redirects that follow more than `hops_max` others."""

    name = "hops"
    keys = ("hops_max",)
    by_place = True

    def __init__(self, hops_max: int) -> None:
        self.hops_max = hops_max

    def rejects(self, link: Link) -> bool:
        return link.hops > self.hops_max

    def detail(self, link: Link) -> str:
        redirected = f"{link.referrer} redirects to it, and that is" if link.referrer else "it is"
        return f"{redirected} redirect number {link.hops} in a row; at most {self.hops_max} are followed"


class Depth:
    """Links more than `depth_max` clicks from every seed, as far as is known: a shorter way may appear.
    Embeds belong to their page, however deep.
    """

    name = "depth"
    keys = ("depth_max",)
    by_place = True

    def __init__(self, depth_max: int) -> None:
        self._depth_max = depth_max

    def rejects(self, link: Link) -> bool:
        return link.depth > self._depth_max and link.link_type != "embed"

    def detail(self, link: Link) -> str:
        return f"it is {link.depth} clicks from a seed, more than {self._depth_max}"
