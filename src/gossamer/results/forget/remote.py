"""Remote: copies of a crawl's files in object stores: fetched where they are nowhere else, and replaced."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gossamer.config import Config
from gossamer.model.errors import ConfigError, StoreError
from gossamer.model.extras import require
from gossamer.model.product import FORGOTTEN
from gossamer.results.forget.holdings import Holdings
from gossamer.results.search.folder import remove_index
from gossamer.stages.archive.seals import INDEX
from gossamer.stages.archive.uploads import MANIFEST, store_at
from gossamer.state.journals import STATE, ManifestEntry, Phase, is_uploaded
from gossamer.state.sums import sums_of

if TYPE_CHECKING:
    from gossamer.stages.archive.checkpoints import Checkpoints, SnapshotFile

T = TypeVar("T")


class UploadedCopies:
    """The object stores that have a crawl's finished files: `archive.store` and `state.checkpoint_uri`."""

    def __init__(self, config: Config) -> None:
        """Open the stores; sends no request yet. Raises ConfigError: obstore is missing, or the options are no good."""
        options = config.archive
        checkpoints = config.state.checkpoint_uri
        self._archive = store_at(options.store, options, "archive.store") if options.store else None
        self._saved = store_at(checkpoints, options, "state.checkpoint_uri") if checkpoints else None
        self._keeps_warc = options.store_keep_warc

    def bring(self, entry: ManifestEntry, path: Path) -> bool:
        """Bring a file here from the store that has it; False if none is named. Raises ConfigError: the store does not
        give it.
        """
        store = self._saved if entry.phase == Phase.SAVED else self._archive
        if store is not None:
            _wait_for(store.fetch(entry.name, path, entry.digest), store.url)
        return store is not None

    def send(self, holdings: Holdings) -> None:
        """Have `archive.store` hold each finished file as it is now, except those that only checkpoints have. Those
        that it holds already are compared, not sent. Raises ConfigError: the store does not take one.
        """
        assert self._archive is not None, "a crawl without archive.store"
        for entry in [one for one in holdings.finals("") if not one.name.startswith(STATE)]:
            path = holdings.path(entry.name)
            if path.exists() and entry.phase != Phase.SAVED:
                _wait_for(self._archive.copy(path, entry.name, overwrite=True), "archive.store")
                is_kept = self._keeps_warc or not entry.name.startswith("warc/")
                holdings.note_upload(entry.name, Phase.UPLOADED if is_kept else Phase.AWAY)
                if holdings.manifest[entry.name].phase == Phase.AWAY:
                    path.unlink()

    def send_views(self, directory: Path, entries: list[ManifestEntry]) -> None:
        """Send the index and the list of all files. Raises ConfigError."""
        assert self._archive is not None, "a crawl without archive.store"
        digests = {entry.name: entry.digest for entry in entries if is_uploaded(entry)}
        if (index := directory / INDEX).exists():
            digests[INDEX] = _wait_for(self._archive.copy(index, INDEX, overwrite=True), "archive.store")
        lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
        _wait_for(self._archive.copy(lines.encode(), MANIFEST, overwrite=True), "archive.store")


@contextmanager
def local_copy(copies: UploadedCopies | None, holdings: Holdings, entry: ManifestEntry) -> Iterator[Path]:
    """Give a WARC file, brought here while the context lasts where it is in a store alone; one that was rewritten
    meanwhile stays until it is sent. Raises ConfigError: it is neither here nor in an object store that is named.
    """
    path = holdings.path(entry.name)
    is_brought = not path.exists()
    if is_brought and (copies is None or not copies.bring(entry, path)):
        raise ConfigError(f"{path} is not here: copy it back, then repeat the command")
    yield path
    if is_brought and holdings.manifest[entry.name] == entry:
        path.unlink()


def replace_checkpoint(config: Config, holdings: Holdings, listed: bytes) -> bool:
    """Replace a shard's checkpoint at `state.checkpoint_uri` by one of its state as it is now, with the list of what is
    forgotten; return whether there was one. An index beside the checkpoints is removed: it can be built again. Raises
    ConfigError: the store does not answer.
    """
    require("obstore", "state.checkpoint_uri")
    from gossamer.stages.archive.checkpoints import STORE, Checkpoints, SnapshotFile  # noqa: PLC0415

    checkpoints = Checkpoints(config.archive, config.state.checkpoint_uri, holdings.home.shard)
    folder = holdings.home.state / "forgetting"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        holdings.store.checkpoint(folder / "store")
        files = [path for path in sorted((folder / "store").iterdir()) if path.is_file()]
        taken = [SnapshotFile(f"{STORE}{path.name}", path) for path in files]
        return _wait_for(_replace(checkpoints, holdings, taken, SnapshotFile, listed), "state.checkpoint_uri")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _replace(
    checkpoints: Checkpoints, holdings: Holdings, store: list[SnapshotFile], made: type[SnapshotFile], listed: bytes
) -> bool:
    await remove_index(checkpoints.place)
    saved = await checkpoints.latest()
    if saved is None:
        return False
    known = {part.name: part.sha256 for part in saved.parts if not part.grows}
    files = []
    absent = []
    uploaded = []
    brought = []
    for entry in holdings.finals(""):
        if is_uploaded(entry):
            uploaded.append(entry)  # What an older checkpoint had of it goes with the sweep.
            continue
        path = holdings.path(entry.name)
        if not path.exists():
            absent.append(entry.name)
            continue
        sums = sums_of(path)
        if known.get(entry.name, sums.sha256) != sums.sha256:
            await checkpoints.send_anew(entry.name, path, sums.length)
        files.append(made(entry.name, path))
        if entry.phase == Phase.SAVED:
            brought.append(path)
    await checkpoints.place.write(FORGOTTEN, listed)
    await checkpoints.save(saved.opening, holdings.store.epoch, saved.at, [*store, *files], absent, uploaded)
    await checkpoints.sweep()
    for path in brought:
        path.unlink()
    return True


def _wait_for(work: Coroutine[Any, Any, T], key: str) -> T:
    """Wait for a store. Raises ConfigError for what it does not do."""
    try:
        return asyncio.run(work)
    except StoreError as error:
        raise ConfigError(f"{key}: {error}; repeat the command when the store answers") from error
