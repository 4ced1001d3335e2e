"""Sites share an address fairly, however many hosts each of them has; and one site does not fill the bench."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gossamer.model.links import Link
from gossamer.model.visits import Contact
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import Lease
from gossamer.stages.frontier.limits import PAGES_A_HOST, TURNS_MAX
from gossamer.stages.frontier.options import PolitenessOptions
from tests.stages.frontier.disk import check_disk
from tests.stages.frontier.names import T0, Shard, named

FETCH_S = 0.05
ADDRESS_DELAY_S = 0.1
SHARED = PolitenessOptions(preset="polite", delay_s_min=0.0, delay_factor=0.0, address_delay_s=ADDRESS_DELAY_S)
"""Hosts have no delay of their own: what is shared is the address alone."""
Web = Callable[[str, int], list[tuple[str, int]]]
"""What a page names: from URL and depth to URLs and depths."""


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    made = Shard(tmp_path, SHARED, active_site_hosts_first=8)
    yield made
    made.crash()


class World:
    """A web under a clock of its own: requests take `FETCH_S`, and what their pages name is queued when it is new."""

    def __init__(self, shard: Shard, address_of: Callable[[str], str], web: Web) -> None:
        self.shard = shard
        self.frontier: Frontier = shard.open(T0)
        self.now = T0
        self.fetched: Counter[str] = Counter()
        self.hosts: dict[str, Counter[str]] = {}
        self.order: list[str] = []
        self.benched_most: Counter[str] = Counter()
        self._address_of = address_of
        self._web = web
        self._known: set[str] = set()
        self._under_way: list[tuple[float, Lease]] = []

    def add(self, *found: tuple[str, int]) -> None:
        for text, depth in found:
            if text not in self._known:
                self._known.add(text)
                self.frontier.add(Link(named(text), "anchor", depth), min(depth, 7), self.now)

    def run(self, for_s: float, requests_max: int = 1 << 30) -> None:
        until = self.now + for_s
        while self.now < until and sum(self.fetched.values()) < requests_max:
            self._begin_all()
            instants = [at for at, _ in self._under_way]
            wake_at = self.frontier.wake_at()
            if wake_at is not None:
                assert wake_at > self.now, "nothing is to be had now"
                instants.append(wake_at)
            if not instants:
                return
            self.now = min(instants)
            for at, lease in [one for one in self._under_way if one[0] <= self.now]:
                self._under_way.remove((at, lease))
                self._end(lease)
            if sum(self.fetched.values()) % 100 == 0:
                self.shard.commit_all(self.now)

    def die(self) -> None:
        """Lose all that is in memory, right after a commit."""
        self.shard.commit_all(self.now)
        self.shard.crash()
        self._under_way = []
        self.frontier = self.shard.open(self.now)

    def _begin_all(self) -> None:
        frontier = self.frontier
        while (lease := frontier.select(self.now)) is not None:
            if not lease.address:
                frontier.locate(lease, self._address_of(lease.url.host), self.now + 1e9, self.now)
            elif frontier.begin(lease, self.now):
                self._under_way.append((self.now + FETCH_S, lease))
            else:
                frontier.return_lease(lease, self.now)
        active = Counter(host.site.name for host in frontier.scheduler.active.values() if host.site is not None)
        self.benched_most |= active

    def _end(self, lease: Lease) -> None:
        self.frontier.ended(lease, Contact(FETCH_S, "answered"), self.now)
        self.frontier.finish(lease, "fetched", self.now)
        url = lease.url
        self.fetched[url.site] += 1
        self.hosts.setdefault(url.site, Counter())[url.host] += 1
        self.order.append(url.host)
        self.add(*self._web(url.text, lease.visit.depth))


def innocent(text: str, depth: int) -> list[tuple[str, int]]:
    """A site of one host with as many pages as there is time for."""
    root, _, number = text.rpartition("/")
    return [(f"{root}/{2 * int(number) + n}", depth + 1) for n in (1, 2)]


def farm(text: str, depth: int, branching: int = 10) -> list[tuple[str, int]]:
    """Each page names hosts that nobody named before."""
    scheme, _, rest = text.partition("://")
    host = rest.partition("/")[0].partition(":")[0]
    first, _, site = host.partition(".") if host.count(".") > 1 else ("", "", host)
    return [(f"{scheme}://{first or 'x'}{n}.{site}/", depth + 1) for n in range(branching)]


def mixed(text: str, depth: int) -> list[tuple[str, int]]:
    """The same, on all schemes and many ports."""
    found = farm(text, depth, 6)
    ways = ("http://{}/", "https://{}/", "http://{}:8080/", "https://{}:8443/", "http://{}:81/x", "https://{}:82/y")
    return [(way.format(url.partition("://")[2][:-1]), at) for way, (url, at) in zip(ways, found, strict=True)]


def web_of(farms: Web) -> Web:
    return lambda text, depth: innocent(text, depth) if "innocent" in text else farms(text, depth)


@pytest.mark.heavy
@pytest.mark.promise(
    "Order and fairness", "Sites with queued URLs at one address get equal turns there, with any number of hosts each."
)
@pytest.mark.parametrize(
    ("farms", "sites"),
    [
        (farm, ["farm.test"]),
        (lambda text, depth: farm(text, depth, 1), ["farm.test"]),  # A chain: always one host, always a new one.
        (lambda text, depth: farm(text, depth, 2), ["farm.test"]),
        (mixed, ["farm.test"]),
        (farm, ["farm.test", "farm2.test", "farm3.test"]),
    ],
    ids=["tree", "chain", "pairs", "schemes and ports", "three domains"],
)
def test_a_farm_leaves_the_innocent_its_share_of_the_address(shard: Shard, farms: Web, sites: list[str]) -> None:
    world = World(shard, lambda _: "10.0.0.1", web_of(farms))
    world.add(("http://www.innocent.test/0", 0), *((f"http://{site}/", 0) for site in sites))
    world.run(300.0)
    turns = sum(world.fetched.values())
    assert turns > 0.9 * 300.0 / (FETCH_S + ADDRESS_DELAY_S), "the address is busy all the time"
    fair = turns / (1 + len(sites))
    assert world.fetched["innocent.test"] >= 0.97 * fair
    assert min(world.fetched[site] for site in sites) >= 0.97 * fair, "and so does each domain of the farm"
    check_disk(shard.store)


def test_at_an_address_of_its_own_a_site_does_not_feel_a_farm(tmp_path: Path) -> None:
    def pace(*more: str) -> int:
        run = Shard(tmp_path / f"run{len(more)}", SHARED, active_site_hosts_first=8)
        world = World(run, lambda host: "10.0.0.2" if "innocent" in host else "10.0.0.1", web_of(farm))
        world.add(("http://www.innocent.test/0", 0), *((text, 0) for text in more))
        world.run(100.0)
        run.crash()
        return world.fetched["innocent.test"]

    (tmp_path / "run0").mkdir()
    (tmp_path / "run1").mkdir()
    assert pace("http://farm.test/") >= 0.98 * pace()


def test_a_farm_at_many_addresses_has_so_many_places_and_earns_more_slowly(shard: Shard) -> None:
    world = World(shard, lambda host: f"10.0.{len(host)}.{hash_of(host) % 256}", web_of(farm))
    world.add(("http://www.innocent.test/0", 0), ("http://farm.test/", 0))
    world.run(1_000.0, requests_max=600)
    pages = world.fetched["farm.test"]
    assert pages > 300
    assert world.benched_most["farm.test"] <= 8 + pages // PAGES_A_HOST
    assert world.frontier.counts.working > 10 * world.benched_most["farm.test"], "the others wait on disk"
    shard.commit_all(world.now)
    entries = sum(1 for _ in shard.store.scan("waiting", b"\0\0", b"\xff\xff"))
    assert entries > 500
    check_disk(shard.store, world.frontier)


def hash_of(host: str) -> int:
    return sum(ord(letter) * (at + 1) for at, letter in enumerate(host))


def test_a_large_site_of_many_hosts_is_fetched_whole_also_after_deaths(shard: Shard) -> None:
    """A blog platform: five hundred hosts of three pages each, all found on one page."""

    def platform(text: str, depth: int) -> list[tuple[str, int]]:
        if text == "http://www.platform.test/":
            return [(f"http://blog{n}.platform.test/", 1) for n in range(500)]
        return [(f"{text}{n}", depth + 1) for n in (1, 2)] if text.endswith("/") else []

    world = World(shard, lambda host: f"10.0.0.{hash_of(host) % 64}", platform)
    world.add(("http://www.platform.test/", 0))
    for requests in (1, 100, 400, 900):
        world.run(1e6, requests_max=requests)
        world.die()
        check_disk(shard.store, world.frontier)
    world.run(1e6)
    assert len(world.hosts["platform.test"]) == 501
    shard.commit_all(world.now)
    assert world.frontier.counts.pending == 0
    assert world.frontier.counts.working == 0
    assert not list(shard.store.scan("waiting", b"\0\0", b"\xff\xff"))


def test_depth_counts_across_the_hosts_of_a_site(shard: Shard) -> None:
    """Deep hosts wait behind shallow ones: most of what is near is fetched before most of what is deep."""
    world = World(shard, lambda _: "10.0.0.1", lambda text, depth: [])
    found = [(f"http://deep{n}.farm.test/", 7) for n in range(200)] + [
        (f"http://near{n}.farm.test/", 1) for n in range(200)
    ]
    world.add(*found)
    world.run(1e6)
    assert len(world.order) == 400
    near = [at for at, host in enumerate(world.order) if host.startswith("near")]
    assert sum(near) / len(near) < 120, "the mean place would be 199 by chance, and is 100 by depth alone"


@pytest.mark.heavy
def test_large_hosts_make_room_for_the_others_of_their_site(tmp_path: Path) -> None:
    """Eight hosts with pages without end do not keep the others from their turn."""
    shard = Shard(tmp_path, SHARED, active_site_hosts_first=8, active_hosts_max=16)  # Never more than eight of a site.
    world = World(shard, lambda host: f"10.0.0.{hash_of(host) % 16}", innocent)
    world.add(*((f"http://large{n}.innocent.test/0", 0) for n in range(8)))
    world.run(1.0)
    world.add(*((f"http://small{n}.innocent.test/0", 3) for n in range(20)))
    world.run(500.0)
    assert world.benched_most["innocent.test"] == 8
    assert len(world.hosts["innocent.test"]) == 28
    shard.crash()


def test_a_host_that_waits_for_its_robots_txt_leaves_its_place_to_nobody(shard: Shard) -> None:
    frontier = shard.open(T0)
    for n in range(20):
        frontier.add(Link(named(f"http://h{n}.farm.test/"), "anchor", 1), 1, T0)
    url = named("http://h0.farm.test/")
    host = frontier.hosts.get(url.host, url.partition)
    host.turns = TURNS_MAX
    frontier.control.park(url, T0)
    frontier.scheduler.schedule(host, T0)
    assert host.on_workbench
    frontier.control.unpark(url, T0)
    assert not host.on_workbench, "it has had its turns, and others of its site wait"


def test_a_host_that_waits_moves_up_when_something_urgent_of_it_is_found(shard: Shard) -> None:
    frontier = shard.open(T0)
    for n in range(20):
        frontier.add(Link(named(f"http://h{n}.farm.test/"), "anchor", 7), 7, T0)
    waiting = frontier.hosts.get("h15.farm.test", named("http://h15.farm.test/").partition)
    assert waiting.record.index_family == "waiting"
    frontier.add(Link(named("http://h15.farm.test/now"), "seed", 0), 0, T0)
    shard.commit_all(T0)
    (key,) = [key for key, _ in shard.store.scan("waiting", b"\0\0", b"\xff\xff") if key.endswith(b"h15.farm.test")]
    assert key[key.index(b"\0", 2) + 1] == 0
