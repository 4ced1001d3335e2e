"""Verify: compares all files of a crawl with its last commit and its checksums."""

import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from gossamer.assembly import integrity
from gossamer.assembly.home import CHECKPOINTS, Home, homes, refuse_half_scaled, store_sizes
from gossamer.assembly.mapping import map_in
from gossamer.cluster.partitions import FILE as PARTITIONS
from gossamer.config import Config
from gossamer.config.gather import reopen, require_state
from gossamer.model.errors import ConfigError, Damage, DamageKind, OtherFormatError
from gossamer.model.product import LOCK
from gossamer.model.words import shell_word
from gossamer.results.export.export import table_names
from gossamer.results.export.source import TableFiles
from gossamer.results.imports.progress import faults_of_links
from gossamer.results.search.folder import FOLDER as SEARCH
from gossamer.results.search.folder import faults as faults_of_search
from gossamer.results.search.folder import index_folders
from gossamer.results.verify import files as file_checks
from gossamer.stages.archive.seals import INDEX
from gossamer.stages.archive.segments import files_of, warcs_in
from gossamer.state import contacts, slots
from gossamer.state.journals import ManifestEntry, Phase
from gossamer.state.redo import DamagedStoreError
from gossamer.state.store import Store
from gossamer.world.process import DirectoryLock

Manifests = list[tuple[Home, list[ManifestEntry]]]


class Looked(msgspec.Struct):
    """Counts of checked files and records."""

    files: int = 0
    bytes: int = 0
    running: bool = False
    """Whether the crawl runs; then the files of its last commit were checked."""
    notes: list[str] = []
    """Checks that could not be made, and why that is no damage."""


