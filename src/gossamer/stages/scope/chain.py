"""Chain: the filters in order; the first that rejects a link names the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import isawaitable, iscoroutine

import msgspec
from xxhash import xxh3_128_digest

from gossamer.model.errors import is_mistake
from gossamer.model.links import OUTLINK, Link
from gossamer.model.visits import Reply
from gossamer.options import keys_of
from gossamer.ports import Filter
from gossamer.stages.scope.filters import FILTERS, Depth, ExcludePatterns, Hops, Length, Scheme, judges_again
from gossamer.stages.scope.lists import NO_LISTS, ExcludedHost, Given, Lists
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.pages import MediaType, WantedLanguages, page_languages
from gossamer.stages.scope.roots import Roots
from gossamer.url.url import Url

DEPTH = "depth"
"""The only reason that may change, so it comes last: a shorter path to the same URL can appear."""
LEADING_OUT = frozenset(("anchor", "area", "frame", "iframe", "redirect", "meta_refresh"))
"""Types of link that may become outlinks: those that readers follow to other pages."""
OF_RESOURCES = frozenset((Scheme.name, Length.name, ExcludePatterns.name))
"""Filters that also judge the resources of a rendered page, which may be on any host."""
NOFOLLOW = "nofollow"
"""The name of what links and pages say, among those of the filters in counts."""


class Chain:
    """Judges links by filters in order. A filter called `depth` must be the last."""

    def __init__(
        self, filters: Sequence[Filter], language: WantedLanguages | None = None, made_of: bytes = b"",
        inside: Roots | None = None,
    ) -> None:  # fmt: skip
        """`made_of` is equal for chains whose filters judge queued URLs alike. Links to pages outside `inside` are
        outlinks; None: there are no outlinks.
        """
        names = [one.name for one in filters]
        assert len(set(names)) == len(names), f"two filters of one name among {names}"
        assert DEPTH not in names[:-1], "depth must be the last filter"
        self.filters = tuple(filters)
        self.depth_limited = DEPTH in names
        self.hops_max = min((one.hops_max for one in filters if isinstance(one, Hops)), default=0)
        self.counts: dict[str, int] = dict.fromkeys((*names, NOFOLLOW), 0)
        """Links that each filter rejected, counted by `reason` and `reasons`, and those with nofollow."""
        self.examples: dict[str, str] = {}
        """The first link that each filter rejected."""
        self.on_rejected: Callable[[Link, str], None] | None = None
        """Takes each link that `reason` rejects, with the filter's name."""
        self._media = next((one for one in filters if isinstance(one, MediaType)), None)
        self._language = language
        if language is not None:
            self.counts[language.name] = 0
        self.media_types = self._media.patterns if self._media is not None else ()
        """Patterns of the media types that are read; empty: all."""
        self._steps = tuple((_judging(one), one.name) for one in filters)
        self._steps_but_depth = tuple(step for step in self._steps if step[1] != DEPTH)
        self._judging_again = tuple(one for one in filters if judges_again(one))
        self.by_place = frozenset(one.name for one in filters if getattr(one, "by_place", False))
        """Names of the filters that judge the place of a link or how it was found, not the address itself."""
        self.made_of = made_of
        self._inside = inside
        self.leads_out = inside is not None
        """Whether there are outlinks; if not, `effective_type` returns its argument."""
        self.judges_language = language is not None
        """Whether `leads_nowhere` may return a language."""

    def adopt(self, other: Chain) -> None:
        """Use the filters of another chain from now on; the counts stay."""
        for name, value in vars(other).items():
            if name not in ("counts", "examples"):
                setattr(self, name, value)
        for name in other.counts:
            self.counts.setdefault(name, 0)

    def effective_type(self, link_type: str, url: Url) -> str:
        """Return the type by which a link is followed: `outlink` if it leads out of the scope and its type may."""
        out = self._inside is not None and link_type in LEADING_OUT and not self._inside.contains(url)
        return OUTLINK if out else link_type

    def is_elsewhere(self, origin: Url) -> bool:
        """Return whether an origin is outside the scope: only outlinks lead there, and its sitemaps are not read."""
        return self._inside is not None and not self._inside.touches(origin)

    def reason(self, link: Link) -> str:
        """Return the name of the first filter that rejects the link, and count that; empty for a link in scope."""
        for rejects, name in self._steps:
            if rejects(link):
                if not self.counts[name]:
                    self.examples[name] = link.url.text
                self.counts[name] += 1
                if self.on_rejected is not None:
                    self.on_rejected(link, name)
                return name
        return ""

    def note_nofollow(self, links: Sequence[Link]) -> None:
        """Count links that are not followed because they, or their page, say `nofollow`, or a filter rejects them."""
        for link in sorted(links, key=lambda one: one.link_type == OUTLINK):  # The example is on the site if one is.
            name = self.explain(link) or NOFOLLOW
            self.examples.setdefault(name, link.url.text)
            self.counts[name] += 1

    def reason_but_depth(self, link: Link) -> str:
        """Return the reason without the depth filter, uncounted: empty for a URL in scope, now or by a shorter path."""
        for rejects, name in self._steps_but_depth:
            if rejects(link):
                return name
        return ""

    def explain(self, link: Link) -> str:
        """Return the same as `reason` without counting it, for explanations."""
        return next((name for rejects, name in self._steps if rejects(link)), "")

    def rejects_resource(self, link: Link) -> str:
        """Return the name of the filter that rejects a resource of a page, uncounted: only its address is judged."""
        return next((name for rejects, name in self._steps if name in OF_RESOURCES and rejects(link)), "")

    def rejects_again(self, link: Link) -> tuple[str, str]:
        """Judge a URL queued under other options, by the filters for such URLs (`judges_again`), uncounted.

        Return name and reason, for people, of the filter that rejects the URL; empty if it may stay queued.
        """
        for judge in self._judging_again:
            if judge.rejects(link):
                detail = _detail(judge, link)
                return judge.name, f"the filter `{judge.name}` rejects it now" + (f": {detail}" if detail else "")
        return "", ""

    def detail(self, link: Link) -> str:
        """Return details from the filter that rejects a link, for people; often empty."""
        steps = zip(self.filters, self._steps, strict=True)
        judge = next((one for one, (rejects, _) in steps if rejects(link)), None)
        return _detail(judge, link) if judge is not None else ""

    def reject_reply(self, reply: Reply) -> str:
        """Return the name of the filter that rejects a reply by its header, and count that; empty if it is wanted."""
        if self._media is None or self._media.wants(reply.media_type):
            return ""
        self.counts[MediaType.name] += 1
        return MediaType.name

    def leads_nowhere(self, reply: Reply, content: bytes, language: str = "") -> str:
        """Return a page's unwanted language, for people, and count it: its links are not followed. Empty: they are.

        `language` is the one that a module detected; without it the language that the page declares counts.
        """
        if self._language is None:
            return ""
        spoken = [language] if language else page_languages(reply, content)
        if self._language.wants(spoken):
            return ""
        self.counts[WantedLanguages.name] += 1
        return ", ".join(spoken)


