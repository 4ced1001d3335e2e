"""Traps: detects endless addresses that bring nothing new, by their growth and their content.

A template of a host is cut off if three conditions hold: many of its pages were fetched; nearly all recent pages repeat
content of earlier ones; and they keep linking to new addresses of the template, at least one per page. A large
catalogue, a wiki or a dated blog lacks the second condition, a finite calendar or gallery the third.

A page whose address has a year far from the present counts as repeated content. A maze of pages that all differ
(random words) shows only by its size and its shape: nearly every link between its pages is a new address.

`farms` applies the same test to the hosts of one site: a farm is a trap whose addresses differ in their host.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import msgspec

from gossamer.model.links import FEED, SEED, SITEMAP, Link, Visit
from gossamer.model.pages import Sketch
from gossamer.model.patterns import PatternSet
from gossamer.ports import NEW
from gossamer.stages.scope.farms import ANY, Farm, Farms, pack, unpack
from gossamer.stages.scope.mirrors import Fetched
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.templates import (
    WATCHED_PAGES,
    TemplateNode,
    literal_start,
    shape_of,
    templates_of,
    width_of,
    years_of,
)
from gossamer.stages.scope.wards import Ward
from gossamer.url.url import Url, fingerprint

HOST_FROM_PAGES = 32
"""Pages of a host before its templates are counted: most hosts have fewer."""
HOSTS_COUNTED_MAX = 100_000
"""Hosts whose pages are counted in memory, 150 bytes each."""
WARDS_MAX = 500
"""Hosts in memory whose templates are counted, 5 KB each; the others wait in the store."""
TRAPS_OF_HOST_MAX = 64
"""A host with more traps is a trap as a whole."""
HELD_MAX = 64
"""Rejected addresses that a trap keeps, so that the crawl can continue from them if the trap is released."""
SAMPLED = 8
SAMPLED_CALM = 32
"""One in this many pages of a watched template without suspicion is examined, chosen by fingerprint. The second value
applies while all recent pages brought something new, except to queries and to templates with several `*`: combinations
of filters are there. What pages that are not examined say seems new when others repeat it."""
EXAMINED_MIN = 16
EXAMINED_CALM_MIN = 8
"""Pages examined before sampling starts; the second value applies if all of them brought something new."""
MAZE_FROM_PAGES = 1_000
"""Pages of a template before the links of its pages are examined."""
MAZE_SAMPLED = 4
"""One in this many pages of a template without suspicion is examined."""
MAZE_SHARE = 0.95
MAZE_BRANCHING_SHARE = 0.6
MAZE_BRANCHING = 2.0
"""Share of new links and new addresses per page from which a template that branches is a maze: pages that also link to
where they come from have a lower share than `MAZE_SHARE`, while of a chain most links are new."""
REQUESTED_MAX = 1_000
"""Pages that redirects led to, whose links are still to come."""
SCORE_MIN = 0.9
CHAIN_GROWTH = 1.5
CHAIN_FACTOR = 2
USELESS_FACTOR = 4
"""The same for a template that may have an end, such as all combinations of tags."""
YEARS_AHEAD_MAX = 10
YEAR_MIN = 1500
WHOLE_HOST = "/**"
CREDIT_PAGES = 24
"""Pages of a trap that are fetched although they turn out to be like the others, after the last that differ."""
SPARED_PAGES_MAX = 10_000
"""Pages of a trap that are fetched because they differ, or may."""
SPARED_TOGETHER = 256
DIFFERENT_MAX = 1_000
NEAR_DEPTH = 2
"""Clicks from a seed within which pages are ordinary ones until they prove to be like the others."""
_NAMED_FROM_OUTSIDE = frozenset((SEED, SITEMAP, FEED))

Recall = Callable[[int, str], bytes | None]
"""Returns the dump of a host, by partition and host; None: there is none."""


class Trap(msgspec.Struct):
    """A template that was cut off."""

    host: str
    template: str
    score: float
    pages: int
    reason: str
    held: list[tuple[str, int, str]] = msgspec.field(default_factory=list)
    """Rejected addresses with depth and referrer, at most `HELD_MAX`."""
    released: bool = False
    """Whether it was released: it no longer rejects, permanently."""
    spared: bytes = b""
    """For a farm: fingerprints of the hosts of the site that are not cut off, 8 bytes each."""
    credit: int = 0
    """Pages in it that may still be fetched because they may be ordinary ones; one that differs adds to it."""
    pages_spared: int = 0
    """Pages that were fetched by that credit."""
    known: bytes = b""
    """The sample of what its pages say (`TemplateNode.known`); empty if all of them differ."""
    known_lately: bytes = b""
    """The same with the last spared pages: each `SPARED_TOGETHER` pages the sample begins again, since it shows less of
    a page the more it is of.
    """
    shapes: set[int] = msgspec.field(default_factory=set)
    """If its addresses have sessions: the shapes of those that were fetched. A new shape is fetched."""
    different: set[int] = msgspec.field(default_factory=set)
    """Pages in it that differ from the others, by the fingerprints of their addresses: what they link to may too."""

    @property
    def name(self) -> str:
        """Host and template: the name for people."""
        return self.host + self.template

    @property
    def is_farm(self) -> bool:
        """Whether it consists of hosts: then `host` is `*.` and a site."""
        return self.host.startswith(ANY)

    def spares(self, one: Link | Visit) -> bool:
        """Return whether an address in it may be an ordinary page: a sitemap, a feed or the operator names it, or a
        page near the start, or one that is no part of the trap.
        """
        if self.credit <= 0:
            return False
        if self.shapes and (shape := shape_of(one.url.text)) != one.url.text:
            return fingerprint(shape) not in self.shapes
        if one.link_type in _NAMED_FROM_OUTSIDE:
            return True
        if not one.referrer:
            return False
        is_near = one.depth <= NEAR_DEPTH
        return is_near or not self._covers(one.referrer) or fingerprint(one.referrer) in self.different

    def note_spared(self, address: str, sketch: Callable[[], Sketch] | None) -> None:
        """Count a page that was spared. `sketch` as in `Traps.note_page`."""
        differs: bool | None = False
        if self.known and sketch is not None:
            node = TemplateNode()
            is_new_sample = self.pages_spared % SPARED_TOGETHER == 0
            node.known.frombytes(self.known if is_new_sample else self.known_lately)
            differs = node.differs(sketch())
            self.known_lately = node.known.tobytes()
        if differs is not False and len(self.different) < DIFFERENT_MAX:
            self.different.add(fingerprint(address))
        if self.shapes:
            self.shapes.add(fingerprint(shape_of(address)))
        self.pages_spared += 1
        self.credit = min(CREDIT_PAGES, self.credit + 1) if differs else self.credit - 1
        if self.pages_spared >= SPARED_PAGES_MAX:
            self.credit = 0

    def _covers(self, address: str) -> bool:
        return _host_of(address) == self.host and self.template in (*templates_of(address), WHOLE_HOST)

    def says(self) -> str:
        """Return a sentence for people."""
        pages = "hosts" if self.is_farm else "pages"
        return f"{self.name} is a trap (score {self.score:.2f} after {self.pages} {pages}): {self.reason}"


class Traps:
    """The templates that are cut off, and those that are watched.

    A page of a rare template costs 10 µs; a page of a watched one sometimes a sketch, of a suspected one always.
    """

    def __init__(
        self,
        options: ScopeOptions,
        recall: Recall = lambda _partition, _host: None,
        is_fetched: Fetched = lambda _partition, _fingerprint: False,
    ) -> None:
        self._enabled = options.traps
        self._pages_min = options.trap_pages_min
        self._near_pages_min = options.trap_near_pages_min
        self._maze_pages_max = options.trap_maze_pages_max
        self._exempt = PatternSet(options.trap_exempt) if options.trap_exempt else None
        self._recall = recall
        self._is_fetched = is_fetched
        self._counted: OrderedDict[str, int] = OrderedDict()
        self._wards: OrderedDict[str, Ward] = OrderedDict()
        self._passed: dict[str, tuple[int, bytes]] = {}
        """Hosts that were dropped from memory since the last commit: partition and dump."""
        self._close_hosts: set[str] = set()
        """Hosts whose links are examined too."""
        self._requested: OrderedDict[str, Url] = OrderedDict()
        """By the address of a recent page: the one that was requested and redirected to it."""
        self._traps: dict[str, list[Trap]] = {}
        self._farms = Farms(recall)
        self._cut: dict[str, tuple[Trap, set[int]]] = {}
        """Farms that are cut off, by site, with the fingerprints of their spared hosts."""
        self._changed: dict[tuple[str, str], tuple[int, Trap]] = {}

    def load(self, partition: int, dumped: bytes) -> None:
        """Load a trap that `take_changed` returned in an earlier run or another shard."""
        trap = msgspec.msgpack.decode(dumped, type=Trap)
        self._traps.setdefault(trap.host, []).append(trap)
        if trap.is_farm and not trap.released:
            self._cut[trap.host.removeprefix(ANY)] = (trap, unpack(trap.spared))
        del partition  # The key's, not the trap's.

    def forget(self, hosts: Iterable[str], sites: Iterable[str]) -> None:
        """Drop hosts, and sites as farms, from memory: another shard has them now, or they are loaded again."""
        for site in sites:
            self._cut.pop(site, None)
            self._traps.pop(ANY + site, None)
            self._farms.drop(site)
        for host in hosts:
            for known in (self._counted, self._wards, self._passed, self._traps):
                known.pop(host, None)
            self._close_hosts.discard(host)

    # ---- what is cut off

    def trap_of(self, url: Url) -> Trap | None:
        """Return the trap that a URL is in, or None. 0.1 µs for a host without traps, 8 µs if it may be in one."""
        if self._cut and (found := self._cut.get(url.site)) is not None and fingerprint(url.host) not in found[1]:
            return found[0]
        if url.host not in self._traps:
            return None
        path = url.text[url.text.find("/", 8) :]
        traps = self._traps[url.host]
        near = [trap for trap in traps if not trap.released and path.startswith(literal_start(trap.template))]
        if not near:
            return None
        names = (*templates_of(url.text), WHOLE_HOST)
        return next((trap for trap in near if trap.template in names), None)

    def trap_on_path(self, one: Link | Visit) -> Trap | None:
        """Return the trap that keeps a link or a visit from being followed, or None."""
        trap = self.trap_of(one.url)
        return None if trap is None or trap.spares(one) else trap

    def hold(self, links: Sequence[Link]) -> None:
        """Keep some of the links that a trap rejected, so that the crawl can continue from them if it is released."""
        if not self._traps:
            return
        for link in links:
            trap = self.trap_on_path(link)
            if trap is not None and len(trap.held) < HELD_MAX and all(link.url.text != held[0] for held in trap.held):
                trap.held.append((link.url.text, link.depth, link.referrer))
                self._changed[trap.host, trap.template] = (link.url.partition, trap)

    def release(self, name: str, partition_of: Callable[[str], int]) -> list[Trap]:
        """Release the traps of a host, of a template (`host/template`) or a farm (`*.site`) for good; return them."""
        host = name.partition("/")[0]
        wanted = [trap for trap in self._traps.get(host, ()) if name in (host, trap.name) and not trap.released]
        for trap in wanted:
            trap.released = True
            self._cut.pop(host.removeprefix(ANY), None)
            self._changed[host, trap.template] = (partition_of(host), trap)
        return wanted

    @property
    def all(self) -> list[Trap]:
        """Return all traps, released ones included."""
        return [trap for traps in self._traps.values() for trap in traps]

    # ---- what is watched

    def count_redirect(self, url: Url) -> None:
        """Count a request that was redirected: a maze may answer most of them so."""
        ward = self._wards.get(url.host)
        node = ward.first_watched(url.text) if ward is not None else None
        if node is not None:
            node.through += 1

    def note_page(
        self,
        url: Url,
        sketch: Callable[[], Sketch] | None,
        year: int,
        sketch_but_hosts: Callable[[], Sketch] | None = None,
        asked: Url | None = None,
        referrer: str = "",
    ) -> Trap | None:
        """Record a fetched page; return the trap that it confirms. `sketch` is called only if needed; None means an
        exact copy of another page of the host. `year` is the present one. `sketch_but_hosts` ignores the names of the
        site's hosts, to compare pages of several hosts. `asked` is the address from which redirects led to the
        page: the page counts for that one, since pages link to it. `referrer` named it first.
        """
        if not self._enabled or (self._exempt is not None and self._exempt.matches(url.text)):
            return None
        sketch_but_hosts = sketch_but_hosts or sketch
        asked = asked or url
        if asked is not url:
            self._requested[url.text] = asked
            if len(self._requested) > REQUESTED_MAX:
                self._requested.popitem(last=False)
        if sketch_but_hosts is not None and asked.host != asked.site and ANY + asked.site not in self._traps:
            farm = self._farms.note_page(asked, sketch_but_hosts)
            if farm is not None and (trap := self._confirm_farm(asked, farm)) is not None:
                return trap
        if (trap := self.trap_of(asked)) is not None:
            trap.note_spared(url.text, sketch)
            self._changed[trap.host, trap.template] = (asked.partition, trap)
            return None
        ward = self._ward(asked)
        if ward is None:
            return None
        for name in templates_of(asked.text):
            node = ward.node(name)
            if node is not None:
                # A page that counts for a narrow template is no evidence against a wider one.
                by = ward.first_watched(referrer) if ward.is_suspected and _host_of(referrer) == asked.host else None
                if (shape := shape_of(asked.text)) != asked.text:
                    sketch = sketch and cache(sketch)  # For its session and its trap.
                    node.note_shape(shape, sketch)
                node.note_name(within=by is not None and by.is_suspected)
                self._judge(url, ward, name, node, sketch, year)
                if ward.dirty:
                    self._look_closer(asked.host, ward)
                return self._confirm(asked, ward, name, node)
        return None

    def counts(self, links: Sequence[Link]) -> bool:
        """Return whether `note_links` needs the eliminator's answers. Costs nothing except for suspected hosts."""
        page = self._page_of(links[0].referrer if links else "")
        return bool(page) and (self._farms.counts(links, page) or self._counting(links, page) is not None)

    def _page_of(self, address: str) -> str:
        """Return the address for which a page counts."""
        return self._requested[address].text if address in self._requested else address

    def _counting(self, links: Sequence[Link], page: str) -> tuple[TemplateNode, int] | None:
        """Return the template of a page whose links are counted, and how many pages this one stands for."""
        if not self._close_hosts:
            return None
        host = _host_of(page)
        close = [self._wards[one] for one in {host, *[link.url.host for link in links]} & self._close_hosts]
        ward = self._wards.get(host) if close else None
        node = ward.first_watched(page) if ward is not None else None
        if node is None:
            return None
        for one in close:
            if one.is_suspected:
                return node, 1
        is_sampled = node.pages >= MAZE_FROM_PAGES and node.pages % MAZE_SAMPLED == 0
        return (node, MAZE_SAMPLED) if is_sampled else None

    def note_links(self, links: Sequence[Link], answers: Sequence[int], page: str = "") -> None:
        """Note which of a page's links were new (1) and which were known. Costs nothing except for suspected hosts.
        `page` is the page's address, needed if it has no links.
        """
        page = page or (links[0].referrer if links else "")
        if self._requested:
            page = self._page_of(page)
        if not page:
            return
        self._farms.note_links(links, answers, page)
        counting = self._counting(links, page)
        if counting is None:
            return
        node, pages = counting
        named: dict[TemplateNode, tuple[list[int], list[int]]] = {}
        for link, answer in zip(links, answers, strict=True):
            ward = self._wards.get(link.url.host)
            of_link = ward.first_watched(link.url.text) if ward is not None else None
            if of_link is not None:
                named.setdefault(of_link, ([], []))[answer != NEW].append(link.url.fingerprint)
        if not any(new for new, _ in named.values()):
            named.setdefault(node, ([], []))
        for of_link, (new, known) in named.items():
            of_link.count_links(node, len(new), known, pages)

    def take_changed(self) -> Iterator[tuple[int, str, str, bytes]]:
        """Yield partition, host, template and dump of the traps that changed since the last call."""
        changed = self._changed
        self._changed = {}
        for (host, template), (partition, trap) in changed.items():
            yield partition, host, template, msgspec.msgpack.encode(trap)

    def take_watched(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield partition, host and dump of the watched hosts and farms that changed since the last call."""
        passed = self._passed
        self._passed = {}
        for host, (partition, dumped) in passed.items():
            yield partition, host, dumped
        for host in [host for host, ward in self._wards.items() if ward.dirty]:
            ward = self._wards[host]
            ward.dirty = ward.touched = False
            yield ward.partition, host, ward.dump()
        yield from self._farms.take_dirty()

    # ---- inside

    def _ward(self, url: Url) -> Ward | None:
        """Return the ward of a host; None as long as the host has few pages."""
        host = url.host
        ward = self._wards.get(host)
        if ward is not None:
            self._wards.move_to_end(host)
            return ward
        dumped = self._passed[host][1] if host in self._passed else None
        if dumped is None and not self._many(host):
            return None
        if len(self._wards) >= WARDS_MAX:
            self._pass_oldest()
        ward = self._wards[host] = Ward(url.partition)
        dumped = dumped or self._recall(url.partition, host)
        if dumped is not None:
            ward.load(dumped)
            self._look_closer(host, ward)
        return ward

    def _many(self, host: str) -> bool:
        counted = self._counted
        count = counted[host] = counted.get(host, 0) + 1
        counted.move_to_end(host)
        if len(counted) > HOSTS_COUNTED_MAX:
            counted.popitem(last=False)
        return count > HOST_FROM_PAGES

    def _pass_oldest(self) -> None:
        host, ward = self._wards.popitem(last=False)
        self._close_hosts.discard(host)
        if ward.touched or ward.dirty:
            self._passed[host] = (ward.partition, ward.dump())

    def _judge(
        self, url: Url, ward: Ward, name: str, node: TemplateNode, sketch: Callable[[], Sketch] | None, year: int
    ) -> None:
        has_odd_year = any(not YEAR_MIN <= one <= year + YEARS_AHEAD_MAX for one in years_of(url.text))
        if node.is_suspected and not has_odd_year and ward.mirrors.has_twin(url, self._is_fetched):
            return  # A page of a language or version repeats another one, and is no evidence.
        every = SAMPLED_CALM if node.calm and "?" not in url.text and name.count("*") < 2 else SAMPLED
        if node.is_suspected or node.doubted or node.judged < (EXAMINED_CALM_MIN if node.calm else EXAMINED_MIN):
            every = 1
        if sketch is None or has_odd_year:
            node.note(stale=True, near=True)
        elif url.fingerprint % every == 0:
            if node.judge(sketch()):
                ward.mirrors.fresh += every
                if node.is_suspected:
                    node.different.append(fingerprint(url.text))
        else:
            return
        ward.dirty = True

    def _look_closer(self, host: str, ward: Ward) -> None:
        if ward.is_suspected or ward.pages_max >= MAZE_FROM_PAGES:
            self._close_hosts.add(host)
        else:
            self._close_hosts.discard(host)

    def _confirm(self, url: Url, ward: Ward, name: str, node: TemplateNode) -> Trap | None:
        found = self._verdict(node, width_of(name))
        if found is None:
            return None
        traps = self._traps.setdefault(url.host, [])
        if any(one.template in (name, WHOLE_HOST) for one in traps):
            return None  # The trap was released.
        trap = Trap(url.host, name, found[0], node.pages, found[1])
        if len(traps) >= TRAPS_OF_HOST_MAX:
            trap = Trap(url.host, WHOLE_HOST, found[0], node.pages, f"it has more than {TRAPS_OF_HOST_MAX} traps")
        else:
            trap.credit = CREDIT_PAGES
            if node.has_sessions or node.stale.score >= SCORE_MIN or node.near.score >= SCORE_MIN:
                trap.known = node.known.tobytes()
                trap.different.update(node.different)
                trap.shapes = set(node.shapes) if node.has_sessions else set()
        traps.append(trap)
        self._changed[trap.host, trap.template] = (url.partition, trap)
        del ward.nodes[name]
        ward.dirty = True
        self._look_closer(url.host, ward)
        return trap

    def _confirm_farm(self, url: Url, farm: Farm) -> Trap | None:
        """Return the trap that the hosts of a site form, if that is certain."""
        if farm.is_known_elsewhere:
            return None
        node = farm.node
        found = self._verdict(node, 1, "hosts")
        # A chain of hosts that each link to the next one may end; hosts that branch without links back do not.
        branches = farm.naming >= self._near_pages_min / 2 and farm.inside >= CHAIN_GROWTH * farm.naming
        if found is None and branches and node.pages >= self._near_pages_min and node.fresh_links >= MAZE_SHARE:
            found = node.fresh_links, f"{node.fresh_links:.0%} of the hosts that its hosts name are new, without end"
        if found is None:
            return None
        trap = Trap(ANY + url.site, WHOLE_HOST, found[0], node.pages, found[1], spared=pack(farm.spared))
        self._traps[trap.host] = [trap]
        self._cut[url.site] = (trap, farm.spared)
        self._changed[trap.host, trap.template] = (url.partition, trap)
        self._farms.forget(url.site)
        return trap

    def _verdict(self, node: TemplateNode, width: int, pages: str = "pages") -> tuple[float, str] | None:
        """Return score and reason if a template is certainly a trap, else None. A wide template needs more pages:
        perhaps only a narrower one within it is a trap. So does one that grows by at most one address per page:
        calendars, galleries and lists do too, and some of them end.
        """
        if node.has_sessions:
            return 1.0, "its addresses differ in what is a session or a time: pages with the same rest are the same"
        size = node.pages + node.through
        if not (node.is_suspected or size >= self._maze_pages_max):
            return None
        score = node.stale.score
        chain = CHAIN_FACTOR if node.stale.growth < CHAIN_GROWTH else 1
        if score >= SCORE_MIN and node.pages >= self._pages_min * width * chain:
            return score, f"{node.stale.share:.0%} of its last {pages} say nothing new, and they go on naming others"
        share = node.stale.share
        if min(share, node.named_within) >= SCORE_MIN and node.stale.pages >= USELESS_FACTOR * self._pages_min * width:
            return share, f"{share:.0%} of its last {pages} say nothing new, and such pages alone name them"
        score = node.near.score
        if score >= SCORE_MIN and node.pages >= self._near_pages_min * width:
            return score, f"{node.near.share:.0%} of its last {pages} are nearly the same, and they go on naming others"
        branches = node.branching >= MAZE_BRANCHING and node.fresh_links >= MAZE_BRANCHING_SHARE
        fresh = node.fresh_links
        if size >= self._maze_pages_max and (branches or fresh >= MAZE_SHARE):
            return fresh, f"{fresh:.0%} of what its {pages} name of their like is new, without end"
        return None


class Trapped:
    """Addresses of templates that were cut off as traps."""

    name = "trapped"

    def __init__(self, traps: Traps) -> None:
        self._traps = traps

    def rejects(self, link: Link) -> bool:
        return self._traps.trap_on_path(link) is not None

    def detail(self, link: Link) -> str:
        """Return which trap a link is in, with its score, for people."""
        trap = self._traps.trap_on_path(link)
        return trap.says() if trap is not None else ""


def _host_of(address: str) -> str:
    authority = address[address.find("://") + 3 :].partition("/")[0].rpartition("@")[2]
    name, colon, port = authority.rpartition(":")
    return name if colon and port.isdigit() else authority


assert WATCHED_PAGES > EXAMINED_MIN
