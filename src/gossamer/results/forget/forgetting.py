"""Forgetting: a plan, then steps, each of which may be repeated; the plan notes those that are done, and goes last.

A crawl with a plan does not run. After any interruption, repeating the command finishes it.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from operator import attrgetter
from pathlib import Path

import msgspec

from gossamer.assembly.home import CHECKPOINTS, Home, homes, lock_directory, remove_unfinished_checkpoints
from gossamer.assembly.integrity import FORGETTING, half_forgotten
from gossamer.assembly.schemes import namer_for
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.config.lists import read_forgotten
from gossamer.model.decodable import decodable
from gossamer.model.errors import ConfigError
from gossamer.model.product import FORGOTTEN, LOCK
from gossamer.model.words import iso_time
from gossamer.results.forget import tables, warcs
from gossamer.results.forget.holdings import FOLDER, ForgottenPages, Holdings
from gossamer.results.forget.keys import Keys
from gossamer.results.forget.remote import UploadedCopies, replace_checkpoint
from gossamer.results.imports.progress import refuse_linked
from gossamer.stages.scope.forgotten import ForgottenEntry, moment
from gossamer.state.journals import ManifestEntry as FileEntry
from gossamer.world.files import make_directory, sync_directory, write_whole
from gossamer.world.process import DirectoryLock

Note = Callable[[str], None]
EXPORTS_STEP = "remove exports"
READINGS_MAX = 5
"""Readings of a shard that runs, for one count: its logs become tables meanwhile."""


class ForgetRequest(msgspec.Struct, frozen=True):
    """The request to forget."""

    pattern: str
    until: str = ""
    """A date, or a date with a time; empty: for good."""
    reason: str = ""
    whom: str = ""
    everything: bool = False
    """All pages of the crawl may be meant."""


@decodable
class ForgetPlan(msgspec.Struct):
    """A removal in progress. `pattern` comes first, for a quick check whether there is a plan."""

    pattern: str
    entry: ForgottenEntry
    at: float
    incarnations: dict[str, int]
    """By shard: the number of the file that takes rewritten records."""
    done: list[str] = []
    exports: list[str] = []
    """Those that were removed."""
    untouched: list[str] = []
    """Other files in the crawl's directory that may hold such pages."""


def count(config: Config, directory: Path, asked: ForgetRequest) -> dict[str, int]:
    """Return how many pages and rows would be forgotten; changes nothing. A crawl that runs is counted as of its last
    commit. Raises ConfigError: parts of the crawl are elsewhere, or the pattern is invalid, or matches no page, or all
    of them.
    """
    pages = ForgottenPages(asked.pattern, namer_for(config))
    if DirectoryLock.is_held(directory / LOCK):
        return _count(config, directory, pages, asked, running=True)
    with _open(config, directory):
        return _count(config, directory, pages, asked)


def forget(config: Config, directory: Path, asked: ForgetRequest, now: float, note: Note) -> ForgetPlan:
    """Remove pages from all that a crawl keeps, or finish what was interrupted; return the plan, in which all is done.
    `now` is wall time.

    Costs two passes over the WARC files, about 3 ms a MB of text each, one over tables and store, 2 µs a URL, and a
    copy of what changes.

    Raises:
        ConfigError: the crawl runs; parts of it are elsewhere; the pattern is invalid, or matches no page, or all of
        them; or another removal was interrupted.
        DamagedError: a file is not what was written.
        OSError: the disk is full. Repeat the command.
    """
    with _open(config, directory):
        try:
            plan = _plan(config, directory, asked, now)
        except _NoneLeftError:
            entry = _prolong(config, directory, asked, now)
            plan = ForgetPlan(asked.pattern, entry, now, _incarnations(config, directory), [EXPORTS_STEP])
            if not (config.archive.store or config.state.checkpoint_uri):
                return plan
            # A copy elsewhere may be older than the first removal: it is compared again.
        _remove_unfinished_checkpoints(config, directory)
        steps = _ForgetSteps(config, directory, plan, note)
        for home in homes(directory, config.cluster.workers):
            steps.of_shard(directory, config, home)
        steps.of_directory(directory, config)
        for checkpoint in _checkpoints(directory):
            copy = reopen(checkpoint / "crawl.toml")
            for home in homes(checkpoint, copy.cluster.workers):
                if home.is_there:
                    steps.of_shard(checkpoint, copy, home)
            steps.of_directory(checkpoint, copy)
        steps.elsewhere()
        _finish(config, directory, plan)
    return plan


