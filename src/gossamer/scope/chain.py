"""Chain: the filters in order; the first that rejects a link names the reason."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.model.links import Link
from gossamer.ports import Filter
from gossamer.scope.exclusions import ExcludedHost
from gossamer.scope.filters import (
    Depth,
    Exclude,
    Hops,
    Include,
    Length,
    LinkType,
    PathDepth,
    RepeatedPath,
    Scheme,
    Scope,
)  # fmt: skip
from gossamer.scope.options import FOLLOWED, ScopeOptions
from gossamer.scope.roots import Roots

DEPTH = "depth"
"""The one reason that may pass: a shorter way to the same URL may appear (it stands last for that)."""


class Chain:
    """Judges links by filters in order. A filter called `depth` must be the last."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        names = [one.name for one in filters]
        assert len(set(names)) == len(names), f"two filters of one name among {names}"
        assert DEPTH not in names[:-1], "depth must be the last filter"
        self.filters = tuple(filters)
        self.depth_limited = DEPTH in names
        self.hops_max = min((one.hops_max for one in filters if isinstance(one, Hops)), default=0)
        self.counts: dict[str, int] = dict.fromkeys(names, 0)
        """Links rejected by each filter, as far as `reason` and `reasons` were asked."""
        self._steps = tuple((one.rejects, one.name) for one in filters)
        self._steps_but_depth = tuple(step for step in self._steps if step[1] != DEPTH)

    def reason(self, link: Link) -> str | None:
        """Return the name of the first filter that rejects the link, and count it; None for a link that is ours."""
        for rejects, name in self._steps:
            if rejects(link):
                self.counts[name] += 1
                return name
        return None

    def reasons(self, links: Sequence[Link]) -> list[str | None]:
        """Judge a page's links, in order."""
        reason = self.reason
        return [reason(link) for link in links]

    def reason_but_depth(self, link: Link) -> str | None:
        """Return the reason apart from depth, uncounted: None for what is ours, now or once a shorter way appears."""
        for rejects, name in self._steps_but_depth:
            if rejects(link):
                return name
        return None

    def explain(self, link: Link) -> str | None:
        """Return what `reason` returns, uncounted: for people who ask why."""
        return next((name for rejects, name in self._steps if rejects(link)), None)


def scope_chain(
    options: ScopeOptions, roots: Roots, excluded: ExcludedHost | None = None, more: Sequence[Filter] = ()
) -> Chain:
    """Build the chain of the configuration; `more` (the operator's own) stand before the depth filter.

    `excluded` is shared with whoever adds hosts while the crawl runs. Raises ConfigError for a bad pattern or host.
    """
    excluded = excluded if excluded is not None else ExcludedHost()
    for host in options.exclude_hosts:
        excluded.add(host)
    filters: list[Filter] = [
        Scheme(options.schemes),
        Length(options.url_bytes_max),
        LinkType((*FOLLOWED, *options.follow, *(("embed",) if options.embeds else ()))),
        PathDepth(options.path_segments_max),
        RepeatedPath(options.path_repeats_max),
        excluded,
    ]
    # Filters that would have nothing to do are left out: the chain runs for every link of every page.
    if options.exclude:
        filters.append(Exclude(options.exclude))
    if options.scope != "any":
        filters.append(Scope(roots))
    if options.include:
        filters.append(Include(options.include))
    filters.append(Hops(options.hops_max))
    filters.extend(more)
    if options.depth_max is not None:
        filters.append(Depth(options.depth_max))
    return Chain(filters)
