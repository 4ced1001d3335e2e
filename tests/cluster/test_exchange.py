"""What links to another shard is kept until it is safe there, comes in order and once, and takes bounded memory."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gossamer.assembly.building import assemble
from gossamer.assembly.home import Home
from gossamer.cluster.channels import Outbox
from gossamer.cluster.exchange import Exchange, RecentlySent, ShardRun
from gossamer.cluster.frames import FRAME_BYTES_MAX, FramePacker, Linking, Root, decode_batch, encode
from gossamer.cluster.options import ClusterOptions
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.prerequisites import RemotePrerequisites, answer_of, result_of
from gossamer.config import configure
from gossamer.model.links import SEED_FILE, Link, Prerequisite
from gossamer.model.visits import Failure, Reply
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.canonical import Canonicalizer
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.clock import WallClock
from tests.cluster.arrived import take_arrived

NAMER = Namer(Canonicalizer())
PARTITIONS = PartitionMap.even(2)
RESEND_S = 5.0


def url(number: int, shard: int) -> Url:
    """Return the number-th address of a shard."""
    found = (NAMER.name(f"https://site{one}.example/page") for one in range(10_000))
    mine = (one for one in found if one is not None and PARTITIONS.owner(one.partition) == shard)
    for _ in range(number):
        next(mine)
    return next(mine)


THEIRS = [one for one in (NAMER.name(f"https://site{n}.example/p") for n in range(6_000)) if one is not None]
THEIRS = [one for one in THEIRS if PARTITIONS.owner(one.partition) == 1]


class Ring:
    def __init__(self) -> None:
        self.links: list[Link] = []
        self.roots: list[tuple[str, str, int]] = []
        self.linking: list[tuple[int, str]] = []
        self.cash: dict[str, float] = {}
        self.asked: list[Prerequisite] = []
        self.answered: list[tuple[Prerequisite, Reply | Failure, bytes]] = []
        self.gone: list[str] = []

    def discover(self, links: Sequence[Link]) -> None:
        self.links += links

    def widen_by_remote_seed(self, seed: Url, target: Url, kind: int) -> None:
        self.roots.append((seed.text, target.text, kind))

    def note_remote_link(self, source: int, site: str, partition: int) -> None:
        assert PARTITIONS.owner(partition) == 1
        self.linking.append((source, site))

    def receive_cash(self, host: str, partition: int, amount: float) -> None:
        assert PARTITIONS.owner(partition) == 1
        self.cash[host] = self.cash.get(host, 0.0) + amount

    def run_for_another(self, prerequisite: Prerequisite) -> bool:
        self.asked.append(prerequisite)
        return True

    def prerequisite_answered(self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes) -> None:
        self.answered.append((prerequisite, result, body))

    def on_failure(self, what: str, error: Exception) -> None:
        raise AssertionError(what) from error

    def on_loss(self, what: str) -> None:
        self.gone.append(what)


async def nothing() -> None: ...


def batches_waiting(member: Member) -> int:
    return sum(max(0, one.last - one.first + 1) for one in member.exchange._outbox.channels.values())


def links_sent(member: Member) -> int:
    return sum(one.links for one in member.exchange._outbox.channels.values())


class Member:
    """One shard's store and exchange; `die` is a death without commit."""

    def __init__(self, number: int, directory: Path, *, needs_cover: bool = False) -> None:
        self.number, self.directory, self.needs_cover = number, directory, needs_cover
        self.opening = 0
        self.start()

    def start(self, *, rolled_back: bool = False) -> None:
        self.opening += 1
        self.store = Store(self.directory, 8 << 20, 8 << 20)
        self.epochs, self.ring = Epochs(self.store), Ring()
        self.exchange = Exchange(
            ShardRun(self.number, self.opening, rolled_back, self.needs_cover), PARTITIONS, self.epochs,
            ClusterOptions(resend_s=RESEND_S), NAMER, WallClock(),
        )  # fmt: skip
        self.exchange.attach(self.ring, nothing)
        assert list(self.exchange.outgoing(100.0)) == [], "no frame before a commit has the opening"
        self.commit()

    def die(self, *, rolled_back: bool = False) -> None:
        self.store.close()
        self.start(rolled_back=rolled_back)

    def commit(self) -> None:
        self.exchange.cut(0.0)
        number = self.epochs.close_at_once()
        self.exchange.on_commit(number)

    def send(self, begin: int, end: int) -> None:
        assert (
            self.exchange.own([Link(one, "anchor", 1, referrer="https://a.example/") for one in THEIRS[begin:end]])
            == []
        )

    @property
    def taken(self) -> list[str]:
        return [link.url.text for link in self.ring.links]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Member, Member]]:
    one, other = Member(0, tmp_path / "0"), Member(1, tmp_path / "1")
    yield one, other
    one.store.close()
    other.store.close()