class _ForgetSteps:
    """Carries out the steps that the plan does not have as done."""

    def __init__(self, config: Config, directory: Path, plan: ForgetPlan, note: Note) -> None:
        self._config = config
        self._directory = directory
        self._plan = plan
        self._note = note
        self._pages = ForgottenPages(plan.pattern, namer_for(config))
        self._copies = UploadedCopies(config) if config.archive.store or config.state.checkpoint_uri else None
        self._named: set[str] = set()
        """The files of the crawl: no export is among them."""
        make_directory(directory / FOLDER)

    def of_shard(self, directory: Path, config: Config, home: Home) -> None:
        """Remove pages from a shard's files and store."""
        place = f"shard {home.shard}{self._where(directory)}"
        notes = self._directory / FOLDER / (directory.name if directory != self._directory else "own")
        make_directory(notes)
        with Holdings(config, home, notes) as kept:
            if directory == self._directory:
                self._named |= kept.manifest.keys()
            self._step(f"finish the files of {place}", kept.finish_journals)
            self._step(f"save the payloads that kept pages of {place} need", lambda: self._save_payloads(kept, config))
            self._step(
                f"remove records from the WARC files of {place}",
                lambda: warcs.bury(kept, self._pages, self._plan.at, self._copies),
            )
            self._step(
                f"remove rows from the tables of {place}",
                lambda: tables.remove(kept, self._pages, warcs.load_payloads(kept).places),
            )
            self._step(
                f"delete keys from the store of {place}",
                lambda: Keys(config, kept, self._pages, namer_for(config), warcs.load_payloads(kept)).delete(),
            )
            self._step(f"compact the store of {place}", kept.store.purge)
            kept.sweep()

    def of_directory(self, directory: Path, config: Config) -> None:
        """Remove pages from files made of these, and from files beside them."""
        place = self._where(directory)
        self._step(f"rewrite the index{place}", lambda: tables.rewrite_index(directory, config))
        self._step(f"rewrite the search index{place}", lambda: self._rewrite_search(directory, config))
        self._step(f"remove lines from the logs{place}", lambda: tables.thin_logs(directory, self._pages))
        if directory == self._directory:
            self._step(EXPORTS_STEP, self._remove_exports)

    def _where(self, directory: Path) -> str:
        return f" in checkpoint {directory.name}" if directory != self._directory else ""

    def elsewhere(self) -> None:
        """Bring copies in object stores to the same state."""
        config = self._config
        if self._copies is None:
            return
        archived = self._copies if config.archive.store else None
        entries: list[FileEntry] = []
        listed = _lines([*_read_entries(self._directory / FORGOTTEN), self._plan.entry])
        for home in homes(self._directory, config.cluster.workers):
            with Holdings(config, home, self._directory / FOLDER / "own") as kept:
                if archived is not None:
                    send = partial(archived.send, kept)
                    self._step(f"send the files of shard {home.shard} to the object store", send)
                entries += kept.manifest.values()
                if config.state.checkpoint_uri:
                    replace = partial(replace_checkpoint, config, kept, listed)
                    self._step(f"replace the checkpoint of shard {home.shard}", replace)
        if archived is not None:
            archived.send_views(self._directory, entries)

    def _save_payloads(self, kept: Holdings, config: Config) -> None:
        # A checkpoint may be of a shard that the crawl has no more.
        number = self._plan.incarnations.get(str(kept.home.shard), max(self._plan.incarnations.values()))
        warcs.save_payloads(kept, self._pages, config.archive, number, self._plan.at, self._copies)

    def _rewrite_search(self, directory: Path, config: Config) -> None:
        self._plan.exports += tables.rewrite_search(directory, config, self._pages)

    def _remove_exports(self) -> None:
        removed, self._plan.untouched = tables.remove_exports(self._directory, self._named)
        self._plan.exports += removed

    def _step(self, name: str, work: Callable[[], object]) -> None:
        if name not in self._plan.done:
            self._note(name)
            work()
            self._plan.done.append(name)
            _write(self._directory, self._plan)


def _open(config: Config, directory: Path) -> ExitStack:
    """Take a crawl that does not run, all of whose state is here. Raises ConfigError."""
    every = homes(directory, config.cluster.workers)
    refuse_linked(directory)
    with ExitStack() as undo:
        undo.callback(lock_directory(directory, 0.0).release)
        for home in every:
            home.require_here()
            if home.shards > 1:
                undo.callback(lock_directory(directory, 0.0, home.state).release)
        return undo.pop_all()


def _plan(config: Config, directory: Path, asked: ForgetRequest, now: float) -> ForgetPlan:
    path = directory / FORGETTING
    if path.exists():
        plan = msgspec.json.decode(path.read_bytes(), type=ForgetPlan)
        if plan.pattern != asked.pattern:
            raise ConfigError(half_forgotten(directory))
        return plan
    _entry(asked, now, {})  # Refuse an invalid date before anything is removed.
    for one in _lists(config, directory):
        _read_entries(one)  # Refuse an invalid list before anything is removed.
    entry = _entry(asked, now, _count(config, directory, ForgottenPages(asked.pattern, namer_for(config)), asked))
    plan = ForgetPlan(asked.pattern, entry, now, _incarnations(config, directory))
    _write(directory, plan)
    return plan


