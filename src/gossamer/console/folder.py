"""Folder: the crawls of a server, as they lie on disk, and which of them are to run."""

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec

from gossamer.assembly.home import refuse_root
from gossamer.config import configure
from gossamer.config.flags import FLAGS, rename_options
from gossamer.config.lists import check_lists
from gossamer.config.seeds import check_seeds
from gossamer.config.toml import json_as_toml, to_toml
from gossamer.model.errors import ConfigError
from gossamer.model.product import LOCK
from gossamer.model.verbs import ConflictError, MissingError, RefusedError
from gossamer.world.files import write_refusal, write_whole
from gossamer.world.process import MAINTENANCE, DirectoryLock, birth_of, is_open

OWN = ".gossamer"
"""Folder of the server's own files; no crawl can have this name."""
KEYS = {flag.option: flag.key for flag in FLAGS}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names of crawls that are made here: any shell and any file system takes them."""
NAME_BYTES_MAX = 240
"""Bytes of the name of a folder that is listed: files about it have longer names."""
CRAWLS_MAX = 1_000
Content = Mapping[str, Mapping[str, Any] | str]
"""Content of a configuration file: sections, and the text before them."""
DELETED = ".deleted"
"""What follows the name of a deleted crawl whose files are not yet removed."""
READING_S_MAX = 5.0
"""Readers of a stopped crawl hold its directory for a moment, too."""
COMPLAINT_BYTES_MAX = 4_096
THEIRS = (("output", "directory"), ("console", "port"))
"""Keys that a crawl's configuration must leave out: the server sets them."""


class TargetState(msgspec.Struct, kw_only=True):
    """The target state of a crawl; on disk, for the next server."""

    runs: bool = False
    pid: int = 0
    """Id of the process that supervises it."""
    born: int = 0
    """Start of that process in the kernel's ticks, by which a reused process id is recognized."""
    schedule: str = ""
    """When it runs again, each time as a new crawl; empty: never."""
    due_at: float = 0.0
    """Wall time of the next of these runs; 0 without a schedule."""
    last_run: str = ""
    """Name of the newest of these runs."""
    skipped: str = ""
    """Why the last time brought no run."""