def carry(one: Member, other: Member, now: float = 100.0, rounds: int = 6) -> None:
    """Let frames go to and fro, and what arrives be committed."""
    for _ in range(rounds):
        for sender, to in ((one, other), (other, one)):
            for _, frame in list(sender.exchange.outgoing(now)):
                to.exchange.take(frame, now)
        for member in (one, other):
            take_arrived(member.exchange)
            member.commit()


def texts(begin: int, end: int) -> list[str]:
    return [one.text for one in THEIRS[begin:end]]


def test_no_part_of_a_batch_takes_more_in_a_frame_than_it_is_counted_with() -> None:
    packer, long = FramePacker(), "x" * 300
    parts = [
        lambda n: packer.add(Link(THEIRS[n], "anchor", n, 0, f"https://{long}.example/")),
        lambda n: packer.add(Link(THEIRS[n], "anchor", 0, 0, f"https://{long}.example/")),
        lambda n: packer.put(Root(long, long, n)),
        lambda n: packer.put(Linking(2**64 - 1, long, n)),
        lambda n: packer.add_cash(f"{n}{long}", n, 0.5),
    ]
    for part in parts:
        counted, taken = packer.bytes, len(encode(packer.batch))
        for number in range(20):
            part(number)
        assert packer.bytes - counted >= len(encode(packer.batch)) - taken > 0
    assert packer.items == 100


@pytest.mark.promise(
    "Several shards", "A link to another shard stays on disk until the receiver's commit or checkpoint holds it."
)
def test_a_batch_goes_with_its_commit_in_order_and_is_dropped_when_it_is_safe(pair: tuple[Member, Member]) -> None:
    one, other = pair
    one.send(0, 500)
    assert list(one.exchange.outgoing(100.0)) != [], "a greeting"
    assert one.exchange.last_sent() == {}, "nothing is sent before it is committed"
    one.commit()
    one.send(500, 900)
    one.commit()
    assert batches_waiting(one) == 2
    carry(one, other)
    assert other.taken == texts(0, 900)
    assert batches_waiting(one) == 0
    assert one.exchange.last_sent() == {1: 0}
    assert other.exchange.last_taken() == {0: (one.exchange.incarnation, 2)}


def test_what_was_sent_lately_is_not_sent_again_but_by_a_shorter_way(pair: tuple[Member, Member]) -> None:
    one, _ = pair
    link = Link(THEIRS[0], "anchor", 3)
    for again in (link, link, Link(THEIRS[0], "anchor", 5), Link(THEIRS[0], "anchor", 2), Link(THEIRS[0], "anchor", 2)):
        one.exchange.own([again])
    one.commit()
    assert links_sent(one) == 2
    one.exchange.own([Link(THEIRS[0], "seed", 9, seed=SEED_FILE)])
    one.commit()
    assert links_sent(one) == 3, "a seed is more than a link"


def test_a_dead_peer_makes_the_outbox_grow_on_disk_and_memory_stays(pair: tuple[Member, Member]) -> None:
    one, other = pair
    sizes = []
    for epoch in range(20):
        one.send(100 * epoch, 100 * (epoch + 1))
        sizes.append(one.exchange.memory_bytes)
        one.commit()
        assert one.exchange.memory_bytes == 0
        sent = sum(len(frame) for _, frame in one.exchange.outgoing(100.0 + RESEND_S * epoch))
        assert sent < 20_000, "one batch at a time, to see whether it is back"
    assert max(sizes) < 1.5 * min(sizes)
    assert batches_waiting(one) == 20
    carry(one, other, 500.0, rounds=20)
    assert other.taken == texts(0, 2000)
    assert batches_waiting(one) == 0


