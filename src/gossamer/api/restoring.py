"""Restoring: checkpoints in a place that all machines reach, from which a shard recovers after the loss of its machine.

A checkpoint finishes the growing files and then saves the last commit, so state and archive always match. The starter
of a shard first writes a claim there, with a number greater than all before. The state on a machine is valid only while
its claim is the last one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec

from gossamer.assembly.home import Home, homes
from gossamer.assembly.integrity import WARCS, note_elsewhere
from gossamer.cluster.partitions import PartitionMap
from gossamer.config import Config, effective_toml
from gossamer.config.gather import reopen, reopen_text, require_whole
from gossamer.config.live import FILE, save, with_workers
from gossamer.config.secret import shows_secret
from gossamer.model.errors import ConfigError, CrawlFailedError, StoreError
from gossamer.model.extras import require
from gossamer.model.product import FORGOTTEN, LOCK
from gossamer.model.verbs import RefusedError
from gossamer.model.words import shell_word
from gossamer.state.journals import STATE, Phase, is_uploaded
from gossamer.world.clock import WallClock
from gossamer.world.files import NO_ROOM, write_whole
from gossamer.world.process import DirectoryLock

if TYPE_CHECKING:
    from gossamer.assembly.values import Shard
    from gossamer.cluster.moves import MovesRecord
    from gossamer.stages.archive.checkpoints import Checkpoints, SavedCheckpoint, Wanted

PARTITIONS = "partitions.json"
MOVES = "moves.json"
"""Names of the map of partitions and of its moves, beside the checkpoints of all shards."""
CLAIM = "claim"
"""File in a shard's state with the openings that its owner claimed, or was about to claim."""
RETRY_S = 5.0
LOOK_S = 0.25
ANSWER_S_MAX = 20.0
"""Longest wait of a command for the first object."""
FIRST_S_MAX = 600.0
"""Longest wait of a starting shard for a store that does not answer."""


