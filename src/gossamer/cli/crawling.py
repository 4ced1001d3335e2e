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


def crawl(
    seeds: Sequence[str], file: Path | None, options: Mapping[str, object], sets: Sequence[str], early: Early
) -> int:
    """Start a crawl in a new directory, in `early`'s process, and return its exit status.

    Raises:
        ConfigError: something that the operator can mend; nothing was started.
    """
    config = configure(file, options=options, sets=sets, seeds=seeds)
    directory = Path(config.output.directory)
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
    file = directory / "seeds.txt"
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

    def start_again(restarts: int) -> subprocess.Popen[bytes]:
        nonlocal started_at
        started_at = clock.now()
        now = msgspec.structs.replace(job, parent=os.getpid(), restart=restarts > 0)
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


def show_cursor() -> None:
    """Give the terminal its cursor back: a child that died in a live view could not."""
    if sys.stdout.isatty():
        sys.stdout.write("\x1b[?25h")
        sys.stdout.flush()