def test_a_receiver_that_dies_before_its_commit_is_sent_the_rest(pair: tuple[Member, Member]) -> None:
    one, other = pair
    carry(one, other)
    one.send(0, 100)
    one.commit()
    for _, frame in list(one.exchange.outgoing(100.0)):
        other.exchange.take(frame, 100.0)
    take_arrived(other.exchange)
    assert len(other.taken) == 100
    other.die()
    assert other.taken == []
    carry(one, other, 101.0)
    carry(one, other, 101.0 + RESEND_S)
    assert other.taken == texts(0, 100)


def test_what_was_lost_on_the_way_is_sent_again_after_a_while(pair: tuple[Member, Member]) -> None:
    one, other = pair
    carry(one, other)
    one.send(0, 100)
    one.commit()
    assert list(one.exchange.outgoing(100.0)), "lost"
    carry(one, other, 100.0 + RESEND_S - 0.1)
    assert other.taken == []
    carry(one, other, 100.0 + RESEND_S)
    assert other.taken == texts(0, 100)


def test_a_sender_that_dies_sends_what_it_committed_and_it_is_taken_once(pair: tuple[Member, Member]) -> None:
    one, other = pair
    one.send(0, 100)
    one.commit()
    carry(one, other)
    one.send(100, 200)
    one.commit()
    one.send(200, 300)  # Of a page that is not committed: it will be fetched again.
    one.die()
    carry(one, other, 101.0)
    assert other.taken == texts(0, 200)
    assert batches_waiting(one) == 0


@pytest.mark.promise(
    "Several shards", "A link to another shard stays on disk until the receiver's commit or checkpoint holds it."
)
def test_a_batch_waits_for_the_receivers_checkpoint_where_there_are_any(tmp_path: Path) -> None:
    one, other = Member(0, tmp_path / "0", needs_cover=True), Member(1, tmp_path / "1", needs_cover=True)
    one.send(0, 100)
    one.commit()
    carry(one, other)
    other.store.checkpoint(tmp_path / "older")
    epoch = other.store.epoch
    one.send(100, 300)
    one.commit()
    carry(one, other)
    assert other.taken == texts(0, 300)
    assert batches_waiting(one) == 2
    other.exchange.on_checkpoint(epoch)
    carry(one, other)
    assert batches_waiting(one) == 1, "it is in a commit, but in no checkpoint"
    assert list(one.exchange.outgoing(100.0)) == [], "it asked a moment ago"
    assert other.exchange.last_taken()[0][1] == one.exchange.last_sent()[1] == 2, (
        "the end of the crawl does not wait for that"
    )
    other.store.close()
    other.directory = tmp_path / "older"
    other.start(rolled_back=True)
    carry(one, other, 101.0)
    carry(one, other, 101.0 + RESEND_S)
    assert other.taken == texts(100, 300), "and only that"
    one.store.close()
    other.store.close()


def test_a_sender_that_went_back_is_another_incarnation(tmp_path: Path) -> None:
    """Its second batch is not the second batch that it sent before."""
    one, other = Member(0, tmp_path / "0", needs_cover=True), Member(1, tmp_path / "1")
    one.send(0, 100)
    one.commit()
    carry(one, other)
    one.store.checkpoint(tmp_path / "older")
    one.send(100, 200)
    one.commit()
    carry(one, other)
    before = one.exchange.incarnation
    one.store.close()
    one.directory = tmp_path / "older"
    one.start(rolled_back=True)
    assert one.exchange.incarnation > before
    one.send(300, 400)
    one.commit()
    carry(one, other, 101.0)
    assert other.taken == [*texts(0, 200), *texts(300, 400)]
    one.store.close()
    other.store.close()


