"""Supervisor: `crawl`, `resume` and `import` in a child that reads what was typed, started again when it dies.

Nothing here imports what reads command lines or configurations, or what crawls: the child pays for that already.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count, pairwise
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from gossamer.cli.job import AGAIN, CrawlJob, is_maintained, toml_text
from gossamer.cli.output import Exit, complain, obeys_escapes
from gossamer.cli.start import FORWARDED, ChildProcess
from gossamer.state import slots
from gossamer.world.clock import WallClock
from gossamer.world.process import DirectoryLock

CHOSEN = frozenset(Exit)
"""Exit statuses with which the child ends by its own choice: it is not started again."""
AS_TERM = (signal.SIGHUP, signal.SIGQUIT)
"""The terminal has gone, or sends Ctrl-\\: to the child that is SIGTERM. Under nohup(1) the first is nothing."""
PAGE_S_MAX = 30.0
"""A page of an import that takes longer is read alone, with the limit of the configuration."""
HOLD_S_MAX = 5.0
"""Longest wait for the end of another supervisor."""
_OUTPUT = re.compile(r"(?:-o|--output=?)(.*)", re.DOTALL).fullmatch
SIMWEB = "simweb.json"
"""In the directory of a crawl of a synthetic web: what that web is made from, so that `resume` can serve it again."""


def run_supervised(words: Sequence[str]) -> int:
    """Have a child read a command line, check it and crawl, restarted as often as it takes; return the exit status.

    A mistake that the operator can fix is reported in one line; then nothing was started, and nothing is left behind.
    """
    if words[0] == "import":
        return _import(words)
    for restarts in count():
        with closing(ChildProcess(words)) as child:
            job = child.job()
            if isinstance(job, CrawlJob):
                is_simweb = job.resume and (Path(job.directory) / SIMWEB).exists()
                return _beside_simweb(job, child) if is_simweb else supervise(job, child)
        if job >= 0:
            return job
        how = f"the crawl's process {slots.death(job)} before it began"
        if child.took_input:
            complain(f"{how}; nothing was started, and what was on standard input is gone: give it again")
            return Exit.FAILED
        if restarts >= Patience().restarts_max:
            complain(f"{how}, for the {restarts + 1}th time; nothing was started")
            return Exit.FAILED
        complain(f"{how}; it starts again")
    raise AssertionError("that has no end")


def _import(words: Sequence[str]) -> int:
    """Have a child import, started again after each death that a page caused; return the exit status."""
    state = Path(_output_in(words)) / "state"
    started_at = 0.0
    blamed = 0
    child: ChildProcess | None = None

    def start(_restarts: int) -> subprocess.Popen[bytes]:
        nonlocal child, started_at
        if child is not None:
            child.close()
        started_at = WallClock().now()
        child = ChildProcess(words)
        return child.begin()

    def accuse() -> None:
        nonlocal blamed
        blamed += slots.accuse(state, started_at)

    watched = SupervisorSlots(
        accuse, overdue=lambda: slots.overdue(state, WallClock().now(), PAGE_S_MAX, started_at),
        progress=lambda: blamed, silent=lambda _asked_s: False,
        loading=lambda: child.loading() if child is not None else "",
    )  # fmt: skip
    return Supervisor(start, watched, complain).run()


def _output_in(words: Sequence[str]) -> str:
    """Return the output directory in a command line, without the modules that read it for the child."""
    output = "crawl"
    for word, following in pairwise([*words, ""]):
        if named := _OUTPUT(word):
            output = named[1] or following
    return output


def _beside_simweb(job: CrawlJob, child: ChildProcess) -> int:
    """Run a job while the synthetic web that its crawl began with serves again."""
    from gossamer.lab.simweb.process import serve_again  # Other crawls do not need it.
    from gossamer.model.errors import ConfigError

    try:
        with serve_again(Path(job.directory) / SIMWEB):
            return supervise(job, child)
    except ConfigError as error:
        complain(str(error))
        return Exit.REFUSED


def supervise(job: CrawlJob, child: ChildProcess) -> int:
    """Run a job in a child, restarted as often as it takes, and return the exit status. A lock shows other commands
    that the crawl is supervised, also while its child is being restarted.
    """
    directory = Path(job.directory)
    if not (directory.is_dir() and os.access(directory, os.R_OK)):  # The child says what is wrong with it.
        return _supervise(job, child)
    with DirectoryLock(directory) as lock:
        if lock.acquire(HOLD_S_MAX):
            return _supervise(job, child)
    from gossamer.model.words import says_in_use  # noqa: PLC0415 - of no use to other crawls

    complain(says_in_use(job.directory))
    return Exit.REFUSED


def _supervise(job: CrawlJob, child: ChildProcess) -> int:
    directory = Path(job.directory)
    state = directory / "state"
    clock = WallClock()
    started_at = clock.now()
    before = toml_text(directory)
    silence_s_max = Patience().silence_s_max

    def is_silent(asked_s: float) -> bool:
        now = clock.now()
        return job.beats and slots.is_silent(state, now, silence_s_max, started_at, now - asked_s)

    def start_again(restarts: int) -> subprocess.Popen[bytes]:
        nonlocal started_at, child
        started_at = clock.now()
        if not restarts:
            return child.begin()
        # A configuration that the child has written applies, with the changes made to it since.
        written = toml_text(directory)
        asked = job
        if written != before:
            from gossamer.cli.checking import job_as_written  # It reads configurations: imported only after a death.

            asked = job_as_written(job)
        child.close()
        child = ChildProcess.again(asked._replace(written=written))
        return child.begin()

    watched = SupervisorSlots(
        accuse=lambda: slots.accuse(state, started_at),
        overdue=lambda: slots.overdue(state, clock.now(), job.process_s_max, started_at),
        progress=lambda: slots.progress(state),
        stopping=lambda: slots.was_told_to_stop(state, started_at),
        held=lambda: is_maintained(directory),
        silent=is_silent,
        page=lambda: slots.page_of(state, started_at),
        loading=lambda: child.loading(),  # noqa: PLW0108 - of the child that runs then
        end=lambda ended, says: slots.note_end(state, ended, says),
    )
    try:
        status = Supervisor(start_again, watched, complain).run()
    finally:
        child.close()
    show_cursor()
    if status == Exit.REFUSED:
        from gossamer.cli.directory import unmake_refused  # The child may remove nothing outside of its directory.

        unmake_refused(job)
    return status


def show_cursor() -> None:
    """Show a terminal's cursor: a child that dies or stops in a live view does not."""
    if obeys_escapes(sys.stdout):
        os.write(sys.stdout.fileno(), b"\x1b[?25h")


