"""Several shards end where one does, whatever the wire does."""

from __future__ import annotations

import asyncio
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from gossamer.api import scale_crawl
from gossamer.api.life import ShardLife
from gossamer.api.looking import merge_answers
from gossamer.api.low_water import bring_seeds
from gossamer.api.seeding import Seeding
from gossamer.assembly.building import assemble
from gossamer.config import configure
from gossamer.lab.simweb.judge import judge, repeats
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Scope, Truth
from gossamer.model.errors import ConfigError
from gossamer.model.links import SEED_ARGUMENT
from gossamer.model.verbs import Seed
from gossamer.results.offline.segment import Segment
from gossamer.state.schema import SEEDED
from gossamer.url.name import Namer
from tests.answering import Answering, serving
from tests.cluster.crawls import WORKERS, begun, config_of, crawl, ended
from tests.faults.shards import Shards, ends_of
from tests.further import with_further
from tests.results.offline.segments import segment_of
from tests.ring.crawls import OWN
from tests.ring.test_politeness import PROMISES, keys
from tests.ring.test_truth import SMALL

OFFLINE = {"allow_private": True, "contact": "a@example.org", "mode": "offline"}
ODD = SimwebOptions(
    seed=7, hosts=24, pages=120, shares={"robots_stall": 0, "redirects": 0.3}, links_per_page=10, same_host_share=0.4,
    **SMALL,
)  # fmt: skip


@pytest.mark.heavy
def test_two_shards_ask_for_each_page_of_a_plain_web_once(tmp_path: Path) -> None:
    options = SimwebOptions.plain(seed=7, hosts=10, pages=300)
    with SimwebProcess(options, tmp_path / "web") as simweb:
        config = config_of(simweb, tmp_path / "crawl", 2)
        ends, _ = crawl(config, tmp_path / "crawl", 2)
        walked = Truth(simweb.web).walk(simweb.seeds)
        assert walked.differences(ends, simweb.web) == []
        asked = [(one.host, one.path) for one in simweb.requests() if one.path != "/robots.txt"]
    assert len(asked) == len(set(asked)), "a page was asked for twice"


@pytest.mark.heavy
@pytest.mark.promise("Several shards", "A batch crawl ends with the same pages on one shard and on several.")
@pytest.mark.parametrize("shards", with_further(3, 2, 8))
@pytest.mark.long
def test_the_final_set_of_pages_is_that_of_one_shard(tmp_path: Path, shards: int) -> None:
    """The truth is what one shard ends with too: `tests/ring/test_truth.py`."""
    with SimwebProcess(ODD, tmp_path / "web") as simweb:
        config = config_of(simweb, tmp_path / "crawl", shards)
        ends, running = crawl(config, tmp_path / "crawl", shards)
        walked = Truth(simweb.web).walk(simweb.seeds)
    missing = {url for url, page in walked.pages.items() if url not in ends and page.allows("host_closed")}
    ends |= dict.fromkeys(missing, "host_closed")
    assert walked.differences(ends, simweb.web) == []
    assert running.deaths == 0


@pytest.mark.heavy
@pytest.mark.promise(
    "Several shards", "One shard at a time sends requests to an address, and its delays hold for all shards."
)
def test_no_promise_is_broken_over_several_shards(tmp_path: Path) -> None:
    """Sites on different shards share addresses: the servers' log knows nothing of shards."""
    promise = PROMISES["polite"]
    web = SimwebOptions(
        seed=7, hosts=24, pages=160, links_per_page=6, latency_s=0.01, names_per_address=8, same_host_share=0.5,
        behaviours=("robots_404", "robots_part", "robots_redirect_host"),
    )  # fmt: skip
    with SimwebProcess(web, tmp_path / "web") as simweb:
        config = config_of(simweb, tmp_path / "crawl", 4, *keys("polite"))
        ends, running = crawl(config, tmp_path / "crawl", 4)
        walked = Truth(simweb.web).walk(simweb.seeds)
        log = simweb.requests()
    assert walked.differences(ends, simweb.web) == []
    assert judge(log, promise, simweb.web) == []
    assert running.deaths == 0


@pytest.mark.heavy
@pytest.mark.parametrize("scope", ["host", "domain", "prefix"])
def test_what_redirects_of_seeds_bring_in_is_found_on_every_shard(tmp_path: Path, scope: Scope) -> None:
    behaviours = ("redirects", "robots_part", "frames", "distinct")
    options = SimwebOptions(seed=11, hosts=12, pages=200, behaviours=behaviours, same_host_share=0.5, links_per_page=12)
    with SimwebProcess(options, tmp_path / "web") as simweb:
        web = simweb.web
        page = next(web.url(web.hosts[0], number) for number in range(1, 10) if web.hosts[0].pages > number)
        seeds = (page, web.front(web.hosts[4])) if scope == "prefix" else (web.fronts[0], web.fronts[4])
        config = config_of(simweb, tmp_path / "crawl", 3, seeds=seeds, scope=scope)
        ends, _ = crawl(config, tmp_path / "crawl", 3)
        assert Truth(web).walk(seeds, scope).differences(ends, web) == []