@pytest.mark.parametrize("lost", ["contacts", "all", "nothing"])
def test_a_state_without_contacts_is_an_older_one(tmp_path: Path, lost: str) -> None:
    """A checkpoint has none. One that was never made is an empty directory, and not the first start of its shard."""
    config = configure(options={"contact": "a@example.org"}, sets=("cluster.workers=2",), seeds=["https://a.example/"])

    async def begun(opening: int) -> tuple[int, bool]:
        """Return the incarnation of its exchange, and whether all hosts wait as their contacts are unknown."""
        shard = assemble(config, tmp_path, shard=0, shards=2, opening_min=opening)
        try:
            assert shard.membership is not None
            await shard.kept.committer.commit()
            recovered = shard.kept.storage.contacts.recovered
            return shard.membership.exchange.incarnation, recovered.unknown_at > 0.0
        finally:
            await shard.close()

    assert asyncio.run(begun(1)) == (0, False)
    state = Home(tmp_path, 0, 2).state
    if lost == "contacts":
        (state / "contacts").unlink()
    elif lost == "all":
        shutil.rmtree(state)
    incarnation, waits = asyncio.run(begun(2))
    assert (incarnation > 0) == waits == (lost != "nothing")


def test_state_that_is_older_than_what_was_called_safe_is_reported(tmp_path: Path) -> None:
    one, other = Member(0, tmp_path / "0"), Member(1, tmp_path / "1")
    other.store.checkpoint(tmp_path / "ancient")
    one.send(0, 100)
    one.commit()
    carry(one, other)
    one.send(100, 200)
    one.commit()
    other.store.close()
    other.directory = tmp_path / "ancient"
    other.start(rolled_back=True)
    other.exchange._inbox.next_number(0, one.exchange.incarnation, 1)  # It knew of the sender then.
    carry(one, other, 101.0)
    carry(one, other, 101.0 + RESEND_S)
    assert other.taken == texts(100, 200)
    assert len(other.ring.gone) == 1
    assert "batches 1 to 1 of shard 0 are gone" in other.ring.gone[0]
    one.store.close()
    other.store.close()


def test_what_has_no_room_comes_again(tmp_path: Path) -> None:
    one, other = Member(0, tmp_path / "0"), Member(1, tmp_path / "1")
    other.exchange._options = ClusterOptions(arrived_bytes_max=1 << 20)
    links = [NAMER.name(f"{one.text}/{'x' * 900}{number}") for one in THEIRS[:1500] for number in range(2)]
    one.exchange.own([Link(link, "anchor", 1) for link in links if link is not None])
    one.commit()
    carry(one, other)
    for _, frame in list(one.exchange.outgoing(200.0)):
        other.exchange.take(frame, 200.0)
    carry(one, other, 201.0, rounds=12)
    assert other.taken == [link.text for link in links if link is not None]
    one.store.close()
    other.store.close()


def test_roots_and_linking_sites_travel_with_links(pair: tuple[Member, Member]) -> None:
    one, other = pair
    seed, page = url(0, 0), url(1, 0)
    one.exchange.send_root(seed, THEIRS[3], SEED_FILE)
    for _ in range(2):
        one.exchange.send_linking(page, [Link(THEIRS[0], "anchor", 1), Link(THEIRS[1], "anchor", 1)])
    one.commit()
    assert one.exchange.seeds_sent() == {1: 1}
    carry(one, other)
    assert other.ring.roots == [(seed.text, THEIRS[3].text, SEED_FILE)]
    assert {site for _, site in other.ring.linking} == {THEIRS[0].site, THEIRS[1].site}
    assert len(other.ring.linking) == 2


def test_each_shard_that_has_hosts_of_a_split_site_hears_once_of_a_site_that_links_to_it(tmp_path: Path) -> None:
    namer = Namer(split=["big.test"])
    store = Store(tmp_path, 8 << 20, 8 << 20)
    exchange = Exchange(
        ShardRun(0, 1), PartitionMap.even(3), Epochs(store), ClusterOptions(), namer, WallClock()
    )  # fmt: skip
    hosts = namer.names([f"http://h{number}.big.test/" for number in range(40)])
    links = [Link(url, "anchor", 1) for url in hosts if url is not None]
    assert {exchange.partitions.owner(link.url.partition) for link in links} == {0, 1, 2}
    for _ in range(2):
        exchange.send_linking(url(0, 0), links)
    found = [decode_batch(encode(exchange._outbox.packing(to).batch)).linking for to in (1, 2)]
    assert [[one.site for one in each] for each in found] == [["big.test"]] * 2
    store.close()


