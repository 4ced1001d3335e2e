"""Farms: detects endless hosts of a registrable domain with nothing new (wildcard DNS), as `traps` for templates.

The evidence is the first page of each host of a site. A site's first hosts are never judged, and a host that brought
something new is not judged again. So a farm is cut off, and its site is not.
"""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec

from gossamer.model.decodable import decodable
from gossamer.model.links import Link
from gossamer.model.pages import Sketch
from gossamer.ports import NEW
from gossamer.stages.scope.templates import NodeRecord, TemplateNode, node_of
from gossamer.url.name import host_of
from gossamer.url.site import site_of
from gossamer.url.url import Url, fingerprint

HOSTS_FIRST = 32
"""First hosts of a site, which are never judged: most sites have no more."""
SITES_COUNTED_MAX = 20_000
"""Sites whose first hosts are kept in memory, 300 bytes each."""
FARMS_MAX = 100
"""Sites in memory whose hosts are judged, up to 150 KB each; the others wait in the store."""
JUDGED_MAX = 2_048
"""Judged hosts of such a site that are kept in memory; others may be judged again."""
SPARED_MAX = 1_000
"""Hosts of such a site that brought something new, and so are not cut off with the others."""
OUTSIDE_SHARE = 0.5
"""Ratio of new addresses linked from other sites to those linked from its own hosts, above which a site is no farm."""
SAMPLED = 4
SAMPLED_CALM = 16
"""One in this many hosts without suspicion is examined with its first page, as in `traps`; others with their second."""
JUDGED_MIN = 16
FRESH_MEMORY_PAGES = 64
NAMING_PAGES_MAX = 4
"""Pages of one host whose links to other hosts count. A directory of hosts has more such pages."""
CLOSE_FROM_HOSTS = 150
CLOSE_EVERY_HOSTS = 1_024
CLOSE_HOSTS = 128
CLOSE_SHARE = 0.5
"""From 150 hosts on, the links of a site's pages are examined for the first 128 of each 1,024 hosts, and longer while
half of the links are new."""
ANY = "*."
"""Prefix of a site's name that means all of its hosts."""


@decodable
class FarmRecord(msgspec.Struct, array_like=True, frozen=True):
    """The stored form of a watched site."""

    node: NodeRecord
    inside: int
    outside: int
    naming: int
    first: bytes
    spared: bytes


class Farm:
    """One watched site. Its `node` counts hosts, while that of a template counts pages."""

    __slots__ = ("dirty", "first", "inside", "judged", "namers", "naming", "node", "outside", "partition", "spared")

    def __init__(self, partition: int, first: Sequence[str]) -> None:
        self.partition = partition
        self.node = TemplateNode()
        self.first = {fingerprint(host) for host in first}
        self.spared = set(self.first)
        self.judged: OrderedDict[int, bool] = OrderedDict()
        """Hosts that were counted; True: their content was examined too."""
        self.namers: OrderedDict[int, int] = OrderedDict()
        """Per host: how many of its pages link to other hosts of the site."""
        self.inside = self.outside = self.naming = 0
        """While the site was watched closely: new addresses on its hosts that its own or similar hosts linked to
        (`inside`) and that other sites linked to (`outside`); pages with such links (`naming`).
        """
        self.dirty = False

    def judge(self, host: int, sketch: Callable[[], Sketch]) -> bool:
        """Take a page into account; return whether it is evidence: its host is new, or was not examined before."""
        was_looked_at = self.judged.get(host)
        if host in self.spared or was_looked_at:
            return False
        node = self.node
        is_new = was_looked_at is None
        if is_new:
            node.visit()
            if len(self.judged) >= JUDGED_MAX:
                self.judged.popitem(last=False)
        sampled = host % (SAMPLED_CALM if node.calm else SAMPLED) == 0
        looks = not is_new or node.is_suspected or node.judged < JUDGED_MIN or sampled
        self.judged[host] = looks
        if looks and node.judge(sketch()) and len(self.spared) < SPARED_MAX:
            self.spared.add(host)
        self.dirty = True
        return True

    def count_links(self, new: int, total: int) -> None:
        """Count the links of a page to `total` addresses on other hosts of the site, `new` of them new."""
        self.dirty = True
        self.inside += new
        self.naming += 1
        self.node.grow(new)
        self.node.fresh_links += (new / total - self.node.fresh_links) / FRESH_MEMORY_PAGES

    def is_witness(self, host: int) -> bool:
        """Count a page and return whether its links are evidence: those of directories of hosts are not."""
        if host in self.first:
            return False
        pages = self.namers[host] = self.namers.get(host, 0) + 1
        if len(self.namers) > JUDGED_MAX:
            self.namers.popitem(last=False)
        return pages <= NAMING_PAGES_MAX

    @property
    def is_close(self) -> bool:
        """Whether the links of its pages are examined."""
        node = self.node
        more = node.pages - CLOSE_FROM_HOSTS
        return node.is_suspected or (
            more >= 0 and (more % CLOSE_EVERY_HOSTS < CLOSE_HOSTS or node.fresh_links >= CLOSE_SHARE)
        )

    @property
    def is_known_elsewhere(self) -> bool:
        """Whether other sites link to its hosts, so that these do not exist only for each other."""
        return self.outside > OUTSIDE_SHARE * self.inside

    def dump(self) -> bytes:
        first = pack(self.first)
        spared = pack(self.spared)
        record = FarmRecord(self.node.record(""), self.inside, self.outside, self.naming, first, spared)
        return msgspec.msgpack.encode(record)

    def load(self, dumped: bytes) -> None:
        record = msgspec.msgpack.decode(dumped, type=FarmRecord)
        self.node = node_of(record.node)
        self.inside = record.inside
        self.outside = record.outside
        self.naming, self.first, self.spared = record.naming, unpack(record.first), unpack(record.spared)