class Vault:
    """The checkpoints of one shard, made while it crawls."""

    def __init__(self, checkpoints: Checkpoints, home: Home, node: str, interval_s: float, uri: str) -> None:
        self._checkpoints = checkpoints
        self._uri = uri
        self._home = home
        self._node = node
        self._interval_s = interval_s
        self._opening = 0
        self._clock = WallClock()
        self._one_at_a_time = asyncio.Lock()
        self.is_failing = False
        """Whether the last checkpoint could not be written."""
        self.restored = ""
        """Sentence about the state restored at the start; empty: none."""
        self.saved_activity = -1
        """The shard's activity counter as of the last checkpoint; -1: none, or requests were under way."""

    async def open(self) -> int:
        """Claim the shard, and restore its state here if another machine had it last. Return the number of this
        opening. Raises ConfigError: the store does not answer.
        """
        deadline = self._clock.now() + FIRST_S_MAX
        # One of several shards that died here, where it could write before: the operator may renew credentials.
        was_let_in = self._home.shards > 1 and self._home.is_there
        while True:
            try:
                return await self._open()
            except StoreError as error:
                is_final = error.lasting and not (error.refused and was_let_in)
                if is_final or self._clock.now() > deadline:
                    raise ConfigError(f"state.checkpoint_uri: {error}") from error
            await asyncio.sleep(RETRY_S)

    async def _open(self) -> int:
        from gossamer.stages.archive.checkpoints import ShardClaim  # noqa: PLC0415

        claimed = await self._checkpoints.read_claim()
        saved = await self._checkpoints.latest()
        before = claimed.opening if claimed is not None else 0
        path = self._home.state / CLAIM
        here = {int(word) for word in path.read_text().split()} if path.exists() else set()
        is_ours = claimed is None or (claimed.node == self._node and before in here and self._home.is_there)
        if not is_ours and self._home.shards == 1:
            self._require_own(saved, known=before in here)
        elif not is_ours:
            await self._restore(saved)
        self._opening = before + 1
        write_whole(path, f"{before if is_ours else self._opening} {self._opening}".encode())
        await self._checkpoints.claim(ShardClaim(self._opening, self._node))
        await _bring_list(self._checkpoints, self._home.directory)
        return self._opening

    def _require_own(self, saved: SavedCheckpoint | None, *, known: bool) -> None:
        """Raise ConfigError if the checkpoints belong to another directory, so that neither its checkpoints nor the
        state here are overwritten. A crawl that died before its first commit starts from zero.
        """
        self._home.require_state()
        if saved is not None or not known:
            raise ConfigError(
                f"state.checkpoint_uri: {self._uri} holds checkpoints of another crawl, or of a copy of this one that "
                f"ran later; name another place, or `gossamer restore {self._uri} -o DIR` and resume that"
            )

    async def _restore(self, saved: SavedCheckpoint | None) -> None:
        await self._checkpoints.sweep()
        state = self._home.state
        for path in list(state.iterdir()) if state.exists() else []:
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":  # This process holds it.
                path.unlink()
        # A file that was finished elsewhere may have the name, but not the content, of one that grew here.
        for path in self._home.files("*", "items/*"):
            path.unlink()
        if saved is None:
            self.restored = "starts from the beginning: it was lost before its first checkpoint"
            return
        await self._checkpoints.restore(saved, self._home.directory, state)
        self.restored = (
            f"goes on from its checkpoint of {self._clock.now() - saved.at:.0f} s ago; what it did since is done again"
        )

    async def keep_up(self, shard: Shard) -> None:
        """Make a checkpoint at every interval, until cancelled; retry if the store fails."""
        if self.restored:
            shard.controls.telemetry.counters.note(self.restored)
            shard.controls.telemetry.logs.info("restored", opening=self._opening, how=self.restored)
        while True:
            await self._until_due(shard)
            await self.try_save(shard)

    async def _until_due(self, shard: Shard) -> None:
        """Return after an interval, or when partitions that move between shards wait for a checkpoint."""
        pause_s = RETRY_S if self.is_failing else self._interval_s
        membership = shard.membership
        if membership is None or self.is_failing:
            await asyncio.sleep(pause_s)
            return
        due_at = self._clock.now() + pause_s
        places = membership.exchange.places
        while (left_s := due_at - self._clock.now()) > 0 and not places.waits_for_checkpoint:  # noqa: ASYNC110 - or time
            await asyncio.sleep(min(left_s, LOOK_S))

    async def try_save(self, shard: Shard) -> bool:
        """Make a checkpoint; return whether it is complete."""
        try:
            await self.save(shard)
        except StoreError as error:
            if not self.is_failing:
                shard.controls.telemetry.counters.note(
                    f"checkpoints fail: {error}; the crawl goes on, and a lost machine costs more"
                )
            self.is_failing = True
            return False
        if self.is_failing:
            shard.controls.telemetry.counters.note("checkpoints work again")
        self.is_failing = False
        return True

    async def save(self, shard: Shard) -> None:
        """Make a checkpoint now. Raises StoreError: that failed; the previous one remains."""
        from gossamer.assembly.snapshot import snapshot  # noqa: PLC0415 - obstore may be missing

        async with self._one_at_a_time:
            # What is in flight comes after it.
            membership = shard.membership
            activity = membership.report().activity if membership is not None and not shard.ring.loop.in_flight else -1
            shard.outputs.archives.finish_segments()
            await shard.kept.committer.commit()
            folder = self._home.snapshot
            committer = shard.kept.committer
            try:
                taken = await committer.hold(lambda: snapshot(shard.kept.storage, folder, self._checkpoints.has))
                self._require_known(taken.kept)
                now = self._clock.now()
                await self._checkpoints.save(self._opening, taken.epoch, now, taken.taken, taken.kept, taken.uploaded)
                text = effective_toml(
                    shard.controls.settings.config, shown=lambda key, value: None if shows_secret(key, value) else value
                )
                await self._checkpoints.place.write(FILE, text.encode())
                if (listed := self._home.directory / FORGOTTEN).exists():
                    await self._checkpoints.place.write(FORGOTTEN, await asyncio.to_thread(listed.read_bytes))
            finally:  # In the thread that makes the links: cancelled, it may still be at it.
                await committer.hold(lambda: shutil.rmtree(folder, ignore_errors=True))
            if membership is not None:
                membership.exchange.on_checkpoint(taken.epoch)
            self.saved_activity = activity
            await self.release_warc(shard)

    def _require_known(self, names: Sequence[str]) -> None:
        """Raise StoreError if files that only a checkpoint has are not in those at this place."""
        lost = next((name for name in names if not self._checkpoints.has(name)), None)
        if lost is not None:
            raise StoreError(
                f"no checkpoint at {self._uri} has {lost}, which is not on this disk either; set state.checkpoint_uri "
                "to its former value",
                lasting=True,
            )

    async def release_warc(self, shard: Shard) -> None:
        """Remove local WARC files of the newest checkpoint, unless kept; with `archive.store` only uploaded ones."""
        archive = shard.controls.settings.config.archive
        saved = self._checkpoints.saved
        if archive.store_keep_warc or saved is None:
            return
        journals = shard.outputs.journals
        parts = {part.name: part for part in saved.parts if not part.grows}
        for entry in journals.finals(WARCS):
            part = parts.get(entry.name)
            if part is None or part.archived != is_uploaded(entry) or (archive.store and not part.archived):
                continue
            journals.mark(entry.name, part.sha256, Phase.AWAY if part.archived else Phase.SAVED)
        await shard.kept.committer.commit()

    async def finish(self, shard: Shard) -> None:
        """Make the last checkpoint of a crawl. Raises CrawlFailedError: that failed; the previous one remains."""
        try:
            await self.save(shard)
        except StoreError as error:
            raise self.unfinished(str(error)) from error

    def unfinished(self, why: str) -> CrawlFailedError:
        """Return the error of a last checkpoint that was not made."""
        return CrawlFailedError(f"the last checkpoint could not be written to {self._uri}: {why}")


