"""Concurrency: finds how many requests at once are useful, for `crawl.concurrency = "auto"`.

Each change is an experiment: the rate of answers before and after it decides whether it stays. Response times alone say
little, since those of millions of hosts differ for reasons of their own. Delays of hosts are never touched.
"""

import asyncio
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from gossamer.engine.counters import Telemetry
from gossamer.engine.loop import CrawlLoop
from gossamer.engine.options import AUTO_FIRST, AUTO_MAX
from gossamer.engine.watchdogs import REQUESTS_MIN, Gauges, fitting_requests

BYTES_A_REQUEST = 256 << 10
"""Share of `memory.budget_bytes` that permits one request: a connection with TLS, its buffers, and its page."""
STEP = 1.25
"""Factor of an experiment, up or down. A smaller change of the rate is lost in its noise."""
FAST_STEP = 2.0
"""The same at the beginning, and after others that brought more."""
GAIN_MIN = 0.5
"""An experiment had an effect if the rate changed by at least this share of the change of requests."""
CROWDED_MIN = 0.5
"""Share of a window in which hosts must wait for a free request, before more of them are tried."""
SLOWER = 0.7
"""Fewer requests are tried when the rate per request falls below this share of its usual value."""
SILENT_RISE = 0.2
"""Rise of the share of requests without a byte that suggests a full line."""
BUSY_MAX = 0.9
"""Load of the event loop, as a share of a processor, above which more requests would only wait for it."""
LAG_S_MAX = 0.25
UNUSED = 0.8
"""If fewer of the requests than this share were in use, the others are given back, a part at a time."""
NO_MORE = "memory and open files permit no more"
HOLD_S_FIRST = 30.0
HOLD_S_MAX = 240.0
"""Pauses between experiments that bring nothing: each is twice as long as the one before."""
LOOK_S = 1.0
WINDOW_S_MIN = 5.0
WINDOW_S_MAX = 30.0
ANSWERS_MIN = 400
"""A window ends after this number of answers, so that its rate is exact to a twentieth, or at its longest time."""
SETTLE_S_MAX = 10.0
"""Longest wait after a change for the end of the requests that began before it."""


class Window(NamedTuple):
    """Requests of a shard in one period, and what limited them."""

    lasts_s: float
    answers: int
    silent: int
    """Requests that ended without a byte."""
    crowded: float
    """Share of the time in which a host waited for a free request."""
    used_max: int
    """Most requests at once."""
    busy: float = 0.0
    """Share of a processor that the event loop took."""
    lag_s: float = 0.0
    """Mean lateness of the event loop."""


class RequestLimit(msgspec.Struct, frozen=True):
    """How many requests at once are permitted, and what experiments with other numbers showed."""

    most: int = AUTO_FIRST
    before: int = 0
    """The number to return to if the running experiment brings nothing; 0: none runs."""
    rate: float = 0.0
    """Answers per second before the experiment."""
    usual: float = 0.0
    """Answers per second and request when experiments last settled; 0: not known."""
    silent: float = 0.0
    """Usual share of requests without a byte."""
    goes: Literal["up", "down"] = "up"
    """Direction of the experiment under way, or of the next."""
    step: float = FAST_STEP
    hold_s: float = HOLD_S_FIRST
    next_at: float = 0.0
    """Time before which no further experiment begins without a sign."""
    why: str = "nothing is measured yet"

    @property
    def proven(self) -> int:
        """The number without the experiment under way."""
        return self.before or self.most


def next_limit(limit: RequestLimit, window: Window, ceiling: int, now: float) -> RequestLimit:
    """Return the limit after a window in which `limit` was in force; `ceiling` is what resources permit."""
    floor = min(REQUESTS_MIN, ceiling)
    rate = window.answers / max(window.lasts_s, 1e-3)
    silent = window.silent / max(window.silent + window.answers, 1)
    if limit.most > ceiling:
        return RequestLimit(ceiling, silent=limit.silent, step=STEP, next_at=now + HOLD_S_FIRST, why=NO_MORE)
    if not window.answers:
        return replace(limit, most=limit.proven, before=0, why="no request was answered")
    if window.crowded < CROWDED_MIN and not (limit.before and limit.goes == "down"):
        return _return_unused(limit, window, min(AUTO_FIRST, limit.most), _smooth(limit.silent, silent))
    if limit.before:
        limit = _judge(limit, rate, silent, now)
        if limit.most == limit.before:
            return replace(limit, before=0)
        limit = replace(limit, before=0)
    if sign := _sign_of_too_many(limit, window, rate, silent, now):
        return _try_fewer(limit, rate, floor, sign)
    usual_silent = _smooth(limit.silent, silent) if limit.usual else silent
    limit = replace(limit, silent=usual_silent, usual=limit.usual or rate / limit.most)
    if now < limit.next_at:
        return limit
    if limit.goes == "down":
        return _try_fewer(limit, rate, floor, "fewer are tried")
    if window.busy > BUSY_MAX:
        return replace(limit, why="the processor is full")
    if limit.most >= ceiling:
        return replace(limit, goes="down", next_at=now + limit.hold_s, why=NO_MORE)
    most = min(max(limit.most + 1, int(limit.most * limit.step)), ceiling)
    return replace(limit, most=most, before=limit.most, rate=rate, why="all are in use and hosts wait for one")


def _sign_of_too_many(limit: RequestLimit, window: Window, rate: float, silent: float, now: float) -> str:
    """Return why fewer requests should be tried; empty: there is no sign of it."""
    if window.lag_s > LAG_S_MAX and now >= limit.next_at:
        return "the event loop is late"
    if limit.usual and silent > limit.silent + SILENT_RISE:
        return "more and more requests bring no byte"
    if limit.usual and rate < SLOWER * limit.usual * limit.most:
        return "each request takes longer than it did"
    return ""


