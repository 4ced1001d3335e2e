"""A stopped crawl goes on with more shards, or fewer: all that is known of a site moves with it."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gossamer.api import scale_crawl, status_of
from gossamer.assembly import scaling
from gossamer.assembly.home import Home, ScalingPlan, homes
from gossamer.assembly.integrity import open_store
from gossamer.assembly.scaling import refuse_indivisible
from gossamer.assembly.schemes import namer_for
from gossamer.cli.output import Exit
from gossamer.cluster.channels import Outbox
from gossamer.cluster.coordination import CoordinatorRecord
from gossamer.cluster.frames import decode_batch
from gossamer.cluster.partitions import RECORD_FILE, PartitionMap
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.features.revisit.state import (
    AgePromise,
    Calendar,
    Memory,
    RevisitState,
    decode_memory,
    decode_state,
    encode_memory,
    encode_state,
)
from gossamer.lab.simweb.judge import repeats
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.truth import Truth
from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.stages.frontier.record import QueueCounts
from gossamer.state.contacts import FILE as CONTACTS
from gossamer.state.contacts import Contacts, Delay
from gossamer.state.epoch import Epochs, load
from gossamer.state.schema import ENROLLED, FAMILIES, FRONTIER_COUNTS, PARTITIONED, REVISIT_STATE
from gossamer.state.slots import was_paused
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.clock import WallClock
from gossamer.world.machine import ThisMachine
from gossamer.world.process import boot_id
from tests import commands
from tests.cluster.crawls import BACKENDS, begun, config_of, ended
from tests.faults.recount import wrong_sums
from tests.faults.shards import ends_of

WEB = SimwebOptions(
    seed=5, hosts=30, pages=900, links_per_page=10, same_host_share=0.4, bytes_median=2_000, latency_s=0.03,
    behaviours=("robots_404", "robots_part", "redirects", "copies", "nofollow", "distinct"),
)  # fmt: skip


CONTINUOUS = (
    "crawl.mode='continuous'",
    "revisit.interval_s_mean=1.0",
    "revisit.interval_s_min=0.2",
    "revisit.interval_s_max=3.0",
    "revisit.max_age_s={'/' = 2.0}",
)


def opened(directory: Path) -> Config:
    return reopen(directory / "crawl.toml")


def asked_twice(simweb: SimwebProcess) -> dict[str, int]:
    return repeats(simweb.requests(), simweb.web)


@pytest.mark.heavy
@pytest.mark.promise("Several shards", "A change of the number of shards keeps everything that is known of each site.")
@pytest.mark.long
def test_a_crawl_goes_on_with_another_number_of_shards(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 3)
        begun(config, directory, 3, pages=150)
        for shards, pages in ((5, 300), (2, 450)):
            counts = counts_of(directory)
            scaled = scale_crawl(directory, shards)
            assert counts_of(directory) == counts
            assert counts["media_types"]
            assert scaled.after == shards
            assert scaled.partitions[0] - scaled.partitions[1] < 1.0, "a shard has more than its share"
            assert (scaled.keys_moved, scaled.partitions_moved) > (100, 1000)
            config = opened(directory)
            assert config.cluster.workers == shards
            begun(config, directory, shards, pages=pages)
        ends = ended(config, directory, 2)
        walked = Truth(simweb.web).walk(simweb.seeds)
        assert walked.differences(ends, simweb.web) == []
        assert asked_twice(simweb) == {}


@pytest.mark.heavy
@pytest.mark.promise("Several shards", "A change of the number of shards keeps everything that is known of each site.")
@pytest.mark.parametrize("backend", BACKENDS, ids=("memory", "bloom", "diskmerge"))
@pytest.mark.long
def test_each_backend_goes_on_with_another_number_of_shards(tmp_path: Path, backend: tuple[str, ...]) -> None:
    directory = tmp_path / "crawl"
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 2, *backend)
        begun(config, directory, 2, pages=150)
        for shards, pages in ((4, 300), (1, 0), (3, 400), (2, 500)):
            assert scale_crawl(directory, shards).after == shards
            if pages:
                begun(opened(directory), directory, shards, pages=pages)
        ends = ended(opened(directory), directory, 2)
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        assert asked_twice(simweb) == {}


@pytest.mark.heavy
@pytest.mark.long
def test_a_crawl_of_one_shard_becomes_one_of_several_and_one_again(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 2)
        begun(config, directory, 2, pages=150)
        assert scale_crawl(directory, 1).after == 1
        assert (directory / "state/store/CURRENT").exists()
        assert not list(directory.glob("state/shard-*"))
        assert scale_crawl(directory, 3).after == 3
        ends = ended(opened(directory), directory, 3)
        assert Truth(simweb.web).walk(simweb.seeds).differences(ends, simweb.web) == []
        assert asked_twice(simweb) == {}


def test_a_paused_crawl_that_is_divided_stays_paused(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with SimwebProcess(SimwebOptions.plain(hosts=4, pages=40), tmp_path / "web") as simweb:
        begun(config_of(simweb, directory, 2), directory, 2, pages=4, paused=True)
        for shards in (3, 1, 2):
            assert scale_crawl(directory, shards).after == shards
            assert was_paused(homes(directory, shards)[0].state)
            record = directory / RECORD_FILE
            assert record.exists() == (shards > 1)
            assert shards == 1 or msgspec.json.decode(record.read_bytes(), type=CoordinatorRecord).paused


@pytest.mark.heavy
@pytest.mark.promise("Several shards", "Hosts that a stopped crawl moves between shards keep their delays.")
def test_hosts_of_a_stopped_crawl_move_with_their_delays(tmp_path: Path) -> None:
    """Also those of hosts without a record, which a crash left, and those of addresses; and a host that was never
    requested does not wait as if that were unknown.
    """
    directory = tmp_path / "crawl"
    with SimwebProcess(SimwebOptions.plain(hosts=4, pages=40), tmp_path / "web") as simweb:
        begun(config_of(simweb, directory, 2), directory, 2, pages=4)
    later = WallClock().now() + 3_000.0
    for home in homes(directory, 2):
        host = 100 + home.shard
        with closing(contacts_in(home.state)) as contacts:
            ticket = contacts.begin(host, 200 + host, 0.0, Delay(1.0, 0.0, 1.0))
            contacts.end(ticket, host, 200 + host, later, later, 0.0)
    for shards in (3, 2, 1, 4, 1):
        assert scale_crawl(directory, shards).after == shards
        for home in homes(directory, shards):
            with closing(contacts_in(home.state)) as contacts:
                found = contacts.recovered
            assert found.hosts.items() >= {100: later, 101: later}.items(), home
            assert found.addresses.items() >= {300: later, 301: later}.items(), home
            assert not found.unknown_at
            assert not found.lacks_earlier(epoch_of(directory, home), 2)


@pytest.mark.parametrize("lost", ["gone", "damaged"])
def test_hosts_of_a_shard_without_its_contacts_wait_wherever_they_move(tmp_path: Path, lost: str) -> None:
    directory = tmp_path / "crawl"
    with SimwebProcess(SimwebOptions.plain(hosts=4, pages=40), tmp_path / "web") as simweb:
        begun(config_of(simweb, directory, 2), directory, 2, pages=4)
    path = homes(directory, 2)[1].state / CONTACTS
    path.unlink()
    if lost == "damaged":
        path.write_bytes(b"cut short")
    before = WallClock().now()
    scale_crawl(directory, 3)
    for home in homes(directory, 3):
        with closing(contacts_in(home.state)) as contacts:
            assert contacts.recovered.unknown_at >= before


@pytest.mark.heavy
def test_until_an_interrupted_change_goes_on_no_command_reads_or_changes_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of one shard is moved first, and is not lost where it was; what is removed might be copied already."""
    directory = tmp_path / "crawl"
    with SimwebProcess(SimwebOptions.plain(hosts=4, pages=40), tmp_path / "web") as simweb:
        begun(config_of(simweb, directory, 2), directory, 2, pages=4)
        url = simweb.seeds[0]
    scale_crawl(directory, 1)

    def fill_up(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(scaling, "_share_contacts", fill_up)
        status, _, err = commands.run("scale", str(directory), "--workers", "3")
    again = f"gossamer scale {directory} --workers 3"
    room = f"the disk of {directory} is full (no space left on device); nothing is lost: make room there"
    assert (status, err) == (Exit.FAILED, f"gossamer: {room}, then {again} goes on\n")
    going_on = f"gossamer: {directory} is being divided among 3 shards; `{again}` goes on\n"
    for words in (
        ["status"], ["why", url], ["cookies"], ["verify"], ["verify", "--accept-loss"], ["forget", url],
    ):  # fmt: skip
        assert commands.run(words[0], str(directory), *words[1:]) == (Exit.REFUSED, "", going_on), words
    assert commands.run("scale", str(directory), "--workers", "3", "--quiet")[0] == Exit.FINISHED
    assert commands.run("verify", str(directory))[0] == Exit.FINISHED


def contacts_in(state: Path) -> Contacts:
    """Open a shard's contacts as its next process does."""
    return Contacts(state, boot_id(), WallClock().now(), ThisMachine().wall_offset_s())


def epoch_of(directory: Path, home: Home) -> int:
    with closing(open_store(opened(directory), home)) as store:
        return store.epoch


@pytest.mark.heavy
@pytest.mark.long
def test_a_continuous_crawl_goes_on_with_another_number_of_shards(tmp_path: Path) -> None:
    """Each page is due where its partition is, and the sums are those of a shard's own pages: were they not, taking a
    page out of them would fail.
    """
    directory = tmp_path / "crawl"
    with SimwebProcess(SimwebOptions.plain(hosts=12, pages=60), tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 2, *CONTINUOUS)
        begun(config, directory, 2, pages=80)
        with closing(open_store(config, homes(directory, 2)[1])) as store:
            promise_another_first(store)
        for shards, pages in ((4, 160), (1, 0), (3, 240)):
            before, queued = sums_of(directory), queued_of(directory)
            with closing(open_store(config, homes(directory, config.cluster.workers)[0])) as store:
                commit(
                    store, {"meta": {ENROLLED: PARTITIONED[0]}}
                )  # The others have seen all of a batch crawl's pages.
            assert scale_crawl(directory, shards).after == shards
            states = [state for state, _ in shards_of(directory)]
            assert (sums_of(directory), queued_of(directory)) == (before, queued)
            assert before["visits"] > before["pages"] > 30, "pages are visited again"
            for state, memories in shards_of(directory):
                assert state.pages == sum(bool(memory.due_at) for memory in memories)
                promised = {state.promises[memory.promise].pattern for memory in memories if memory.counted}
                assert promised <= {"/"}, "pages keep what was promised of them"
            for home in homes(directory, shards):
                with closing(open_store(opened(directory), home)) as store:
                    assert wrong_sums(store) == []
            assert enrolled_of(directory) == {PARTITIONED[0]}, (
                "what a shard has not looked at is looked at where it is now"
            )
            assert sum(bool(state.pages) for state in states) >= min(shards, 2)
            config = opened(directory)
            if pages:
                begun(config, directory, shards, pages=pages)


def promise_another_first(store: Store) -> None:
    """Have the promises of a shard have other numbers than those of the other: as after a run with another one."""
    data = store.get("meta", REVISIT_STATE)
    assert data is not None
    state = decode_state(data)
    state.promises.insert(0, AgePromise("/another/", 9.0, deadlines=Calendar(state.due.span_s)))
    memories = {key: decode_memory(value) for key, value in store.scan("revisit", *PARTITIONED)}
    for memory in memories.values():
        memory.promise += memory.promise >= 0
    pages = {key: encode_memory(memory) for key, memory in memories.items()}
    commit(store, {"revisit": pages, "meta": {REVISIT_STATE: encode_state(state)}})
    assert wrong_sums(store) == []


def commit(store: Store, changes: dict[str, dict[bytes, bytes]]) -> None:
    epoch = store.epoch + 1
    store.commit(epoch, [], {FAMILIES.index(family): pairs for family, pairs in changes.items()})
    store.apply(epoch)


def queued_of(directory: Path) -> int:
    """Return how many URLs wait for their first visit, as all shards count them."""
    config, found = opened(directory), 0
    for home in homes(directory, config.cluster.workers):
        with closing(open_store(config, home)) as store:
            found += load(store, FRONTIER_COUNTS, QueueCounts).pending
    return found


def shards_of(directory: Path) -> list[tuple[RevisitState, list[Memory]]]:
    """Return what each shard of a stopped crawl has of its pages: sums, and each page."""
    config, found = opened(directory), []
    for home in homes(directory, config.cluster.workers):
        with closing(open_store(config, home)) as store:
            data = store.get("meta", REVISIT_STATE)
            assert data is not None
            found.append(
                (decode_state(data), [decode_memory(value) for _, value in store.scan("revisit", *PARTITIONED)])
            )
    return found


def enrolled_of(directory: Path) -> set[bytes | None]:
    config, found = opened(directory), set()
    for home in homes(directory, config.cluster.workers):
        with closing(open_store(config, home)) as store:
            found.add(store.get("meta", ENROLLED))
    return found


def sums_of(directory: Path) -> dict[str, int]:
    states = [state for state, _ in shards_of(directory)]
    return {
        name: sum(getattr(state, name) for state in states) for name in ("pages", "there", "visits", "changes", "same")
    }


def counts_of(directory: Path) -> dict[str, Any]:
    """Return what the status of a stopped crawl counts over all runs and shards."""
    status = status_of(directory)
    names = (
        "pages", "attempts", "answers", "outcomes", "wire_bytes", "body_bytes", "media_types", "modules",
        "discovered", "queued", "levels", "terminal_outcomes", "hosts_known", "hosts_left", "seeds", "elapsed_s",
    )  # fmt: skip
    return {**{name: status[name] for name in names}, "requests": status["cost"]["requests"]}


def test_what_cannot_be_scaled_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no crawl"):
        scale_crawl(tmp_path, 2)
    directory = tmp_path / "crawl"
    with SimwebProcess(SimwebOptions.plain(hosts=4, pages=20), tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 2)
        assert set(ended(config, directory, 2).values()) == {"fetched"}
        with pytest.raises(ConfigError, match=r"components.url_seen = 'own:Seen' cannot be divided"):
            refuse_indivisible(
                replace(config, components=replace(config.components, url_seen="own:Seen")), directory, 3
            )
        with pytest.raises(ConfigError, match="1 to 1024 shards"):
            scale_crawl(directory, 0)
        assert ends_of(config, directory, 2), "nothing was touched"


def outgoing(stores: list[Store]) -> list[tuple[int, str]]:
    """Return receiver and address of each link that waits in the outboxes."""
    found = []
    for store in stores:
        outbox = Outbox(Epochs(store), None)
        for to, channel in outbox.channels.items():
            for number in range(channel.first, channel.last + 1):
                batch = decode_batch(outbox.read(to, number, number)[0])
                found += [(to, url) for run in batch.runs for url in run.urls]
    return sorted(found)


@pytest.mark.parametrize("repacked", [0, 1, 7, 15])
def test_links_on_their_way_are_repacked_once_whenever_that_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repacked: int
) -> None:
    monkeypatch.setattr(scaling, "STEP_BYTES_MAX", 1)
    namer = namer_for(Config())
    urls = [url for number in range(18) if (url := namer.name(f"https://h{number}.test/")) is not None]
    before = PartitionMap.even(3)
    stores = [Store(tmp_path / str(number)) for number in range(3)]
    for number, url in enumerate(urls):  # A batch each.
        epochs = Epochs(stores[number % 3])
        outbox = Outbox(epochs, None)
        outbox.packing(before.owner(url.partition)).add(Link(url, "anchor", 1))
        outbox.cut()
        epochs.close_at_once()
    done = 0

    class Interrupted(Namer):
        def names(self, texts: Sequence[str]) -> list[Url | None]:
            nonlocal done
            done += 1
            if done == repacked + 1:
                raise KeyboardInterrupt
            return super().names(texts)

    plan = ScalingPlan(3, 2, before.version)
    target = before.scale_to(2)
    with pytest.raises(KeyboardInterrupt):
        scaling._readdress(stores, plan, target, Interrupted(namer.canonicalizer))
    for store in stores:
        store.close()
    stores = [Store(tmp_path / str(number)) for number in range(3)]
    scaling._readdress(stores, plan, target, namer)
    assert outgoing(stores) == sorted((target.owner(url.partition), url.text) for url in urls)
    assert not outgoing(stores[2:]), "a removed shard keeps nothing"
    for store in stores:
        store.close()