class Folder:
    """Finds, makes and remembers crawls by name."""

    def __init__(self, path: Path) -> None:
        """Lock the folder for this server. Raises ConfigError: that failed, or another server or user has it."""
        self.path = path
        self.own = path / OWN
        try:
            for name in [OWN] if self.own.exists() else [f"{one}/crawl.toml" for one in begun_in(path)]:
                refuse_root(path, name)
            self.own.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.own).close()
            self._lock = DirectoryLock(self.own / "lock")
        except OSError as error:
            raise ConfigError(write_refusal(error, path, "name another with --folder")) from error
        if not self._lock.acquire(1.0):
            self._lock.release()
            raise ConfigError(f"{path} is another server's; stop that one, or name another with --folder")

    def close(self) -> None:
        """Unlock the folder for other servers."""
        self._lock.release()

    def names(self) -> list[str]:
        """Return the names of all crawls, begun or not."""
        made = {entry.stem for entry in self.own.glob("*.toml")}
        return sorted(filter(is_listed, begun_in(self.path) | made))[:CRAWLS_MAX]

    def unlisted(self, names: Iterable[str]) -> list[str]:
        """Return the folders with crawls that are not among the `names`: not to be shown, or too many."""
        return sorted(os.fsencode(one).decode(errors="replace") for one in begun_in(self.path).difference(names))

    def directory(self, name: str) -> Path:
        """Return a crawl's directory. Raises MissingError: there is none of this name."""
        if is_listed(name) and (self.is_begun(name) or self.config_file(name).exists()):
            return self.path / name
        raise MissingError(f"no crawl is called {name!r}")

    def is_begun(self, name: str) -> bool:
        """Return whether a crawl was ever started."""
        return (self.path / name / "crawl.toml").exists()

    def config_file(self, name: str) -> Path:
        """Return the configuration file with which it is started."""
        return self.own / f"{name}.toml"

    def create(self, name: str, config: Content) -> None:
        """Keep a new crawl's configuration, checked. Raises RefusedError: the name or the configuration is no good; one
        line says why; ConflictError: there is one of this name.
        """
        if not NAME.fullmatch(name):
            raise RefusedError(f"{name!r} is no name: letters, digits, '.', '_' and '-', the first a letter or digit")
        if (self.path / name).exists() or self.config_file(name).exists():
            raise ConflictError(f"there is a crawl called {name!r}; name another")
        if len(self.names()) >= CRAWLS_MAX:
            raise ConflictError(f"there are {CRAWLS_MAX} crawls; remove some from {self.path}")
        draft = self.own / f"{name}.draft"
        write_whole(draft, _as_toml(config).encode(), private=True)
        try:
            _check(draft, self.path / name)
            os.link(draft, self.config_file(name))
        except FileExistsError as error:
            raise ConflictError(f"there is a crawl called {name!r}; name another") from error
        finally:
            draft.unlink()

    def delete(self, name: str) -> None:
        """Take a crawl off the list: its directory, or the link to it, and the files about it, which `sweep` removes.
        Raises ConflictError: it runs, a program reads it, or the system refuses.
        """
        directory = self.directory(name)
        try:
            if os.path.lexists(directory):
                if is_open(directory.resolve()):
                    raise ConflictError(f"a program reads {name!r}; try again when it is done")
                with DirectoryLock(directory / LOCK, reading=True) as lock:
                    if not lock.acquire(READING_S_MAX) or DirectoryLock.is_held(directory / MAINTENANCE):
                        raise ConflictError(f"a program works on {name!r}; stop it, or try again when it is done")
                    self.sweep()
                    directory.rename(self.own / f"{name}{DELETED}")
            for ending in (".toml", ".json", ".err"):  # Names of runs begin with that of their crawl, and a dot.
                (self.own / f"{name}{ending}").unlink(missing_ok=True)
        except OSError as error:
            raise ConflictError(f"cannot delete {directory}: {error.strerror}") from error

    def sweep(self) -> None:
        """Remove the files of deleted crawls: also of those that an earlier server did not finish."""
        for deleted in self.own.glob(f"*{DELETED}"):
            if deleted.is_symlink():
                deleted.unlink()
            else:
                rmtree(deleted, ignore_errors=True)

    def repeat(self, name: str, again: str) -> None:
        """Keep the configuration of a crawl for a new one. Raises ConflictError: there is one of this name."""
        if again in self.names():
            raise ConflictError(f"there is a crawl called {again!r}")
        given = self.config_file(name)
        source = given if given.exists() else self.path / name / "crawl.toml"
        write_whole(self.config_file(again), source.read_bytes(), private=True)

    def target(self, name: str) -> TargetState:
        """Return the target state of a crawl."""
        try:
            return msgspec.json.decode((self.own / f"{name}.json").read_bytes(), type=TargetState)
        except (OSError, msgspec.DecodeError):
            return TargetState()

    def keep(self, name: str, target: TargetState) -> None:
        """Save a target state; it is durable on return."""
        write_whole(self.own / f"{name}.json", msgspec.json.encode(target), private=True)

    def is_held(self, name: str, target: TargetState, wait_s: float = 0.0) -> bool:
        """Return whether a process runs it: the one that `target` names, or any. Blocks for up to `wait_s`."""
        if target.born and birth_of(target.pid) == target.born:
            return True
        return DirectoryLock.is_held(self.path / name / LOCK, wait_s)

    def complaint_file(self, name: str) -> Path:
        """Return the file with the standard error of its last run."""
        return self.own / f"{name}.err"

    def complaint(self, name: str) -> str:
        """Return the last line of it."""
        try:
            with self.complaint_file(name).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - COMPLAINT_BYTES_MAX))
                lines = file.read().decode(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1].removeprefix("gossamer: ") if lines else ""


def is_listed(name: str) -> bool:
    """Return whether a folder of this name is listed: it can be shown, and no address leads elsewhere by it."""
    is_shown = name.isprintable() and bool(name)  # What is not UTF-8 is not printable.
    return is_shown and name[0] != "." and "/" not in name and len(name.encode()) <= NAME_BYTES_MAX


def begun_in(path: Path) -> set[str]:
    """Return the names of the folders in a folder in which crawls were begun, except for hidden ones."""
    return {entry.parent.name for entry in path.glob("*/crawl.toml") if not entry.parent.name.startswith(".")}


def _as_toml(config: Content) -> str:
    plain = []
    lines = []
    for section, values in config.items():
        if isinstance(values, str):  # Such as `preset`.
            plain.append(f"{to_toml(section)} = {to_toml(values)}")
            continue
        lines += ["", f"[{to_toml(section)}]"]
        for key, value in values.items():
            if value is None:
                raise RefusedError(f"{section}.{key}: null is no value; leave the key out")
            try:
                lines.append(f"{to_toml(key)} = {json_as_toml(f'{section}.{key}', value)}")
            except ConfigError as error:
                raise RefusedError(str(error)) from error
    return "\n".join([*plain, *lines]) + "\n"


def _check(draft: Path, directory: Path) -> None:
    try:
        plain = configure(draft)
        for section, key in THEIRS:
            if plain.origin(f"{section}.{key}") != "default":
                raise ConfigError(f"{section}.{key}: the server says that; leave it out")
        if plain.seeds.file == "-":
            raise ConfigError("seeds.file: there is no standard input here; name the seeds in seeds.urls")
        config = configure(draft, options={"output": str(directory)})
        check_lists(config)
        check_seeds(config)
    except ConfigError as error:
        # Lines of the draft are not those of the request, nor of a form.
        says = re.sub(f"{re.escape(str(draft))}(?: line [0-9]+: )?", "", "; ".join(error.lines))
        raise RefusedError(rename_options(says, KEYS)) from error