class Farms:
    """Watches sites with many hosts. A page of a site with few hosts costs 0.4 µs, any other page 1 µs and sometimes a
    sketch; links cost something only if a site is watched closely.
    """

    def __init__(self, recall: Callable[[int, str], bytes | None]) -> None:
        """`recall` returns the stored dump of a site, by partition and name."""
        self._recall = recall
        self._first: OrderedDict[str, list[str]] = OrderedDict()
        self._farms: OrderedDict[str, Farm] = OrderedDict()
        self._close: dict[str, Farm] = {}
        """The farms that are watched closely."""
        self.passed: dict[str, tuple[int, bytes]] = {}
        """Sites that left the memory since the last `take_dirty`: partition and dump, by `*.` and name."""

    def note_page(self, url: Url, sketch: Callable[[], Sketch]) -> Farm | None:
        """Take a fetched page into account; return its farm if the page is evidence about it."""
        site = url.site
        first = self._first.get(site)
        if first is None:
            first = self._first[site] = []
            if len(self._first) > SITES_COUNTED_MAX:
                self._first.popitem(last=False)
        if url.host in first:
            return None
        if len(first) < HOSTS_FIRST:
            self._first.move_to_end(site)
            first.append(url.host)
            return None
        farm = self._farm(url, first)
        if not farm.judge(fingerprint(url.host), sketch):
            return None
        self._look_closer(site, farm)
        return farm

    def counts(self, links: Sequence[Link], page: str) -> bool:
        """Return whether `note_links` may need the eliminator's answers to the links of a page."""
        if not self._close:
            return False
        host = host_of(page) or ""
        return (bool(host) and site_of(host) in self._close) or any(link.url.site in self._close for link in links)

    def note_links(self, links: Sequence[Link], answers: Sequence[int], page: str) -> None:
        """Note which of a page's links were new. Costs nothing unless a site is watched closely."""
        if not self._close:
            return
        page_host = host_of(page) or ""
        page_site = site_of(page_host) if page_host else ""
        ours = self._close.get(page_site)
        if ours is not None and not ours.is_witness(fingerprint(page_host)):
            return
        named = total = 0
        for link, answer in zip(links, answers, strict=True):
            if link.url.site == page_site:
                total += link.url.host != page_host
                named += answer == NEW and link.url.host != page_host
            elif (other := self._close.get(link.url.site)) is not None:
                if ours is not None:
                    other.count_links(int(answer == NEW), 1)  # Farms that link to each other count as one.
                else:
                    other.outside += answer == NEW
                    other.dirty = True
        if ours is not None and total:
            ours.count_links(named, total)

    def forget(self, site: str) -> None:
        """Stop watching a site closely, since it was cut off."""
        self._close.pop(site, None)

    def drop(self, site: str) -> None:
        """Drop everything about a site from memory."""
        self.forget(site)
        self._first.pop(site, None)
        self._farms.pop(site, None)
        self.passed.pop(ANY + site, None)

    def take_dirty(self) -> list[tuple[int, str, bytes]]:
        """Return partition, name and dump of the farms that changed since the last call."""
        taken = [(partition, name, dumped) for name, (partition, dumped) in self.passed.items()]
        self.passed = {}
        for site, farm in self._farms.items():
            if farm.dirty:
                farm.dirty = False
                taken.append((farm.partition, ANY + site, farm.dump()))
        return taken

    def _farm(self, url: Url, first: Sequence[str]) -> Farm:
        site = url.site
        farm = self._farms.get(site)
        if farm is not None:
            self._farms.move_to_end(site)
            return farm
        if len(self._farms) >= FARMS_MAX:
            gone, other = self._farms.popitem(last=False)
            self._close.pop(gone, None)
            if other.dirty:
                self.passed[ANY + gone] = (other.partition, other.dump())
        farm = self._farms[site] = Farm(url.partition, (*first, site, f"www.{site}"))
        name = ANY + site
        dumped = self.passed[name][1] if name in self.passed else self._recall(url.partition, name)
        if dumped is not None:
            farm.load(dumped)
            self._look_closer(site, farm)
        return farm

    def _look_closer(self, site: str, farm: Farm) -> None:
        if farm.is_close:
            self._close[site] = farm
        else:
            self._close.pop(site, None)


def pack(fingerprints: set[int]) -> bytes:
    """Return fingerprints in their stored form, 8 bytes each."""
    return array("Q", sorted(fingerprints)).tobytes()


def unpack(kept: bytes) -> set[int]:
    """Return fingerprints that were packed."""
    found = array("Q")
    found.frombytes(kept)
    return set(found)
