"""Schedule: learns from visits, and sets when each page is due again."""

from collections.abc import Callable
from math import inf

from gossamer.features.revisit import state as states
from gossamer.features.revisit.moving import RevisitMoves
from gossamer.features.revisit.options import RevisitOptions
from gossamer.features.revisit.policies import RATE_MAX, RATE_MIN, BoundedPolicy, freshness, rate_of
from gossamer.features.revisit.rhythm import Rhythm, Rhythms, kind_of
from gossamer.model.links import Notice
from gossamer.model.outcomes import NEVER_AGAIN, SUCCEEDED
from gossamer.model.pages import Sight
from gossamer.model.patterns import PatternSet
from gossamer.model.standing import Habits
from gossamer.model.visits import http_date
from gossamer.ports import RevisitPolicy
from gossamer.stages.frontier.frontier import Frontier
from gossamer.state.epoch import Epochs
from gossamer.state.schema import REVISIT_STATE
from gossamer.url.url import Url
from gossamer.world.dice import Dice

GONE = frozenset((404, 410))
JITTER = 0.05
"""Random variation of intervals, so that pages do not stay in step."""
STIRRED_SHARE = 0.02
"""The price is computed again after changes to this share of the census."""
HOST_STIRRED_SHARE = 0.1
"""The same for a host's own price."""
LEAST_SHARE = 0.05
"""Share of the budget that is always left for pages without a maximum age."""
LATE_SHARE = 0.5
"""A visit is late if it is delayed by more than this share of its interval."""
MEMORY_BYTES = 1_000