class Verification:
    """One pass over a crawl's directory, or over a checkpoint in it."""

    def __init__(self, directory: Path, *, deep: bool) -> None:
        self.looked = Looked()
        self._directory = directory
        self._deep = deep

    def run(self) -> Iterator[Damage]:
        """Yield all damage. Blocks; with `deep` all files are read, about 4 ms a MB of WARC files. Raises ConfigError:
        there is no crawl, it may not be read, its state is no directory, or it has another format.
        """
        require_state(self._directory)
        try:
            config = reopen(self._directory / "crawl.toml")
        except ConfigError as error:
            is_sound = isinstance(error, OtherFormatError) or isinstance(error.__cause__, PermissionError)
            if is_sound or not (self._directory / "crawl.toml").exists():
                raise
            remedy = "put a sound copy in its place, or correct the line"
            yield self._damage("crawl.toml", "configuration", f"cannot be read ({error})", "everything", remedy)
            return
        with DirectoryLock(self._directory / LOCK, reading=True) as lock:
            self.looked.running = not lock.acquire(0.0)
            refuse_half_scaled(self._directory)
            if unfinished := integrity.half_forgotten(self._directory):
                self.looked.notes.append(unfinished)
            yield from self._crawl(config)

    # ---- inside

    def _crawl(self, config: Config) -> Iterator[Damage]:
        every = homes(self._directory, config.cluster.workers)
        yield from self._partitions(config)
        manifests: Manifests = []
        for home in every:
            yield from self._shard(config, home, manifests)
        if self._deep:
            with tempfile.TemporaryDirectory(prefix="gossamer-verify-") as folder:
                yield from self._contents(manifests, Path(folder))
        elif not self.looked.running:
            yield from integrity.view_losses(self._directory)
        if len(manifests) == len(every) and not config.state.checkpoint_uri:
            yield from self._find_orphans(manifests)
        remedy = "put it back, or import it from its new place into this directory"
        for name, what in faults_of_links(self._directory, deep=self._deep):
            yield self._damage(integrity.WARCS + name, "warc", what, "the archived responses of its pages", remedy)
        yield from self._search(config, every)
        for checkpoint in sorted((self._directory / CHECKPOINTS).glob("[!.]*")):
            yield from self._checkpoint(checkpoint)

    def _partitions(self, config: Config) -> Iterator[Damage]:
        path = self._directory / PARTITIONS
        workers = config.cluster.workers
        remedy = "put a sound copy in its place, or restore a checkpoint (docs/how-to/checkpoints.md)"
        what = ""
        try:
            found = map_in(self._directory)
            if found is None and workers > 1 and (path.parent / "shard-0").exists():
                what = "is missing"
            if found is not None and found.shards != workers:
                what = f"is of {found.shards} shards, the crawl has {workers}"
        except ConfigError as error:
            what = f"cannot be read ({error})"
        if what:
            yield self._damage(PARTITIONS, "partitions", what, "which shard has which URLs", remedy)

    def _shard(self, config: Config, home: Home, manifests: Manifests) -> Iterator[Damage]:
        place = str(home.store.relative_to(self._directory))
        if not home.is_there:
            if config.state.checkpoint_uri:
                self.looked.notes.append(f"{place} is not here: its checkpoints are at {config.state.checkpoint_uri}")
            elif any(self._directory.glob(f"warc/*-{home.shard:03d}-[0-9]*")) or home.store.exists():
                yield self._store_damage(home, place, "is missing or lacks its file CURRENT")
            return
        try:
            with closing(self._open_store(config, home)) as store:
                if not self.looked.running and (lacking := integrity.missing_commits(home, store)):
                    yield self._store_damage(home, place, lacking)
                    return
                manifest = integrity.manifest_of(store)
                if self._deep:
                    store.check()
        except DamagedStoreError as error:
            yield self._store_damage(home, place, f"cannot be read ({integrity.fault_of(home, error)})")
            return
        self.looked.files += 1
        manifests.append((home, manifest))
        found = integrity.losses(config, home, manifest)
        if found and self.looked.running:  # A file may have been renamed or removed meanwhile: check again.
            with closing(self._open_store(config, home)) as store:
                still = integrity.losses(config, home, integrity.manifest_of(store))
            found = [damage for damage in found if damage in still]
        yield from found
        yield from self._contacts(home)

    def _open_store(self, config: Config, home: Home) -> Store:
        if self.looked.running:
            return integrity.running_store(config, home, strict=True)
        try:
            return Store(home.store, *store_sizes(config), writable=False, strict=True)
        except (DamagedStoreError, FileNotFoundError):
            raise
        except OSError:  # Its last commit must be finished first.
            return Store(home.store, *store_sizes(config), strict=True)

    def _contacts(self, home: Home) -> Iterator[Damage]:
        path = home.state / contacts.FILE
        if self.looked.running:
            return
        name = str(path.relative_to(self._directory))
        affects = "the delays of hosts"
        again = f"`gossamer resume {shell_word(self._directory)}`"
        remedy = f"nothing: {again} rebuilds it, and waits the longest delay for every host"
        if not path.exists():
            if (home.state / slots.FILE).exists():  # Otherwise it is a checkpoint, or a shard that has not run yet.
                yield self._damage(name, "contacts", "is missing", affects, remedy)
            return
        if found := contacts.faults(path.read_bytes()):
            what = f"has {len(found):,} records that are not what was written, the first"
            yield self._damage(name, "contacts", what, affects, remedy, found[0])

    def _contents(self, manifests: Manifests, folder: Path) -> Iterator[Damage]:
        """Check the whole content of files, and that the index has the pages of the tables that are sound."""
        records = file_checks.places_in(folder)
        sound: list[Path] = []
        for name, path, entry in self._held(manifests):
            if entry is not None:
                self.looked.files += 1
                self.looked.bytes += entry.length
            faults = list(self._faults_of(name, path, entry, records))
            yield from (self._of_fault(name, fault) for fault in faults)
            if name.startswith("pages/") and not faults:
                sound.append(path)
        index = self._directory / INDEX
        if not self.looked.running:
            yield from (self._of_fault(INDEX, fault) for fault in file_checks.faults_of_index_lines(index, records))
        records.close()
        for fault in file_checks.faults_of_places(index, sound, folder):
            yield self._of_fault(str(fault.path.relative_to(self._directory)), fault)

    def _held(self, manifests: Manifests) -> Iterator[tuple[str, Path, ManifestEntry | None]]:
        """Yield the files that manifests name, then those that none names: of a shard whose state is gone."""
        for home, manifest in manifests:
            yield from ((entry.name, path, entry) for entry, path in _files(home, manifest))
        named = _names_in(manifests)
        tables = [path for table in table_names(self._directory) for path in files_of(self._directory, table)]
        for path in (*tables, *self._unnamed_warcs(named)):
            name = str(path.relative_to(self._directory))
            if name not in named:
                yield name, path, None

    def _faults_of(
        self, name: str, path: Path, entry: ManifestEntry | None, records: TableFiles
    ) -> Iterator[file_checks.FileFault]:
        with suppress(FileNotFoundError):  # In a running crawl the file may have been removed meanwhile.
            if name.startswith(integrity.WARCS):
                yield from file_checks.faults_of_warc(path, entry, records)
            elif entry is None:  # Logs are named by a manifest.
                yield from file_checks.faults_of_table(path, None)
            elif name.startswith((integrity.TABLE_LOGS, integrity.SEARCH_LOGS)):
                yield from file_checks.faults_of_log(path, entry)
            elif name.endswith(".parquet"):
                yield from file_checks.faults_of_table(path, entry)
            else:
                yield from file_checks.faults_of_file(path, entry)

    def _of_fault(self, name: str, one: file_checks.FileFault) -> Damage:
        if name == INDEX:
            remedy = f"`gossamer resume {shell_word(self._directory)}` rebuilds it from `pages`"
            return self._damage(INDEX, "index", one.what, "replay and look-ups by URL", remedy, one.offset, one.url)
        damage = integrity.damage_of(self._directory, name, one.path, one.what)
        return msgspec.structs.replace(damage, offset=one.offset, url=one.url)

    def _find_orphans(self, manifests: Manifests) -> Iterator[Damage]:
        """Yield finished WARC files that are not in the last commit, although each was finished by a commit."""
        if self.looked.running:
            return
        for path in self._unnamed_warcs(_names_in(manifests)):
            what = "is named by no commit: the store is older than it, or it was put there"
            remedy = f"move it away, or {integrity.restoring(self._directory)}"
            yield self._damage(integrity.WARCS + path.name, "warc", what, "what is known of its pages", remedy)

    def _unnamed_warcs(self, named: set[str]) -> list[Path]:
        """Return the finished WARC files of the crawl that no commit names."""
        own = (path for path in warcs_in(self._directory / "warc") if path.name.startswith("gossamer-"))
        return [path for path in own if path.suffix != ".open" and integrity.WARCS + path.name not in named]

    def _search(self, config: Config, every: list[Home]) -> Iterator[Damage]:
        if self.looked.running or self._directory.parent.name == CHECKPOINTS:  # A checkpoint has no index.
            return
        remedy = f"`gossamer search {shell_word(self._directory)} --build` rebuilds the index"
        folders = index_folders(self._directory)
        for folder in folders:
            for path, what in faults_of_search(folder, deep=self._deep):
                yield self._damage(str(path.relative_to(self._directory)), "search", what, "search", remedy)
        wanted = config.search.enabled and bool(files_of(self._directory, "pages"))
        if wanted and not folders and all(home.is_there for home in every):
            yield self._damage(f"{SEARCH}/meta.json", "search", "is missing", "search", remedy)

    def _checkpoint(self, directory: Path) -> Iterator[Damage]:
        inner = Verification(directory, deep=self._deep)
        try:
            found = list(inner.run())
        except ConfigError as error:
            yield Damage(str(directory), "checkpoint", f"cannot be read ({error})", "the checkpoint", "remove it")
            return
        self.looked.files += inner.looked.files
        self.looked.bytes += inner.looked.bytes
        for damage in found:
            yield msgspec.structs.replace(damage, kind="checkpoint", affects="this checkpoint", remedy="remove it")

    def _store_damage(self, home: Home, name: str, what: str) -> Damage:
        whose = "" if home.shards == 1 else f" of shard {home.shard}"
        affects = f"what is queued, seen and counted{whose}: the crawl cannot go on"
        return self._damage(name, "store", what, affects, integrity.restoring(self._directory))

    def _damage(
        self, name: str, kind: DamageKind, what: str, harms: str, remedy: str, offset: int | None = None, url: str = ""
    ) -> Damage:
        return Damage(str(self._directory / name), kind, what, harms, remedy, offset, url)


def _names_in(manifests: Manifests) -> set[str]:
    return {entry.name for _, manifest in manifests for entry in manifest}


def _files(home: Home, manifest: list[ManifestEntry]) -> Iterator[tuple[ManifestEntry, Path]]:
    """Yield the files of a shard's last commit that exist and have at least their committed length."""
    journals = home.journals()
    for entry in manifest:
        path = journals.path(entry.name)
        path = path if path.exists() else path.with_name(path.name + ".open")
        if entry.phase < Phase.AWAY and path.exists() and path.stat().st_size >= entry.length:
            yield entry, path