def _return_unused(limit: RequestLimit, window: Window, floor: int, silent: float) -> RequestLimit:
    """Return a limit nearer to what is in use. Nothing is known of the rate then: hosts limit it."""
    most = limit.most
    if window.used_max < UNUSED * most:
        most = max(floor, int(window.used_max / UNUSED), int(most * UNUSED))
    return RequestLimit(most, silent=silent, step=limit.step, why="few hosts wait for one")


def _smooth(usual: float, now: float) -> float:
    return 0.9 * usual + 0.1 * now


def _judge(limit: RequestLimit, rate: float, silent: float, now: float) -> RequestLimit:
    """Return the limit after its experiment: with the number that proved better, and when the next one begins."""
    change = limit.most / limit.before - 1.0
    gain = (rate / limit.rate - 1.0) / change if limit.rate else 0.0
    if limit.goes == "up":
        stays = gain >= GAIN_MIN and silent <= limit.silent + SILENT_RISE
        why = "more of them brought more" if stays else "more of them brought nothing"
    else:
        stays = gain < GAIN_MIN
        why = "more of them brought nothing" if stays else "fewer brought less"
    if stays:
        step = min(limit.step * STEP, FAST_STEP)
        hold_s = max(HOLD_S_FIRST, limit.hold_s / 2)
        return replace(limit, usual=rate / limit.most, step=step, hold_s=hold_s, next_at=0.0, why=why)
    if limit.goes == "up" and limit.step > STEP:
        return replace(limit, most=limit.before, step=STEP, next_at=0.0, why=why)
    goes_up = limit.goes == "up"
    is_first = goes_up and limit.hold_s == HOLD_S_FIRST  # The line may be full with fewer, too.
    return replace(
        limit,
        most=limit.before,
        usual=limit.rate / limit.before if goes_up else rate / limit.most,
        silent=limit.silent if goes_up else max(limit.silent, silent),
        goes="down" if goes_up else "up",
        step=STEP,
        hold_s=min(2 * limit.hold_s, HOLD_S_MAX),
        next_at=now if is_first else now + limit.hold_s,
        why=why,
    )


def _try_fewer(limit: RequestLimit, rate: float, floor: int, why: str) -> RequestLimit:
    """Begin an experiment with fewer requests; at the lower bound the next one goes up."""
    most = max(floor, int(limit.most / STEP))
    if most >= limit.most:
        return replace(limit, goes="up", why=why)
    return replace(limit, most=most, before=limit.most, rate=rate, goes="down", step=STEP, why=why)


class AdaptiveConcurrency:
    """Applies `next_limit` to a shard while `crawl.concurrency` is `auto`. The number outlives the run."""

    def __init__(self, loop: CrawlLoop, telemetry: Telemetry, gauges: Gauges) -> None:
        self._loop = loop
        self._brakes = loop.brakes
        self._gauges = gauges
        self._clock = telemetry.clock
        self._counters = telemetry.counters
        self._limit = RequestLimit(self._brakes.concurrency)
        self._observed: list[tuple[bool, int, float]] = []
        self._begin(self._clock.now())

    async def run(self) -> None:
        """Observe the shard once a second until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.observe(self._clock.now())

    def observe(self, now: float) -> None:
        """Add the present state to the window; at its end apply the next limit. About 10 µs."""
        loop = self._loop
        brakes = self._brakes
        if not loop.adapts:
            self._counters.totals.concurrency = 0
            self._limit = RequestLimit(brakes.concurrency)
        if not loop.adapts or loop.paused or brakes.held or now < self._begins_at:
            self._begin(max(now, self._begins_at))
            return
        if not brakes.why:
            self._explain()
        self._observed.append((loop.is_crowded, loop.requests, self._gauges.loop_lag_s))
        lasts_s = now - self._begins_at
        answers = self._counters.answered - self._answered
        if lasts_s < WINDOW_S_MIN or (answers < ANSWERS_MIN and lasts_s < WINDOW_S_MAX):
            return
        before = brakes.concurrency
        crowded, requests, lags_s = zip(*self._observed, strict=True)
        window = Window(
            lasts_s,
            answers,
            silent=self._counters.silent - self._silent,
            crowded=sum(crowded) / len(crowded),
            used_max=max(requests),
            busy=(self._clock.work_s() - self._work_s) / lasts_s,
            lag_s=sum(lags_s) / len(lags_s),
        )
        self._limit = next_limit(self._limit, window, min(self.ceiling, brakes.ceiling), now)
        self._counters.totals.concurrency = self._limit.proven
        brakes.reconfigure(self._limit.most)
        self._explain()
        is_same = brakes.concurrency == before
        self._begin(now if is_same else now + min(before * lasts_s / max(answers, 1), SETTLE_S_MAX))

    def _explain(self) -> None:
        self._brakes.why = f"of at most {self.ceiling:,}, because {self._limit.why}"

    @property
    def ceiling(self) -> int:
        """The most requests at once that memory and open files permit."""
        gauges = self._gauges
        files = fitting_requests(gauges.open_files_max) if gauges.open_files_max else AUTO_MAX
        return max(1, min(AUTO_MAX, gauges.memory_budget_bytes // BYTES_A_REQUEST, files))

    def _begin(self, at: float) -> None:
        """Begin a window. Until `at`, requests of the window before it may still end."""
        self._begins_at = at
        self._answered = self._counters.answered
        self._silent = self._counters.silent
        self._work_s = self._clock.work_s()
        self._observed.clear()