def vault_of(config: Config, home: Home, node: str) -> Vault:
    """Return the checkpoints of a shard. Raises ConfigError: the store is no good."""
    uri = config.state.checkpoint_uri
    return Vault(checkpoints_of(config, home.shard), home, node, config.state.checkpoint_s, uri)


def checkpoints_of(config: Config, shard: int) -> Checkpoints:
    """Return where the checkpoints of a shard are. Raises ConfigError: obstore is missing, or the URI is no good."""
    require("obstore", "state.checkpoint_uri")
    from gossamer.stages.archive.checkpoints import Checkpoints  # noqa: PLC0415

    try:
        return Checkpoints(config.archive, config.state.checkpoint_uri, shard)
    except ConfigError as error:
        raise ConfigError(str(error).replace("archive.store:", "state.checkpoint_uri:")) from error


async def check_vault(config: Config) -> None:
    """Check that checkpoints, if any are configured, can be written to their place. Raises ConfigError: they cannot."""
    if not config.state.checkpoint_uri:
        return
    try:
        await checkpoints_of(config, 0).try_writing()
    except StoreError as error:
        raise _cannot_write(config, error) from error


async def begin_copies(config: Config, directory: Path) -> None:
    """Copy the map of partitions there before shards begin. Raises ConfigError: that failed."""
    if config.state.checkpoint_uri:
        try:
            await copy_map(config, directory)
        except StoreError as error:
            raise _cannot_write(config, error) from error


def _cannot_write(config: Config, error: StoreError) -> ConfigError:
    return ConfigError(f"state.checkpoint_uri: cannot write to {config.state.checkpoint_uri}: {error}")


async def copy_map(config: Config, directory: Path) -> MovesRecord:
    """Save which shard has which partition, and the moves; return that. Raises StoreError: it is not there."""
    from gossamer.assembly.mapping import moves_in  # noqa: PLC0415 - of several shards alone

    begun = PartitionMap.load(directory)
    moves = moves_in(directory)
    assert begun is not None, "a crawl of several shards was started"
    place = checkpoints_of(config, 0).place
    await place.write(PARTITIONS, begun.encode())
    await place.write(MOVES, msgspec.json.encode(moves))
    return moves