def test_cash_arrives_once_whoever_dies_and_that_of_a_lost_epoch_does_not(pair: tuple[Member, Member]) -> None:
    one, other = pair
    host, partition = THEIRS[0].host, THEIRS[0].partition
    for amount in (0.5, 0.25):
        one.exchange.send_cash(host, partition, amount)
    one.commit()
    one.exchange.send_cash(host, partition, 7.0)
    one.die()
    for now in (100.0, 101.0):
        for sender, to in ((one, other), (other, one)):
            for _, frame in list(sender.exchange.outgoing(now)):
                to.exchange.take(frame, now)
    take_arrived(other.exchange)
    assert other.ring.cash == {host: 0.75}
    other.die()
    carry(one, other, 102.0)
    carry(one, other, 102.0 + RESEND_S)
    assert other.ring.cash == {host: 0.75}, "it comes again: what had come was in no commit"
    one.die()
    other.die()
    carry(one, other, 110.0)
    carry(one, other, 110.0 + RESEND_S)
    assert other.ring.cash == {}, "what came is in the commit"


def test_a_prerequisite_is_run_by_the_shard_whose_host_it_is_and_answered_once(pair: tuple[Member, Member]) -> None:
    one, other = pair
    prerequisite = Prerequisite(url(0, 0), THEIRS[0], 1)
    assert one.exchange.run_prerequisite(prerequisite)
    assert not one.exchange.idle
    assert list(one.exchange.outgoing(WallClock().now())), "this one is lost"
    for now in (WallClock().now() + seconds for seconds in (1.0, RESEND_S + 1.0, 2 * RESEND_S + 1.0)):
        carry(one, other, now)
    assert other.ring.asked == [prerequisite], "asked again, and run once"
    reply = Reply(THEIRS[0].text, 200, (("content-type", "text/plain"),), b"", "192.0.2.1", 5.0, 0.1, 10)
    other.exchange.answer_prerequisite(prerequisite, reply, b"Disallow: /")
    carry(one, other, 107.0)
    carry(one, other, 107.0 + RESEND_S)
    [(answered, result, body)] = one.ring.answered
    assert (answered, body) == (prerequisite, b"Disallow: /")
    assert isinstance(result, Reply)
    assert (result.status, result.ip) == (200, "192.0.2.1")
    assert one.exchange.idle


def test_resources_of_rendered_pages_are_asked_for_with_what_they_are_about(pair: tuple[Member, Member]) -> None:
    one, other = pair
    wanted = [
        Prerequisite(url(0, 0), theirs, owner="rendering", subject="script id", is_about_origin=False)
        for theirs in THEIRS[:3]
    ]
    for resource in wanted:
        assert one.exchange.run_prerequisite(resource)
    now = WallClock().now()
    carry(one, other, now)
    assert [(asked.url, asked.subject, asked.is_about_origin) for asked in other.ring.asked] == [
        (resource.url, "script id", False) for resource in wanted
    ]
    body = b"x" * (FRAME_BYTES_MAX - 1_000)
    for asked in other.ring.asked:
        other.exchange.answer_prerequisite(asked, Reply(asked.url.text, 200, (), b"", "192.0.2.1", 5.0, 0.1, 10), body)
    frames = [len(list(other.exchange.outgoing(now + 0.1 * number))) for number in range(4)]
    assert frames == [1, 1, 1, 0], "large ones go one by one"
    carry(one, other, now + RESEND_S + 1.0)
    assert len(other.ring.asked) == 6, "what was lost is asked for again: answers are not kept"


def test_a_prerequisite_without_an_answer_ends_with_a_failure(pair: tuple[Member, Member]) -> None:
    one, _ = pair
    one.exchange.run_prerequisite(Prerequisite(url(0, 0), THEIRS[0], 1))
    list(one.exchange.outgoing(WallClock().now() + 1_000.0))
    [(_, result, _)] = one.ring.answered
    assert isinstance(result, Failure)
    assert result.retry