def _import_failure_line(component: str, status: int, *, by_us: bool) -> str:
    """Return the line for a child that ended while it imported a component of the operator."""
    if by_us:
        return f"{component} did not answer the signal while it was imported, and the crawl was ended"
    if -status == signal.SIGKILL:
        return f"{component} cannot be imported: it took too long, or all memory; mend it, or leave it out"
    return f"{component} cannot be imported: its process {slots.death(status)}; mend it, or leave it out"


def _silence_line(page: str) -> str:
    """Return the line for a child that did not answer a signal; `page` is the one that it was reading."""
    where = f" while it read {page}" if page else ""
    again = "that page again, and those since the last commit" if page else "the pages since the last commit again"
    return f"the crawl's process did not answer the signal{where} and was ended; a resume fetches {again}"


class SupervisorSlots(NamedTuple):
    """Questions about a crawl's directory, and notes in it."""

    accuse: Callable[[], object]
    """A content death: add a strike to the page in the slot, if there is one."""
    overdue: Callable[[], bool]
    """Whether a stage has been at one page for longer than its limit. Asked every `watch_s`."""
    progress: Callable[[], int]
    """The number of the last committed epoch; 0 before the first."""
    stopping: Callable[[], bool] = bool
    """Whether it was told to stop, other than by a signal to us."""
    held: Callable[[], bool] = bool
    """Whether a command works on what the crawl has stopped for."""
    silent: Callable[[float], bool] = bool
    """Whether its event loop has not run for too long, although a signal came this long ago."""
    page: Callable[[], str] = str
    """The address of the page that is being read; empty if none is."""
    loading: Callable[[], str] = str
    """The component that is being imported, with its key; empty if none is."""
    end: Callable[[str, str], object] = lambda ended, says: None  # noqa: ARG005 - for callers without a crawl
    """Note how the crawl ended, in a word and in a sentence."""


class Patience(NamedTuple):
    """Intervals and limits of a supervisor."""

    watch_s: float = 0.5
    """Between two looks at the slots."""
    signalled_watch_s: float = 0.1
    """The same after a signal."""
    silence_s_max: float = 1.5
    """Age of the last heartbeat with which a child does not answer a signal."""
    import_s_max: float = 60.0
    """Longest time that the import of one component may take."""
    restarts_max: int = 5
    """Restarts in a row without a new commit; one more ends the crawl."""
    signals_max: int = 2
    """Signals that ask; the next one kills."""


class ChildEnd(NamedTuple):
    """How a child ended."""

    status: int
    """Its return code."""
    overran: bool
    """We killed it for a stage that took too long."""
    was_silent: bool
    """We killed it because it did not answer a signal."""

    @property
    def how(self) -> str:
        """The end of a sentence about it."""
        if self.was_silent:
            return "did not answer the signal and was ended"
        if self.overran:
            return "hung in a page and was ended"
        hint = " (the memory of a container or of the machine may be used up)" if -self.status == signal.SIGKILL else ""
        return slots.death(self.status) + hint


