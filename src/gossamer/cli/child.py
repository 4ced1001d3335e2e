"""Child: the process that checks the command line and crawls, under the supervisor."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, NoReturn

import msgspec

from gossamer import api
from gossamer.cli.directory import holds_crawl, unmake_refused
from gossamer.cli.job import AGAIN, CrawlJob, CrawlRequest, Spool, decode, encode, is_maintained, toml_text
from gossamer.cli.output import Exit, complain
from gossamer.cli.status_text import failures_of, seeds_not_fetched_lines, summary_of, to_upload_of, waits_of
from gossamer.model import errors
from gossamer.model.status import SandboxState, read_status
from gossamer.model.words import shell_word
from gossamer.plugins import loading
from gossamer.state.slots import note_end
from gossamer.world.files import NO_ROOM, unwritable
from gossamer.world.loop import calm_collector, loop_factory
from gossamer.world.process import die_with_parent

if TYPE_CHECKING:
    from gossamer.config import Config
    from gossamer.model.status import Status


def main() -> None:
    """Check the command line, crawl when the parent allows it, exit with the status of the command.

    The arguments are two descriptors and the parent's process id. The command line comes first on the first descriptor;
    if it is empty, a checked job is a line on standard input. After it, a byte allows the crawl to start, and the end
    of the stream means that the parent is gone. Answers go to the second descriptor.
    """
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # Output of a background process would stop it.
    word, answers, parent = (int(number) for number in sys.argv[1:4])
    die_with_parent(parent)
    supervisor = ParentProcess(os.fdopen(word, "rb"), answers)
    words = supervisor.words()
    if words is None:
        os._exit(Exit.REFUSED)
    loading.set(supervisor.note)
    status = run_command_line(words, supervisor) if words else run_job(supervisor)
    with suppress(OSError):
        sys.stdout.flush()
    # Everything is closed. What native libraries do while the interpreter is torn down must not look like a crash.
    os._exit(status)


NOTE_CHARACTERS_MAX = 500


class ParentProcess(NamedTuple):
    """Our parent process, the supervisor, at the other end of two pipes."""

    word: BinaryIO
    answers: int

    def words(self) -> list[str] | None:
        """Return the command line; None: the parent is gone."""
        line = self.word.readline()
        words: list[str] | None = json.loads(line) if line.endswith(b"\n") else None
        return words

    def tell(self, message: CrawlJob | Spool) -> None:
        """Send an answer to the parent."""
        with suppress(BrokenPipeError), os.fdopen(os.dup(self.answers), "wb") as line:
            line.write(encode(message))

    def note(self, component: str) -> None:
        """Tell the parent which component is being imported; empty: none."""
        with suppress(OSError):
            os.write(self.answers, component[:NOTE_CHARACTERS_MAX].encode("utf-8", "replace") + b"\0")

    def says_go(self) -> bool:
        """Wait for the parent's permission to crawl; False: the parent is gone."""
        return bool(self.word.read(1))


def run_command_line(words: Sequence[str], supervisor: ParentProcess) -> int:
    """Carry out the command line, or report an error in it; return the exit status."""
    from gossamer.cli.main import status_of_command

    return status_of_command(words, lambda request: run_crawl(*send_job(request, supervisor), supervisor))


def run_job(supervisor: ParentProcess) -> int:
    """Carry out a job that an earlier child has checked; return the exit status."""
    from gossamer.config import Config

    job = decode(sys.stdin.buffer.readline())
    assert isinstance(job, CrawlJob), "nothing else is for us"
    return run_crawl(job, msgspec.json.decode(job.values, type=Config), supervisor)


