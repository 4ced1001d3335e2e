"""Walked: the pages that random walks visited, in the shard's store; durable with the epoch.

Keys, after two bytes of partition: `p` and the URL's fingerprint for a page; `n` and a host for the number of its known
pages; `i`, host and a number for the fingerprint of one of these pages. Under the shard's own partition: `h` and a
number for each known host. So drawing a host and then one of its pages takes four reads for any number of pages.

# Samples
Sample: pages of a walk, drawn so that all pages of the walked web have nearly the same chance.

A walk reaches popular pages much more often than others, so the weight of each reached page in the draw is the inverse
of its probability to be reached (Henzinger and others 2000, who estimated this probability by PageRank on the walked
pages, or by visits). A page is reached by following a link: a walker at page q takes each of its d(q) links with the
probability (1 - r) / d(q), where r is the chance of a restart. The expected number λ of arrivals at a page is the sum
of v(q) · (1 - r) / d(q) over all pages q that link to it, where v(q) is the expected number of visits to q. The
probability to be reached is 1 - exp(-λ). A restart leads only to pages that were reached before, so it does not count.

Observed visits overestimate expected visits, because pages without visits are missing from the data. So v(q) is
estimated twice. First from the visits: for n visits, it is the λ for which the mean of a zero-truncated Poisson
distribution is n; for n = 1 it is Good's 2 N2 / N1 (1953), where N1 and N2 are the numbers of pages visited once and
twice. Then from the λ that this gives, as one step of PageRank: v(q) is λ(q) and, if q was reached, its restarts.

A walk begins at its seeds, with or without links to them. So the probability of a seed is the share of the seeds that
were reached, which is 1 with one seed, and its visits are taken as they are. This replaces a burn-in: the pages near
the seeds, where all walkers begin, have many arrivals in the data too.

Known bias: while walks have reached less than half of the web, popular pages remain somewhat too frequent; and a sample
that is a large part of the reached pages resembles these.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import expm1, log1p

import msgspec

from gossamer.state.epoch import Epochs
from gossamer.state.schema import PARTITIONED, WALK_COUNTS, WALKED_HOSTS, WALKERS, under
from gossamer.url.url import NameUrl, Url
from gossamer.world.dice import Dice


class WalkedPage(msgspec.Struct, array_like=True):
    """A page that a walker reached, or a seed to begin at."""

    url: str
    depth: int = 0
    seed: int = 0
    visits: int = 0
    """How often a walker arrived."""
    outcome: str = ""
    """How its request ended; empty for a seed that no walker has reached yet."""
    links: list[str] = msgspec.field(default_factory=list)
    """Distinct pages in scope that it links to, or a random sample of them if there are more than `links_max`."""


class Walker(msgspec.Struct, array_like=True):
    """One walk."""

    at: tuple[int, int] | None = None
    """Partition and fingerprint of the walker's page; None: it restarts."""
    awaits: str = ""
    """The page that the walker waits for."""
    steps: int = 0
    number: int = 0


class WalkCounts(msgspec.Struct, array_like=True):
    """Progress of all walks in this shard together."""

    steps: int = 0
    restarts: int = 0
    hosts: int = 0
    """Hosts at which a walk may restart."""
    fetched: int = 0
    """Different pages that were fetched."""
    begun: int = 0
    """Walkers that began here; those of other shards began in the first."""
    elsewhere: dict[int, int] = msgspec.field(default_factory=dict)
    """The number of `hosts` of each other shard that has some."""
    hosts_sent: int = 0
    """The number of `hosts` that the other shards know."""


_decode_page = msgspec.msgpack.Decoder(WalkedPage).decode
_decode_walker = msgspec.msgpack.Decoder(Walker).decode
_decode_place = msgspec.msgpack.Decoder(tuple[int, str]).decode