@pytest.mark.heavy
@pytest.mark.parametrize(("seed", "depth"), with_further((5, 6), (3, 4)))
def test_a_depth_reaches_what_it_reaches_in_one_shard(tmp_path: Path, seed: int, depth: int) -> None:
    """A shorter way may come from another shard after the longer one was gone."""
    behaviours = ("redirects", "slow", "robots_part", "nofollow", "frames", "distinct", "copies", "mirror")
    options = SimwebOptions(
        seed=seed, hosts=20, pages=200, behaviours=behaviours, shares={"slow": 0.2, "redirects": 0.6},
        slow_s_median=0.03, children_per_page=2, links_per_page=12,
    )  # fmt: skip
    with SimwebProcess(options, tmp_path / "web") as simweb:
        config = config_of(simweb, tmp_path / "crawl", 4, max_depth=depth)
        ends, _ = crawl(config, tmp_path / "crawl", 4)
        assert Truth(simweb.web).walk(simweb.seeds, depth_max=depth).differences(ends, simweb.web) == []


@pytest.mark.heavy
def test_a_limit_on_pages_counts_over_all_shards(tmp_path: Path) -> None:
    options = SimwebOptions.plain(seed=3, hosts=12, pages=400)
    with SimwebProcess(options, tmp_path / "web") as simweb:
        config = config_of(simweb, tmp_path / "crawl", 3, max_pages=150)
        running = Shards(config, tmp_path / "crawl", 3, assemble)
        assert asyncio.run(running.run()) == "limit"
        asked = {(one.host, one.path) for one in simweb.requests() if one.path != "/robots.txt"}
    ends = ends_of(config, tmp_path / "crawl", 3)
    assert list(ends.values()).count("fetched") == 150
    assert len(asked) == 150


@pytest.mark.promise(
    "Order and fairness",
    "A batch crawl waits no longer than its patience for a server, and names the URLs that it leaves queued.",
)
def test_shards_end_when_all_that_is_left_waits_for_longer_than_the_patience(tmp_path: Path) -> None:
    """One host asks for a day: the others are fetched, all shards end, and its URLs stay queued."""

    class AsksForADay(Answering):
        def get(self) -> None:
            if self.path == "/robots.txt":
                self.answer(404)
            else:
                self.answer(503, b"", ("Retry-After", "86400"))

    with ThreadingHTTPServer(("127.0.0.1", 0), AsksForADay) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            with SimwebProcess(SimwebOptions.plain(seed=3, hosts=6, pages=40), tmp_path / "web") as simweb:
                waiting = f"http://127.0.0.1:{server.server_port}/"
                config = config_of(simweb, tmp_path / "crawl", 3, seeds=(*simweb.seeds, waiting))
                assert asyncio.run(Shards(config, tmp_path / "crawl", 3, assemble).run()) == "patience"
                asked = {(one.host, one.path) for one in simweb.requests() if one.path != "/robots.txt"}
        finally:
            server.shutdown()
    assert len(asked) >= 40, "all pages of the others, and their sitemaps"


def test_shards_take_in_a_segment_each_its_part_of_it(tmp_path: Path) -> None:
    with SimwebProcess(SimwebOptions.plain(seed=3, hosts=6, pages=40), tmp_path / "web") as simweb:
        fronts = simweb.web.fronts
        segment = segment_of(tmp_path / "one.segment", [(front, 3, 0) for front in fronts])
        config = config_of(simweb, tmp_path / "crawl", 3, "crawl.mode='offline'", seeds=(str(segment),))
        ends, _ = crawl(config, tmp_path / "crawl", 3)
    assert sorted(ends) == sorted(url.key for front in fronts if (url := Namer().name(front)) is not None)
    assert set(ends.values()) == {"fetched"}