def send_job(request: CrawlRequest, supervisor: ParentProcess) -> tuple[CrawlJob, Config]:
    """Send the job of a request to the supervisor. Ctrl-C ends the checks: lists may be long, and input slow. Raises
    ConfigError: a mistake that the operator can fix.
    """
    from gossamer.cli.checking import check_request

    def spool(file: Path) -> None:
        supervisor.tell(Spool(file=str(file)))
        if not supervisor.says_go():
            interrupt()

    signal.signal(signal.SIGINT, interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        job, config = check_request(request, spool)
        job = job._replace(recipe=request.recipe)
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    supervisor.tell(job)
    return job, config


def interrupt(*_: object) -> NoReturn:
    """End the checks, once: afterwards the files that they made are removed, which nothing may interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def run_crawl(job: CrawlJob, config: Config, supervisor: ParentProcess) -> int:
    """Import the modules of a job, crawl when the parent allows it, and return the exit status."""
    return run_guarded(job, partial(crawl, config, supervisor))


def run_guarded(job: CrawlJob, work: Callable[[CrawlJob], int]) -> int:
    """Return the exit status of `work`; any exception becomes one line on standard error."""
    directory = Path(job.directory)
    try:
        return work(job)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - a component may raise SystemExit
        if (mistake := config_error(error)) is not None:
            if job.restart and (is_maintained(directory) or toml_text(directory) != job.written):
                return AGAIN  # A command changed the crawl first.
            complain(str(mistake))
            return Exit.REFUSED
        if isinstance(error, errors.HeadLostError):
            complain(f"{error}; the crawl continues when it is back")
            return AGAIN
        says = reason(error, directory)
        note_end(directory / "state", "failed", says)
        complain(says + _then(error, directory))
        return Exit.FAILED


def _then(error: BaseException, directory: Path) -> str:
    """Return how to go on after an error that ended the crawl. One that is a defect is logged."""
    if isinstance(error, errors.DamagedError):
        return ""
    resume = f"gossamer resume {shell_word(directory)} continues"
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return f", then {resume if holds_crawl(directory) else 'the same command continues'}"
    is_outside = isinstance(error, errors.CrawlFailedError)
    if not is_outside or isinstance(error, errors.ComponentFailedError):
        api.log_crash(error, directory)
    if is_outside:
        return f"; the state is saved, {resume}"
    if holds_crawl(directory):
        return f"; the state is saved, logs/critical.log says more, {resume}"
    return "; nothing was saved; the same command begins again"


def reason(error: BaseException, directory: Path) -> str:
    """Return why an error ended the crawl, in a line."""
    if isinstance(error, errors.CrawlFailedError):
        return str(error)
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return unwritable(error, directory)
    kind = "the disk failed" if errors.is_fatal(error) else f"internal error: {type(error).__name__}"
    return f"{kind}: {error}"


def crawl(config: Config, supervisor: ParentProcess, job: CrawlJob) -> int:
    """Import the crawler, wait for the parent's permission, do the job and show its progress."""
    from gossamer.cli.run import progress_for, run_with_console

    resume = job.resume or (job.restart and (Path(job.directory) / "crawl.toml").exists())
    is_clustered = config.cluster.workers > 1
    calm_collector()
    if not supervisor.says_go():
        unmake_refused(job)
        return Exit.REFUSED
    sandbox = confine_process(job, config)
    if job.restart and api.finish_scaling(job.directory):
        return AGAIN  # With the configuration that it has now.
    # A crawl that had ended when its process died does not start again: only its files may be incomplete.
    settle = job.settle or job.restart
    running: api.Crawler | api.ClusterCrawler
    if not resume:
        kind = api.ClusterCrawler if is_clustered else api.Crawler
        running = kind(job.seeds, output=job.directory, config=config)
    elif is_clustered:
        running = api.ClusterCrawler.resume(job.directory, config=config)
    else:
        running = api.Crawler.resume(job.directory, config=config, settle=settle)
    running.stays_paused = job.restart
    if isinstance(running, api.Crawler):
        running.sandbox = sandbox
    progress = progress_for(config.progress.style)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            ended = runner.run(run_with_console(running, config, progress))
        latest = running.status()
        progress.show(latest)
    finally:
        progress.close()
    progress.end(latest, job.directory, ended, job.recipe)
    if running.starts_again and ended == "stopped":
        return AGAIN
    status = read_status(latest)
    if to_upload := to_upload_of(status):
        uploads = status.uploads
        assert uploads is not None
        complain(
            f"{to_upload} not uploaded to {uploads['store']}: {uploads['error'] or 'there was no time'}; "
            f"they are kept, gossamer resume {shell_word(job.directory)} uploads them"
        )
        return Exit.INTERRUPTED if ended == "stopped" else Exit.FAILED
    if config.progress.style == "quiet":
        for line in failures_of(status):
            complain(line)
    if ended == "patience" and config.progress.style == "quiet":
        complain(" ".join([summary_of(status, job.directory, ended).partition(":")[0] + ".", *waits_of(status)]))
    return exit_status(ended, status)


def confine_process(job: CrawlJob, config: Config) -> SandboxState:
    """Confine this process to the rights of its job; return what is in force. Raises ConfigError: the crawl has several
    shards now, or the system refuses and `process.sandbox` is on.
    """
    if job.rights is None:
        return SandboxState(in_force=False, says=job.unconfined)
    from gossamer.world.sandbox import Rights, confine, threads

    if config.cluster.workers > 1:
        raise errors.ConfigError(
            f"this crawl has {config.cluster.workers} shards now, which run without a sandbox: "
            f"gossamer resume {shell_word(job.directory)} starts them"
        )
    rights = Rights(**job.rights)
    for path in (*rights.writes, *rights.scratch):
        if not Path(path).exists():  # A rule can name only an existing file.
            with suppress(OSError):
                Path(path).mkdir(parents=True)
    try:
        if (count := threads()) > 1:
            raise OSError(errno.EBUSY, f"{count} threads run already")
        enforced = confine(rights)
    except OSError as error:
        says = f"the system refuses ({error.strerror})"
        if job.is_required:
            raise errors.ConfigError(f'process.sandbox = "on" is not possible: {says}') from error
        return SandboxState(in_force=False, says=says)
    os.environ["TMPDIR"] = tempfile.tempdir = rights.scratch[-1]
    return SandboxState(in_force=True, enforced=enforced)


def exit_status(ended: str, status: Status) -> Exit:
    """Return the exit status of a crawl that ended without an error; report why if nothing was fetched."""
    if ended in ("stopped", "patience"):
        return Exit.INTERRUPTED if ended == "stopped" else Exit.WAITING
    if lines := seeds_not_fetched_lines(status):
        for line in lines:
            complain(line)
        return Exit.NOTHING
    return Exit.FINISHED


def config_error(error: BaseException) -> errors.ConfigError | None:
    """Return the operator's mistake in an error, which may be a group of errors."""
    if isinstance(error, errors.ConfigError):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((found for inner in error.exceptions if (found := config_error(inner))), None)
    return None
