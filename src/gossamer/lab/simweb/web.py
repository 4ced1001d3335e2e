"""Web: every answer of every host, from the seed alone."""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from math import exp
from statistics import NormalDist

import msgspec

from gossamer.lab.simweb import robots
from gossamer.lab.simweb.behaviors import ROBOTS, bodies, links, replies, traps
from gossamer.lab.simweb.hosts import WebHost, lot, populate, refusing_address
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.pages import Changing, PageMaker, path_of
from gossamer.lab.simweb.sheet import HTML, TEXT, Made, Mark, PagePlace, ServedAnswer
from gossamer.lab.simweb.wire import http_date

PAGES: dict[str, Callable[[PagePlace], dict[str, Made]]] = {
    **{
        page.__name__: page
        for page in (
            bodies.bodies, bodies.charsets, bodies.types, bodies.embeds, bodies.hostile,
            links.copies, links.near, links.distinct, links.spellings,
            links.frames, links.nofollow, links.away, links.directory, links.private, links.sitemaps,
            replies.errors, replies.redirects, replies.hangs, replies.floods,
            replies.dead_ports, replies.schemes, replies.ttl_0,
            traps.farm, traps.lookalikes, replies.walls,
        )
    },
    **{kind: partial(traps.trap, kind=kind) for kind in traps.KINDS},
}  # fmt: skip
"""The pages of each behavior that has its own, by its name; its pages by theirs, below `/NAME/`."""
NAMING = frozenset(ROBOTS) - {
    "robots_404", "robots_403", "robots_500", "robots_stall", "robots_redirect", "robots_redirect_host",
    "robots_endless",
}  # fmt: skip
"""Kinds of robots.txt that may name a sitemap: those that are a text, to its end."""
MADE_MAX = 2_048
"""Behaviors whose pages are kept, 5 to 50 KB each; making one takes 15 to 500 µs."""
NEWS_SENTENCES = 4
"""Number of new sentences on a page that changed."""
NOT_FOUND = Made((ServedAnswer(404, HTML, b"<!DOCTYPE html><title>Not found</title><p>There is no such page.\n"),))
MISDIRECTED = ServedAnswer(421, TEXT, b"This server knows no such host.\n")


