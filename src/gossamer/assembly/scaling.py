"""Scaling: changes the number of shards of a stopped crawl by moving partitions, range by range, with all their state.

The plan is written first and removed last; the next run continues a plan that it finds. Every step is idempotent:
copying puts the same values, and nothing is deleted from a shard until the plan says that the copy is complete. A crawl
with a plan does not start.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from gossamer.assembly.home import SCALING_PLAN, Home, ScalingPlan, last_incarnation, lock_directory, refuse_half_scaled
from gossamer.assembly.integrity import open_store, refuse_half_forgotten
from gossamer.assembly.mapping import MovesKept, map_in, moves_in
from gossamer.assembly.moving import urls_in
from gossamer.assembly.parts import close, url_seen_of
from gossamer.assembly.schemes import namer_for
from gossamer.cluster.channels import Outbox
from gossamer.cluster.frames import Batch, decode_batch, encode, links_of
from gossamer.cluster.partitions import FILE, RECORD_FILE, PartitionMap
from gossamer.config import Config
from gossamer.engine.counters import MEDIA_TYPES_MAX, OTHER, SEEDS_NAMED_MAX, Totals
from gossamer.engine.pending_scope import count_pending as beyond_counted
from gossamer.features.revisit.moving import MEMORIES, absorb, align, numbers_in, renumber
from gossamer.features.revisit.rhythm import decode_rhythm
from gossamer.features.revisit.state import decode_memory, encode_state, load_state, recount
from gossamer.model.counters import total
from gossamer.model.errors import ConfigError
from gossamer.model.words import shell_word
from gossamer.stages.frontier.record import LEVELS, QueueCounts, decode_record, level_of
from gossamer.stages.seen.moved import Cursor, MovedUrls
from gossamer.stages.seen.offers import FOLDER as SEEN_FOLDER
from gossamer.state import schema
from gossamer.state.contacts import FILE as CONTACTS
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs, load
from gossamer.state.journals import ManifestEntry, Phase
from gossamer.state.slots import was_paused
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.site import PARTITIONS
from gossamer.world.clock import WallClock
from gossamer.world.files import sync_directory, write_whole
from gossamer.world.machine import ThisMachine
from gossamer.world.process import boot_id

STEP_KEYS_MAX: Final = 20_000
"""Keys moved in one commit of the receiving store: 60 ms, with a sync at its end."""
STEP_BYTES_MAX: Final = 8 << 20
CROWD: Final = frozenset((
    "lock", "maintenance", "control.sock", "partitions.json", "coordinator.json", "coordinator.lock", "scaling.json",
    "index.json",
))  # fmt: skip
"""Files in `state/` that belong to the whole crawl."""


class Scaled(msgspec.Struct, frozen=True):
    """The result of scaling."""

    before: int
    after: int
    partitions_moved: int
    keys_moved: int
    partitions: tuple[float, float]
    """Maximum per shard, and mean."""
    hosts: tuple[float, float]


Note = Callable[[str], None]


def scale(config: Config, directory: Path, shards: int, note: Note, write_config: Callable[[int], None]) -> Scaled:
    """Divide a stopped crawl among `shards` shards. After an interruption, call it again with the same number. Raises
    ConfigError: the crawl runs, did not end cleanly, or has a backend that cannot be divided.
    """
    with ExitStack() as undo:
        undo.callback(lock_directory(directory, wait_s=0.0).release)
        refuse_half_forgotten(directory)
        plan = _plan(config, directory, shards)
        if plan.before == 1:
            _move_in(directory)
        partitions = PartitionMap.load(directory) or PartitionMap.even(1)
        if partitions.version > plan.version:  # It was interrupted during the last step.
            _finish(directory, plan, partitions, write_config)
            return Scaled(plan.before, plan.after, 0, 0, partitions.evenness(), (0.0, 0.0))
        target = partitions.scale_to(shards)
        with ExitStack() as close:
            stores = [_open(config, directory, number, close) for number in range(max(plan.before, plan.after))]
            moved = 0
            keys = 0
            if not plan.copied:
                _settle_meta(directory, stores, plan)
                _share_contacts(directory, plan)
                if _lists(config):
                    _list_known(config, directory, stores, partitions, target)
                    _keep_held(stores, plan)
                moved, keys = _copy(config, stores, partitions, target, note)
                _readdress(stores, plan, target, namer_for(config))
                plan = msgspec.structs.replace(plan, copied=True)
                _write(directory, plan)
            _clear(config, stores, partitions, target)
            weights = _recount(stores[: plan.after])
            if config.crawl.mode == "continuous":
                _recount_visits(stores[: plan.after])
        _finish(directory, plan, target, write_config)
    return Scaled(plan.before, plan.after, moved, keys, target.evenness(), target.evenness(weights))


def _plan(config: Config, directory: Path, shards: int) -> ScalingPlan:
    path = directory / SCALING_PLAN
    if path.exists():
        plan = msgspec.json.decode(path.read_bytes(), type=ScalingPlan)
        if plan.after != shards:
            refuse_half_scaled(directory)
        return plan
    partitions = refuse_indivisible(config, directory, shards)
    before = max(config.cluster.workers, partitions.shards)  # Shards may have been added while the crawl ran.
    for number in range(before):
        _require_stopped(config, Home(directory, number, before))
    if before > 1:
        partitions.save(directory)  # Includes moves while the crawl ran.
    plan = ScalingPlan(before, shards, partitions.version)
    _write(directory, plan)
    return plan


def refuse_indivisible(config: Config, directory: Path, shards: int) -> PartitionMap:
    """Raise ConfigError if a crawl cannot be divided among `shards` shards; return its partition map."""
    for key in ("url_seen", "frontier"):
        if name := getattr(config.components, key):
            raise ConfigError(
                f"components.{key} = {name!r} cannot be divided: a component keeps URLs in its own form; "
                "scale crawls begun without it"
            )
    if config.frontier.strategy == "walk":
        raise ConfigError("frontier.strategy = 'walk' keeps its number of shards; begin another crawl")
    if moves_in(directory).under_way:
        raise ConfigError(
            f"partitions of {directory} are on their way between shards; "
            f"`gossamer resume {shell_word(directory)}` completes that"
        )
    partitions = map_in(directory) or PartitionMap.even(config.cluster.workers)
    partitions.scale_to(shards)  # Raises for an impossible number.
    return partitions


def _write(directory: Path, plan: ScalingPlan) -> None:
    write_whole(directory / SCALING_PLAN, msgspec.json.encode(plan) + b"\n")


def _require_stopped(config: Config, home: Home) -> None:
    if not home.is_there:
        raise ConfigError(f"{home.store} is not there: scale a crawl where all of its shards' state is, after `resume`")
    with ExitStack() as undo:
        if home.shards > 1:
            undo.callback(lock_directory(home.directory, wait_s=0.0, state=home.state).release)
        store = open_store(config, home)
        undo.callback(store.close)
        manifest = load(store, schema.MANIFEST, list[ManifestEntry])
        unfinished = any(entry.phase < Phase.FINAL or entry.name.startswith("state/tables") for entry in manifest)
        if unfinished or not load(store, schema.TOTALS, Totals).ended:
            raise ConfigError(
                f"{home.directory} did not end cleanly; `gossamer resume {shell_word(home.directory)}` and "
                f"`gossamer stop {shell_word(home.directory)}`, then scale it"
            )


def _move_in(directory: Path) -> None:
    """Rename the state of the only shard to that of shard 0. Each rename is atomic, so this can be repeated."""
    state = directory / "state"
    home = Home(directory, 0, 2)
    home.state.mkdir(exist_ok=True)
    for path in sorted(state.iterdir()):
        if path.name not in CROWD and not path.name.startswith("shard-") and not path.name.endswith(".new"):
            path.rename(home.state / path.name)
    sync_directory(home.state)
    sync_directory(state)


def _move_out(directory: Path) -> None:
    """Rename the state of shard 0 to that of the only shard."""
    state = directory / "state"
    home = Home(directory, 0, 2)
    if home.state.exists():
        for path in sorted(home.state.iterdir()):
            if path.name != "lock":
                path.rename(state / path.name)
        (home.state / "lock").unlink(missing_ok=True)
        home.state.rmdir()
        sync_directory(state)


def _open(config: Config, directory: Path, number: int, undo: ExitStack) -> Store:
    home = Home(directory, number, 2)
    undo.callback(lock_directory(directory, wait_s=0.0, state=home.state).release)
    store = open_store(config, home)
    undo.callback(store.close)
    return store


# ---- what shards know, and what they did


def _settle_meta(directory: Path, stores: list[Store], plan: ScalingPlan) -> None:
    """Copy the common facts to new shards, and move the counters of removed ones to shard 0."""
    totals = [load(store, schema.TOTALS, Totals) for store in stores]
    latest = max(one.incarnation for one in totals)
    known = {
        key: value
        for one in schema.with_sharing(schema.Sharing.COPIED)
        for key, value in stores[0].scan(one.family, *one.range)
    }
    for number in range(plan.before, plan.after):
        fresh = Totals(incarnation=max(last_incarnation(directory, number), latest), ended=totals[0].ended)
        stores[number].put("meta", {**known, schema.TOTALS: encode(fresh)})
    if plan.after < plan.before and load(stores[0], schema.ABSORBED, int) != plan.version:
        leaving = [stores[number] for number in range(plan.after, plan.before)]
        # In one commit with the mark that this is done, because sums must not be added twice.
        sums = {one.key: ADD[one.key](stores[0], leaving) for one in schema.with_sharing(schema.Sharing.ADDED)}
        known = {key: value for key, value in sums.items() if value}
        stores[0].put("meta", {**known, schema.ABSORBED: encode(plan.version)})
    for store, state in zip(stores, align([load_state(store) for store in stores]), strict=False):
        store.put("meta", {schema.REVISIT_STATE: encode_state(state)})
    if any(store.get("meta", schema.ENROLLED) is not None for store in stores):
        # Enrolled pages are skipped, so beginning too early does no harm.
        lowest = min(store.get("meta", schema.ENROLLED) or schema.PARTITIONED[0] for store in stores[: plan.before])
        for store in stores:
            store.put("meta", {schema.ENROLLED: lowest})
    # A number may belong to another shard than before.
    cleared = [(schema.FAMILIES.index(one.family), *one.range) for one in schema.with_sharing(schema.Sharing.CLEARED)]
    for store in stores:
        store.change(cleared, {})


def _counters(kept: Store, leaving: Sequence[Store]) -> bytes:
    totals = load(kept, schema.TOTALS, Totals)
    for one in (load(store, schema.TOTALS, Totals) for store in leaving):
        both: Totals = total(totals, one)
        both.elapsed_s = max(totals.elapsed_s, one.elapsed_s)
        both.incarnation = max(totals.incarnation, one.incarnation)
        both.concurrency = max(totals.concurrency, one.concurrency)
        both.ended = totals.ended
        both.seeds.first = both.seeds.first[:SEEDS_NAMED_MAX]
        totals = both
    types = totals.media_types
    for kind, pages in Counter(types).most_common()[MEDIA_TYPES_MAX:]:
        del types[kind]
        types[OTHER] = types.get(OTHER, 0) + pages
    return encode(totals)


def _counts(kept: Store, leaving: Sequence[Store]) -> bytes:
    """Add up what `_recount` cannot count again."""
    counts = load(kept, schema.FRONTIER_COUNTS, QueueCounts)
    for gone in (load(store, schema.FRONTIER_COUNTS, QueueCounts) for store in leaving):
        counts.terminal = total(counts.terminal, gone.terminal)
        counts.answers += gone.answers
    return encode(counts)


def _manifest(kept: Store, leaving: Sequence[Store]) -> bytes:
    files = {entry.name: entry for entry in load(kept, schema.MANIFEST, list[ManifestEntry])}
    for store in leaving:  # Their tables of seen URLs go with their state.
        gone = load(store, schema.MANIFEST, list[ManifestEntry])
        files |= {entry.name: entry for entry in gone if not _is_of_seen(entry)}
    return encode(list(files.values()))


def _visits(kept: Store, leaving: Sequence[Store]) -> bytes:
    """Add up the results of visits; empty in a batch crawl. `_recount_visits` counts due pages."""
    found = [state for store in (kept, *leaving) if (state := load_state(store)) is not None]
    return encode_state(absorb(found)) if found else b""


ADD: Final[dict[bytes, Callable[[Store, Sequence[Store]], bytes]]] = {
    schema.TOTALS: _counters,
    schema.FRONTIER_COUNTS: _counts,
    schema.MANIFEST: _manifest,
    schema.REVISIT_STATE: _visits,
}
"""By key: adds up the separate values of shards; empty if no shard has one."""


def _share_contacts(directory: Path, plan: ScalingPlan) -> None:
    """Give each shard the contacts of all: the delays of hosts that move go with them, and those of addresses."""
    states = [Home(directory, number, 2).state for number in range(max(plan.before, plan.after))]
    now = WallClock().now()
    is_missing = not all((state / CONTACTS).exists() for state in states[: plan.before])
    for state in states[: plan.after]:
        contacts = Contacts(state, boot_id(), now, ThisMachine().wall_offset_s(), states)
        if is_missing:
            contacts.note_missing_file(now)
        contacts.close()


# ---- partitions


def _moves(partitions: PartitionMap, target: PartitionMap) -> Iterator[tuple[int, int, int, int]]:
    """Yield the ranges whose owner changes: first, end, from, to."""
    begin = 0
    for at in range(1, PARTITIONS + 1):
        pair = partitions.owners[begin], target.owners[begin]
        if at == PARTITIONS or (partitions.owners[at], target.owners[at]) != pair:
            if pair[0] != pair[1]:
                yield begin, at, *pair
            begin = at


def _lists(config: Config) -> bool:
    """Return whether the backend has tables of its own, so that URLs are listed before they move."""
    return config.seen.backend != "rocksdb"


def _list_known(config: Config, directory: Path, stores: list[Store], old: PartitionMap, new: PartitionMap) -> None:
    """List the URLs that shards know in partitions that they give, in commits of bounded size. About 8 µs a URL."""
    urls_of = urls_in(namer_for(config).name)
    for source in sorted({source for _, _, source, _ in _moves(old, new)}):
        store = stores[source]
        journals = Home(directory, source, 2).journals()
        journals.recover(entry for entry in load(store, schema.MANIFEST, list[ManifestEntry]) if _is_of_seen(entry))
        epochs = Epochs(store)
        seen = url_seen_of(config, epochs, journals)
        with ExitStack() as undo:
            undo.callback(close, seen)
            moved: MovedUrls | None = getattr(seen, "moved", None)
            assert moved is not None
            for begin, end, owner, _ in _moves(old, new):
                cursor: Cursor | None = (0, b"") if owner == source else None
                while cursor is not None:
                    cursor = moved.list_known(begin, end, cursor, STEP_KEYS_MAX, urls_of)
                    epochs.close_at_once()


def _is_of_seen(entry: ManifestEntry) -> bool:
    return entry.name.startswith(f"{SEEN_FOLDER}/")


def _keep_held(stores: list[Store], plan: ScalingPlan) -> None:
    """Move links that await the duplicate check from removed shards to shard 0, which sends them to their owners."""
    for number in range(plan.after, plan.before):
        first = plan.version << 44 | number << 32  # Above all numbers before this change, and the same when repeated.
        held = enumerate(stores[number].scan("seen", *schema.under(schema.HELD_LINKS)), first)
        _pour(((schema.HELD_LINKS + at.to_bytes(8), value) for at, (_, value) in held), stores[0], "seen")


def _moving(config: Config) -> list[str]:
    """Return the families whose keys move: the tables of a backend that lists URLs stay."""
    return [family for family in schema.FAMILIES if family != "seen" or not _lists(config)]


def _copy(config: Config, stores: list[Store], old: PartitionMap, new: PartitionMap, note: Note) -> tuple[int, int]:
    """Copy the keys of partitions to their new shards; return the numbers of both."""
    moved = keys = 0
    states = [load_state(store) for store in stores]
    for begin, end, source, to in _moves(old, new):
        for family in _moving(config):
            pairs = stores[source].scan(family, *schema.partition_range(begin, end))
            theirs = states[source]
            mine = states[to]
            if family == MEMORIES and theirs is not None and mine is not None:
                pairs = renumber(numbers_in(mine, theirs), pairs)
            keys += _pour(pairs, stores[to], family)
        moved += end - begin
        note(f"partitions {begin} to {end - 1} go from shard {source} to shard {to}")
    for store in stores[new.shards :]:  # Links that wait for a wider scope are in the shard that found them.
        _pour((pair for pair in store.scan("scope", *schema.PARTITIONED) if pair[0][2:3] == b"l"), stores[0], "scope")
    return moved, keys


def _pour(pairs: Iterator[tuple[bytes, bytes]], store: Store, family: str) -> int:
    """Put pairs into a store, in commits of bounded size; return the number of pairs."""
    keys = size = 0
    step: dict[bytes, bytes] = {}
    for key, value in pairs:
        step[key] = value
        size += len(value)
        if len(step) >= STEP_KEYS_MAX or size >= STEP_BYTES_MAX:
            store.put(family, step)
            keys = keys + len(step)
            step = {}
            size = 0
    if step:
        store.put(family, step)
    return keys + len(step)


def _clear(config: Config, stores: list[Store], partitions: PartitionMap, target: PartitionMap) -> None:
    for begin, end, source, _ in _moves(partitions, target):
        ranges = [(schema.FAMILIES.index(family), *schema.partition_range(begin, end)) for family in _moving(config)]
        stores[source].change(ranges, {})


def _recount(stores: list[Store]) -> list[float]:
    """Count the contents of each shard again; return the hosts of each partition."""
    weights = [0.0] * PARTITIONS
    for store in stores:
        counts = load(store, schema.FRONTIER_COUNTS, QueueCounts)
        counts.pending = counts.hosts = counts.working = counts.deferred = 0
        counts.levels = [0] * LEVELS
        for key, data in store.scan("host", *schema.PARTITIONED):
            record = decode_record(data)
            weights[int.from_bytes(key[:2])] += 1
            counts.hosts += 1
            counts.pending += record.urls_queued - record.revisits
            counts.working += bool(record.urls_queued)
            counts.deferred += record.index_family == "deferred"
            for level, queue in record.levels.items():
                counts.levels[level_of(level)] += queue.pending
        counts.discovered = counts.pending + sum(counts.terminal.values())
        scope = beyond_counted(store.scan("scope", *schema.PARTITIONED))
        store.put("meta", {schema.FRONTIER_COUNTS: encode(counts), schema.PENDING_SCOPE: encode(scope)})
    return weights


def _recount_visits(stores: list[Store]) -> None:
    """Compute the sums of a continuous crawl again from the pages and hosts of each shard."""
    for store in stores:
        if (kept := load_state(store)) is not None:
            rhythms = (decode_rhythm(data) for _, data in store.scan("rhythm", *schema.PARTITIONED))
            memories = (decode_memory(data) for _, data in store.scan("revisit", *schema.PARTITIONED))
            store.put("meta", {schema.REVISIT_STATE: encode_state(recount(kept, rhythms, memories))})


# ---- links on their way


def _readdress(stores: list[Store], plan: ScalingPlan, target: PartitionMap, namer: Namer) -> None:
    """Move what waits in the outboxes to new batches, for the shards that own the partitions now. After an
    interruption, repeat it to move the remainder.
    """
    kept = [Epochs(store) for store in stores]
    outboxes = [Outbox(epochs, None) for epochs in kept]
    for number, outbox in enumerate(outboxes):
        heir = number if number < plan.after else 0
        size = 0
        waiting = [(to, at) for to, one in outbox.channels.items() for at in range(one.first, one.last + 1)]
        if waiting:
            outboxes[heir].begin_anew()
        for done, (to, at) in enumerate(waiting, 1):
            data = outbox.read(to, at, at)[0]
            outbox.drop(to, at)
            _repack(decode_batch(data), to, outboxes[heir], target, namer)
            size += len(data)
            if size >= STEP_BYTES_MAX or done == len(waiting):
                for changed in dict.fromkeys((heir, number)):
                    outboxes[changed].cut()
                    kept[changed].close_at_once()
                size = 0


def _repack(batch: Batch, receiver: int, outbox: Outbox, target: PartitionMap, namer: Namer) -> None:
    for root in batch.roots:
        for to in range(target.shards):
            outbox.packing(to).put(root)
    for welcome in batch.welcomes if receiver < target.shards else ():
        outbox.packing(receiver).put(welcome)
    # Parts of moves are ignored, since no move is in progress.
    for linking in batch.linking:
        outbox.packing(target.owner(linking.partition)).put(linking)
    for cash in batch.cash:
        outbox.packing(target.owner(cash.partition)).add_cash(cash.host, cash.partition, cash.amount)
    for link in links_of(batch, namer.names([url for run in batch.runs for url in run.urls])):
        outbox.packing(target.owner(link.url.partition)).add(link)


# ---- the end of it


def _finish(directory: Path, plan: ScalingPlan, target: PartitionMap, write_config: Callable[[int], None]) -> None:
    target.save(directory)
    write_config(plan.after)
    for rest in directory.glob("remainder*.parquet"):  # Of an offline crawl, by the numbers of shards.
        rest.unlink()
    for number in range(plan.after, plan.before):
        if (state := Home(directory, number, 2).state).exists():
            shutil.rmtree(state)
    if plan.after == 1:
        _move_out(directory)
    (directory / RECORD_FILE).unlink(missing_ok=True)  # Quotas of a limit are granted again.
    if plan.after > 1 and was_paused(Home(directory, 0, 2).state):  # A single shard reads its own note.
        write_whole(directory / RECORD_FILE, msgspec.json.encode(MovesKept(paused=True, closed=True)))
    (directory / SCALING_PLAN).unlink()
    if plan.after == 1:  # Last, because the file shows until then that everything else is done.
        (directory / FILE).unlink(missing_ok=True)
    sync_directory(directory / "state")