def _incarnations(config: Config, directory: Path) -> dict[str, int]:
    """Return, by shard, the number of the next file that takes rewritten records."""
    numbers = {}
    for home in homes(directory, config.cluster.workers):
        with Holdings(config, home, directory / FOLDER) as kept:
            numbers[str(home.shard)] = kept.totals.incarnation + 1
    return numbers


def _count(
    config: Config, directory: Path, pages: ForgottenPages, asked: ForgetRequest, *, running: bool = False
) -> dict[str, int]:
    totals = Counter[str]()
    every = True
    for home in homes(directory, config.cluster.workers):
        counts, all_gone = _count_in(config, home, pages, running=running)
        every = every and all_gone
        totals.update(counts)
    if not totals["rows"]:
        if asked.pattern in [entry.pattern for entry in _read_entries(directory / FORGOTTEN)]:
            raise _NoneLeftError(f"no page of {directory} matches {asked.pattern}: it was forgotten before")
        raise ConfigError(
            f"no page of {directory} matches {asked.pattern}: nothing was forgotten (a host is example.org, a domain "
            "*.example.org, an address https://example.org/a/* with * for any characters, all else is a regular "
            "expression)"
        )
    if every and not asked.everything:
        raise ConfigError(f"every page of {directory} matches {asked.pattern}; add --all if that is meant")
    return dict(totals)


def _count_in(config: Config, home: Home, pages: ForgottenPages, *, running: bool) -> tuple[dict[str, int], bool]:
    home.require_here()
    for left in reversed(range(READINGS_MAX if running else 1)):
        try:
            with Holdings(config, home, home.directory / FOLDER, running=running) as kept:
                return tables.count_rows(kept, pages)
        except FileNotFoundError:  # A log has become part of a table since the last commit was read.
            if not left:
                raise
    raise AssertionError("the last reading returns or raises")


def _checkpoints(directory: Path) -> Iterator[Path]:
    for path in sorted((directory / CHECKPOINTS).glob("[!.]*")):
        if (path / "crawl.toml").exists():
            yield path


def _remove_unfinished_checkpoints(config: Config, directory: Path) -> None:
    """Remove what a kill left of checkpoints: links to files as they were."""
    for home in homes(directory, config.cluster.workers):
        shutil.rmtree(home.snapshot, ignore_errors=True)
    remove_unfinished_checkpoints(directory, "", "shard-*-")


class _NoneLeftError(ConfigError):
    """No page matches, and the pattern was forgotten before."""


def _prolong(config: Config, directory: Path, asked: ForgetRequest, now: float) -> ForgottenEntry:
    """Enter what was forgotten before with another date or reason; the same again changes nothing."""
    entry = _entry(asked, now, {})
    stated = attrgetter("pattern", "until", "reason", "whom")
    for known in read_forgotten(directory / FORGOTTEN):
        if stated(known) == stated(entry):
            return known
    for path in _lists(config, directory):
        _enter(path, entry)
    return entry


def _entry(asked: ForgetRequest, now: float, removed: dict[str, int]) -> ForgottenEntry:
    until = moment(asked.until) if asked.until else ""
    if until and datetime.fromisoformat(until).timestamp() <= now:
        raise ConfigError(f"--until {asked.until}: that is past; name a later date, or leave it out: for good")
    return ForgottenEntry(asked.pattern, iso_time(now, zone="+00:00"), until, asked.reason, asked.whom, removed)


def _finish(config: Config, directory: Path, plan: ForgetPlan) -> None:
    """Enter what was done in the lists; then the plan goes."""
    for checkpoint in _checkpoints(directory):
        _enter(checkpoint / FORGOTTEN, plan.entry)
    for path in _lists(config, directory):
        _enter(path, plan.entry)
    shutil.rmtree(directory / FOLDER, ignore_errors=True)
    (directory / FORGETTING).unlink()
    sync_directory(directory / "state")


def _lists(config: Config, directory: Path) -> list[Path]:
    own = directory / FORGOTTEN
    shared = config.scope.forgotten_file
    return [own, Path(shared)] if shared and Path(shared).resolve() != own.resolve() else [own]


def _read_entries(path: Path) -> list[ForgottenEntry]:
    return read_forgotten(path) if path.exists() else []


def _lines(entries: Sequence[ForgottenEntry]) -> bytes:
    return b"".join([msgspec.json.encode(entry) + b"\n" for entry in entries])


def _enter(path: Path, entry: ForgottenEntry) -> None:
    """Add an entry to a list, unless it is there."""
    known = _read_entries(path)
    if entry not in known:
        write_whole(path, _lines([*known, entry]))


def _write(directory: Path, plan: ForgetPlan) -> None:
    write_whole(directory / FORGETTING, msgspec.json.encode(plan))
