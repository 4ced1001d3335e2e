"""Supervisor: each kind of death, the budget, the watchdog and the signals, with tiny children that really die."""

from __future__ import annotations

import inspect
import os
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gossamer.cli import supervisor
from gossamer.cli.job import AGAIN
from gossamer.cli.supervisor import Patience, Supervisor, SupervisorSlots
from gossamer.state import slots
from gossamer.state.slots import CONTENT_DEATHS

# A child takes signals as the real one does: it starts with them blocked and unblocks once it has handlers.
COUNTING = """
import os, pathlib, signal, sys, time
count = []
def take(number, frame):
    count.append(number)
    pathlib.Path(sys.argv[1] + f".{len(count)}").touch()
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, take)
pathlib.Path(sys.argv[1]).touch()
signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
while len(count) < int(sys.argv[2]):
    time.sleep(0.01)
pathlib.Path(sys.argv[1] + ".took").write_text(" ".join(str(int(n)) for n in count))
sys.exit(130)
"""


class Watched:
    """A supervised run: what children do by turn, and what was asked and said."""

    def __init__(self, *codes: str, progress: Callable[[], int] = lambda: 0, **patience: float) -> None:
        self.codes = codes
        self.starts = 0
        self.accused = 0
        self.said: list[str] = []
        self.ends: list[tuple[str, str]] = []
        self.overdue: Callable[[], bool] = lambda: False
        self.stopping: Callable[[], bool] = lambda: False
        self.held: Callable[[], bool] = lambda: False
        self.silent: Callable[[float], bool] = lambda asked_s: False
        self.page = ""
        self.loading = ""
        self.arguments: list[str] = []
        self.progress = progress
        self.patience = Patience(watch_s=0.05, **patience)  # type: ignore[arg-type]

    def start(self, restarts: int) -> subprocess.Popen[bytes]:
        assert restarts == self.starts
        code = self.codes[min(self.starts, len(self.codes) - 1)]
        self.starts += 1
        return subprocess.Popen([sys.executable, "-c", code, *self.arguments], process_group=0)

    def accuse(self) -> None:
        self.accused += 1

    def run(self) -> int:
        slots = SupervisorSlots(
            self.accuse,
            self.overdue,
            self.progress,
            self.stopping,
            self.held,
            self.silent,
            lambda: self.page,
            lambda: self.loading,
            lambda ended, says: self.ends.append((ended, says)),
        )
        return Supervisor(self.start, slots, self.said.append, self.patience).run()


def dies_of(number: int) -> str:
    return (
        "import os, resource, signal, sys; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
        f"os.kill(os.getpid(), {int(number)}); signal.pause()"
    )


def exits(status: int) -> str:
    return f"import os; os._exit({status})"


@pytest.mark.parametrize("status", [0, 1, 2, 130])
def test_an_end_of_its_own_choice_is_the_end(status: int) -> None:
    watched = Watched(exits(status))
    assert watched.run() == status
    assert (watched.starts, watched.accused, watched.said) == (1, 0, [])


def test_a_child_that_makes_way_for_a_command_is_started_when_the_command_has_ended() -> None:
    looks: list[int] = []
    watched = Watched(exits(AGAIN), exits(0))
    watched.held = lambda: looks.append(watched.starts) or len(looks) < 4
    assert watched.run() == 0
    assert looks == [1, 1, 1, 1]
    assert watched.said == []


def test_a_child_that_dies_while_a_command_holds_the_crawl_is_started_after_it() -> None:
    looks: list[int] = []
    watched = Watched(dies_of(signal.SIGKILL), exits(0))
    watched.stopping = lambda: True
    watched.held = lambda: looks.append(watched.starts) or len(looks) < 4
    assert watched.run() == 0
    assert looks[:4] == [1, 1, 1, 1]


@pytest.mark.promise(
    "Crash safety", "A page that kills the process is quarantined, and the crawl restarts from its last commit."
)
@pytest.mark.parametrize("number", sorted(CONTENT_DEATHS))
def test_a_death_that_content_can_cause_accuses_and_restarts(number: signal.Signals) -> None:
    watched = Watched(dies_of(number), exits(0))
    assert watched.run() == 0
    assert (watched.starts, watched.accused) == (2, 1)
    assert number.name in watched.said[0]


@pytest.mark.promise(
    "Crash safety",
    "A page is blamed for a crash only if the process was working on it and ended in a way that a page can cause.",
)
@pytest.mark.parametrize("code", [dies_of(signal.SIGKILL), dies_of(signal.SIGXCPU), exits(7)])
def test_any_other_death_restarts_and_accuses_nobody(code: str) -> None:
    watched = Watched(code, exits(0))
    assert watched.run() == 0
    assert (watched.starts, watched.accused) == (2, 0)