class Web:
    """A synthetic web. Pure: equal options give equal answers, in any order, in any process."""

    def __init__(self, options: SimwebOptions) -> None:
        """Draw the hosts. Costs about 10 µs a host and 20 ms for the text."""
        self.options = options
        self.hosts = populate(options)
        self._by_name = {host.name: host for host in self.hosts}
        closed = refusing_address(options)
        self.names = {host.name: host.address for host in self.hosts}
        """Every name that resolves, with its address, even if it refuses, except the endless ones of farms."""
        self.names |= {links.refusing_name(host.index): closed for host in self.hosts if "away" in host.behaviors}
        self._pages = PageMaker(options, self.hosts)
        self.changing = Changing(options)
        self._made_pages = lru_cache(maxsize=MADE_MAX)(self._make_pages)
        self._slow = NormalDist()

    def host(self, name: str) -> WebHost | None:
        """Return the host with a name (lower case, without port); a name of a farm has its owner's address."""
        host = self._by_name.get(name)
        return host if host is not None else self._farm_host(name)

    def address(self, name: str) -> str | None:
        """Return the address that a name resolves to, names of farms included; None for a name that does not exist."""
        known = self.names.get(name)
        if known is None and (host := self._farm_host(name)) is not None:
            known = host.address
        return known

    @property
    def seeds(self) -> tuple[str, ...]:
        """Addresses from which every reachable page can be reached when no scope forbids it."""
        return (self.front(self.hosts[0]),)

    @property
    def fronts(self) -> tuple[str, ...]:
        """The front page of every host."""
        return tuple(self.front(host) for host in self.hosts)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses that the server must hold."""
        return tuple(dict.fromkeys(host.address for host in self.hosts))

    def ttl_s(self, name: str) -> int:
        """Return for how long the address of a name holds, in seconds."""
        host = self.host(name)
        return 0 if host is not None and "ttl_0" in host.behaviors else self.options.dns_ttl_s

    def front(self, host: WebHost) -> str:
        """Return the address of a host's front page."""
        return self._pages.origin(host) + "/"

    def url(self, host: WebHost, number: int) -> str:
        """Return the address of a host's ordinary page by its number."""
        return self._pages.origin(host) + path_of(number)

    def page(self, name: str, path: str, nth: int = 0, at: float = 0.0) -> ServedAnswer:
        """Return the answer to the request number `nth` (from 0) for a path with its query, at an instant, where pages
        change.

        Costs 20 to 40 µs for an ordinary page. An unknown name gets 421 (RFC 9110, section 15.5.20).
        """
        host = self.host(name)
        if host is None:
            return MISDIRECTED
        if (number := self._pages.number(host, path)) is not None:
            items = (f'<li><a href="{path}">{path.strip("/")}</a></li>' for path in _front_paths(host))
            front = f"<ul>{''.join(items)}</ul>\n" if number == 0 else ""
            body = self._pages.body(host, number, front)
            if self.options.changing_share:
                return self._page_at(host, number, body, at)
            return ServedAnswer(200, HTML, body, "whole", self._delay_s(host, path), 0, host.compressed)
        answers = self._special(host, path).answers
        answer = answers[min(nth, len(answers) - 1)]
        delay_s = self._delay_s(host, path)
        return msgspec.structs.replace(answer, delay_s=delay_s) if delay_s else answer

    def _page_at(self, host: WebHost, number: int, body: bytes, at: float) -> ServedAnswer:
        """Return an ordinary page as it is at an instant, with validators that tell its versions apart."""
        changed_at = self.changing.last_change_at(host.index, number, at)
        headers = (*HTML, ("ETag", f'"{lot(self.options, number, changed_at):x}"'))
        if changed_at:
            headers = (*headers, ("Last-Modified", http_date(changed_at)))
            news = self._pages.words.some(lot(self.options, "news", host.index, number, changed_at), NEWS_SENTENCES)
            body = body.replace(b"<footer>", f"<p>{news}</p>\n<footer>".encode(), 1)
        return ServedAnswer(200, headers, body, "whole", self._delay_s(host, path_of(number)), 0, host.compressed)

    def changes(self, name: str, path: str) -> bool:
        """Return whether the answer depends on the number of requests before."""
        host = self.host(name)
        if host is None or self._pages.number(host, path) is not None:
            return False
        return len(self._special(host, path).answers) > 1

    def describe(self, host: WebHost, path: str) -> Made:
        """Return a page with all that is known about it; of an ordinary one, without its body."""
        number = self._pages.number(host, path)
        if number is None:
            return self._special(host, path)
        return Made((ServedAnswer(200),), tuple(self._marks(host, number)))

    def once(self, host: WebHost, path: str) -> bool:
        """Return whether a right crawl asks for a page exactly once."""
        return self._pages.number(host, path) is not None or self._special(host, path).once

    def robots(self, host: WebHost) -> robots.RobotsPlan:
        """Return the content of a host's robots.txt."""
        plan = robots.plan(host.robots, host, self.options, self.hosts[0])
        named = "".join(f"Sitemap: {url}\n" for url in self.sitemaps(host))
        if not named:
            return plan
        last = plan.answers[-1]
        return msgspec.structs.replace(
            plan, answers=(*plan.answers[:-1], msgspec.structs.replace(last, body=last.body + named.encode()))
        )

    def sitemaps(self, host: WebHost) -> tuple[str, ...]:
        """Return the sitemaps that a host's robots.txt names, where it has one that says so."""
        if "sitemaps" not in host.behaviors or host.robots not in NAMING:
            return ()
        return (self._pages.origin(host) + links.SITEMAP_INDEX,)

    def stands(self, path: str) -> bool:
        """Return whether a path is robots.txt or the target of its redirect: no rule applies to it."""
        return robots.STANDING.fullmatch(path) is not None

    def is_trap(self, url: str) -> bool:
        """Return whether an address is in an endless space."""
        name, path = parts_of(url)
        return bool(traps.kind_of(path)) or self._farm_host(name) is not None

    def _marks(self, host: WebHost, number: int) -> Iterator[Mark]:
        yield from self._pages.marks(host, number)
        if number == 0:
            origin = self._pages.origin(host)
            yield from (Mark(origin + path) for path in _front_paths(host))

    def _special(self, host: WebHost, path: str) -> Made:
        if robots.STANDING.fullmatch(path):
            return self._robots_file(host, path)
        if not host.pages:
            return traps.farm_endless(self._place(host), path) or NOT_FOUND
        for behavior in host.behaviors:
            if (found := self._made_pages(host.index, behavior).get(path)) is not None:
                return found
        if traps.kind_of(path) in host.behaviors:
            return traps.endless(self._place(host), path) or NOT_FOUND
        return NOT_FOUND

    def _robots_file(self, host: WebHost, path: str) -> Made:
        if path == "/robots.txt":
            return Made(self.robots(host).answers, once=False)
        if path == "/robots-real.txt" and host.robots == "robots_redirect":
            return Made((ServedAnswer(200, TEXT, robots.text_of(host.robots, self.options)),), once=False)
        if path == "/robots-shared.txt" and host.index == 0:
            return Made((ServedAnswer(200, TEXT, robots.text_of("robots_redirect_host", self.options)),), once=False)
        return NOT_FOUND

    def _farm_host(self, name: str) -> WebHost | None:
        """Return the host that a farm makes of a name: it has the address and the robots.txt of the farm's owner."""
        at = traps.farm_owner(name)
        if at is None or at >= len(self.hosts) or "farm" not in self.hosts[at].behaviors:
            return None
        return msgspec.structs.replace(
            self.hosts[at], name=name, site=traps.farm_site(at), pages=0, behaviors=(), compressed=False, mirror_of=-1
        )

    def _make_pages(self, index: int, behavior: str) -> dict[str, Made]:
        place = self._place(self.hosts[index], f"/{behavior}/")
        return {place.path(name): made for name, made in PAGES[behavior](place).items()}

    def _place(self, host: WebHost, at: str = "/") -> PagePlace:
        return PagePlace(host, self._pages.origin(host), self.options, self._pages.words, self.hosts, at)

    def _delay_s(self, host: WebHost, path: str) -> float:
        options = self.options
        if not host.slow:
            return options.latency_s
        chance = (lot(options, "slow", host.index, path) % 65_536 + 0.5) / 65_536
        return options.latency_s + options.slow_s_median * exp(options.slow_sigma * self._slow.inv_cdf(chance))


def _front_paths(host: WebHost) -> Iterator[str]:
    for behavior in host.behaviors:
        if behavior == "private":
            yield from links.PRIVATE_PATHS
        else:
            yield f"/{behavior}/"


def parts_of(url: str) -> tuple[str, str]:
    """Return the name without port, and the path with its query."""
    authority, _, path = url.removeprefix("http://").partition("/")
    return authority.partition(":")[0], "/" + path
