"""A crawl of several shards whose number changes while it runs: what its directory and its commands say meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from gossamer.api import check_scalable
from gossamer.api.cluster import ClusterCrawler
from gossamer.api.growing import (
    begin_shards,
    keep_copies,
    keeps_partitions,
    leave_idle,
    require_arrived,
    stops_to_scale,
    wait_for_moves,
    with_added_shards,
    write_number,
)
from gossamer.api.maintenance import verify_of
from gossamer.assembly.building import assemble
from gossamer.assembly.home import Home
from gossamer.assembly.mapping import bring_map, map_in
from gossamer.cluster.coordination import CoordinatorRecord
from gossamer.cluster.lease_client import LeaseClient
from gossamer.cluster.lease_server import Message, encode_message
from gossamer.cluster.moves import Copied, Moves, MovesRecord
from gossamer.cluster.partitions import FILE as PARTITIONS_FILE
from gossamer.cluster.partitions import RECORD_FILE, PartitionMap
from gossamer.cluster.places import Move
from gossamer.cluster.reports import Orders, ShardReport
from gossamer.config import Config, configure, effective_toml
from gossamer.config.gather import reopen, reopen_text
from gossamer.config.live import save
from gossamer.engine.counters import Totals
from gossamer.model.errors import ConfigError, Damage
from gossamer.model.verbs import ConflictError
from gossamer.state.epoch import load
from gossamer.state.schema import TOTALS
from gossamer.state.store import Store
from gossamer.world.clock import WallClock
from tests.cluster.arrived import leased_by

SHARDS = 2
LOGIN = "login.a={url='https://a.example/login', fields={user='u'}, check={cookie='session'}}"


def config_with(*sets: str) -> Config:
    options = {"contact": "a@example.org", "scope": "any"}
    return configure(options=options, sets=(f"cluster.workers={SHARDS}", *sets), seeds=["https://a.example/"])


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """The directory of a crawl that was begun with two shards."""
    (tmp_path / "state").mkdir()
    save(config_with(), tmp_path)
    PartitionMap.even(SHARDS).save(tmp_path)
    return tmp_path


def kept(directory: Path, record: MovesRecord) -> None:
    (directory / RECORD_FILE).write_bytes(msgspec.json.encode(CoordinatorRecord(moves=record)))


def begun(shards: int) -> MovesRecord:
    """Return what a coordinator keeps that was just told to have this number of shards."""
    moves = Moves(MovesRecord(), PartitionMap.even(SHARDS))
    moves.scale(shards)
    moves.take_round([ShardReport(number, 1, True, 1) for number in range(shards)], begins=True)
    assert moves.kept.under_way
    return moves.kept


def completed(record: MovesRecord) -> MovesRecord:
    moves = Moves(record, PartitionMap.even(SHARDS))
    while moves.is_moving:
        settled = [move.version for move in record.under_way]
        reports = [ShardReport(number, 1, True, 1, settled=settled) for number in range(record.shards)]
        moves.take_round(reports, begins=True)
    return record


def asked(crawler: ClusterCrawler, verb: str, **fields: object) -> object:
    return asyncio.run(crawler._verbs()[verb](fields))  # type: ignore[arg-type]


def test_no_checkpoint_is_made_while_partitions_move(crawl: Path) -> None:
    crawler = ClusterCrawler.resume(crawl)
    record = begun(5)
    kept(crawl, record)
    with pytest.raises(ConflictError, match="partitions move between shards; a checkpoint is made when"):
        asked(crawler, "checkpoint")
    kept(crawl, completed(record))
    with pytest.raises(ConflictError, match="the crawl is ending"):
        asked(crawler, "checkpoint")  # It went as far as the shards, of which none runs here.


def test_moves_wait_until_their_record_is_beside_the_checkpoints() -> None:
    """A crawl that is restored from there alone must not find fewer moves, or shards, than their states have."""
    moves = Moves(MovesRecord(), PartitionMap.even(SHARDS))
    moves.copied = Copied(0, SHARDS)
    moves.scale(5)
    assert not moves.is_copied
    moves.take_round([ShardReport(number, 1, True, 1) for number in range(5)], begins=True)
    waiting = moves.orders(0, Orders(), 0)
    assert (waiting.shards, waiting.moves) == (SHARDS, [])
    moves.copied = Copied(0, 5)
    assert not moves.is_copied
    moves.copied = Copied(moves.kept.version, 5)
    assert moves.is_copied
    ordered = moves.orders(0, Orders(), 0)
    assert (ordered.shards, ordered.moves) == (5, [one for one in moves.kept.under_way if one.sender == 0])


def test_a_copy_of_the_moves_that_cannot_be_made_is_told_and_one_that_is_damaged_is_named(crawl: Path) -> None:
    told: list[str] = []
    config = config_with("state.checkpoint_uri=file:///proc/nowhere")

    async def keep() -> None:
        # Nothing is called of the engine before there is a copy.
        keeping = asyncio.create_task(keep_copies(None, config, crawl, lambda: False, told.append))  # type: ignore[arg-type]
        async with asyncio.timeout(60):
            while not told:  # noqa: ASYNC110 - another task appends
                await asyncio.sleep(0.05)
        assert not keeping.done()
        keeping.cancel()

    asyncio.run(keep())
    assert told[0].startswith("partitions wait to move: that cannot be recorded at file:///proc/nowhere")
    with pytest.raises(ConfigError, match=r"moves\.json beside the checkpoints cannot be read"):
        bring_map(crawl, PartitionMap.even(SHARDS).encode(), b"{")
    with pytest.raises(ConfigError, match=r"partitions\.json beside the checkpoints is no partition map"):
        bring_map(crawl, b"{", b"{}")


def test_shards_that_were_added_are_there_after_any_crash(crawl: Path) -> None:
    """The coordinator's record counts, whatever `crawl.toml` and the map say."""
    kept(crawl, completed(begun(5)))
    assert ClusterCrawler.resume(crawl).config.cluster.workers == 5
    found = map_in(crawl)
    assert found is not None
    assert set(found.owners) == set(range(5))
    write_number(crawl, 5)
    assert reopen(crawl / "crawl.toml").cluster.workers == 5
    damages: list[Damage] = []
    verify_of(crawl, each=damages.append)
    assert [one for one in damages if one.path == PARTITIONS_FILE] == []