async def gather(
    config: Config, directory: Path, wanted: Wanted | None = None, deep: bool | None = None
) -> list[SavedCheckpoint | None]:
    """Copy the newest checkpoints of all shards, with the finished files that are `wanted`, into the crawl's directory;
    None: those that the crawl keeps on its disk. Other objects are looked for unless `deep` is None, and read if it is
    true. Return the checkpoints by shard. Raises CrawlFailedError: some of those are missing, or are not what was
    written; StoreError: a file is not there.
    """
    await asyncio.to_thread(_remove_open, directory)
    keeps = config.archive.store_keep_warc
    chosen = wanted or (lambda name: keeps or not name.startswith(WARCS))

    async def bring(home: Home) -> SavedCheckpoint | None:
        checkpoints = checkpoints_of(config, home.shard)
        saved = await checkpoints.latest()
        if saved is not None:
            await asyncio.to_thread(shutil.rmtree, home.state, ignore_errors=True)
            home.state.mkdir(parents=True)
            await checkpoints.restore(saved, directory, home.state, chosen, deep)
            left = [one for one in saved.parts if not (one.grows or one.name.startswith(STATE) or chosen(one.name))]
            elsewhere = {one.name: (Phase.AWAY if one.archived else Phase.SAVED, one.sha256) for one in left}
            if elsewhere:
                await asyncio.to_thread(note_elsewhere, config, home, elsewhere)
        return saved

    await _bring_list(checkpoints_of(config, 0), directory)
    every = homes(directory, config.cluster.workers)
    found = await asyncio.gather(*map(bring, every), return_exceptions=deep is not None)  # `verify` names all.
    failed = [one for one in found if isinstance(one, BaseException)]
    for one in failed:
        if not isinstance(one, CrawlFailedError):
            raise one
    if failed:
        raise CrawlFailedError("; ".join(map(str, failed)))
    return [one for one in found if not isinstance(one, BaseException)]


def _remove_open(directory: Path) -> None:
    """Remove files that were open in older checkpoints: by now they are finished, or are copied again."""
    for stale in directory.glob("*/*.open"):
        stale.unlink()


async def _bring_list(checkpoints: Checkpoints, directory: Path) -> None:
    """Copy the checkpoints' list of forgotten pages to a directory that has none."""
    listed = None if (directory / FORGOTTEN).exists() else await checkpoints.place.read(FORGOTTEN)
    if listed is not None:
        await asyncio.to_thread(write_whole, directory / FORGOTTEN, listed)


def restore_of(
    sources: Sequence[str],
    directory: Path,
    sets: Sequence[str] = (),
    wanted: Wanted | None = None,
    deep: bool | None = None,
) -> str:
    """Make a crawl in a new directory of checkpoints: of the directories that one `gossamer checkpoint` made, one of
    each shard, or of the newest checkpoints at a `state.checkpoint_uri`, see `gather`. Return what was restored, for
    people. Raises ConfigError: there is no checkpoint, one is missing or cannot be read, or the directory is not empty;
    OSError: the disk is full.
    """
    if directory.exists() and any(directory.iterdir()):
        raise ConfigError(f"{directory} is not empty; name another directory with -o")
    if len(sources) > 1 or "://" not in sources[0]:
        return _restore_copies([Path(one) for one in sources], directory)
    try:
        return asyncio.run(_restore_at(sources[0], directory, sets, wanted, deep))
    except BaseException as error:
        shutil.rmtree(directory, ignore_errors=True)
        if isinstance(error, StoreError):
            raise ConfigError(f"cannot read the checkpoints at {sources[0]}: {error}") from error
        raise


def _restore_copies(sources: Sequence[Path], directory: Path) -> str:
    there: list[int] = []
    for source in sources:
        if not (source / "crawl.toml").exists():
            raise ConfigError(
                f"{source} holds no checkpoint (it has no crawl.toml); name a directory that `gossamer checkpoint` "
                "made, or a URI such as file:///PATH or s3://BUCKET/PREFIX"
            )
        if DirectoryLock.is_held(source / LOCK):
            raise ConfigError(
                f"{source} is a crawl that runs, not a checkpoint; `gossamer checkpoint {shell_word(source)}` makes one"
            )
        shards = reopen(source / "crawl.toml").cluster.workers
        there += [home.shard for home in homes(source, shards) if home.is_there]
    if sorted(there) != list(range(shards)):
        held = f"the shards {', '.join(map(str, sorted(there)))} of {shards}" if there else "no state of a crawl"
        raise ConfigError(
            f"these checkpoints hold {held}; name the directories that one `gossamer checkpoint` made, one of each "
            "shard"
        )
    try:
        for source in sources:
            # Copies: files that were growing are shared with the crawl that the checkpoint was made of.
            _copy(source, directory)
        shutil.copy2(sources[0] / "crawl.toml", directory)  # Last: without it the directory holds no crawl.
    except ConfigError:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    except OSError as error:
        shutil.rmtree(directory, ignore_errors=True)
        if error.errno in NO_ROOM:  # The error of a copy names what is read.
            error.filename = str(directory)
        raise
    copied = f"checkpoint {sources[0]}" if len(sources) == 1 else f"checkpoints {', '.join(map(str, sources))}"
    return f"{directory} is a copy of the {copied}"


