"""Uploads: copies finished files to an object store during the crawl, and the remaining ones at its end.

A file is uploaded once it is final, then verified, then marked in the manifest, which the next commit makes durable.
Only then may the local copy be removed. Interrupted steps are repeated, and objects that arrived are found.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from gossamer.model.errors import StoreError
from gossamer.model.extras import require
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.state.journals import STATE, Journals, ManifestEntry, Phase, is_uploaded
from gossamer.world.dice import Dice

if TYPE_CHECKING:
    from gossamer.stages.archive.objectstore import ObjectStore

IDLE_S = 1.0
"""Interval of checks for finished files."""
JITTER = 0.2
MANIFEST = "manifest-sha256.txt"
WARC = "warc/"


class UploadCounts(msgspec.Struct):
    """How far the uploads of a crawl have come. Sums over all its runs."""

    store: str = ""
    waiting_files: int = 0
    waiting_bytes: int = 0
    uploaded_files: int = 0
    uploaded_bytes: int = 0
    error: str = ""
    """Why nothing is uploaded now, or which file cannot be uploaded."""


class Uploads:
    """Uploads what journals have finished, `store_uploads_max` files at a time. Everything runs on the loop except for
    digests, which a thread makes, and the network, which is obstore's.
    """

    def __init__(
        self, options: ArchiveOptions, journals: Journals, store: ObjectStore, dice: Dice, say: Callable[[str], None]
    ) -> None:
        self._options = options
        self._journals = journals
        self._store = store
        self._dice = dice
        self._say = say
        self._one_pass = asyncio.Lock()
        self._finishing = False
        self._waiting: deque[ManifestEntry] = deque()
        self._refused: dict[str, str] = {}
        self._failure: StoreError | None = None
        self._failures = 0
        self.counts = counts_of(store.url, journals.uploads()) or UploadCounts(store.url)
        self._count()

    async def run(self) -> None:
        """Upload finished files until `finish` takes over. A store that fails is retried at growing intervals."""
        while not self._finishing:
            await self._pass()
            await asyncio.sleep(self._pause_s())

    async def finish(self, commit: Callable[[], Awaitable[None]], views: Sequence[str]) -> bool:
        """Upload the remaining files, then `views` (files that are rewritten each time), then the manifest.

        Gives up after `store_wait_s` without an uploaded file, and at once on a permanent error. Returns whether
        everything is uploaded.
        """
        self._finishing = True  # A pass of `run` beside ours would hide how ours ended.
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._options.store_wait_s
        uploaded = self.counts.uploaded_files
        while True:
            await self._pass()
            await commit()
            if self._failure is None and await self._finish(views):
                break
            if self.counts.uploaded_files > uploaded:
                ends_at = loop.time() + self._options.store_wait_s
                uploaded = self.counts.uploaded_files
            left_s = ends_at - loop.time()
            if self._failure is None or self._failure.lasting or left_s <= 0:
                break
            await asyncio.sleep(min(self._pause_s(), left_s))
        return self._failure is None and not self.counts.waiting_files

    async def _finish(self, views: Sequence[str]) -> bool:
        """Upload views and manifest, once all other files are uploaded; return whether that succeeded."""
        if self._refused:
            return True  # The manifest must not say that this is all.
        directory = self._journals.directory
        try:
            digests = {name: await self._store.copy(directory / name, name, overwrite=True) for name in views}
            digests |= {entry.name: entry.digest for entry in self._journals.uploads()}
            lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
            await self._store.copy(lines.encode(), MANIFEST, overwrite=True)
        except StoreError as error:
            self._note_failure(error)
            return False
        self._works()
        return True

    async def _pass(self) -> None:
        """Upload all files that wait now; ends early when the store fails."""
        async with self._one_pass:
            self._failure = None
            self._waiting = deque(self._count())
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._options.store_uploads_max, len(self._waiting))):
                    group.create_task(self._work())

    async def _work(self) -> None:
        while self._waiting and self._failure is None:
            entry = self._waiting.popleft()
            try:
                digest = await self._store.copy(self._journals.path(entry.name), entry.name)
            except StoreError as error:
                self._note_failure(error, entry)
                continue
            if entry.digest and digest != entry.digest:
                damaged = f"{entry.name} does not hold what was written into it; check the disk"
                self._note_failure(StoreError(damaged, of_file=True), entry)
            else:
                self._note_success(entry, digest)

    def _note_success(self, entry: ManifestEntry, digest: str) -> None:
        keep = self._options.store_keep_warc or not entry.name.startswith(WARC)
        self._journals.mark(entry.name, digest, Phase.UPLOADED if keep else Phase.AWAY)
        self.counts.uploaded_files += 1
        self.counts.uploaded_bytes += entry.length
        self.counts.waiting_files -= 1
        self.counts.waiting_bytes -= entry.length
        self._works()

    def _works(self) -> None:
        if self._failures:
            self._failures = 0
            self.counts.error = next(iter(self._refused.values()), "")
            self._say(f"Uploads to {self._store.url} work again.")

    def _note_failure(self, error: StoreError, entry: ManifestEntry | None = None) -> None:
        self.counts.error = str(error)
        if error.of_file and entry is not None:
            self._refused[entry.name] = str(error)
            self._say(f"{entry.name} cannot be uploaded: {error}")
            return
        self._failure = error
        self._failures += 1
        if self._failures == 1:
            self._say(f"Uploads to {self._store.url} fail: {error}. The files are kept here, the crawl goes on.")

    def _count(self) -> list[ManifestEntry]:
        waiting = self._journals.to_upload()
        self.counts.waiting_files, self.counts.waiting_bytes = len(waiting), sum(entry.length for entry in waiting)
        return [entry for entry in waiting if entry.name not in self._refused]

    def _pause_s(self) -> float:
        if not self._failures:
            return IDLE_S
        options = self._options
        pause_s = min(options.store_retry_s_first * 2.0 ** min(self._failures - 1, 30), options.store_retry_s_max)
        return pause_s * self._dice.uniform(1 - JITTER, 1 + JITTER)


def uploads_of(options: ArchiveOptions, journals: Journals, dice: Dice, say: Callable[[str], None]) -> Uploads | None:
    """Return the uploads to the store that the options name, if they name one: only then obstore is imported. Raises
    ConfigError: obstore is missing, or the options are no good.
    """
    if not options.store:
        return None
    return Uploads(options, journals, store_at(options.store, options, "archive.store"), dice, say)


def store_at(url: str, options: ArchiveOptions, what: str) -> ObjectStore:
    """Return the object store at an address, with the other options of the archive's. Only then obstore is imported;
    `what` is the key or option that needs it. Raises ConfigError: obstore is missing, or the options are no good.
    """
    require("obstore", what)
    from gossamer.stages.archive.objectstore import ObjectStore  # noqa: PLC0415

    return ObjectStore(msgspec.structs.replace(options, store=url))


def counts_of(store: str, manifest: Iterable[ManifestEntry]) -> UploadCounts | None:
    """Return the state of the uploads of a stopped crawl; None if its files go to no store."""
    if not store:
        return None
    counts = UploadCounts(store)
    for entry in manifest:
        if is_uploaded(entry):
            counts.uploaded_files += 1
            counts.uploaded_bytes += entry.length
        elif Phase.CLOSED <= entry.phase < Phase.SAVED and not entry.name.startswith(STATE):
            counts.waiting_files += 1
            counts.waiting_bytes += entry.length
    return counts