def test_a_shard_that_is_added_names_no_file_as_an_earlier_one_of_its_number(crawl: Path) -> None:
    (crawl / "warc").mkdir()
    (crawl / "warc/gossamer-003-0007-000002.warc.gz").write_bytes(b"of a crawl that had four shards, and then two")
    for _ in range(2):  # A command that is repeated finds them.
        begin_shards(crawl, range(2, 5))
    found = []
    for number in range(2, 5):
        home = Home(crawl, number, 5)
        home.require_state()
        store = Store(home.store)
        found.append(load(store, TOTALS, Totals).incarnation)
        store.close()
    assert found == [0, 7, 0]


@pytest.mark.promise("Several shards", "Hosts that move to a shard that was added wait no longer than before.")
def test_hosts_that_move_to_an_added_shard_keep_their_delay(crawl: Path) -> None:
    """Also where an earlier shard had its number: the contacts of that one went to the shards that stayed."""
    (crawl / "warc").mkdir()
    (crawl / "warc/gossamer-003-0007-000002.warc.gz").write_bytes(b"of a crawl that had four shards, and then two")
    config = begin_shards(crawl, range(2, 4))
    PartitionMap.even(4).save(crawl)

    async def waits(number: int) -> bool:
        shard = assemble(config, crawl, shard=number, shards=4)
        try:
            return shard.kept.storage.contacts.recovered.unknown_at > 0.0
        finally:
            await shard.close()

    assert [asyncio.run(waits(number)) for number in (2, 2, 3)] == [False, False, False]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"moves": {"shards": "five"}}'])
def test_a_record_that_cannot_be_read_is_refused_in_one_line(crawl: Path, content: bytes) -> None:
    (crawl / RECORD_FILE).write_bytes(content)
    with pytest.raises(ConfigError, match=r"coordinator\.json is no record .*; restore it from a copy"):
        ClusterCrawler.resume(crawl)


def test_a_stopped_crawl_with_partitions_on_their_way_is_not_scaled(crawl: Path) -> None:
    kept(crawl, begun(5))
    with pytest.raises(ConfigError, match="are on their way between shards; `gossamer resume"):
        check_scalable(crawl, 3)
    config = with_added_shards(config_with(), crawl)
    assert leave_idle(crawl, config).cluster.workers == 5, "they go on when the crawl is resumed"


