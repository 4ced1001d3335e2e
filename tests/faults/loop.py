"""Loop: the event loop of a trial, which runs on the world's clock, and the threads beside it. Which machine's work a
callback is, its context says.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, TypeVar

from tests.faults.world import Killed, Machine, World

T = TypeVar("T")
GIVEN_S_MAX = 0.5
"""For how long the loop runs at most while a thread waits for it."""
IDLE_S_MAX = 86_400.0
"""A trial that waits for longer than this in all is stuck."""

HERE: ContextVar[Machine] = ContextVar("HERE")
"""The machine whose work is done."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop on the world's clock: where nothing can run, time goes on to the next timer. No threads run."""

    def __init__(self, world: World, *, suspends: bool = False) -> None:
        """`suspends`: processes may be suspended."""
        self._world = world
        self.threads: list[Lockstep] = []
        super().__init__(_Skipping(world))
        if suspends:
            self._ready: deque[asyncio.Handle] = _Ready()

    def time(self) -> float:
        """Return the world's time."""
        return self._world.elapsed_s

    def suspend(self, machine: Machine, for_s: float) -> None:
        """Have nothing of a machine's process run for a while, as after SIGSTOP, or on a machine that pauses."""
        machine.suspended_until = self.time() + for_s
        self.call_later(for_s, self._go_on, machine, context=Context())

    def _go_on(self, machine: Machine) -> None:
        self._ready.extend(machine.held)
        machine.held.clear()

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Run a function now, or in a thread that takes turns with the loop."""
        if self._world.interleaves:
            return Lockstep(self, HERE.get(), partial(func, *args)).future
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is the waiter's
            future.set_exception(error)
        return future


class _Ready(deque[asyncio.Handle]):
    """Callbacks that are due. Those of a machine that is suspended come when it goes on, in the same order."""

    def popleft(self) -> Any:
        handle: Any = super().popleft()
        machine = handle._context.get(HERE)
        if machine is None or not machine.is_suspended:
            return handle
        machine.held.append(handle)
        return _NOTHING


class _Nothing:
    """A callback that was cancelled."""

    _cancelled = True


_NOTHING: Any = _Nothing()


class Lockstep:
    """A thread that runs while the loop waits, and the other way round: what happens is decided by the seed alone."""

    def __init__(self, loop: SimulatedLoop, machine: Machine, work: Callable[[], Any]) -> None:
        self.future: asyncio.Future[Any] = loop.create_future()
        self.machine = machine
        self._loop = loop
        self._work = work
        self._goes = threading.Semaphore(0)
        self._waits = threading.Semaphore(0)
        self._ended = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), daemon=True)
        self._thread.start()
        loop.call_soon(self.go_on)
        loop.threads.append(self)

    def go_on(self) -> None:
        """Let the thread run until it yields or ends. For the loop."""
        if self not in self._loop.threads:
            return
        if not self._ended.is_set():  # A call that an exception broke off may have seen its end.
            self.machine.give_way = self.give_way
            self._goes.release()
            self._waits.acquire()
            self.machine.give_way = None
        if not self._ended.is_set():
            self._loop.call_later(self.machine.world.dice.uniform(0.0, GIVEN_S_MAX), self.go_on)
            return
        self._thread.join()
        self._loop.threads.remove(self)
        if isinstance(self._error, Killed):
            self.future.cancel()
            raise self._error
        if not self.future.done():
            self.future.set_exception(self._error) if self._error is not None else self.future.set_result(self._result)

    def give_way(self) -> None:
        """Let the loop run. For the thread."""
        self._waits.release()
        self._goes.acquire()

    def _run(self) -> None:
        self._goes.acquire()
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001 - it is the waiter's
            self._error = error
        self._ended.set()
        self._waits.release()


class _Skipping(selectors.SelectSelector):
    """Nothing is ever ready: no socket is open, and threads run in lockstep."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everything waits, and nothing is due"
        if timeout > 0.0:
            self._world.elapsed_s += timeout
            assert self._world.elapsed_s < IDLE_S_MAX, "the crawl does not end"
        if self._world.unwinding:
            self._world.unwinding = [task for task in self._world.unwinding if not task.done()]
            return []
        for machine in self._world.machines:
            machine.step()
        return []