@pytest.mark.promise("Crash safety", "A crawl that crashes again and again without a commit ends.")
@pytest.mark.parametrize(("committed", "says"), [(0, "it has committed nothing"), (3, "its state is saved")])
def test_restarts_without_progress_end(committed: int, says: str) -> None:
    watched = Watched(dies_of(signal.SIGKILL), restarts_max=5, progress=lambda: committed)
    assert watched.run() == 1
    assert watched.starts == 6
    assert says in watched.said[-1]
    assert "memory of a container" in watched.said[-1]
    assert [says.count("the memory of a container") for says in watched.said] == [1] * 6, (
        "each time: it may go on for days"
    )
    died = "the crawl's process died of SIGKILL (the memory of a container or of the machine may be used up)"
    assert watched.ends == [("failed", f"{died}, for the 6th time without progress")]


def test_a_death_that_is_not_the_systems_leads_to_the_log() -> None:
    watched = Watched(exits(7), restarts_max=1)
    assert watched.run() == 1
    assert watched.said[-1].endswith("logs/critical.log may say why")


def test_progress_makes_the_budget_whole_again() -> None:
    codes = [dies_of(signal.SIGKILL)] * 9 + [exits(0)]
    watched = Watched(*codes, restarts_max=1)
    watched.progress = lambda: watched.starts
    assert watched.run() == 0
    assert watched.starts == 10


def test_a_stage_that_overruns_is_killed_and_accused() -> None:
    watched = Watched("import time; time.sleep(60)", exits(0))
    watched.overdue = lambda: watched.starts == 1
    assert watched.run() == 0
    assert (watched.starts, watched.accused) == (2, 1)
    assert "hung" in watched.said[0]


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def when(ready: Path, act: Callable[[], None]) -> threading.Thread:
    def wait() -> None:
        wait_for(ready)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.promise("Operation", "Each signal reaches the crawl once, also one sent while the crawl starts.")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("times", [1, 2])
def test_each_signal_is_forwarded_once(tmp_path: Path, number: signal.Signals, times: int) -> None:
    ready = tmp_path / "ready"
    before = signal.getsignal(number)
    watched = Watched(COUNTING)
    watched.arguments = [str(ready), str(times)]

    def act() -> None:
        for sent in range(1, times + 1):
            os.kill(os.getpid(), number)
            wait_for(tmp_path / f"ready.{sent}")  # Two at the same instant are one to the system.

    thread = when(ready, act)
    assert watched.run() == 130
    thread.join()
    assert (tmp_path / "ready.took").read_text() == " ".join([str(int(number))] * times)
    assert signal.getsignal(number) is before


@pytest.mark.promise("Operation", "Each signal reaches the crawl once, also one sent while the crawl starts.")
def test_a_signal_before_the_child_has_handlers_is_not_lost(tmp_path: Path) -> None:
    early = """
import pathlib, signal, sys, time
assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
pathlib.Path(sys.argv[1]).with_name("begun").touch()
while signal.SIGINT not in signal.sigpending():
    time.sleep(0.01)
"""
    watched = Watched(early + COUNTING)
    watched.arguments = [str(tmp_path / "ready"), "1"]
    thread = when(tmp_path / "begun", lambda: os.kill(os.getpid(), signal.SIGINT))
    assert watched.run() == 130
    thread.join()


@pytest.mark.promise(
    "Operation", "A terminal that closes ends a crawl as SIGTERM does; under nohup the crawl continues."
)
@pytest.mark.parametrize("ignored", [False, True])
def test_a_terminal_that_goes_ends_a_crawl_but_under_nohup(tmp_path: Path, *, ignored: bool) -> None:
    ready = tmp_path / "ready"
    watched = Watched(COUNTING)
    watched.arguments = [str(ready), "1"]
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)

    def act() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        if ignored:
            os.kill(os.getpid(), signal.SIGINT)

    thread = when(ready, act)
    try:
        assert watched.run() == 130
    finally:
        thread.join()
        signal.signal(signal.SIGHUP, before)
    took = int((tmp_path / "ready.took").read_text())
    assert took == (signal.SIGINT if ignored else signal.SIGTERM)