@pytest.mark.parametrize(
    "sets",
    [
        "crawl.mode=offline", "cluster.placement=pack", "cluster.cpus=1",
    ],
)  # fmt: skip
def test_what_cannot_move_while_it_runs_stops_the_crawl(sets: str, tmp_path: Path) -> None:
    assert stops_to_scale(config_with(sets)) == sets.partition("=")[0]
    assert stops_to_scale(config_with()) == ""
    save(config_with(), tmp_path)
    crawler = ClusterCrawler.resume(tmp_path)
    crawler.config = config_with(sets)
    assert asked(crawler, "scale", workers=3) == {"workers": 3, "stops": True}


def test_what_ray_reserved_stops_a_change_of_number_but_no_moves_between_the_same_shards() -> None:
    assert [keeps_partitions(config_with(one)) for one in ("cluster.placement=pack", "cluster.cpus=1")] == ["", ""]
    assert [keeps_partitions(config_with(f"seen.backend={one}")) for one in ("memory", "bloom", "diskmerge")] == [
        ""
    ] * 3
    requests = "seeds.requests_file=requests.jsonl"
    assert [keeps_partitions(config_with(one)) for one in (LOGIN, requests, "crawl.mode=continuous")] == ["", "", ""]


def test_a_checkpoint_waits_for_what_moves_to_balance_the_shards(crawl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What moves for another number of shards takes longer: it is refused at once."""
    record = MovesRecord(under_way=[Move(1, 5, 9, 0, 1)])
    kept(crawl, record)
    require_arrived(crawl, ordered=True)

    async def arrives() -> None:
        waiting = asyncio.create_task(wait_for_moves(crawl))
        await asyncio.sleep(0)
        assert not waiting.done()
        kept(crawl, MovesRecord())
        await waiting

    asyncio.run(arrives())
    kept(crawl, record)
    monkeypatch.setattr("gossamer.api.growing.ARRIVE_S", 0.0)
    with pytest.raises(ConflictError, match="partitions move between shards"):
        asyncio.run(wait_for_moves(crawl))
    kept(crawl, begun(5))
    with pytest.raises(ConflictError, match="partitions move between shards"):
        require_arrived(crawl, ordered=True)


@pytest.mark.parametrize("added", [0, 1])
def test_a_restarted_owner_of_addresses_hears_shards_that_were_added_before_it_lends(crawl: Path, added: int) -> None:
    """They may hold a lease of the process before."""
    asyncio.run(restarted_owner(crawl, added))


async def restarted_owner(crawl: Path, added: int) -> None:
    shard = assemble(config_with(), crawl, shard=0, shards=SHARDS)
    assert shard.membership is not None
    shard.membership.exchange.places.to_welcome(SHARDS + added)
    await shard.kept.committer.commit()
    await shard.close()
    shard = assemble(config_with(), crawl, shard=0, shards=SHARDS)
    try:
        assert shard.membership is not None
        exchange, now = shard.membership.exchange, WallClock().now()
        owner = exchange.addresses
        assert owner is not None
        mine = [one for one in (f"192.0.2.{n}" for n in range(9)) if owner.client.owner_of(one) == 0]
        for number in range(1, SHARDS + added):
            owner.want(mine[0], now)
            assert leased_by(owner) == 0
            other = LeaseClient(number, SHARDS, 1.0, 1.0, now)
            other.on_restart(0, exchange.opening)
            other.want(mine[1])
            said = Message()
            assert other.say(0, said, now)
            owner.on_restart(number, 1, now)
            owner.take(number, encode_message(said), now, exchange.opening)
        owner.tick(now)
        assert leased_by(owner) > 0
    finally:
        await shard.close()


@pytest.mark.parametrize(
    ("uri", "how"),
    [
        ("", "`gossamer scale DIR --workers 3` makes it 3, then resume it"),
        (
            "state.checkpoint_uri='file:///kept'",
            "resume it as it is, and use `gossamer scale DIR --workers 3` while it",
        ),
    ],
)
def test_a_resume_with_another_number_of_shards_says_how_to_get_it(uri: str, how: str) -> None:
    sets = ("cluster.workers=2", *filter(None, [uri]))
    config = configure(options={"contact": "a@example.org"}, sets=sets)
    with pytest.raises(ConfigError, match=f"this crawl has 2; {how}"):
        reopen_text(effective_toml(config), "DIR/crawl.toml", sets=["cluster.workers=3"])
