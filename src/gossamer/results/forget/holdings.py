"""Holdings: what one shard keeps, its store and the files of its last commit, while pages are removed from them.

A file is rewritten aside, noted with its checksums, renamed, and entered in the manifest. After a kill, the next
opening finishes these steps.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import msgspec

from gossamer.assembly.home import OWNED, Home
from gossamer.assembly.integrity import losses, manifest_of, open_store, running_store
from gossamer.config import Config
from gossamer.engine.counters import Totals
from gossamer.model.decodable import decodable
from gossamer.model.errors import DamagedError, require_none
from gossamer.model.paths import is_of_crawl
from gossamer.model.words import shell_word
from gossamer.stages.scope.forgotten import Matching
from gossamer.state.epoch import load
from gossamer.state.journals import DIFFERS, ManifestEntry, Phase, differs
from gossamer.state.schema import MANIFEST, TOTALS
from gossamer.state.sums import PIECE_BYTES, Sums, pieces_of, sums_of
from gossamer.url.name import Namer
from gossamer.world.files import publish, write_whole

FOLDER: Final = "state/forget"
"""Holds what the steps note for each other."""
ASIDE: Final = ".forgetting"
"""Behind the name of a file that is rewritten."""
GROWING: Final = ("warc/", "state/tables/", "state/search/")
"""Journals that are finished before anything is removed from them."""


class ForgottenPages:
    """Says which addresses are to be forgotten; the answers for the last ones are remembered."""

    def __init__(self, pattern: str, namer: Namer) -> None:
        self._matching = Matching([pattern])
        self._namer = namer

    def has(self, text: str) -> bool:
        """Say so of an address as it is written. About 2 µs."""
        # A DNS record is of a host, and goes with its first page.
        address = f"http://{text[4:]}/" if text.startswith("dns:") else text
        if text.startswith("urn:"):  # A picture of a page, `urn:view:URL`, goes with it.
            address = text.split(":", 2)[-1]
        url = self._namer.name(address)
        return self._matching.matches(address, address if url is None else url.key)

    def has_host(self, host: str) -> bool:
        """Return whether all pages of a host are to be forgotten, judged by two addresses."""
        probe = "/gossamer-probe-7f3a91c2?x=1"
        return all(self.has(f"{scheme}://{host}{path}") for scheme in ("http", "https") for path in ("/", probe))


@decodable
class _Swap(msgspec.Struct, frozen=True):
    """The next file that is renamed."""

    name: str
    sums: Sums


class Holdings(AbstractContextManager["Holdings"]):
    """Open for one process, which holds the crawl's lock, or only reads. Use as a context."""

    def __init__(self, config: Config, home: Home, notes: Path, *, running: bool = False) -> None:
        """Open a shard and finish its last commit; `notes` is the folder for what steps note. With `running`, another
        process has the crawl: the shard is only read, as of its last commit. Raises DamagedError: its store or one of
        its files was damaged; OSError: the disk does not answer.
        """
        self.home = home
        self._notes = notes
        self.store = running_store(config, home) if running else open_store(config, home)
        self.manifest = {entry.name: entry for entry in manifest_of(self.store)}
        if running:
            return
        try:
            self._finish_swap()
            require_none(losses(config, home, self.manifest.values()), f"gossamer verify {shell_word(home.directory)}")
        except BaseException:
            self.store.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def note_of(self, what: str) -> Path:
        """Return the file in which a step notes something for this shard."""
        return self._notes / f"{what}-{self.home.shard:03d}.json"

    def path(self, name: str) -> Path:
        """Return where a file of the manifest is."""
        return self.home.journals().path(name)

    def finals(self, prefix: str) -> list[ManifestEntry]:
        """Return the finished files whose names begin with a prefix."""
        return [entry for name, entry in sorted(self.manifest.items()) if name.startswith(prefix)]

    def note_upload(self, name: str, phase: Phase) -> None:
        """Enter that an object store holds a finished file as it is now; one that it held before stays where it was."""
        entry = self.manifest[name]
        if entry.phase < Phase.UPLOADED:
            self.manifest[name] = msgspec.structs.replace(entry, phase=phase)
            self._commit_manifest(self.manifest.values())

    def sound(self, entry: ManifestEntry) -> Path:
        """Return where a file is, once its checksum was compared. Raises DamagedError."""
        path = self.path(entry.name)
        if differs(entry, path):
            raise DamagedError(f"{path} {DIFFERS}; put a sound copy in its place, then repeat the command")
        return path

    def finish_journals(self) -> None:
        """Finish the files that grow; the next run begins others. Files that no commit names are deleted."""
        for entry in self.manifest.values():
            if entry.phase < Phase.FINAL:
                _unshare(self.path(entry.name + ".open"), entry.length)
        journals = self.home.journals()
        journals.recover(self.manifest.values(), OWNED)
        try:
            for journal in [one for prefix in GROWING for one in journals.open_journals(prefix)]:
                journals.close(journal)
            entries = journals.cut()
            journals.sync()
            self._commit_manifest(entries)
            journals.settle(entries)
            self._commit_manifest(journals.cut())
        finally:
            journals.close_files()

    def replace(self, name: str, temporary: Path) -> None:
        """Replace a file of the manifest by one that was written aside, or add that. Durable when it returns."""
        sums = sums_of(temporary)
        write_whole(self.note_of("swap"), msgspec.json.encode(_Swap(name, sums)))
        publish(temporary, self.path(name))
        self._enter(name, sums)

    def commit(self, changes: Mapping[bytes, bytes]) -> None:
        """Put keys of the shard itself, in one commit."""
        self.store.put("meta", changes)

    @property
    def totals(self) -> Totals:
        """The shard's totals so far."""
        return load(self.store, TOTALS, Totals)

    def take_incarnation(self, number: int) -> None:
        """See that no later run gives its files this number."""
        totals = self.totals
        if totals.incarnation < number:
            totals.incarnation = number
            self.commit({TOTALS: msgspec.msgpack.encode(totals)})

    def sweep(self) -> None:
        """Remove what a kill left aside."""
        for folder in {self.path(name).parent for name in self.manifest}:
            for stray in folder.glob(f"*{ASIDE}"):
                stray.unlink()

    def _finish_swap(self) -> None:
        """Enter the file that was renamed last, if the process was killed in between."""
        note = self.note_of("swap")
        if note.exists():
            swap = msgspec.json.decode(note.read_bytes(), type=_Swap)
            path = self.path(swap.name)
            known = self.manifest.get(swap.name)
            if not is_of_crawl(swap.name):
                raise DamagedError(f"{note} names {swap.name!r}, which is no file of a crawl: remove the note")
            if path.exists() and (known is None or known.crc != swap.sums.crc) and sums_of(path) == swap.sums:
                self._enter(swap.name, swap.sums)

    def _enter(self, name: str, sums: Sums) -> None:
        known = self.manifest.get(name)
        phase = known.phase if known is not None else Phase.FINAL
        self.manifest[name] = ManifestEntry(name, phase, sums.length, sums.sha256, sums.crc)
        self._commit_manifest(self.manifest.values())

    def _commit_manifest(self, entries: Iterable[ManifestEntry]) -> None:
        kept = list(entries)
        self.manifest = {entry.name: entry for entry in kept}
        self.commit({MANIFEST: msgspec.msgpack.encode(kept)})


def _unshare(path: Path, length: int) -> None:
    """Give a growing file that a checkpoint shares with its crawl a copy of its own: it is about to be cut."""
    if not path.exists() or path.stat().st_nlink == 1:
        return
    aside = path.with_name(path.name + ASIDE)
    with aside.open("wb") as copy:
        copy.writelines(pieces_of(path, length))
    publish(aside, path)


def read_pieces(source: Callable[[int], bytes], length: int) -> Iterator[bytes]:
    """Yield the next `length` bytes of a reader in pieces."""
    while length:
        piece = source(min(PIECE_BYTES, length))
        assert piece, "a file became shorter while it was read"
        length -= len(piece)
        yield piece