def _judging(one: Filter) -> Callable[[Link], bool]:
    """Return the method of a filter; of a component, with errors that name it. Its answer must be a bool."""
    if type(one).__module__.startswith("gossamer."):
        return one.rejects

    def rejects(link: Link) -> bool:
        try:
            verdict: object = one.rejects(link)
            if isinstance(verdict, str) or isawaitable(verdict):
                if iscoroutine(verdict):
                    verdict.close()
                raise TypeError(f"it returned a {type(verdict).__name__}, not True or False")
        except BaseException as error:
            if not is_mistake(error):
                raise
            raise RuntimeError(
                f"the filter `{one.name}` failed on {link.url.text}: {type(error).__name__}: {error}"
            ) from error
        return bool(verdict)

    return rejects


def _detail(judge: Filter, link: Link) -> str:
    """Return a filter's details about a link that it rejects; most filters have none."""
    says = getattr(judge, "detail", None)
    return str(says(link)) if says is not None else ""


def scope_chain(
    options: ScopeOptions,
    roots: Roots,
    excluded: ExcludedHost | None = None,
    more: Sequence[Filter] = (),
    lists: Lists = NO_LISTS,
) -> Chain:
    """Build the chain of the configuration; `more` (the operator's own filters) come before the depth filter.

    Hosts added to `excluded` while the crawl runs take effect at once. Raises ConfigError for a bad pattern or host.
    """
    excluded = excluded if excluded is not None else ExcludedHost()
    for host in options.exclude_hosts:
        excluded.add(host)
    excluded.set_listed(lists.excluded_hosts)
    given = Given(options, roots, excluded, lists)
    filters = [one for declared in FILTERS if (one := declared.make(given)) is not None]
    at = len(filters) - isinstance(filters[-1], Depth)
    filters[at:at] = more
    languages = WantedLanguages(options.languages) if options.languages else None
    return Chain(filters, languages, _digest_of(options, lists), roots if options.outlinks else None)


def _digest_of(options: ScopeOptions, lists: Lists) -> bytes:
    keys = {key for declared in FILTERS if judges_again(declared) for key in declared.keys}
    held = msgspec.json.encode({key: getattr(options, key) for key in keys_of(ScopeOptions) if key in keys}).decode()
    return xxh3_128_digest(msgspec.json.encode([held, lists.include, lists.exclude]))
