"""Coordination: the instructions to all shards in each round, from the reports of the previous round.

No shard waits for the coordinator to fetch. It needs two things from it: its quota of a limited crawl, which is granted
ahead, and its lease, whose term is longer than a coordinator takes to restart. A file keeps what must survive a
restart; the shards report the rest again.

# The lease of a shard The exclusive right of one process to crawl as a shard, in the sense of Gray and Cheriton (1989):
the holder counts the term from its request, the lessor from its answer, so the term never ends later for the holder
than for the lessor, regardless of the network. Machines compare only durations: their clocks may differ, but must run
at the same rate.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from gossamer.cluster.aggregate import FAILING, SILENT, combine, machines_of
from gossamer.cluster.balance import Balance, Uneven
from gossamer.cluster.moves import Copied, Moves, MovesRecord
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.placement import Placement
from gossamer.cluster.reports import LimitShare, Orders, Quotas, ScopeFinal, ShardReport, Termination, all_taken
from gossamer.cluster.spreading import Spreading
from gossamer.model.decodable import decodable
from gossamer.model.words import counted


class Tenure:
    """The shard's side: says whether a request may begin now."""

    def __init__(self, term_s: float) -> None:
        self.term_s = term_s
        self._until = 0.0

    def renew(self, asked_at: float) -> None:
        """Note that a request made at `asked_at`, by our clock, was granted."""
        self._until = max(self._until, asked_at + self.term_s)

    def holds(self, now: float) -> bool:
        """Return whether a request may begin now."""
        return now < self._until


class Holding(msgspec.Struct):
    """The holder of a shard, as the lessor knows it."""

    holder: str
    until: float
    """End of the lease, by the lessor's clock."""


class Tenancy:
    """The lessor's side. Leases each shard to one holder; a successor waits until the previous holder must have ended.

    A restarted lessor knows no running leases, and at most when the last was granted. A holder that renews keeps its
    shard; other shards are leased again when every earlier lease has expired.
    """

    def __init__(self, term_s: float, request_s_max: float, granted_at: float, *, is_new: bool) -> None:
        """No lease was granted after `granted_at`. `is_new`: the crawl never ran, so no lease can exist."""
        self._term_s = term_s
        self._request_s_max = request_s_max
        self._unknown_until = 0.0 if is_new else granted_at + term_s + request_s_max
        self._holdings: dict[int, Holding] = {}

    def ask(self, shard: int, holder: str, now: float, *, renews: bool = False, proven: bool = False) -> float:
        """Lease a shard for a term, or renew the lease. Return 0, or the seconds to wait before the next attempt.

        `renews`: the holder has a lease that has not expired. `proven`: the previous holder is known to be dead, since
        the lock of the shard's directory, on the same machine, is free.
        """
        held = self._holdings.get(shard)
        if held is None:
            free_at = 0.0 if renews or proven else self._unknown_until
        elif held.holder == holder or proven:
            free_at = 0.0
        else:
            free_at = held.until + self._request_s_max
        if free_at > now:
            return free_at - now
        self._holdings[shard] = Holding(holder, now + self._term_s)
        return 0.0

    def release(self, shard: int) -> None:
        """End the lease of a shard whose holder has ended."""
        self._holdings[shard] = Holding("", -math.inf)


End = Literal["", "finished", "limit", "low_water", "patience", "stopped"]
TENURE_MARGIN_S = 2.0
"""Time within which a process that lost its lease ends itself, including its requests."""
NOTES_HELD_MAX = 1_000
SILENT_S = 10.0
"""Time without an answer after which a shard is shown as silent: longer than a stalled process's parent takes."""
ARRIVE_S_MAX = 60.0
"""Time in which Ray must start a shard on the machine to which it moves; then that machine is avoided."""
FAILING_S = 30.0
"""Time for which a shard must fail before it continues on another machine, from its last checkpoint."""
AVOID_S_FIRST = 300.0
AVOID_S_MAX = 3_600.0
"""Time for which no shard moves to a machine on which one has failed: each time twice as long, up to this."""
UNLIMITED = 1 << 62
"""Pages of a crawl whose limit was removed."""


