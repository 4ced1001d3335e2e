"""Directory: checks and makes a crawl's directory, and removes its files if the crawl is refused."""

import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from gossamer.cli.job import CrawlJob
from gossamer.cli.stored import uri_of
from gossamer.model.errors import ConfigError
from gossamer.model.product import LOCK
from gossamer.model.words import shell_word
from gossamer.world.files import make_directory, remove_new, write_refusal, write_whole
from gossamer.world.process import DirectoryLock

ARCHIVES = (".wacz", ".warc", ".warc.gz", ".arc", ".arc.gz", ".har")
CRAWLS_MAX = 1_000
"""Crawls in a directory from which the first is named."""
SHARD = "shard-0"
"""Folder that a store of checkpoints has."""
OWN = frozenset(("epochs", "items", "links", "logs", "lost+found", "machines", "pages", "state", "warc", "web"))
"""Directories that a crawl's directory may hold before it has its `crawl.toml`: of a crawl that ended early, of what
commands put there, and of a volume.
"""


def holds_crawl(directory: Path) -> bool:
    """Return whether a crawl was started in a directory."""
    return (directory / "crawl.toml").exists()


def require_crawl(directory: Path) -> None:
    """Raise ConfigError when there is no crawl in a directory."""
    if uri := uri_of(directory):
        raise ConfigError(
            f"{uri} is a store, and the command takes a directory: gossamer restore {shell_word(uri)} -o DIR makes it"
        )
    if (directory / SHARD / "latest.json").exists():
        uri = directory.resolve().as_uri()
        raise ConfigError(f"{directory} holds checkpoints, as a store: name it as {uri}")
    if not (directory.exists() or holds_crawl(directory.parent)):
        raise ConfigError(f"no directory {directory}; name the one that gossamer crawl -o made")
    if holds_crawl(directory):
        return
    says = f"{directory} holds no crawl (it has no crawl.toml)"
    if directory.is_file() and directory.name.endswith(ARCHIVES):
        raise ConfigError(
            f"{directory} is an archive: gossamer import {shell_word(directory)} -o DIR makes a crawl of it"
        )
    if holds_crawl(directory.parent):
        raise ConfigError(f"{directory} is a part of a crawl; name the whole: {shell_word(directory.parent)}")
    within = sorted(path.parent for path in islice(directory.glob("*/crawl.toml"), CRAWLS_MAX))
    if within:
        raise ConfigError(
            f"{says}; name one in it, such as {shell_word(within[0])}, or list all of them: gossamer serve "
            f"--folder {shell_word(directory)}"
        )
    raise ConfigError(f"{says}; name the one that gossamer crawl -o made")


def refuse_foreign(directory: Path, names: Iterable[str]) -> None:
    """Raise ConfigError where `names`, those in a directory, include directories that are not of a crawl: it is
    a user's home, or holds crawls itself. Files do not count, such as a log of the caller, nor do hidden names.
    """
    for name in sorted(names):
        if not name.startswith(".") and name not in OWN and (directory / name).is_dir():
            raise ConfigError(f"{directory} holds other directories ({name}); name another with -o DIR, or a new one")


def make_writable(directory: Path) -> None:
    """Make a crawl's directory. Raises ConfigError if that fails."""
    if directory.is_symlink() and not directory.exists():
        raise ConfigError(f"{directory} is a link that leads nowhere; name another with -o DIR")
    try:
        make_directory(directory)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise ConfigError(write_refusal(error, directory, "name another with -o DIR")) from error


def unmake_refused(job: CrawlJob) -> None:
    """Remove the files of a crawl whose job was refused after its checks."""
    if job.before is not None:
        unmake(Path(job.directory), [Path(name) for name in job.missing], job.before)


def unmake(directory: Path, missing: Sequence[Path], before: Iterable[str]) -> None:
    """Remove the files of a refused crawl, but not of one that another process has begun there."""
    if directory.is_dir() and not holds_crawl(directory) and not DirectoryLock.is_held(directory / LOCK):
        remove_new(directory, missing, before)


def write_file(path: Path, text: str, option: str, *, private: bool = False) -> None:
    """Write the whole of a file that an option names. Devices and pipes, such as /dev/stdout, are written to in place.
    The file that a link leads to is replaced, not the link; `-` is standard output. Raises ConfigError if that fails.
    """
    if str(path) == "-":
        sys.stdout.write(text)
        return
    if path.is_dir():
        raise ConfigError(f"{path} is a directory; name a file in it with {option} FILE")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(text.encode())
        else:
            write_whole(Path(os.path.realpath(path)), text.encode(), private=private)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; name another with {option} FILE") from error