class Schedule:
    """Promises: each page that was visited and not given up has one due time, durable with the epoch of its visit.

    A visit costs about 120 µs, for the numbers of its page and its host, and sometimes a price from the census; never a
    pass over pages. See docs/explanation/revisits.md.
    """

    def __init__(
        self,
        epochs: Epochs,
        source: Frontier,
        policy: RevisitPolicy,
        options: RevisitOptions,
        dice: Dice,
        is_ours: Callable[[Url], bool] = lambda _: True,
    ) -> None:
        """`is_ours`: whether a URL is of this shard. Raises ConfigError: a pattern is not a regular expression."""
        self._epochs = epochs
        self._source = source
        self._options = options
        self._policy = BoundedPolicy(policy, options.interval_s_min, options.interval_s_max)
        self._important = PatternSet(tuple(options.importance))
        self._multiples = tuple(options.importance.values())
        self._promised = PatternSet(tuple(options.max_age_s))
        self._dice = dice
        self._rhythms = Rhythms(epochs, options.rhythms_cached_max)
        self._fade = 1.0 - 1.0 / options.memory_visits
        span_s = states.span_of(options.interval_s_mean, options.interval_s_max)
        self.state = state = states.load_state(epochs) or states.RevisitState(states.Calendar(span_s))
        # Promises of earlier runs keep their numbers, which stored pages refer to.
        self._given = [state.promise_number(*one) for one in options.max_age_s.items()]
        self._is_dirty = False
        self.is_ours = is_ours
        self.moves = RevisitMoves(epochs, self._rhythms, state)

    # ---- visits

    def last_visit(self, url: Url) -> states.Memory | None:
        """Return the memory of a page whose last visit fetched it, or None. About 8 µs."""
        memory = self._load(url)
        if memory is None or memory.original is None or memory.failures or memory.address != url.text:
            return None
        return memory

    def change(self, sight: Sight) -> str:
        """Return the change that a visit shows (`PageRow.change`), before `note_visit`. About 8 µs."""
        memory = self._load(sight.url)
        was_there = memory is not None and memory.visits > 0
        was_gone = memory is not None and bool(memory.recent) and memory.recent[-1][1] == "gone"
        if sight.outcome not in SUCCEEDED:
            return "vanished" if was_there and not was_gone and sight.status in GONE else ""
        if memory is None or not was_there or was_gone:
            return "appeared"
        if not (memory.digest or memory.payload):
            return "unknown"
        return "changed" if self._is_changed(memory, sight) else "same"

    def note_visit(self, sight: Sight) -> float | None:
        """Learn from a visit; return when the page is due again, None: never."""
        memory = self._load(sight.url)
        rhythm = self._rhythms.get(sight.url.partition, sight.url.host)
        is_new = memory is None
        if memory is None:
            memory = states.Memory(sight.url.text, sight.at, sight.at, depth=sight.depth)
        self._withdraw(memory, rhythm)
        if sight.outcome in SUCCEEDED:
            self._judge_lateness(memory, sight)
            memory.promise = self._promise_of(sight.url)
            habits = self._there(memory, rhythm, sight, is_new=is_new)
            self._count_in(memory, rhythm)
            due_at: float | None = self._next(memory, rhythm, sight, habits)
        else:
            due_at = self._retry_at(memory, sight)
        self._enter(memory, due_at)
        self._keep(sight.url, memory)
        self._rhythms.touch(sight.url.partition, rhythm)
        return due_at

    def enrol(self, sight: Sight, at: float) -> bool:
        """Add a page from a visit of which little is known, due at `at`."""
        if self.note_visit(sight) is None:
            return False
        memory = self._load(sight.url)
        assert memory is not None
        self.state.due.remove(memory.due_at)
        memory.due_at = at
        self.state.due.add(at)
        self._keep(sight.url, memory)
        return True

    def note(self, notice: Notice, now: float) -> bool:
        """Apply a hint about a page of this shard; its due time may move."""
        memory = self._load(notice.url) if self.is_ours(notice.url) else None
        if memory is None:
            return False
        rhythm = self._rhythms.get(notice.url.partition, notice.url.host)
        due_at = memory.due_at
        was_retired = not memory.due_at
        was_counted = memory.counted
        self._withdraw(memory, rhythm)
        if notice.importance is not None:
            memory.said_importance = max(notice.importance, 0.0)
            memory.importance = self._importance(memory, notice.url)
        if notice.interval_hint_s is not None:
            memory.hint_s = max(notice.interval_hint_s, 0.0)
        if notice.interval_s is not None:
            memory.fixed_s = max(notice.interval_s, 0.0)
            if memory.fixed_s and not was_retired:
                memory.due_at = min(due_at, max(memory.visited_at + memory.fixed_s, now))
        is_repeat = notice.source == "repeat"
        if is_repeat:
            memory.digest = 0
            memory.payload = b""
        is_news = not is_repeat and self._note_report(memory, notice, now)
        if notice.due_now or (is_news and memory.announced_at > memory.visited_at):
            not_before = notice.not_before if notice.due_now else memory.visited_at + self._options.interval_s_min
            soonest = max(now, not_before)
            memory.due_at = soonest if was_retired else min(memory.due_at, soonest)
        if memory.due_at != due_at:
            # The due time of a page in flight, or that waits for a retry, does not move: its next visit sets it.
            moved = (
                self._source.schedule_revisit(notice.url, memory.depth, "", memory.due_at, now)
                if was_retired
                else self._source.move_revisit(notice.url, due_at, memory.due_at, now)
            )
            memory.due_at = memory.due_at if moved else due_at
        if was_counted:
            self._count_in(memory, rhythm)
        self._enter(memory, memory.due_at)
        self._keep(notice.url, memory)
        self._rhythms.touch(notice.url.partition, rhythm)
        return True

    # ---- the epoch

    def cut(self, now: float) -> None:
        """Give the open epoch what changed."""
        if self._is_dirty:
            self._rhythms.cut()
            self._epochs.put("meta", REVISIT_STATE, states.encode_state(self.state))
            self._is_dirty = False

    @property
    def memory_bytes(self) -> int:
        """Approximate memory of changes that wait for the next `cut`."""
        return self._rhythms.dirty * MEMORY_BYTES

    # ---- what a visit saw

    def _there(self, memory: states.Memory, rhythm: Rhythm, sight: Sight, *, is_new: bool) -> Habits:
        """Record a reply: the change that it shows, and the validators for the next conditional request."""
        interval_s = max(sight.at - memory.visited_at, 0.0)
        was_seen = not is_new and memory.visits > 0 and bool(memory.digest or memory.payload)
        changed = was_seen and self._is_changed(memory, sight)
        since_s = self._since_change_s(memory, rhythm, sight, changed=changed) if was_seen else None
        if was_seen and not memory.announces_all:
            memory.history.fade(self._fade)
            pools = [self.state.pool, *rhythm.pools(kind_of(_path(sight.url)))]
            for history in (memory.history, *(pool.history for pool in pools)):
                if changed:
                    history.note_change(interval_s, since_s)
                else:
                    history.note_same(interval_s)
        kind: states.Kind = "changed" if changed else "same"
        memory.note(sight.at, kind if was_seen else "first")
        if was_seen:
            memory.interval_s = interval_s
        if changed or not was_seen:
            memory.changed_at = sight.at if changed else 0.0
            if since_s is not None:
                memory.changed_at = sight.at - since_s
        memory.visits += 1
        memory.changes += changed
        memory.visited_at = sight.at
        memory.failures = 0
        self.state.visits += 1
        self.state.changes += changed
        self.state.same += kind == "same"
        self.state.not_modified += sight.outcome == "not_modified"
        if sight.outcome != "not_modified":
            memory.address = sight.url.text
            memory.digest = sight.digest
            memory.payload = sight.payload
            memory.items = sight.items
            memory.etag = sight.etag
            memory.last_modified = sight.last_modified
            original = sight.original
            memory.original = (original.url, original.fetched_at, original.record_id) if original is not None else None
        memory.change_rate = self._change_rate(memory, rhythm, sight.url)
        memory.importance = self._importance(memory, sight.url)
        return Habits(memory.change_rate, memory.importance, memory.interval_s, changed, since_s)

    def _is_changed(self, memory: states.Memory, sight: Sight) -> bool:
        if sight.outcome == "not_modified":
            return False
        # Other fields come of other rules, not of the page.
        if sight.items[0] == memory.items[0] and sight.items != memory.items:
            return True
        is_equal = sight.payload and sight.payload == memory.payload and not sight.rendered
        return sight.digest != memory.digest and not is_equal

    def _since_change_s(self, memory: states.Memory, rhythm: Rhythm, sight: Sight, *, changed: bool) -> float | None:
        """Return the time since the last change, if it is trusted; count whether the server's date was right."""
        said = http_date(sight.last_modified) if sight.last_modified else None
        if sight.outcome == "fetched" and said is not None and memory.last_modified:
            agrees = (
                memory.visited_at - 1.0 <= said <= sight.at + 1.0
                if changed
                else sight.last_modified == memory.last_modified
            )
            rhythm.dates_right += agrees
            rhythm.dates_wrong += not agrees
        if not changed:
            return None
        if memory.visited_at < memory.announced_at <= sight.at:
            return sight.at - memory.announced_at
        return max(sight.at - said, 0.0) if said is not None and rhythm.is_dated else None

    def _change_rate(self, memory: states.Memory, rhythm: Rhythm, url: Url) -> float:
        prior = self.state.pool.prior(1.0 / self._options.interval_s_mean)
        for pool in rhythm.pools(kind_of(_path(url))):
            prior = pool.prior(prior)
        if memory.hint_s:
            prior = 1.0 / memory.hint_s
        return min(max(rate_of(memory.history, prior), RATE_MIN), RATE_MAX)

    def _importance(self, memory: states.Memory, url: Url) -> float:
        importance = memory.said_importance / (1.0 + memory.depth)
        if self._multiples:
            for index in self._important.matching(url.text):
                importance *= self._multiples[index]
        return importance

    # ---- when next

    def _next(self, memory: states.Memory, rhythm: Rhythm, sight: Sight, habits: Habits) -> float:
        """Return when a page with content is due again."""
        if memory.announced_at > sight.at:
            return memory.announced_at  # It changed again during the visit.
        options = self._options
        if memory.fixed_s:
            interval_s = memory.fixed_s
        else:
            rate = self._policy.rate(habits, self._price(rhythm, sight.permitted_per_s))
            if not self._policy.priced and not habits.interval_s:
                rate = 1.0 / options.interval_s_mean
            interval_s = 1.0 / rate
        if memory.promise >= 0:
            interval_s = min(interval_s, states.PROMISE_SHARE * self.state.promises[memory.promise].age_s_max)
        else:
            interval_s *= self._dice.uniform(1.0 - JITTER, 1.0 + JITTER)
        memory.freshness = freshness(memory.change_rate, 1.0 / interval_s)
        return sight.at + interval_s

    def _retry_at(self, memory: states.Memory, sight: Sight) -> float | None:
        """Return when to try a missing page again; None if it is given up."""
        options = self._options
        is_gone = sight.status in GONE
        memory.failures += 1
        memory.freshness = 0.0
        memory.note(sight.at, "gone" if is_gone else "failed")
        most = options.gone_max if is_gone else options.failures_max
        if sight.outcome in NEVER_AGAIN or memory.failures > most:
            return None
        wait_s = max(options.failed_s_first, memory.interval_s) * 2.0 ** min(memory.failures - 1, 40)
        wait_s = min(wait_s, max(options.interval_s_max, options.failed_s_first))
        return sight.at + wait_s * self._dice.uniform(1.0, 1.0 + JITTER)

    def _note_report(self, memory: states.Memory, notice: Notice, now: float) -> bool:
        """Note a reported change; return whether it is new."""
        changed_at = notice.changed_at
        if changed_at is None and notice.due_now:
            changed_at = now
        latest = max(now + 1.0, notice.not_before)
        if changed_at is None or changed_at > latest or changed_at <= memory.announced_at:
            return False
        if notice.complete:
            since = max(memory.announced_at, memory.first_at)
            if changed_at > since:
                memory.history.note_reported(1, changed_at - since)
            memory.announces_all = True
        memory.announced_at = changed_at
        return True

    # ---- prices

    def _price(self, rhythm: Rhythm, permitted_per_s: float) -> float:
        if not self._policy.priced:
            return 0.0
        state = self.state
        if state.stirred >= max(1.0, STIRRED_SHARE * state.census.pages):
            state.stirred = 0
            state.price = state.census.price(self._policy, self._budget_per_s(), _finite(state.price))
        if permitted_per_s and rhythm.stirred >= max(1.0, HOST_STIRRED_SHARE * rhythm.census.pages):
            rhythm.stirred = 0
            self._cap(rhythm, permitted_per_s)
        return max(rhythm.price, state.price)

    def _budget_per_s(self) -> float:
        """Return the visits per second for pages without a promise, at hosts that are not capped."""
        state = self.state
        options = self._options
        whole = (state.there + 1) / options.interval_s_mean
        if options.visits_per_s_max is not None:
            whole = min(whole, options.visits_per_s_max)
        return max(whole - state.promised_per_s - state.capped_per_s, LEAST_SHARE * whole)

    def _cap(self, rhythm: Rhythm, permitted_per_s: float) -> None:
        """Set a host's own price if its pages are worth more visits than politeness permits.

        The optimum with a bound per host is the larger of the common price and that at which the host keeps its bound.
        """
        state = self.state
        census = rhythm.census
        left = max(permitted_per_s - rhythm.promised_per_s, LEAST_SHARE * permitted_per_s)
        too_many = census.rate_at(self._policy, _finite(state.price)) > left
        price = census.price(self._policy, left, _finite(rhythm.price or state.price)) if too_many else 0.0
        if rhythm.is_capped != too_many:
            state.census.take_in(census, -1 if too_many else 1)
            state.capped_hosts += 1 if too_many else -1
            state.stirred += census.pages
        state.capped_per_s += (left if too_many else 0.0) - rhythm.spent_per_s
        rhythm.price = price
        rhythm.spent_per_s = left if too_many else 0.0

    # ---- sums

    def _withdraw(self, memory: states.Memory, rhythm: Rhythm) -> None:
        """Remove a page from all sums, before its numbers change."""
        self._is_dirty = True
        self.state.withdraw(memory, rhythm)

    def _enter(self, memory: states.Memory, due_at: float | None) -> None:
        """Set the due time of a page; None: it is given up."""
        memory.due_at = due_at or 0.0
        self.state.count_due(memory)
        if memory.counted:
            self.state.fresh += memory.importance * memory.freshness

    def _count_in(self, memory: states.Memory, rhythm: Rhythm) -> None:
        """Add a page with content to the sums, with its new numbers."""
        state = self.state
        memory.counted = True
        state.there += 1
        state.importance += memory.importance
        if memory.promise >= 0:
            promise = state.promises[memory.promise]
            promise.pages += 1
            promise.deadlines.add(memory.visited_at + promise.age_s_max)
            rhythm.promised_per_s += 1.0 / (states.PROMISE_SHARE * promise.age_s_max)
            state.promised_per_s += 1.0 / (states.PROMISE_SHARE * promise.age_s_max)
            return
        state.count_page(memory, rhythm, 1)

    def _promise_of(self, url: Url) -> int:
        """Return the number of the strictest pattern that a page matches; -1: none."""
        if not self._given:
            return -1
        matching = [self._given[index] for index in self._promised.matching(url.text)]
        return min(matching, key=lambda number: self.state.promises[number].age_s_max, default=-1)

    def _judge_lateness(self, memory: states.Memory, sight: Sight) -> None:
        """Count whether a visit kept its page's promise, and whether it was late."""
        state = self.state
        if not (memory.visits and not memory.failures and memory.due_at):
            return
        state.late += sight.at - memory.due_at > LATE_SHARE * max(memory.due_at - memory.visited_at, 1.0)
        if memory.promise >= 0:
            promise = state.promises[memory.promise]
            late_s = sight.at - memory.visited_at - promise.age_s_max
            promise.kept += late_s <= 0.0
            promise.broken += late_s > 0.0
            promise.late_s_worst = max(promise.late_s_worst, late_s)

    def _load(self, url: Url) -> states.Memory | None:
        data = self._epochs.get(states.FAMILY, states.memory_key(url))
        return states.decode_memory(data) if data is not None else None

    def _keep(self, url: Url, memory: states.Memory) -> None:
        self._epochs.put(states.FAMILY, states.memory_key(url), states.encode_memory(memory))


def _finite(price: float) -> float:
    return price if 0.0 < price < inf else 1.0


def _path(url: Url) -> str:
    text = url.text
    begin = text.find("/", text.find("//") + 2)
    return text[begin:] if begin >= 0 else "/"