class WalkedPages:
    """Pages by URL, and random pages. About 3 µs for a read or change, and 0.1 µs for each stored link."""

    def __init__(self, epochs: Epochs, dice: Dice) -> None:
        self._epochs = epochs
        self._dice = dice
        stored = epochs.get("walk", WALK_COUNTS)
        self.counts = WalkCounts() if stored is None else msgspec.msgpack.decode(stored, type=WalkCounts)

    def page(self, partition: int, fingerprint: int) -> WalkedPage | None:
        """Return a page, or None."""
        stored = self._epochs.get("walk", _page_key(partition, fingerprint))
        return _decode_page(stored) if stored is not None else None

    def put(self, url: Url, page: WalkedPage) -> None:
        """Store a page with this epoch."""
        self._epochs.put("walk", _page_key(url.partition, url.fingerprint), msgspec.msgpack.encode(page))

    def begin_at(self, url: Url) -> None:
        """Let walks restart at a page. Call it once per page."""
        known = url.partition.to_bytes(2) + b"n" + url.host.encode()
        stored = self._epochs.get("walk", known)
        number = int.from_bytes(stored) if stored is not None else 0
        if not number:
            host = msgspec.msgpack.encode((url.partition, url.host))
            self._epochs.put("walk", WALKED_HOSTS + self.counts.hosts.to_bytes(8), host)
            self.counts.hosts += 1
        self._epochs.put("walk", known, (number + 1).to_bytes(8))
        self._epochs.put("walk", _index_key(url.partition, url.host, number), url.fingerprint.to_bytes(8))

    def draw(self) -> tuple[int, int] | None:
        """Return a random page of a random host, as partition and fingerprint; None while none is known."""
        if not self.counts.hosts:
            return None
        stored = self._epochs.get("walk", WALKED_HOSTS + self._dice.below(self.counts.hosts).to_bytes(8))
        assert stored is not None
        partition, host = _decode_place(stored)
        pages = self._epochs.get("walk", partition.to_bytes(2) + b"n" + host.encode())
        assert pages is not None
        number = self._dice.below(int.from_bytes(pages))
        fingerprint = self._epochs.get("walk", _index_key(partition, host, number))
        assert fingerprint is not None
        return partition, int.from_bytes(fingerprint)

    def walkers(self, count: int) -> dict[int, Walker]:
        """Return the walkers that were here in the last epoch, by number, and new ones until `count` have begun."""
        stored = self._epochs.scan("walk", *under(WALKERS))
        found = {int.from_bytes(key[len(WALKERS) :]): _decode_walker(value) for key, value in stored}
        counts = self.counts
        if count and not counts.begun:  # Earlier versions counted the steps of all walkers together.
            counts.begun = len(found)
            for number, walker in found.items():
                walker.number = number
                walker.steps = -(-counts.steps // len(found))
        found |= {number: Walker(number=number) for number in range(counts.begun, count)}
        counts.begun = max(counts.begun, count)
        return found

    def remove(self, walker: Walker) -> None:
        """Delete a walker that goes on in another shard."""
        self._epochs.delete("walk", WALKERS + walker.number.to_bytes(2))

    def cut(self, walkers: Iterable[Walker]) -> None:
        """Write the position of every walker to the open epoch, a few bytes each."""
        for walker in walkers:
            self._epochs.put("walk", WALKERS + walker.number.to_bytes(2), msgspec.msgpack.encode(walker))
        self._epochs.put("walk", WALK_COUNTS, msgspec.msgpack.encode(self.counts))


def has_walked(epochs: Epochs) -> bool:
    """Return whether a crawl with a commit is a walk: then each of its commits has the counts."""
    return epochs.get("walk", WALK_COUNTS) is not None


def all_pages(*shards: Epochs) -> Iterator[tuple[int, WalkedPage]]:
    """Yield fingerprint and record of every page. One pass over all walked pages."""
    for epochs in shards:
        for key, value in epochs.scan("walk", *PARTITIONED):
            if key[2:3] == b"p":
                yield int.from_bytes(key[3:]), _decode_page(value)


def _page_key(partition: int, fingerprint: int) -> bytes:
    return partition.to_bytes(2) + b"p" + fingerprint.to_bytes(8)


def _index_key(partition: int, host: str, number: int) -> bytes:
    return partition.to_bytes(2) + b"i" + host.encode() + b"\0" + number.to_bytes(8)


ARRIVALS_MIN = 1e-3
"""Lower bound of λ: a page without a known link to it was a seed, or the link was not kept."""
ITERATIONS = 12
"""More than enough, since each iteration divides the error by at least three."""


class Drawn(msgspec.Struct, frozen=True):
    """A page of the sample."""

    url: str
    visits: int
    """How often walkers arrived."""
    weight: float
    """Inverse of its probability to be reached, scaled to a mean of 1, for estimates over all walked pages."""


def sample(shards: Sequence[Epochs], size: int, restart_share: float, name_url: NameUrl, dice: Dice) -> list[Drawn]:
    """Draw `size` different fetched pages of a crawl's shards, or all if there are fewer. `size` should be far below
    the number of fetched pages.

    Four passes over all walked pages: about 2 µs a link, and 400 bytes of memory for each linked page.
    """
    arrivals, seed_share = _arrivals(shards, restart_share, name_url)
    # The largest of these keys are a weighted sample without replacement (Efraimidis and Spirakis 2006).
    keyed: list[tuple[float, float, str, int]] = []
    total = 0.0
    for fingerprint, page in all_pages(*shards):
        if page.outcome == "fetched":
            reached = seed_share if page.seed else -expm1(-max(arrivals.get(fingerprint, 0.0), ARRIVALS_MIN))
            weight = 1.0 / reached
            total += weight
            keyed.append((log1p(-dice.uniform(0.0, 1.0)) / weight, weight, page.url, page.visits))
    keyed.sort(reverse=True)
    mean = total / len(keyed) if keyed else 1.0
    return [Drawn(url, visits, weight / mean) for _, weight, url, visits in keyed[:size]]


def _arrivals(shards: Sequence[Epochs], restart_share: float, name_url: NameUrl) -> tuple[dict[int, float], float]:
    """Return λ by fingerprint, and the share of the seeds that were reached."""
    visits: Counter[int] = Counter()
    hosts: Counter[str] = Counter()
    for _, page in all_pages(*shards):
        visits[min(page.visits, 3)] += bool(page.outcome)
        hosts[_host_of(page)] += page.outcome == "fetched"
    seeds = [bool(page.outcome) for _, page in all_pages(*shards) if page.seed]
    once = min(1.0, 2.0 * max(visits[2], 1) / max(visits[1], 1))
    restarts = sum(WalkedPages(epochs, Dice(0)).counts.restarts for epochs in shards) / max(len(hosts), 1)

    def observed(_: int, page: WalkedPage) -> float:
        if page.seed:
            return float(page.visits)
        return once if page.visits <= 1 else _poisson_mean(page.visits)

    first = _follow(shards, restart_share, name_url, observed)

    def expected(fingerprint: int, page: WalkedPage) -> float:
        if page.seed:
            return float(page.visits)
        arrivals = max(first.get(fingerprint, 0.0), ARRIVALS_MIN)
        return arrivals - expm1(-arrivals) * restarts / max(hosts[_host_of(page)], 1)

    return _follow(shards, restart_share, name_url, expected), sum(seeds) / max(len(seeds), 1)


def _follow(
    shards: Sequence[Epochs], restart_share: float, name_url: NameUrl, visits_of: Callable[[int, WalkedPage], float]
) -> dict[int, float]:
    """Return the expected arrivals by link at each page, by fingerprint, from the visits to all pages."""
    arrivals: dict[int, float] = {}
    for fingerprint, page in all_pages(*shards):
        if not page.links:
            continue
        share = visits_of(fingerprint, page) * (1.0 - restart_share) / len(page.links)
        for text in page.links:
            if (url := name_url(text)) is not None:
                arrivals[url.fingerprint] = arrivals.get(url.fingerprint, 0.0) + share
    return arrivals


def _host_of(page: WalkedPage) -> str:
    return page.url.split("/", 3)[2]


def _poisson_mean(visits: int) -> float:
    """Return the λ for which λ / (1 - exp(-λ)) is `visits`, at least 2."""
    expected = float(visits)
    for _ in range(ITERATIONS):
        expected = -visits * expm1(-expected)
    return expected
