"""Crawling: `crawl` and `resume`: everything is checked here, then a supervised child does it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from gossamer.cli.early import Early
from gossamer.cli.ends import REFUSED, complain
from gossamer.cli.job import Job
from gossamer.cli.supervisor import Slots, Supervisor
from gossamer.config import Config, configure
from gossamer.config.gather import reopen
from gossamer.config.lists import check_lists
from gossamer.config.seeds import check_seeds
from gossamer.model.errors import ConfigError

SPOOLED = "seeds.txt"
"""What came on standard input, in the crawl's directory."""


def crawl(
    seeds: Sequence[str],
    file: Path | None,
    options: Mapping[str, object],
    sets: Sequence[str],
    early: Early,
    *,
    or_resume: bool = False,
) -> int:
    """Start a crawl in a new directory, in `early`'s process, and return its exit status; with `or_resume` continue
    what is there already.

    Raises:
        ConfigError: something that the operator can mend; nothing was started.
    """
    config = configure(file, options=options, sets=sets, seeds=seeds)
    directory = Path(config.output.directory)
    if holds_crawl(directory) and or_resume:
        return go_on(directory, config, early)
    if holds_crawl(directory):
        raise ConfigError(
            f"{directory} already holds a crawl: gossamer resume {directory} continues it, -o DIR starts another"
        )
    missing, before = there_before(directory)
    status = REFUSED
    try:
        status = begin(config, directory, early)
    finally:
        if status == REFUSED:
            unmake(directory, missing, before)
    return status


def begin(config: Config, directory: Path, early: Early) -> int:
    """Check the seeds, and crawl."""
    if config.seeds.file == "-":
        config = spooled(config, directory)
    check_lists(config)
    check_seeds(config)
    make_directory(directory)
    return supervised(job_of(config, directory, seeds=config.seeds.urls), config, early)


def resume(directory: Path, options: Mapping[str, object], sets: Sequence[str], early: Early) -> int:
    """Continue the crawl in a directory, with changes, in `early`'s process, and return its exit status.

    Raises:
        ConfigError: something that the operator can mend; nothing was started.
    """
    require_crawl(directory)
    config = reopen(directory / "crawl.toml", options=options, sets=sets)
    return supervised(job_of(config, directory, resume=True), config, early)


def job_of(config: Config, directory: Path, *, seeds: tuple[str, ...] = (), resume: bool = False) -> Job:
    """Return what the child has to do."""
    values = config.model_dump_json()
    return Job(directory=str(directory), values=values, origins=config.origins, seeds=seeds, resume=resume)


def go_on(directory: Path, given: Config, early: Early) -> int:
    """Continue the crawl in a directory where it was interrupted, as it was begun; one that has ended stays as it is.

    Raises:
        ConfigError: it was begun with something else.
    """
    config = reopen(directory / "crawl.toml")
    if (given.crawl.mode, *_begun_with(given)) != (config.crawl.mode, *_begun_with(config)):
        raise ConfigError(f"{directory} holds a crawl of other seeds or segments; -o DIR starts another")
    job = msgspec.structs.replace(job_of(config, directory, resume=True), settle=True)
    return supervised(job, config, early)


def _begun_with(config: Config) -> tuple[object, ...]:
    seeds = config.seeds
    # Those of standard input are kept in the crawl's directory, and are what they were then.
    file = "" if seeds.file == "-" or Path(seeds.file).name == SPOOLED else seeds.file
    return seeds.urls, file, seeds.domains_file, seeds.segments


def holds_crawl(directory: Path) -> bool:
    """Say whether a crawl was started in a directory."""
    return (directory / "crawl.toml").exists()


def require_crawl(directory: Path) -> None:
    """Raise ConfigError when there is no crawl in a directory."""
    if not directory.exists():
        raise ConfigError(f"no directory {directory}; name the one that gossamer crawl -o made")
    if not holds_crawl(directory):
        raise ConfigError(
            f"{directory} holds no crawl (it has no crawl.toml); name the one that gossamer crawl -o made"
        )


def there_before(directory: Path) -> tuple[list[Path], set[Path]]:
    """Return which directories have yet to be made, innermost first, and what the innermost holds."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    try:
        return missing, set(directory.iterdir()) if directory.is_dir() else set()
    except OSError as error:
        raise ConfigError(f"cannot read {directory}: {error.strerror}; name another with -o DIR") from error


def unmake(directory: Path, missing: Sequence[Path], before: set[Path]) -> None:
    """Remove what a refused crawl made: a mistake leaves nothing behind. What became a crawl stays."""
    if not directory.is_dir() or holds_crawl(directory):
        return
    for path in set(directory.iterdir()) - before:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    with suppress(OSError):  # Somebody else has put something there.
        for path in missing:
            path.rmdir()


def make_directory(directory: Path) -> None:
    """Make the crawl's directory. Raises ConfigError when that cannot be."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise ConfigError(f"cannot write to {directory}: {error.strerror}; name another with -o DIR") from error


def spooled(config: Config, directory: Path) -> Config:
    """Keep the seeds on standard input in the crawl's directory, where a restart finds them."""
    make_directory(directory)
    file = directory / SPOOLED
    with file.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    seeds = config.seeds.model_copy(update={"file": str(file.absolute())})
    return config.model_copy(update={"seeds": seeds})


def supervised(job: Job, config: Config, early: Early) -> int:
    """Run a job in a child, restarted as often as it takes, and return the exit status."""
    from gossamer.state import slots
    from gossamer.world.clock import WallClock

    directory = Path(job.directory)
    state, clock = directory / "state", WallClock()
    started_at = clock.now()
    before = _effective(directory)

    def start_again(restarts: int) -> subprocess.Popen[bytes]:
        nonlocal started_at
        started_at = clock.now()
        # Where its child has written what it runs with, that holds, and with it what was changed since.
        is_written = restarts and _effective(directory) != before
        asked = _written_job(job, directory) if is_written else job
        now = msgspec.structs.replace(asked, parent=os.getpid(), restart=restarts > 0)
        return (Early() if restarts else early).begin(now)

    watched = Slots(
        accuse=lambda: slots.accuse(state, started_at),
        overdue=lambda: slots.overdue(state, clock.now(), config.crawl.process_s_max, started_at),
        progress=lambda: slots.progress(state),
    )
    supervisor = Supervisor(start_again, watched, complain)
    status = supervisor.run()
    show_cursor()
    return status


def _written_job(job: Job, directory: Path) -> Job:
    try:
        config = reopen(directory / "crawl.toml")
    except ConfigError:  # Somebody edits it just now.
        return job
    return job_of(config, directory, seeds=job.seeds, resume=job.resume)


def _effective(directory: Path) -> str | None:
    """Return what `crawl.toml` says; None where there is none yet."""
    file = directory / "crawl.toml"
    return file.read_text(encoding="utf-8") if file.exists() else None


def show_cursor() -> None:
    """Give the terminal its cursor back: a child that died in a live view could not."""
    if sys.stdout.isatty():
        sys.stdout.write("\x1b[?25h")
        sys.stdout.flush()