def _copy(source: Path, directory: Path) -> None:
    """Copy all files but the configuration; folders may be links to other disks. Raises ConfigError: a link leads to a
    folder that is met twice: copies could have no end; OSError: of the first that cannot be copied.
    """

    def refuse(error: OSError) -> None:
        raise error

    copied: set[Path] = set()
    for folder, _, names in os.walk(source, onerror=refuse, followlinks=True):
        here = Path(folder)
        if (real := here.resolve()) in copied:
            raise ConfigError(f"{here} is a link to {real}, which is copied already: remove it and repeat the command")
        copied.add(real)
        target = directory / here.relative_to(source)
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            if Path(folder, name) != source / "crawl.toml":
                shutil.copy2(Path(folder, name), target / name)


def _no_checkpoint(uri: str) -> ConfigError:
    return ConfigError(f"there is no checkpoint at {uri}; it begins with the first that a crawl makes")


async def stored_config(uri: str, sets: Sequence[str]) -> Config:
    """Return the configuration of a crawl whose checkpoints are at a URI. Raises ConfigError: it holds none."""
    if uri.startswith("file:///") and not await asyncio.to_thread(Path(unquote(urlsplit(uri).path)).exists):
        raise _no_checkpoint(uri)  # To open a folder makes it.
    place = f"state.checkpoint_uri='{uri}'"
    store = checkpoints_of(reopen_text("", "--set", sets=[*sets, place]), 0).place
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            stored = await store.read(FILE)
    except TimeoutError as error:
        raise ConfigError(
            f"{uri}: no answer within {ANSWER_S_MAX:.0f} s; check the endpoint and the network"
        ) from error
    if stored is None:
        raise _no_checkpoint(uri)
    text = stored.decode("utf-8", "replace")
    try:
        config = reopen_text(text, f"{uri}/crawl.toml", sets=[*sets, place])
        require_whole(text, f"{uri}/crawl.toml")
    except ConfigError as error:  # A path has no two slashes.
        raise ConfigError(*(line.replace(str(Path(uri)), uri) for line in error.lines)) from error
    return config


async def _restore_at(uri: str, directory: Path, sets: Sequence[str], wanted: Wanted | None, deep: bool | None) -> str:
    config = await stored_config(uri, sets)
    place = checkpoints_of(config, 0).place
    stored_map = await place.read(PARTITIONS)
    stored_moves = await place.read(MOVES)
    await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
    # Crawls of one shard have none.
    partitions = PartitionMap.even(config.cluster.workers)
    if stored_map is not None and stored_moves is not None:
        from gossamer.assembly.mapping import bring_map  # noqa: PLC0415 - of several shards alone

        partitions = bring_map(directory, stored_map, stored_moves)
    config = with_workers(config, partitions.shards)
    restored = await gather(config, directory, wanted, deep)
    described = []
    for home, saved in zip(homes(directory, config.cluster.workers), restored, strict=True):
        if saved is None and home.shard not in partitions.owners:
            continue  # It was added shortly before, and has nothing yet.
        if saved is None:
            raise ConfigError(f"shard {home.shard} has no checkpoint at {uri}; the crawl cannot be restored without it")
        if home.shards == 1 and (claimed := await checkpoints_of(config, 0).read_claim()):  # Now its only owner.
            write_whole(home.state / CLAIM, f"{claimed.opening} {claimed.opening}".encode())
        age_s = WallClock().now() - saved.at
        described.append(f"commit {saved.epoch:,} ({age_s:.0f} s old), {len(saved.parts):,} files")
    # Last: without it the directory holds no crawl.
    save(config, directory)
    return f"{directory} is restored from {uri}: {'; '.join(described)}"


async def checkpoint_of(shard: Shard, vault: Vault | None) -> dict[str, str]:
    """Make a consistent copy by hard links, and one in `vault`; return where they are. Raises RefusedError: the second
    could not be written.
    """
    made = {"checkpoint": str(await shard.kept.checkpoint())}
    if vault is not None:
        uri = shard.controls.settings.config.state.checkpoint_uri
        if not await vault.try_save(shard):
            raise RefusedError(f"the checkpoint is in {made['checkpoint']}, but could not be written to {uri}")
        made["uri"] = uri
    return made