class Limits(msgspec.Struct, frozen=True):
    """The limits of the whole crawl."""

    max_pages: int | None = None
    max_time_s: float | None = None
    max_bytes: int | None = None
    hosts_min: int = 0
    """The crawl ends if fewer hosts than this are left in all shards, after there were as many; 0: no such limit."""
    asks_seeds: bool = False
    """More seeds can be requested: few hosts, or none, are no end until there are none."""


@decodable
class CoordinatorRecord(msgspec.Struct):
    """The stored state of a coordinator."""

    shares: list[LimitShare] = []
    holders: dict[int, str] = {}
    """The process that last had each shard: `MACHINE/…`."""
    paused: bool = False
    end: End = ""
    had_hosts: bool = False
    """Whether there were `Limits.hosts_min` hosts."""
    hurried: bool = False
    moves: MovesRecord = msgspec.field(default_factory=MovesRecord)
    held: bool = False
    """Whether automatic moves are held, because checkpoints of all shards are being made."""
    limits: Limits | None = None
    """Limits that were set since the crawl was started."""
    seeds_over: bool = False
    """Whether there are no more seeds to request."""
    closed: bool = False
    """Whether every shard's process has ended as instructed and none was started since, so that no lease exists."""


@decodable
class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A round's question to one shard."""

    orders: Orders
    granted: float | None = None
    """Time, by the shard's clock, from which its lease counts: that of an earlier answer."""
    hurried: bool = False
    """Whether to abandon requests in flight."""
    secure: bool = False
    """Whether to make a checkpoint, because the crawl seems to be over and the loss of a machine must cost nothing."""
    gives_up: bool = False
    """Whether a shard that fails is not started again: it is all that the crawl waits for."""


@decodable
class ShardAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a shard, or of its parent process for it."""

    shard: int
    state: Literal["starting", "running", "failing", "done", "failed", "refused"]
    node: str = ""
    holder: str = ""
    """The process that holds the shard: `MACHINE/…`."""
    asked_at: float = 0.0
    """Time of this answer, by the shard's clock: a lease counts from it."""
    renews: bool = False
    """Whether it has a lease that has not expired."""
    report: ShardReport | None = None
    status: dict[str, object] = {}
    notes: list[str] = []
    secured: bool = True
    """Whether all of the shard's work is safe; without checkpoints it always is."""
    saves: bool = True
    """Whether it can write checkpoints, if it makes any."""
    failure: str = ""
    deaths: int = 0
    bytes_carried: int = 0
    frames_carried: int = 0


