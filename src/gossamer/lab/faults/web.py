"""Web: the pages, redirects and robots.txt of one trial, and how each URL of them must end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gossamer.world.dice import Dice

HOSTS_MAX, PAGES_MIN, PAGES_MAX, LINKS_MAX = 4, 20, 50, 6
HOSTS_OF_SHARDS = 10
ROBOTS = b"User-agent: *\nDisallow: /private/\n"


class FaultSite(NamedTuple):
    """What the servers hold, and what a crawl of it must come to."""

    pages: Mapping[str, bytes]
    redirects: Mapping[str, str]
    missing: frozenset[str]
    private: frozenset[str]
    robots: Mapping[str, str]
    """Where a robots.txt redirects to that of another host."""

    def links(self, url: str) -> list[str]:
        """Return what a page links to."""
        return [link.decode() for link in self.pages[url].split(b'"')[1::2]]

    def truth(self, seeds: list[str]) -> dict[str, str]:
        """Return how each URL that can be reached must end."""
        ends: dict[str, str] = {}
        waiting = list(seeds)
        while waiting:
            url = waiting.pop()
            if url in ends:
                continue
            if url in self.private:
                ends[url] = "robots_denied"
            elif url in self.redirects:
                ends[url] = "redirected"
                waiting.append(self.redirects[url])
            elif url in self.missing:
                ends[url] = "http_error"
            else:
                ends[url] = "fetched"
                waiting += self.links(url)
        return ends


def site(dice: Dice, hosts_max: int, hosts_min: int = 1, *, is_chain: bool = False) -> FaultSite:
    """Return a web of a few hosts: a tree, so that every page is reached, with links across it; or a chain, in which
    everything depends on each page.
    """
    hosts = [f"h{number}.test" for number in range(hosts_min + dice.below(hosts_max + 1 - hosts_min))]
    count = PAGES_MIN + dice.below(PAGES_MAX - PAGES_MIN)
    urls = [f"http://{hosts[dice.below(len(hosts))]}/{_folder(dice)}{number}" for number in range(1, count)]
    urls = [f"http://{hosts[0]}/", *urls]
    links: dict[str, list[str]] = {url: [] for url in urls}
    leaves = {url for url in urls[count // 2 :] if dice.below(5) == 0}
    private = frozenset(url for url in urls if "/private/" in url)
    closed = leaves | private
    for number, url in enumerate(urls[1:], 1):
        open_ones = [one for one in urls[:number] if one not in closed]
        links[open_ones[-1 if is_chain else dice.below(len(open_ones))]].append(url)
        links[url] += [urls[dice.below(count)] for _ in range(0 if is_chain else dice.below(LINKS_MAX))]
    ordered = sorted(leaves - private)
    redirects = {url: urls[dice.below(urls.index(url))] for url in ordered[::2]}
    missing = frozenset(ordered[1::2])
    pages = {
        url: b"".join([b"<!doctype html><title>x</title>", *(f'<a href="{to}">x</a>'.encode() for to in links[url])])
        for url in urls
    }
    elsewhere = hosts[2::3] if hosts_max > HOSTS_MAX else []
    robots = {f"http://{host}/robots.txt": f"http://{hosts[0]}/robots.txt" for host in elsewhere}
    return FaultSite(pages, redirects, missing, private, robots)


def hash_of(seed: int, text: str) -> int:
    """Return a number for a text that does not depend on the process, unlike `hash`."""
    number = seed
    for byte in text.encode():
        number = (number * 1_000_003 ^ byte) & 0xFFFF_FFFF_FFFF
    return number


def _folder(dice: Dice) -> str:
    return "private/" if dice.below(12) == 0 else ""
