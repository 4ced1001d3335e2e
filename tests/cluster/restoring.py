"""Restoring: shards that go back to older checkpoints, and what has them do so."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from gossamer.assembly.building import assemble
from gossamer.assembly.home import Home
from gossamer.assembly.integrity import manifest_of
from gossamer.config import Config
from tests.faults.shards import Shards, Wire


class RestoredShards(Shards):
    """Shards whose committed state is copied now and then, and replaced by an older copy when they are dead."""

    def __init__(self, config: Config, directory: Path, shards: int, wire: Wire) -> None:
        super().__init__(config, directory, shards, assemble, wire)
        self.restores = 0
        self._openings: dict[int, int] = {}

    def least_opening(self, number: int) -> int:
        """What is restored must not speak with an opening that was given before."""
        self._openings[number] = self._openings.get(number, 0) + 1
        return self._openings[number]

    async def checkpoint(self, number: int) -> None:
        """Replace the last copy of a shard's committed state, and confirm to the shard that it is safe."""
        assembled = self.members[number].assembled
        assert assembled is not None
        assert assembled.membership is not None
        await assembled.kept.committer.commit()
        storage = assembled.kept.storage
        epoch = storage.store.epoch  # Read first: what is committed meanwhile may be in it or not.
        target = self._copy_of(number)
        fresh = target.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        copy = Home(fresh, number, self.shards)
        copy.state.mkdir(parents=True)
        storage.store.checkpoint(copy.store)
        for name in storage.journals.files(manifest_of(storage.store)):
            path = copy.journals().path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(storage.journals.path(name), path)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
        assembled.membership.exchange.on_checkpoint(epoch)

    def restore(self, number: int) -> None:
        """Replace a dead shard's state by the last copy, if there is one."""
        home, copy = Home(self.directory, number, self.shards), self._copy_of(number)
        if not copy.exists():
            return
        for path in [*self.directory.glob(f"*/*-{number:03d}-*"), *home.state.glob(f"*/*-{number:03d}-*")]:
            path.unlink()
        shutil.rmtree(home.store)
        shutil.copytree(copy, self.directory, dirs_exist_ok=True)
        (home.state / "contacts").unlink()
        (home.state / "slots").unlink(missing_ok=True)  # It notes commits that the copy does not have.
        self.restores += 1

    def _copy_of(self, number: int) -> Path:
        return self.directory.with_name(f"{self.directory.name}-checkpoint-{number}")


class Mischief:
    """Kills, restores, copies and cuts wires, by the dice, until there was enough of it."""

    def __init__(self, seed: int, deaths: int, pause_rounds: int) -> None:
        self.dice = random.Random(seed)
        self.deaths = deaths
        self.pause_rounds = pause_rounds
        self.rounds = 0

    async def __call__(self, shards: RestoredShards) -> None:
        self.rounds += 1
        dice = self.dice
        if shards.deaths >= self.deaths:
            shards.wire.cut.clear()
            return
        if dice.random() < 0.5:
            await shards.checkpoint(dice.randrange(shards.shards))
        if dice.random() < 0.2:
            shards.wire.cut = {frozenset(dice.sample(range(shards.shards), 2))}
        elif dice.random() < 0.4:
            shards.wire.cut.clear()
        if self.rounds % self.pause_rounds == 0:
            number = dice.randrange(shards.shards)
            await shards.kill(number)
            if dice.random() < 0.5:
                shards.restore(number)
            await shards.start(number)