def states(process: subprocess.Popen[bytes]) -> list[str]:
    """Return the state of a process and of its children, as `ps` names them."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in (process.pid, *children)]


@contextmanager
def killing(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()


def wait_until(is_so: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < ends_at
        time.sleep(0.01)


@pytest.mark.promise("Operation", "Ctrl-Z stops a crawl until `fg` or `bg` continues it.")
@pytest.mark.parametrize("shell", [True, False], ids=["of a shell", "of no shell"])
def test_ctrl_z_stops_the_child_too(tmp_path: Path, *, shell: bool) -> None:
    code = (
        "import signal, sys; from tests.cli.test_supervisor import COUNTING, Watched; watched = Watched(COUNTING)\n"
        # A program that a script has put into the background ignores them.
        "for number in (signal.SIGQUIT, signal.SIGTSTP): signal.signal(number, signal.SIG_DFL)\n"
        "watched.arguments = [sys.argv[1], '2']; sys.exit(watched.run())"
    )
    ready = tmp_path / "ready"
    # Where no shell is in the session, nothing could continue what Ctrl-Z stops.
    how = {"process_group": 0} if shell else {"start_new_session": True}
    program = [sys.executable, "-c", code, str(ready)]
    with subprocess.Popen(program, **how) as supervised, killing(supervised):  # type: ignore[call-overload]
        wait_for(ready)
        supervised.send_signal(signal.SIGTSTP)
        if shell:
            wait_until(lambda: states(supervised) == ["T", "T"])
            supervised.send_signal(signal.SIGCONT)
        supervised.send_signal(signal.SIGQUIT)
        wait_for(tmp_path / "ready.1")
        assert "T" not in states(supervised)
        supervised.send_signal(signal.SIGINT)
        assert supervised.wait(60) == 130
    assert (tmp_path / "ready.took").read_text() == f"{int(signal.SIGTERM)} {int(signal.SIGINT)}"


def test_after_a_signal_a_death_is_the_end(tmp_path: Path) -> None:
    code = "import signal, pathlib, sys; signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,));"
    watched = Watched(code + "signal.signal(signal.SIGTERM, lambda *_: __import__('os').abort());"
                      "pathlib.Path(sys.argv[1]).touch(); signal.pause()")  # fmt: skip
    watched.arguments = [str(tmp_path / "ready")]
    thread = when(tmp_path / "ready", lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert watched.run() == 130
    thread.join()
    assert watched.starts == 1


def test_a_child_that_takes_no_signal_is_killed_by_the_third(tmp_path: Path) -> None:
    watched = Watched(COUNTING)
    watched.arguments = [str(tmp_path / "ready"), "99"]

    def act() -> None:
        for taken in (1, 2):
            os.kill(os.getpid(), signal.SIGINT)
            wait_for(tmp_path / f"ready.{taken}")
        os.kill(os.getpid(), signal.SIGINT)

    thread = when(tmp_path / "ready", act)
    assert watched.run() == 130
    thread.join()
    assert watched.starts == 1


@pytest.mark.promise(
    "Operation", "A crawl whose process hangs in a page ends at the first signal, and its page is named."
)
@pytest.mark.parametrize("page", ["", "http://a.example/slow"])
def test_a_child_that_is_silent_is_killed_at_the_first_signal(tmp_path: Path, page: str) -> None:
    watched = Watched(COUNTING)
    watched.arguments = [str(tmp_path / "ready"), "99"]
    watched.silent = lambda asked_s: True
    watched.page = page
    thread = when(tmp_path / "ready", lambda: os.kill(os.getpid(), signal.SIGINT))
    assert watched.run() == 130
    thread.join()
    assert (watched.starts, watched.accused) == (1, 0)
    assert len(watched.said) == 1
    assert page in watched.said[0]
    assert watched.ends == [
        ("stopped", "stopped by a signal; the crawl's process did not answer the signal and was ended")
    ]


@pytest.mark.promise("Operation", "A component that ends the process while it is imported is named in one line.")
@pytest.mark.parametrize("code", [exits(0), exits(1), exits(7), dies_of(signal.SIGABRT), dies_of(signal.SIGSEGV)])
def test_a_component_that_ends_the_process_in_its_import_is_named_once(code: str) -> None:
    watched = Watched(code, exits(0))
    watched.loading = "process.modules: 'mine:Module'"
    assert watched.run() == 2
    assert (watched.starts, watched.accused, len(watched.said)) == (1, 0, 1)
    assert watched.said[0].startswith("process.modules: 'mine:Module' cannot be imported")


def test_an_import_that_takes_too_long_is_ended_and_named() -> None:
    watched = Watched("import time; time.sleep(60)", import_s_max=0.0)
    watched.loading = "components.filters: 'mine:Filter'"
    assert watched.run() == 2
    assert "took too long" in watched.said[0]


@pytest.mark.promise("Crash safety", "No crawl process outlives its supervisor.")
def test_no_child_outlives_an_exception(tmp_path: Path) -> None:
    children: list[subprocess.Popen[bytes]] = []
    watched = Watched("import time; time.sleep(60)")

    def start(restarts: int) -> subprocess.Popen[bytes]:
        children.append(watched.start(restarts))
        return children[0]

    def overdue() -> bool:
        raise ZeroDivisionError

    slots = SupervisorSlots(watched.accuse, overdue, lambda: 0)
    with pytest.raises(ZeroDivisionError):
        Supervisor(start, slots, watched.said.append, Patience(watch_s=0.05)).run()
    assert children[0].returncode == -signal.SIGKILL


def test_the_fake_of_the_slots_has_all_that_is_called() -> None:
    """One function that it lacked was called on a machine at its limit alone."""
    fake = runpy.run_path(str(Path(__file__).parent / "fakes/fake_slots.py"))
    called = set(re.findall(r"(?<![\w.])slots\.(\w+)\(", inspect.getsource(supervisor)))
    assert {"death", "is_silent"} <= called

    def parameters(function: Callable[..., object]) -> int:
        return len(inspect.signature(function).parameters)

    assert {name: parameters(getattr(slots, name)) for name in called} == {
        name: parameters(fake[name]) for name in called & fake.keys()
    }