class Supervisor:
    """Runs a child until it ends by its own choice, and starts it again after any other end.

    Promises: SIGINT and SIGTERM reach the child once for each time they reach us, SIGHUP and SIGQUIT do as SIGTERM, and
    while a shell has stopped us (Ctrl-Z) the child is stopped; after one of them, and after `gossamer stop`, a child
    that dies is not started again; a child that hangs in a page is killed; restarts without progress end. A child that
    a command stopped starts again after the command; one whose loop does not run when a signal comes is killed.
    """

    def __init__(
        self,
        start: Callable[[int], subprocess.Popen[bytes]],
        slots: SupervisorSlots,
        say: Callable[[str], None],
        patience: Patience | None = None,
    ) -> None:
        """Take `start`, which starts the child for the n-th time (from 0), in a process group of its own.

        The child begins with SIGINT and SIGTERM blocked, and unblocks them once it has handlers: none is lost.
        """
        self._start = start
        self._slots = slots
        self._say = say
        self._patience = patience or Patience()
        self._child: subprocess.Popen[bytes] | None = None
        self._signals = 0
        self._asked_at = 0.0
        self._was_stopped = False

    def run(self) -> int:
        """Return the exit status: the child's own, 130 when it died after a signal to us, 1 when it keeps dying."""
        restarts = fruitless = 0
        committed = self._slots.progress()
        with self._forwarding():
            while True:
                end = self._one_life(restarts)
                if (last := self._last_of(end)) is not None:
                    return last
                restarts += 1
                if end.status == AGAIN:
                    continue
                reached = self._slots.progress()
                fruitless = 1 if reached > committed else fruitless + 1
                committed = max(committed, reached)
                if fruitless > self._patience.restarts_max:
                    kept = "its state is saved" if reached else "it has committed nothing"
                    says = f"the crawl's process {end.how}, for the {fruitless}th time without progress"
                    self._slots.end("failed", says)
                    self._say(f"{says}; {kept}, and logs/critical.log may say why")
                    return Exit.FAILED
                self._say(f"the crawl's process {end.how}; it continues from its last commit")

    def _last_of(self, end: ChildEnd) -> int | None:
        """Return the exit status after a child that is not started again; None: it is. Waits for a command at work."""
        if component := self._slots.loading():
            self._say(_import_failure_line(component, end.status, by_us=end.was_silent))
            return Exit.INTERRUPTED if end.was_silent else Exit.REFUSED
        if end.status in CHOSEN:
            return end.status
        if end.overran or -end.status in slots.CONTENT_DEATHS:
            self._slots.accuse()
        starts_again = end.status == AGAIN or self._slots.held()
        while self._slots.held() and not self._signals:  # A command that dies holds nothing.
            time.sleep(self._patience.watch_s)
        if end.was_silent:
            self._say(_silence_line(self._slots.page()))
        if self._signals or -end.status in FORWARDED:
            self._slots.end("stopped", f"stopped by a signal; the crawl's process {end.how}")
            return Exit.INTERRUPTED
        if starts_again or not self._slots.stopping():
            return None
        self._slots.end("stopped", f"the crawl's process {end.how} while it stopped")
        self._say(f"the crawl's process {slots.death(end.status)} while it stopped; a resume continues the crawl")
        return Exit.INTERRUPTED

    def _one_life(self, restarts: int) -> ChildEnd:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        try:
            child = self._child = self._start(restarts)
            if self._signals:  # One came while there was no child to take it.
                self._send(signal.SIGINT)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        overran = was_silent = False
        component = ""
        begun_at = time.monotonic()
        try:
            while True:
                patience = self._patience
                try:
                    status = child.wait(patience.signalled_watch_s if self._signals else patience.watch_s)
                except subprocess.TimeoutExpired:
                    if overran or was_silent or self._was_stopped:  # The page under way has had no time meanwhile.
                        self._was_stopped = False
                        continue
                    if (found := self._slots.loading()) != component:
                        component = found
                        begun_at = time.monotonic()
                    if component and time.monotonic() - begun_at > patience.import_s_max:
                        child.kill()
                    overran = self._slots.overdue()
                    was_silent = bool(self._signals) and self._slots.silent(time.monotonic() - self._asked_at)
                    if overran or was_silent:
                        child.kill()
                else:
                    by_us = status == -signal.SIGKILL
                    return ChildEnd(status, overran and by_us, was_silent and by_us)
        finally:
            if child.poll() is None:  # We are ending by an exception: no child outlives its supervisor.
                child.kill()
                child.wait()

    @contextmanager
    def _forwarding(self) -> Iterator[None]:
        others = [number for number in (*AS_TERM, signal.SIGTSTP) if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._forward) for number in (*FORWARDED, *others)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _forward(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTSTP:
            self._stop_with_child()
            return
        self._asked_at = self._asked_at or time.monotonic()
        self._signals += 1
        asked = signal.SIGTERM if number in AS_TERM else signal.Signals(number)
        self._send(signal.SIGKILL if self._signals > self._patience.signals_max else asked)

    def _stop_with_child(self) -> None:
        self._send(signal.SIGSTOP)
        show_cursor()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)  # The system ignores it if no shell could continue us.
        signal.raise_signal(signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)
        self._send(signal.SIGCONT)
        self._was_stopped = True

    def _send(self, number: signal.Signals) -> None:
        if self._child is not None and self._child.returncode is None:
            self._child.send_signal(number)