@pytest.mark.promise("Several shards", "More seeds are requested when few hosts are left in all shards.")
def test_a_command_brings_seeds_to_all_shards_until_it_has_none(tmp_path: Path) -> None:
    """It prints one seed at a time; each is in the scope of all shards."""
    with SimwebProcess(SimwebOptions.plain(seed=3, hosts=6, pages=60), tmp_path / "web") as simweb:
        seeds = simweb.web.fronts
        (tmp_path / "seeds").write_text("".join(f"{seed}\n" for seed in seeds[1:]))
        (tmp_path / "more.sh").write_text(f"head -n 1 {tmp_path}/seeds; sed -i 1d {tmp_path}/seeds")
        command = f"frontier.more_seeds_command=['sh', '{tmp_path}/more.sh']"
        given = config_of(simweb, tmp_path / "crawl", 3, command, seeds=seeds[:1], scope="host")
        told: list[str] = []

        async def meddle(running: Shards) -> None:
            async def add(request: Seed) -> object:
                added = []
                for member in running.members.values():
                    assert member.assembled is not None
                    seeding = Seeding(member.assembled)
                    added.append(msgspec.structs.asdict(seeding.add(request.urls, SEED_ARGUMENT)))
                return merge_answers(added)

            if running.coordination.wants_seeds:
                if await bring_seeds(given, tmp_path / "crawl", add, told.append):
                    running.coordination.note_seeds()
                else:
                    running.coordination.end_seeds()

        ends, _ = crawl(given, tmp_path / "crawl", 3, meddle)
        walked = Truth(simweb.web).walk(seeds, "host")
        assert walked.differences(ends, simweb.web) == []
        assert repeats(simweb.requests(), simweb.web) == {}
    assert told == ["few hosts are left, and there are no more seeds"]


LAST_FIRST = r"""
import msgspec
from gossamer.model.links import Link
from gossamer.stages.frontier.strategy import Strategy

KEY = b"\xff\xfflast_first"


class LastFirst(Strategy):
    def __init__(self, *, gates, epochs, name_url, dice):
        self._gates, self._epochs = gates, epochs
        stored = epochs.get("meta", KEY)
        self._held = [] if stored is None else msgspec.msgpack.decode(stored, type=list[tuple[Link, int]])

    def hold(self, link, level, now):
        self._held.append((link, level))
        return True

    def can_offer(self):
        return bool(self._held) and self._gates.counts.pending < 8

    def offer(self, now):
        while self.can_offer():
            self._gates.queue(*self._held.pop(), now)

    def cut(self, now):
        self._epochs.put("meta", KEY, msgspec.msgpack.encode(self._held))
"""


def test_each_shard_has_a_frontier_component_of_its_own(tmp_path: Path) -> None:
    """It holds the shard's URLs, across a stop; the crawl cannot be divided otherwise."""
    (tmp_path / "last_first.py").write_text(LAST_FIRST)
    own = f"components.frontier='{tmp_path / 'last_first.py'}:LastFirst'"
    directory = tmp_path / "crawl"
    with SimwebProcess(SimwebOptions.plain(seed=3, hosts=6, pages=60), tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 3, own)
        begun(config, directory, 3, pages=20)
        with pytest.raises(ConfigError, match=r"components.frontier = .* cannot be divided"):
            scale_crawl(directory, 2)
        ends = ended(config, directory, 3)
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        assert repeats(simweb.requests(), simweb.web) == {}


@pytest.mark.promise("Offline crawls", "Each URL of a segment is fetched or listed in the remainder.")
@pytest.mark.parametrize("limit", ["limits.max_pages=3", "frontier.hosts_min=9"])
def test_each_shard_leaves_a_remainder_of_its_own(tmp_path: Path, limit: str) -> None:
    options = SimwebOptions.plain(seed=3, hosts=12, pages=240, latency_s=0.05)
    with SimwebProcess(options, tmp_path / "web") as simweb:
        urls = sorted(Truth(simweb.web).walk(simweb.seeds).pages)
        segment = segment_of(tmp_path / "one.segment", [(url, 3, 0) for url in urls])
        sets = ("crawl.mode='offline'", "crawl.concurrency=4", limit)
        config = config_of(simweb, tmp_path / "crawl", 2, *sets, seeds=(str(segment),))
        end = asyncio.run(Shards(config, tmp_path / "crawl", 2, assemble).run())
        ends = ends_of(config, tmp_path / "crawl", 2)
    assert end == ("limit" if "pages" in limit else "low_water")
    rests = [Segment(path) for path in sorted((tmp_path / "crawl").glob("remainder-00[01].parquet"))]
    left = [link.url.key for rest in rests for batch in rest.links() for link in batch.links]
    assert left
    assert sorted([*ends, *left]) == urls