class Coordination:
    """The coordinator without I/O: takes the answers of each round, returns the next questions."""

    def __init__(
        self,
        partitions: PartitionMap,
        limits: Limits,
        tenure_s: float,
        now: float,
        kept: CoordinatorRecord | None,
        save: Callable[[CoordinatorRecord], None],
        granted_at: float | None = None,
    ) -> None:
        """`kept` is what an earlier coordinator saved; None: the crawl is new. `save` returns when it is on disk.
        `granted_at` is the last time at which it may have granted a lease, where that is known to be earlier than now.
        `partitions` is the map that the crawl was started with.
        """
        self.kept = kept if kept is not None else CoordinatorRecord()
        self._is_new = kept is None
        self.moves = Moves(self.kept.moves, partitions)
        self.shards = shards = self.kept.moves.shards
        """Number of shards."""
        self._limits = limits = self.kept.limits or limits
        self._save = save
        last_at = now if granted_at is None else granted_at
        self._tenancy = Tenancy(tenure_s, TENURE_MARGIN_S, last_at, is_new=kept is None or kept.closed)
        self._termination = Termination(shards)
        self._scope_final = ScopeFinal(shards)
        self._quotas = None if (most := limits.max_pages) is None else Quotas(most, shards, self.kept.shares)
        self._quota: dict[int, tuple[int, int]] = {}
        self._granted: dict[int, float] = {}
        self.grants = 0
        """Leases granted or renewed since the start."""
        self.balance: Balance | None = None
        """Set to move partitions between shards automatically; None: only for `scale`."""
        self.placement: Placement | None = None
        """Set together with it."""
        self._balanced: set[tuple[int, int]] = set()
        """Pairs of shards between which partitions moved and that the operator was notified about."""
        self.spreading: Spreading | None = None
        """Set to move shards between machines automatically."""
        self.room: Mapping[str, int] = {}
        """For how many shards each machine has room."""
        self.addresses: Mapping[str, str] = {}
        """Addresses of the machines that are there and may get shards."""
        self.leaving: dict[int, str] = {}
        """Shards that are ending on their machine, and the machine on which they continue; empty: on any."""
        self._arrivals: dict[int, tuple[float, str]] = {}
        """When each shard that moved was started on its new machine, until it answers from there."""
        self._stranded: set[int] = set()
        self._failing: dict[int, float] = {}
        """Since when shards fail: their processes die, or cannot begin."""
        self._avoided: dict[str, tuple[float, float]] = {}
        """Machines on which a shard failed, or did not begin: until when no shard moves there, and for how long."""
        self._ran_on: dict[int, str] = {}
        """The machine on which each shard ran last."""
        self._securing = False
        self._gives_up = False
        """Whether the crawl waits for failing shards alone."""
        self._done: dict[int, tuple[int, int, int]] = {}
        self._still_since = now
        self._is_scope_final = False
        self.wants_seeds = False
        """Whether few hosts are left, and more seeds may be requested."""
        self._few: Sequence[ShardReport] = []
        """Reports of the first of the consecutive rounds in which few hosts were left."""
        self.seen: dict[int, ShardAnswer] = {}
        """The last answer of each shard."""
        self._heard_at: dict[int, float] = {}
        self._now = now
        self._silent: set[int] = set()
        self.notes: list[str] = []

    def look(self, shard: int) -> Look:
        """Return the question to a shard."""
        quota: int | None = None
        serial = 0
        if self._quotas is not None:
            share = self._quotas.shares[shard]
            quota, serial = self._quota.get(shard, (share.quota, share.serial))
        kept = self.kept
        end = kept.end or ("stopped" if shard in self.leaving else "")
        orders = Orders(quota=quota, quota_serial=serial, scope_final=self._is_scope_final, paused=kept.paused, end=end)
        if self.balance is not None:
            orders = msgspec.structs.replace(orders, survey=self.balance.survey(shard))
        if self.placement is not None:
            orders = msgspec.structs.replace(orders, weigh=self.placement.weighs(shard))
        answer = self.seen.get(shard)
        known = answer.report.serial if answer is not None and answer.report is not None else 0
        orders = self.moves.orders(shard, orders, known)
        return Look(
            orders=orders, granted=self._granted.get(shard), hurried=kept.hurried, secure=self._securing,
            gives_up=self._gives_up and shard in self._failing,
        )  # fmt: skip

    def process_round(self, answers: Sequence[ShardAnswer], now: float) -> None:
        """Process a round's answers, from all shards or those that answered."""
        before = msgspec.msgpack.encode(self.kept)
        self._now = now
        for answer in answers:
            self._hear(answer)
            self._grant_lease(answer, now)
        self._note_silence()
        reports = [answer.report for answer in answers if answer.report is not None]
        self._end_if_over(reports, secured=all(answer.secured for answer in answers))
        # An open seed that moves is counted nowhere until it has arrived.
        self._is_scope_final = self._scope_final.take_round(reports) and not self.moves.is_moving
        self.moves.take_round(reports, begins=not self.kept.end)
        self._even(reports, now)
        self._check_arrivals()
        if self.spreading is not None:
            self._spread(self.spreading, is_calm=len(reports) == self.shards and all(one.saves for one in answers))
        # Without saved shares, no page is granted before each shard has said how many it has of runs before.
        if self._quotas is not None and (self.kept.shares or self._is_new or len(reports) == self.shards):
            for report in reports:
                self._quotas.note(report)
            for report in reports:
                self._quota[report.shard] = self._quotas.order(report)
            self.kept.shares = self._quotas.shares
        self._gives_up = self._awaits_failing(reports)
        if self.is_over and all(one.state == "done" for one in self.seen.values()):
            self.kept.closed = True
        if msgspec.msgpack.encode(self.kept) != before:
            self._save(self.kept)  # Before any instruction that depends on it.

    def end(self, end: End, *, hurried: bool = False) -> None:
        """End all shards."""
        self.kept.end = self.kept.end or end
        self.kept.hurried = self.kept.hurried or hurried
        self._save(self.kept)

    def scale(self, shards: int) -> None:
        """Divide the partitions among `shards` shards; the caller starts new ones. Raises ConfigError."""
        self.moves.scale(shards)
        self.shards = self.kept.moves.shards
        self._termination = Termination(self.shards)
        self._scope_final = ScopeFinal(self.shards)
        self._is_scope_final = False
        if self._quotas is not None:
            self._quotas.grow(self.shards)
            self.kept.shares = self._quotas.shares
        self._save(self.kept)

    def limit(self, limits: Limits) -> None:
        """Obey other limits from now on."""
        if limits == self._limits:
            return
        self._limits = self.kept.limits = limits
        if self._quotas is not None:  # Without a limit too: a shard that has a quota obeys only a newer one.
            self._quotas.pages_max = limits.max_pages if limits.max_pages is not None else UNLIMITED
        elif limits.max_pages is not None:
            self._quotas = Quotas(limits.max_pages, self.shards, [])
        self._save(self.kept)

    def hold(self, *, held: bool) -> None:
        """Begin no moves but those that the operator ordered, or begin them again."""
        self.kept.held = held
        self._save(self.kept)

    def pause(self, *, paused: bool) -> None:
        """Pause or continue the requests of all shards."""
        self.kept.paused = paused
        self._save(self.kept)

    @property
    def is_awaited(self) -> bool:
        """Whether shards wait for the next round: one begins or ends, seeds may widen the scope, or no work is left."""
        reports = [answer.report for answer in self.seen.values() if answer.report is not None]
        return len(reports) < self.shards or not self._is_scope_final or all(report.passive for report in reports)

    @property
    def departed(self) -> list[tuple[int, str]]:
        """Return shards that have ended to continue on another machine, and that machine; empty: any."""
        if self.kept.end:
            return []
        done = [shard for shard, answer in self.seen.items() if answer.state == "done"]
        return [(shard, self.leaving.get(shard, "")) for shard in {*done, *self._stranded}]

    def arrive(self, shard: int) -> None:
        """Note that a departed shard was started again. If its process has ended, its lease is free at once."""
        if self.seen[shard].state == "done":
            self._tenancy.release(shard)
        self._stranded.discard(shard)
        self._failing.pop(shard, None)
        self.seen[shard] = msgspec.structs.replace(self.seen[shard], state="starting", report=None)
        self._heard_at[shard] = self._now
        if machine := self.leaving.pop(shard, ""):
            self._arrivals[shard] = (self._now, machine)

    def note_copy(self, version: int, shards: int) -> None:
        """Note which record of moves has a copy beside the shards' checkpoints."""
        self.moves.copied = Copied(version, shards)

    def note_seeds(self) -> None:
        """Note that seeds were added: their redirects may widen the scope again."""
        self._is_scope_final = False
        self._scope_final = ScopeFinal(self.shards)
        self.wants_seeds = False
        self._termination = Termination(self.shards)  # What was reported before does not count.
        self._few = []

    def end_seeds(self) -> None:
        """Note that there are no more seeds to request."""
        self.wants_seeds = False
        self.kept.seeds_over = True
        self._save(self.kept)

    @property
    def is_over(self) -> bool:
        """Whether all shards have ended."""
        return len(self.seen) == self.shards and all(one.state in _ENDED for one in self.seen.values())

    def silent_s(self, shard: int) -> float | None:
        """Return for how long a shard has not answered, of those that are shown as silent."""
        return self._now - self._heard_at[shard] if shard in self._silent else None

    @property
    def failure(self) -> tuple[str, bool]:
        """Return why the crawl cannot go on, and whether the operator can fix that; empty if it can go on."""
        for shard, answer in sorted(self.seen.items()):
            if answer.state in ("failed", "refused"):
                return f"shard {shard}: {answer.failure}", answer.state == "refused"
        return "", False

    def status(self) -> dict[str, object]:
        """Return the status of the crawl."""
        statuses: list[dict[str, object]] = []
        for shard in range(self.shards):
            answer = self.seen.get(shard)
            if answer is None:
                statuses.append({"state": "starting"})
                continue
            state = answer.status.get("state", "starting") if answer.state != "starting" else "starting"
            status = {**answer.status, "state": state, "node": answer.node, "deaths": answer.deaths}
            if (since := self._failing.get(shard)) is not None:
                status |= {"state": FAILING, "failing_s": self._now - since, "failure": answer.failure, "in_flight": 0}
                status |= {"pages_s": 0.0, "bytes_s": 0.0, "warnings": [f"shard {shard} fails: {answer.failure}"]}
            if (silent_s := self.silent_s(shard)) is not None:
                status |= {"state": SILENT, "heard_s": silent_s, "in_flight": 0}
                status |= {"pages_s": 0.0, "bytes_s": 0.0}
            statuses.append(status)
        limits = msgspec.structs.asdict(self._limits)
        carried = [(answer.bytes_carried, answer.frames_carried) for answer in self.seen.values()]
        owners = () if self.moves.is_moving else set(self.moves.owners)
        return {
            **combine([{**status, **limits} for status in statuses], owners),
            "bytes_between_shards": sum(count for count, _ in carried),
            "frames_between_shards": sum(count for _, count in carried),
            "machines": msgspec.to_builtins(machines_of(statuses, self.addresses)),
            "partitions_balanced": sum(end - first for first, end in self.kept.moves.balanced),
        }

    def take_notes(self) -> list[str]:
        """Return the notes for the operator since the last call."""
        notes = self.notes
        self.notes = []
        return notes

    # ---- inside

    def _hear(self, answer: ShardAnswer) -> None:
        prefix = f"shard {answer.shard}: "
        self.notes += [prefix + note for note in answer.notes]
        del self.notes[:-NOTES_HELD_MAX]
        old = self.seen.get(answer.shard)
        if old is not None and (not answer.status or answer.state == "starting"):
            # It has no process for the moment, or one that has not read its counts: keep its last status.
            answer = msgspec.structs.replace(answer, status=old.status)
        if old is not None and old.node != answer.node:  # What it was to leave is lost.
            self.leaving.pop(answer.shard, "")
        if answer.state == "running":
            self._ran_on[answer.shard] = answer.node
            self._failing.pop(answer.shard, None)
        if answer.state == "failing":
            self._failing.setdefault(answer.shard, self._now)
        if answer.state in ("failing", "failed", "refused") and self._goes_elsewhere(answer):
            if old is not None and old.state != "done":
                self.notes.append(f"{prefix}{answer.failure}; it goes on elsewhere from its last checkpoint")
            answer = msgspec.structs.replace(answer, state="done")
        self.seen[answer.shard] = answer
        self._heard_at[answer.shard] = self._now
        if answer.state in ("failed", "refused"):
            self.kept.end = self.kept.end or "stopped"

    def _goes_elsewhere(self, answer: ShardAnswer) -> bool:
        """Return whether a shard that failed continues on another machine: it was to leave its own, and could not write
        its last checkpoint; or it has just come there, and that machine may lack what others have; or it has failed
        there for some time. The machine is then avoided.
        """
        shard = answer.shard
        here = answer.node
        if self.kept.end:
            return False
        if answer.state == "failing":
            gives_up = self._now - self._failing[shard] >= FAILING_S
        else:
            gives_up = not self._avoids(here) and self._ran_on.get(shard, here) != here
        if shard not in self.leaving and gives_up:
            self._avoid(here)
            held = Counter(one.node for one in self.seen.values())
            if others := [machine for machine, room in self._usable().items() if held[machine] < room]:
                self.leaving[shard] = min(others, key=lambda machine: (held[machine], machine))
        return shard in self.leaving

    def _awaits_failing(self, reports: Sequence[ShardReport]) -> bool:
        """Return whether a shard fails, there are no machines that it could go to, and the others have done nothing for
        some time: they have no work, or only hosts whose addresses it leases.
        """
        done = {report.shard: (report.activity, report.pages, report.pages_under_way) for report in reports}
        if done != self._done or not self._failing or self.room or self.kept.paused:
            self._done = done
            self._still_since = self._now
        return self._now - self._still_since >= FAILING_S

    def _avoid(self, machine: str) -> None:
        _, seconds = self._avoided.get(machine, (0.0, AVOID_S_FIRST / 2))
        if not self._avoids(machine):  # Not again for each round in which a shard fails there.
            seconds = min(2 * seconds, AVOID_S_MAX)
        self._avoided[machine] = (self._now + seconds, seconds)

    def _avoids(self, machine: str) -> bool:
        return machine in self._avoided and self._avoided[machine][0] > self._now

    def _usable(self) -> dict[str, int]:
        """Return for how many shards each machine has room, without those that are avoided."""
        return {machine: count for machine, count in self.room.items() if not self._avoids(machine)}

    def _note_silence(self) -> None:
        """Note which shards do not answer: their machine is lost, cut off, or stalled."""
        silent = {
            shard
            for shard, heard_at in self._heard_at.items()
            if self._now - heard_at > SILENT_S and self.seen[shard].state not in _ENDED
        }
        for shard in sorted(silent - self._silent):
            self.notes.append(
                f"shard {shard}: no answer for {SILENT_S:.0f} s; its sites wait until it goes on elsewhere"
            )
        self.notes += [f"shard {shard}: answers again" for shard in sorted(self._silent - silent)]
        self._silent = silent

    def _grant_lease(self, answer: ShardAnswer, now: float) -> None:
        """Renew the lease of the shard's holder; any other process waits."""
        shard = answer.shard
        holder = answer.holder
        if not holder:
            return
        before = self.kept.holders.get(shard, "")
        # On one machine the lock of the shard's state proves that the previous holder is dead.
        proven = bool(before) and node_of(before) == node_of(holder)
        self._granted.pop(shard, None)
        if self._tenancy.ask(shard, holder, now, renews=answer.renews, proven=proven) > 0:
            return
        self._granted[shard] = answer.asked_at
        self.grants += 1
        self.kept.holders[shard] = holder
        self.kept.closed = False

    def _end_if_over(self, reports: Sequence[ShardReport], *, secured: bool) -> None:
        """End the crawl when it is over and all its work is safe: a shard that is restored from a checkpoint after that
        must have nothing to redo. If a shard was restored before that, the crawl is no longer over.
        """
        if self.kept.end:
            return
        is_finished = self._termination.take_round(reports) and not self.moves.is_moving
        limits = self._limits
        statuses: list[Mapping[str, object]] = [answer.status for answer in self.seen.values()]
        elapsed_s = max((_number(status.get("elapsed_s")) for status in statuses), default=0.0)
        wire_bytes = sum(_number(status.get("wire_bytes")) for status in statuses)
        out_of_time = limits.max_time_s is not None and elapsed_s >= limits.max_time_s
        if out_of_time or (limits.max_bytes is not None and wire_bytes >= limits.max_bytes):
            self.kept.end = "limit"
            return
        out_of_pages = (
            self._quotas is not None
            and len(reports) == self.shards
            and self._quotas.is_exhausted(reports)
            and not self.moves.is_moving
        )
        asks = limits.asks_seeds and not self.kept.seeds_over and not out_of_pages
        is_low = not (is_finished or out_of_pages) and self._is_low(reports)
        self.wants_seeds = asks and (is_finished or is_low)
        if self.wants_seeds:
            return
        if is_low:
            self.kept.end = "low_water"
            self.notes.append(f"fewer hosts are left than frontier.hosts_min = {limits.hosts_min}; the rest is saved")
        self._securing = is_finished or out_of_pages
        if self._securing and secured:
            rest: End = "patience" if any(report.awaits for report in reports) else "finished"
            self.kept.end = "limit" if out_of_pages else rest

    def _even(self, reports: Sequence[ShardReport], now: float) -> None:
        """Move partitions from a shard that is behind to one that is free, or else from one with many more requests."""
        kept = self.kept
        balance = self.balance
        placement = self.placement
        stays = bool(kept.end) or kept.paused or kept.held or self.moves.is_moving
        if balance is not None and stays:
            balance.forget()
        if placement is not None and (stays or len(reports) < self.shards):
            placement.forget()
        if stays:
            return
        if balance is not None and (found := balance.take_round(reports)) is not None:
            self._note_even(found, "more hosts ready than it can request", "free requests")
        elif placement is not None and (found := placement.take_round(reports, now)) is not None:
            to = next(report for report in reports if report.shard == found.to)
            self._note_even(found, f"{found.giver.requests_s:.1f} requests a second", f"{to.requests_s:.1f}")

    def _note_even(self, found: Uneven, much: str, little: str) -> None:
        partitions = self.moves.even(found)
        pair = found.giver.shard, found.to
        if partitions and pair not in self._balanced:
            self._balanced.add(pair)
            self.notes.append(
                f"shard {pair[0]} has {much}, and shard {pair[1]} has {little}: "
                f"{counted(partitions, 'partition')} of sites move there, and more later if needed (cluster.rebalance)"
            )

    def _spread(self, spreading: Spreading, *, is_calm: bool) -> None:
        """Move a shard from the machine with most shards to one that has fewer, if nothing else changes and all run."""
        kept = self.kept
        if not is_calm or self.leaving or kept.end or kept.paused or kept.held or self.moves.is_moving:
            spreading.forget()
            return
        machines = {shard: answer.node for shard, answer in self.seen.items()}
        if (found := spreading.take_round(machines, self._usable(), self._now)) is not None:
            self.leaving[found.shard] = found.to
            self.notes.append(
                f"shard {found.shard} moves from machine {found.sender[:8]}, which has most shards, to "
                f"{found.to[:8]} (cluster.rebalance)"
            )

    def _check_arrivals(self) -> None:
        """Start shards on any other machine that Ray does not start on their new one."""
        for shard, (at, machine) in list(self._arrivals.items()):
            is_heard = self._heard_at[shard] > at
            if not is_heard and self._now - at <= ARRIVE_S_MAX:
                continue
            del self._arrivals[shard]
            if not is_heard:
                self._avoid(machine)
                self._stranded.add(shard)
                self.notes.append(f"shard {shard} does not start on machine {machine[:8]}: it goes to another one")

    def _is_low(self, reports: Sequence[ShardReport]) -> bool:
        """Return whether few hosts are left after there were enough, or while more seeds can be requested. Hosts of
        partitions that are moving, and of links between shards, are counted nowhere. So the number must stay low until
        all sent links were taken.
        """
        hosts_min = self._limits.hosts_min
        counts = [report.hosts_left for report in reports if report.hosts_left is not None]
        before = self._few
        self._few = []
        if not hosts_min or len(counts) < self.shards or self.moves.is_moving:
            return False
        self.kept.had_hosts = self.kept.had_hosts or sum(counts) >= hosts_min
        asks = self._limits.asks_seeds and not self.kept.seeds_over
        if not (self.kept.had_hosts or asks) or self.kept.paused or not 0 < sum(counts) < hosts_min:
            return False
        is_same = [report.incarnation for report in before] == [report.incarnation for report in reports]
        self._few = before if is_same else reports
        return all_taken(self._few, reports)


_ENDED = frozenset({"done", "failed", "refused"})


def node_of(holder: str) -> str:
    """Return the machine of a process."""
    return holder.partition("/")[0]


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
