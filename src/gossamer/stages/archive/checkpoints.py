"""Checkpoints: a shard's state and its finished files where other machines find them: an object store, or a directory.

A checkpoint's list of files is written last, atomically, when all of them are there, so the newest checkpoint is always
complete. Finished files (`warc/…`, `pages/…`) keep their own names, which contain shard and opening and so are unique;
tables of the store, which never change, are sent once for all checkpoints that have them. Finished files that
`archive.store` has, or takes now, are only referred to: they exist once.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from gossamer.model.decodable import decodable
from gossamer.model.errors import CrawlFailedError, StoreError
from gossamer.model.paths import fold_name, is_of_crawl, is_plain
from gossamer.model.words import counted
from gossamer.stages.archive.objectstore import ObjectStore
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.state.journals import STATE, ManifestEntry

T = TypeVar("T")
Wanted = Callable[[str], bool]
"""Says of a finished file, by its name, whether to bring it."""
STORE = STATE + "store/"
TABLE = ".sst"
UPLOADS_AT_ONCE = 4
SHOWN_CHARACTERS = 200


class ShardClaim(msgspec.Struct, frozen=True):
    """Owner of a shard: recorded before it begins, so that no number is used twice."""

    opening: int
    node: str


class Part(msgspec.Struct, frozen=True):
    """One file of a checkpoint."""

    name: str
    """Path in the crawl's directory; under `state/`, in the shard's own state."""
    key: str
    """Name in the store of checkpoints."""
    length: int
    sha256: str
    grows: bool = False
    """Whether it is a journal that was open; it is continued under its working name."""
    archived: bool = False
    """Whether the object store of finished files has it, and the store of checkpoints need not."""


@decodable
class SavedCheckpoint(msgspec.Struct, frozen=True):
    """A complete checkpoint."""

    opening: int
    number: int
    epoch: int
    at: float
    parts: list[Part]


class SnapshotFile(msgspec.Struct, frozen=True):
    """A file to be saved, with its path in a snapshot."""

    name: str
    path: Path
    grows: bool = False


class Checkpoints:
    """The checkpoints of one shard."""

    def __init__(self, options: ArchiveOptions, uri: str, shard: int) -> None:
        """Open the store at `uri`; sends no request. Raises ConfigError: the URI or an option is no good."""
        self.place = ObjectStore(replace(options, store=uri))
        """The store, for what all shards share: the crawl's configuration, map and list of forgotten pages."""
        self._archive = ObjectStore(options) if options.store else None
        self._shares = options.store.rstrip("/") == uri.rstrip("/")
        """Whether the archive's own files have the same place: those that no checkpoint lists are no strays."""
        self._own = f"shard-{shard}"
        self.saved: SavedCheckpoint | None = None
        """The newest known checkpoint: its files need not be sent again."""
        self._number = 0

    async def try_writing(self) -> None:
        """Write a small object, and remove it. Raises StoreError: that failed."""
        await self.place.write(f"{self._own}/trial", b"may we write here?")
        await self.place.remove([f"{self._own}/trial"])

    async def read_claim(self) -> ShardClaim | None:
        """Return the claim of the shard's holder, if there was one. Raises StoreError."""
        return await self._read(f"{self._own}/claim.json", ShardClaim)

    async def claim(self, claim: ShardClaim) -> None:
        """Write a claim of the shard. Raises StoreError."""
        await self.place.write(f"{self._own}/claim.json", msgspec.json.encode(claim))

    async def latest(self) -> SavedCheckpoint | None:
        """Return the newest checkpoint, or None before the first. Raises StoreError: it cannot be read, or has a file
        that is not a crawl's.
        """
        self.saved = await self._read(f"{self._own}/latest.json", SavedCheckpoint)
        if self.saved is not None and (what := _fault(self.saved.parts)):
            raise StoreError(f"{self.place.url}/{self._own}/latest.json {what}: no crawl wrote this", lasting=True)
        self._number = max(self._number, self.saved.number if self.saved is not None else 0)
        return self.saved

    async def send_anew(self, name: str, path: Path, length: int) -> None:
        """Replace a file of the newest checkpoint, for the next `save`. Raises StoreError: the store refuses it."""
        assert self.saved is not None, "there is a checkpoint"
        parts = []
        for part in self.saved.parts:
            if part.name == name and not part.grows:
                digest = await self.place.copy(path, part.key, overwrite=True)
                part = msgspec.structs.replace(part, length=length, sha256=digest)
            parts.append(part)
        self.saved = msgspec.structs.replace(self.saved, parts=parts)

    def has(self, name: str) -> bool:
        """Return whether the newest checkpoint has a finished file, so that the next snapshot can leave it out."""
        return self.saved is not None and any(part.name == name and not part.grows for part in self.saved.parts)

    async def save(
        self,
        opening: int,
        epoch: int,
        at: float,
        taken: Sequence[SnapshotFile],
        kept: Iterable[str],
        uploaded: Iterable[ManifestEntry] = (),
    ) -> SavedCheckpoint:
        """Save a snapshot: its files, those of `kept` from the previous checkpoint, and those of `uploaded`, which the
        store of finished files has. It is valid when this returns. Raises StoreError: that failed; the previous one
        remains.
        """
        self._number += 1
        before = self.saved
        known = {part.name: part for part in before.parts if not part.grows} if before is not None else {}
        parts = [known[name] for name in kept if name in known]
        parts += [Part(one.name, one.name, one.length, one.digest, archived=True) for one in uploaded]
        gate = asyncio.Semaphore(UPLOADS_AT_ONCE)

        async def one(file: SnapshotFile) -> Part:
            old = known.get(file.name)
            length = file.path.stat().st_size
            if old is not None and _is_final(file) and old.length == length:
                return old
            key = self._key(file, opening)
            async with gate:
                if key == file.name and (digest := await self._archive_file(file)):
                    return Part(file.name, key, length, digest, archived=True)
                digest = await self.place.copy(file.path, key, overwrite=key.startswith(self._own))
            return Part(file.name, key, length, digest, file.grows)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(file)) for file in taken]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        parts += [task.result() for task in tasks]
        saved = SavedCheckpoint(opening, self._number, epoch, at, parts)
        await self.place.write(f"{self._own}/latest.json", msgspec.json.encode(saved))
        self.saved = saved
        if before is not None:
            await self._forget(before, saved)
        return saved

    async def _archive_file(self, file: SnapshotFile) -> str:
        """Ensure the store of finished files has one; return its SHA-256, or "" where the checkpoint needs a copy."""
        try:
            return await self._archive.copy(file.path, file.name) if self._archive is not None else ""
        except StoreError:
            return ""

    async def restore(
        self,
        saved: SavedCheckpoint,
        directory: Path,
        state: Path,
        wanted: Wanted | None = None,
        deep: bool | None = None,
    ) -> None:
        """Copy a checkpoint's files to disk: the shard's state to `state`, journals that were open and finished files
        whose names are `wanted`, if any, to `directory`. The store is copied last: without it the others are not valid.
        Unless `deep` is None, the other objects are looked for, and read if it is true.

        Raises:
            CrawlFailedError: objects that were looked for are missing, or are not what was written.
            StoreError: a file is not there, or not what was saved.
            OSError: the disk is full.
        """
        fresh = state / "store.new"
        gate = asyncio.Semaphore(UPLOADS_AT_ONCE)
        faults: list[str] = []

        async def bring(part: Part) -> None:
            if part.name.startswith(STORE):
                target = fresh / part.name.removeprefix(STORE)
            elif part.name.startswith(STATE):
                target = state / part.name.removeprefix(STATE)
            elif part.grows or (wanted is not None and wanted(part.name)):
                target = directory / part.name
            else:
                if deep is not None and not await self._has(part, gate, deep=deep):
                    faults.append(f"{self._place_of(part).url}/{part.key}")
                return
            target = target.with_name(target.name + ".open") if part.grows else target
            if not (target.exists() and target.stat().st_size == part.length and not part.name.startswith(STATE)):
                place = self._place_of(part)
                try:
                    async with gate:
                        await place.fetch(part.key, target, part.sha256)
                except StoreError as error:
                    if deep is None or not error.lasting:
                        raise
                    faults.append(f"{place.url}/{part.key}")

        for last in (False, True):
            await asyncio.gather(*(bring(part) for part in saved.parts if part.name.startswith(STORE) is last))
        if faults:
            names = " ".join(faults)[:SHOWN_CHARACTERS]
            raise CrawlFailedError(f"{counted(len(faults), 'object')} missing, or not what was written: {names}")
        fresh.rename(state / "store")

    async def _has(self, part: Part, gate: asyncio.Semaphore, *, deep: bool) -> bool:
        async with gate:
            return await self._place_of(part).has(part.key, part.length, part.sha256 if deep else "")

    def _place_of(self, part: Part) -> ObjectStore:
        if not part.archived:
            return self.place
        if self._archive is None:
            raise StoreError(f"{part.key} is in another store; name that with --set archive.store=…", lasting=True)
        return self._archive

    async def sweep(self) -> int:
        """Remove objects that a lost machine has sent and no checkpoint lists: their content is made again, and must
        not exist twice. Return their number. Raises StoreError.
        """
        needed = {part.key for part in self.saved.parts if not part.archived} if self.saved is not None else set()
        kept = {f"{self._own}/claim.json", f"{self._own}/latest.json"}
        strays = [name for name in await self.place.names() if self._is_own(name) and name not in needed | kept]
        if strays:
            await self.place.remove(strays)
        return len(strays)

    async def _read(self, name: str, kind: type[T]) -> T | None:
        found = await self.place.read(name)
        try:
            return None if found is None else msgspec.json.decode(found, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StoreError(f"{self.place.url}/{name} cannot be read ({error})", lasting=True) from error

    def _is_own(self, name: str) -> bool:
        if self._shares:
            return name.startswith(self._own + "/")
        number = int(self._own.removeprefix("shard-"))
        return name.startswith(self._own + "/") or bool(re.fullmatch(rf"[^/]+/[^/]+-{number:03d}-\d+-\d+\..+", name))

    async def _forget(self, before: SavedCheckpoint, now: SavedCheckpoint) -> None:
        """Remove objects of the previous checkpoint alone, and finished files that the store of these has now."""
        needed = {part.key for part in now.parts if not part.archived}
        moved = {part.key for part in now.parts if part.archived} if not self._shares else set()
        old = [
            part.key
            for part in before.parts
            if not part.archived and part.key not in needed and (part.key.startswith(self._own) or part.key in moved)
        ]
        if old:
            await self.place.remove(old)

    def _key(self, file: SnapshotFile, opening: int) -> str:
        own = f"{self._own}/{opening:04d}"
        if not file.name.startswith(STATE) and not file.grows:
            return file.name
        if _is_final(file):
            return f"{own}/{file.name.removeprefix(STATE)}"
        return f"{own}/{self._number:06d}/{file.name.removeprefix(STATE)}"


def _fault(parts: Sequence[Part]) -> str:
    """Return why a list of files is not to be followed, such as a name outside of the directory; empty if it is."""
    known: set[str] = set()
    for part in parts:
        if not (is_of_crawl(part.name) and is_plain(part.key) and part.length >= 0):
            return f"lists a file {part.name[:SHOWN_CHARACTERS]!r}"
        if fold_name(part.name) in known:
            return f"lists {part.name[:SHOWN_CHARACTERS]!r} twice"
        known.add(fold_name(part.name))
    return ""


def _is_final(file: SnapshotFile) -> bool:
    """Return whether a file of this name never changes within one opening."""
    return file.name.endswith(TABLE) if file.name.startswith(STORE) else not file.grows