def test_a_shard_that_takes_in_a_segment_of_others_is_not_idle(tmp_path: Path) -> None:
    """Rows that are not its own leave no trace in its queues, and there may be millions of them."""
    segment = segment_of(tmp_path / "one.segment", [("http://a.test/", 3, 0)])
    config = configure(options=OFFLINE, sets=("cluster.workers=2",), seeds=(str(segment),))

    async def work() -> None:
        shard = assemble(config, tmp_path / "crawl", shard=0, shards=2)
        try:
            assert shard.membership is not None
            shard.kept.storage.epochs.put("meta", SEEDED, b"1")
            life = ShardLife(shard)
            assert not life.seeding.busy()
            assert shard.membership.seeding()
        finally:
            await shard.close()

    asyncio.run(work())


LICENSE = b"""<rsl xmlns="https://rslstandard.org/rsl"><content url="/paid/"><license>
<prohibits type="usage">search</prohibits></license></content></rsl>"""


def test_a_license_on_a_host_of_another_shard_is_read_once_by_each(tmp_path: Path) -> None:
    asked: list[str] = []

    class Licensed(Answering):
        def get(self) -> None:
            host, license_url = self.headers["Host"], f"http://licenses.test:{self.server.server_address[1]}/l.xml"
            if host.startswith("licenses."):
                asked.append(self.path)
                self.answer(200, LICENSE if self.path == "/l.xml" else b"")
            elif self.path == "/robots.txt":
                self.answer(200, f"License: {license_url}".encode())
            else:
                self.answer(200, b"<a href=/paid/x>x</a>")

    names = [f"site{number}.test" for number in range(8)]
    (tmp_path / "hosts").write_text("".join(f"127.0.0.1 {name}\n" for name in (*names, "licenses.test")))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Licensed)
    with serving(server):
        roots = [f"http://{name}:{server.server_port}/" for name in names]
        config = configure(
            options={"allow_private": True, "hosts": str(tmp_path / "hosts"), "output": str(tmp_path / "crawl")},
            sets=(*OWN, *WORKERS, "cluster.workers=2", 'operator.purpose=["search"]'),
            seeds=roots,
        )
        ends, _ = crawl(config, tmp_path / "crawl", 2)
    assert ends == dict.fromkeys(roots, "fetched") | {f"{root}paid/x": "usage_denied" for root in roots}
    assert 1 <= asked.count("/robots.txt") <= 2
    assert 1 <= asked.count("/l.xml") <= 2


@pytest.mark.promise("Several shards", "A batch crawl ends with the same pages on one shard and on several.")
def test_a_sitemap_on_a_host_of_another_shard_lists_pages_of_each_host_that_names_it(tmp_path: Path) -> None:
    """Half of the hosts name one shared sitemap, the others name one each, all of them elsewhere; one has moved."""

    class Listed(Answering):
        def get(self) -> None:
            port = self.server.server_address[1]
            name = self.headers["Host"].partition(".")[0]
            number = int(name.removeprefix("site").removeprefix("map"))
            at = "0" if number % 2 else str(number)
            listed = [f"http://site{n}.test:{port}/only" for n in ((1, 3, 5, 7, 0) if at == "0" else (number,))]
            if self.path == "/robots.txt":
                self.answer(200, f"Sitemap: http://map{at}.test:{port}/s.xml".encode())
            elif self.path == "/s.xml" and number == 2:
                self.answer(301, b"", ("Location", f"http://map4.test:{port}/moved.xml"))
            elif self.path.endswith(".xml"):
                urls = [f"http://site2.test:{port}/only"] if self.path == "/moved.xml" else listed
                entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
                self.answer(200, f"<urlset>{entries}</urlset>".encode(), media_type="text/xml")
            else:
                self.answer(200, b"<p>hello")

    names = [f"site{number}.test" for number in range(8)]
    maps = [f"map{number}.test" for number in range(8)]
    (tmp_path / "hosts").write_text("".join(f"127.0.0.1 {name}\n" for name in (*names, *maps)))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listed)
    with serving(server):
        roots = [f"http://{name}:{server.server_port}/" for name in names]
        config = configure(
            options={"allow_private": True, "hosts": str(tmp_path / "hosts"), "output": str(tmp_path / "crawl")},
            sets=(*OWN, *WORKERS, "cluster.workers=3"),
            seeds=roots,
        )
        ends, _ = crawl(config, tmp_path / "crawl", 3)
    assert {url for url in ends if url.endswith("/only")} == {f"{root}only" for root in roots}


def test_one_shard_has_no_exchange(tmp_path: Path) -> None:
    """What is off costs nothing: neither the ring nor the frontier knows of other shards."""
    with SimwebProcess(SimwebOptions.plain(hosts=2, pages=5), tmp_path / "web") as simweb:
        config = config_of(simweb, tmp_path / "crawl", 1)
        shard = assemble(config, tmp_path / "crawl")
        assert shard.membership is None
        assert shard.ring.pipeline.stages.exchange.is_alone
        asyncio.run(shard.close())
