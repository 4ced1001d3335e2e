"""The process that crawls, from what was typed to its word: it gets it, or it goes and leaves nothing."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from gossamer.cli.checking import job_of
from gossamer.cli.child import run_guarded
from gossamer.cli.entry import INTERRUPTED
from gossamer.cli.job import AGAIN, CrawlJob, decode, encode, toml_text
from gossamer.cli.output import Exit
from gossamer.cli.start import ChildProcess
from gossamer.config import Config, configure
from gossamer.world.process import DirectoryLock
from tests.cli.conftest import Gossamer, until

PATIENCE_S = 100.0


def crawl(directory: Path, *more: str) -> list[str]:
    page = directory / "page.html"
    page.write_text("<title>Here</title>")
    words = ("crawl", f"file://{page}", "--allow-private", "-o", str(directory / "made/crawl"), "--quiet")
    return [*words, "--set", "scope.schemes=['file']", *more]


def test_what_is_typed_becomes_a_job_and_a_crawl(tmp_path: Path) -> None:
    with closing(ChildProcess(crawl(tmp_path))) as started:
        job = started.job()
        assert isinstance(job, CrawlJob)
        assert job.directory == str(tmp_path / "made/crawl")
        assert not (tmp_path / "made/crawl/crawl.toml").exists()
        child = started.begin()
    assert child.wait(PATIENCE_S) == Exit.NOTHING
    assert (tmp_path / "made/crawl/crawl.toml").exists()


def test_a_job_that_is_checked_already_is_crawled(tmp_path: Path) -> None:
    with closing(ChildProcess(crawl(tmp_path))) as first:
        job = first.job()
    assert isinstance(job, CrawlJob)
    child = ChildProcess.again(job).begin()
    assert child.wait(PATIENCE_S) == Exit.NOTHING
    assert (tmp_path / "made/crawl/crawl.toml").exists()


@pytest.mark.heavy
@pytest.mark.parametrize(("changes", "status"), [(True, AGAIN), (False, Exit.REFUSED)])
def test_a_restart_is_refused_only_for_what_the_crawl_runs_with_now(changes: bool, status: int, tmp_path: Path) -> None:
    """A command can change `crawl.toml` between the job of a restart and its check: then another job is made of it."""
    with closing(ChildProcess(crawl(tmp_path))) as first:
        job = first.job()
        assert isinstance(job, CrawlJob)
        assert first.begin().wait(PATIENCE_S) == Exit.NOTHING
    directory = Path(job.directory)
    written = toml_text(directory)
    lock = DirectoryLock(directory / "state/lock")
    assert lock.acquire(0.0)
    try:
        restarted = ChildProcess.again(job._replace(written="" if changes else written)).begin()
        assert restarted.wait(PATIENCE_S) == status
    finally:
        lock.release()


def test_a_child_without_its_word_is_gone_when_its_context_is_and_nothing_is_left(tmp_path: Path) -> None:
    with closing(ChildProcess(crawl(tmp_path))) as started:
        pid = started._process.pid if started._process else 0
        assert isinstance(started.job(), CrawlJob)
        assert (tmp_path / "made/crawl").is_dir()
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()
    assert not (tmp_path / "made").exists()


def test_a_child_that_nobody_waits_for_is_gone_too(tmp_path: Path) -> None:
    with closing(ChildProcess(crawl(tmp_path))) as started:
        pid = started._process.pid if started._process else 0
    assert not Path(f"/proc/{pid}").exists()
    assert not (tmp_path / "made").exists()


def test_what_is_refused_is_a_status(tmp_path: Path) -> None:
    with closing(ChildProcess(crawl(tmp_path, "--set", "limits.max_page=3"))) as started:
        assert started.job() == Exit.REFUSED
    assert not (tmp_path / "made").exists()


def test_the_word_for_a_child_that_died_is_no_error_of_ours(tmp_path: Path) -> None:
    with closing(ChildProcess(crawl(tmp_path))) as started:
        assert isinstance(started.job(), CrawlJob)
        assert started._process is not None
        started._process.kill()
        os.waitid(os.P_PID, started._process.pid, os.WEXITED | os.WNOWAIT)
        child = started.begin()
    assert child.wait(PATIENCE_S) == -signal.SIGKILL


def test_an_interrupt_ends_slow_checks_and_leaves_nothing(run: Gossamer) -> None:
    os.mkfifo(run.directory / "slow")
    process = run.start("crawl", "--seeds", "slow", "--allow-private", "-o", "deep/er")
    with (run.directory / "slow").open("w") as seeds:  # Opens when somebody reads: the checks have begun.
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        seeds.write("")
    assert not (run.directory / "deep").exists()


def test_an_interrupt_while_seeds_are_typed_leaves_nothing(run: Gossamer) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours), os.fdopen(theirs, "w"):
        process = run.start("crawl", "--seeds", "-", "--allow-private", "-o", "deep/er", stdin=ours)
        until((run.directory / "deep/er/seeds.txt").exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    assert not (run.directory / "deep").exists()


def checking(run: Gossamer) -> tuple[subprocess.Popen[str], Callable[[], int]]:
    """Return a command whose checks take as long as nobody writes to `slow`, and what tells its child, 0 at its end."""
    process = run.start("crawl", "http://127.0.0.1/pages/2", "--seeds", "slow", "--allow-private", "--quiet")
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def child() -> int:
        found: list[int] = []

        def is_there() -> bool:
            found[:] = map(int, listed.read_text().split())  # Once: the next moment it may be gone.
            return bool(found)

        until(lambda: process.poll() is not None or is_there())
        return found[0] if process.poll() is None else 0

    return process, child


def test_a_child_that_dies_before_it_has_named_its_job_is_begun_anew(run: Gossamer) -> None:
    os.mkfifo(run.directory / "slow")
    process, child = checking(run)
    first = child()
    assert first, "0 would be this process, and all of its group"
    os.kill(first, signal.SIGKILL)
    until(lambda: child() != first)
    with (run.directory / "slow").open("w") as seeds:
        seeds.write("http://127.0.0.1/more\n")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (0, "")
    assert err == "gossamer: the crawl's process died of SIGKILL before it began; it starts again\n"
    assert (run.directory / "crawl/state/pages").read_text() == "2"


def test_a_child_that_keeps_dying_before_it_has_named_its_job_is_a_failure(run: Gossamer) -> None:
    os.mkfifo(run.directory / "slow")
    process, child = checking(run)
    for _ in range(6):
        dead = child()
        assert dead
        os.kill(dead, signal.SIGKILL)
        until(lambda dead=dead: child() != dead)  # type: ignore[misc]
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    last = "gossamer: the crawl's process died of SIGKILL before it began, for the 6th time; nothing was started"
    assert err.splitlines()[-1] == last


def test_a_child_that_dies_of_typed_seeds_cannot_have_them_twice(run: Gossamer) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours), os.fdopen(theirs, "w") as typed:
        process = run.start("crawl", "--seeds", "-", "--allow-private", stdin=ours)
        until((run.directory / "crawl/seeds.txt").exists)
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        os.kill(int(listed.read_text()), signal.SIGKILL)
        typed.write("http://127.0.0.1/\n")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert err.count("\n") == 1
    assert "what was on standard input is gone: give it again" in err


def test_a_component_that_exits_does_not_choose_the_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = CrawlJob(str(tmp_path), "{}")
    assert run_guarded(job, lambda _: sys.exit(0)) == Exit.FAILED
    assert "internal error: SystemExit: 0; nothing was saved" in capsys.readouterr().err
    (tmp_path / "crawl.toml").touch()
    assert run_guarded(job, lambda _: sys.exit(0)) == Exit.FAILED
    assert "internal error: SystemExit: 0; the state is saved" in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_fails_gives_one_line_even_if_the_logs_fail_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    (tmp_path / "logs").touch()  # No directory: nothing can be written below it.

    def fail(_: CrawlJob) -> int:
        raise OSError(number, os.strerror(number), str(tmp_path / "state/epochs/7"))

    assert run_guarded(CrawlJob(str(tmp_path), "{}"), fail) == Exit.FAILED
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert str(tmp_path) in err


def test_words_that_are_no_text_arrive_as_they_were() -> None:
    job = CrawlJob("\udcff", "{}", seeds=("\udce9",), before=("\udce8",))
    assert decode(encode(job)) == job


def test_a_configuration_reaches_a_later_child_as_it_was() -> None:
    config = configure(
        None,
        options={"max_pages": "7", "delay": "2.5", "scope": "any"},
        sets=["components.protocols={gemini='a:B'}", "scope.schemes=['http']", "memory.budget_bytes='1GiB'"],
        seeds=["http://127.0.0.1/ä"],
    )
    job = decode(encode(job_of(config, Path("crawl"))))
    assert isinstance(job, CrawlJob)
    there = msgspec.json.decode(job.values, type=Config)
    assert there == config
    assert there.origins == config.origins
    assert job.process_s_max == config.crawl.process_s_max


def test_what_native_threads_do_while_the_interpreter_ends_is_no_failure() -> None:
    code = "import atexit, os\nfrom gossamer.cli.entry import main\natexit.register(os.abort)\nmain(['--version'])\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (Exit.FINISHED, "")
    assert done.stdout


@pytest.mark.parametrize(
    ("module", "words"),
    [("cli.main", ["report", "x"]), ("cli.supervisor", ["crawl", "x"]), ("world.process", ["report", "token=x"])],
)
def test_an_interrupt_while_modules_are_imported_is_no_traceback(module: str, words: list[str]) -> None:
    code = (
        "import sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'gossamer.{module}': raise KeyboardInterrupt\n"
        "from gossamer.cli.entry import main\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        f"main({words})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (Exit.INTERRUPTED, "", "")
    assert INTERRUPTED == Exit.INTERRUPTED


@pytest.mark.parametrize("words", ["status x", "crawl http://127.0.0.1:9/ --allow-private", "report x", "resume x"])
def test_too_little_address_space_is_one_line_and_no_crash_of_a_library(words: str) -> None:
    """DuckDB, tantivy and C++ libraries abort where they get none."""
    command = f'ulimit -v 300000; exec "{sys.executable}" -m gossamer {words}'
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout) == (Exit.REFUSED, "")
    assert ran.stderr.startswith(
        "gossamer: the system allows 292 MiB of address space, and Gossamer needs 4,096: raise"
    )
    assert ran.stderr.count("\n") == 1
