"""The reference: what a build lists, worked out in memory, one link at a time, as the ring does it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gossamer.assembly.modules import judge_of
from gossamer.config import Config
from gossamer.model.links import SEED_FILE, Link
from gossamer.url.url import Url

FAR = (1 << 20, 1 << 20)
Way = tuple[int, int]


@dataclass
class Listed:
    """What a segment says of a URL."""

    depth: int
    hops: int
    listed: int = 1
    choices: list[tuple[int, str, str, str]] = field(default_factory=list)
    """Depth, URL, type and referrer of each link that may stand for it."""

    @property
    def shortest(self) -> set[tuple[str, str, str]]:
        """Those that lead there by the fewest clicks."""
        return {(url, kind, referrer) for depth, url, kind, referrer in self.choices if depth == self.depth}


@dataclass
class Index:
    """What is known, with its ways, how often it was listed, and what was left over."""

    ways: dict[str, Way] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    seeds: set[str] = field(default_factory=set)
    roots: bytes = b""


def expected(  # noqa: C901 - plain beats clever here
    pages: Iterable[Mapping[str, Any]],
    links: Iterable[Mapping[str, Any]],
    config: Config,
    index: Index,
    *,
    retries: int = 0,
    seeds: Iterable[str] = (),
) -> dict[str, Listed]:
    """Return what is to be listed, by key, and bring the index up to date."""
    judge = judge_of(config)
    pages, links = list(pages), list(links)
    named = {row["url"]: judge.namer.name(row["url"]) for row in pages}
    last: dict[str, Mapping[str, Any]] = {}
    times: dict[str, int] = {}
    ways: dict[str, Way] = {}
    for row in pages:
        key = named[row["url"]].key  # type: ignore[union-attr]
        last[key] = max(last.get(key, row), row, key=lambda one: one["fetched_at"])
        times[key] = times.get(key, 0) + (row["attempt"] == 1)
        ways[key] = nearer(ways.get(key, FAR), (row["depth"], row["hops"]))
    for key in set(ways) & set(index.ways):
        ways[key] = nearer(ways[key], index.ways[key])
    seeds = [url for text in seeds if (url := judge.namer.name(text)) is not None]
    scope(judge, seeds, pages, index)
    while True:
        offers = list(_offers(judge, links, last, ways, index, config))
        changed = relaxed(offers, ways, last, config)
        if not changed:
            break
    offers += [(url, Link(url, "seed", 0, 0, "", SEED_FILE), -1) for url in seeds]
    known = set(ways) | set(index.ways)
    found: dict[str, Listed] = {}
    for url, link, _ in offers:
        if url.key not in known and not judge.chain.reason(link):
            one = found.setdefault(url.key, Listed(*FAR))
            one.depth, one.hops = nearer((one.depth, one.hops), (link.depth, link.hops))
            one.choices.append((link.depth, url.text, link.link_type, link.referrer))
    for key, row in last.items():
        count = max(times[key], index.times.get(key, 0), 1)
        if row["outcome"] == "timeout" and count <= retries:
            url = judge.namer.name(row["url"])
            assert url is not None
            link = Link(url, row["link_type"], *ways[key], row["referrer"])
            if not judge.chain.reason(link):
                choice = (ways[key][0], url.text, row["link_type"], row["referrer"])
                found[key] = Listed(*ways[key], count + 1, [choice])
        index.times[key] = count
    index.ways |= ways
    for url, link, _ in offers:
        if url.key in index.ways:
            index.ways[url.key] = nearer(index.ways[url.key], (link.depth, link.hops))
    for key, one in found.items():
        index.ways[key] = nearer(index.ways.get(key, FAR), (one.depth, one.hops))
        index.times[key] = one.listed
    return found


def scope(judge: Any, seeds: list[Url], pages: Any, index: Index) -> None:
    """Make roots of the seeds, of what was fetched as one, and of where they redirect; the index remembers them."""
    if index.roots:
        judge.roots.load(index.roots)
    keys = index.seeds
    for url in seeds:
        judge.roots.add_seed(url)
        keys.add(url.key)
    for row in pages:
        if row["link_type"] == "seed" and (url := judge.namer.name(row["url"])).key not in keys:
            judge.roots.add_seed(url)
            keys.add(url.key)
    changed = True
    while changed:
        changed = False
        for row in pages:
            url = judge.namer.name(row["url"])
            if row["outcome"] == "redirected" and url.key in keys:
                target = judge.namer.name(row["redirect_to"])
                judge.roots.widen(url, target, SEED_FILE)
                if target.key not in keys:
                    keys.add(target.key)
                    changed = True
    index.roots = judge.roots.dump()


def relaxed(offers: Any, ways: dict[str, Way], last: Mapping[str, Mapping[str, Any]], config: Config) -> bool:
    """Bring pages nearer by the links to them, where a crawl passes that on; say whether there were any."""
    best: dict[str, Way] = {}
    for url, link, _ in offers:
        if url.key in ways:
            best[url.key] = nearer(best.get(url.key, ways[url.key]), (link.depth, link.hops))
    changed = False
    for key, way in best.items():
        redirects = last[key]["outcome"] == "redirected"
        freed = redirects and ways[key][1] >= config.scope.hops_max and way[1] < ways[key][1]
        if way != ways[key] and (freed or config.scope.depth_max is not None):
            ways[key] = way
            changed = True
    return changed


def nearer(one: Way, other: Way) -> Way:
    """Return the least depth and the least hops."""
    return min(one[0], other[0]), min(one[1], other[1])


def _offers(judge: Any, links: Any, last: Any, ways: Any, index: Index, config: Config) -> Any:
    for number, row in enumerate(links):
        page, url = judge.namer.name(row["from_url"]), judge.namer.name(row["to_url"])
        way = ways.get(page.key) or index.ways.get(page.key) or (0, 0)
        silent = row["nofollow"] or (page.key in last and last[page.key].get("nofollow"))
        if row["link_type"] == "redirect":
            link = Link(url, "redirect", way[0], way[1] + 1, row["from_url"])
        elif silent:
            continue
        else:
            link = Link(url, row["link_type"], way[0] + 1, 0, row["from_url"])
        depth_max = 1 << 20 if config.scope.depth_max is None else config.scope.depth_max
        if link.link_type != "canonical" and link.hops <= config.scope.hops_max and link.depth <= depth_max:
            yield url, link, number