def test_frames_of_a_process_that_is_no_more_are_not_heard(pair: tuple[Member, Member]) -> None:
    one, other = pair
    one.send(0, 100)
    one.commit()
    late = [frame for _, frame in one.exchange.outgoing(100.0)]
    one.die()
    for _, frame in list(one.exchange.outgoing(101.0)):
        other.exchange.take(frame, 101.0)
    arrived = other.exchange.activity
    for frame in late:
        other.exchange.take(frame, 102.0)
    assert other.exchange.activity == arrived


def test_the_companion_takes_what_arrives(pair: tuple[Member, Member]) -> None:
    one, other = pair
    one.send(0, 100)
    one.commit()

    async def run() -> None:
        running = asyncio.create_task(other.exchange.run())
        for now in (100.0, 101.0):
            for sender, to in ((one, other), (other, one)):
                for _, frame in list(sender.exchange.outgoing(now)):
                    to.exchange.take(frame, now)
        for _ in range(10):  # Turns of the loop: nothing here waits for time.
            await asyncio.sleep(0)
        assert other.exchange.idle
        running.cancel()

    asyncio.run(run())
    assert other.taken == texts(0, 100)


def test_links_for_a_shard_whose_partitions_came_here_are_taken_from_the_outbox(pair: tuple[Member, Member]) -> None:
    one, _ = pair
    for begin in (0, 300, 600):
        one.send(begin, begin + 300)
        one.commit()
    one.number = 1  # As if what the links are for had moved here.
    one.die()

    async def heard() -> None:
        listening = asyncio.ensure_future(one.exchange.run())
        await asyncio.sleep(0)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)

    asyncio.run(heard())
    assert one.taken == texts(0, 900)
    one.commit()
    assert batches_waiting(one) == 0


def test_an_answer_is_taken_once_and_for_the_address_that_was_asked_for() -> None:
    remote, failed = RemotePrerequisites(RESEND_S), Failure("unreachable", "refused")
    wanted = Prerequisite(THEIRS[0], THEIRS[0])
    assert remote.ask(wanted, 1, 0.0)
    (asked,) = remote.to_ask(1, 0.0)
    assert remote.take_answer(answer_of(asked.number + 1, asked.url, failed, b"")) is None
    assert remote.waits
    assert remote.take_answer(answer_of(asked.number, asked.url, failed, b"")) == wanted
    assert remote.take_answer(answer_of(asked.number, asked.url, failed, b"")) is None
    assert remote.ask(wanted, 1, 0.0)
    (asked,) = remote.to_ask(1, 0.0)
    assert remote.take_answer(answer_of(asked.number, THEIRS[1].text, failed, b"")) is None


def test_what_was_sent_recently_is_remembered_as_far_as_there_is_room() -> None:
    sent, places = RecentlySent(1_000), {one.fingerprint % 512: one for one in THEIRS[:200]}
    links = [Link(one, "anchor", 3, 0) for one in places.values()]
    assert len(links) > 100
    assert [sent.adds(link) for link in links] == [True] * len(links)
    assert [sent.adds(link) for link in links] == [False] * len(links)
    assert sent.adds(Link(links[0].url, "anchor", 2, 0)), "a shorter path"


def test_a_restored_outbox_has_a_new_incarnation_also_where_the_clock_was_set_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    found = []
    for restored_at in (1_000.0, 1_000.0, 900.0):
        outbox = Outbox(epochs := Epochs(store), restored_at)
        found.append(outbox.incarnation)
        outbox.cut()
        epochs.close_at_once()
    store.close()
    assert found == [1_000_000, 1_000_001, 1_000_002]


def test_a_reply_that_was_cut_is_one_in_other_shards_too() -> None:
    cut = Reply("http://h.example/robots.txt", 200, (), b"User-agent: *", "192.0.2.1", 0.0, 0.1, 99, truncated="time")
    answered = result_of(answer_of(1, cut.url, cut, cut.body))
    assert isinstance(answered, Reply)
    assert (answered.status, answered.truncated) == (200, "time")
