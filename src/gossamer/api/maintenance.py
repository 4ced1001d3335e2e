"""Maintenance: checks the files of a crawl, accepts a loss, forgets pages, releases traps."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import msgspec

from gossamer.api.given import directory_of
from gossamer.api.setting import no_trap, release
from gossamer.api.shards import hold_stopped
from gossamer.assembly.building import assemble
from gossamer.assembly.home import Home, homes, lock_directory, refuse_half_scaled
from gossamer.assembly.integrity import accept_loss
from gossamer.config.gather import reopen
from gossamer.engine.commit import ignore
from gossamer.model.errors import ConfigError, Damage
from gossamer.results.forget.forgetting import ForgetPlan, ForgetRequest, count, forget
from gossamer.results.verify.crawl import Verification
from gossamer.world.clock import WallClock

DAMAGE_MAX = 1_000
"""Damages that are kept; the others are counted."""


class Verified(msgspec.Struct, frozen=True):
    """Result of a check of a crawl's files: what was read, and the damage that was found."""

    deep: bool
    running: bool
    """Whether the crawl runs; then the files of its last commit were checked."""
    files: int
    bytes: int
    """Bytes read from files that the last commit names."""
    damages: int
    damage: tuple[Damage, ...]
    """The first `DAMAGE_MAX`."""
    notes: tuple[str, ...]
    """Checks that could not be made, and why that is no damage."""

    def as_object(self) -> dict[str, object]:
        """Return the fields as a JSON object."""
        found: dict[str, object] = msgspec.to_builtins(self)
        return {"sound": not self.damages, **found, "damage": [damage.as_object() for damage in self.damage]}


def verify_of(directory: str | Path, *, deep: bool = False, each: Callable[[Damage], None] = ignore) -> Verified:
    """Check a crawl's files for damage: their presence and sizes, or with `deep` their whole content. `each` is called
    with each damage when it is found. Raises ConfigError: there is no crawl in `directory`.
    """
    verification = Verification(directory_of(directory), deep=deep)
    found: list[Damage] = []
    damages = 0
    for damage in verification.run():
        damages += 1
        each(damage)
        if len(found) < DAMAGE_MAX:
            found.append(damage)
    looked = verification.looked
    return Verified(deep, looked.running, looked.files, looked.bytes, damages, tuple(found), tuple(looked.notes))


def accept_loss_of(directory: str | Path) -> list[str]:
    """Let a crawl that does not run continue without its missing files; return their names. Raises ConfigError: there
    is no crawl, or it runs; DamagedError: its store cannot be read.
    """
    directory = directory_of(directory)
    config = reopen(directory / "crawl.toml")
    with lock_directory(directory, 0.0):
        refuse_half_scaled(directory)
        every = homes(directory, config.cluster.workers)
        return [name for home in every if home.is_there for name in accept_loss(config, home)]


def forget_of(
    directory: str | Path,
    pattern: str,
    *,
    until: str = "",
    reason: str = "",
    whom: str = "",
    everything: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> ForgetPlan:
    """Remove the pages that `pattern` means from all that a crawl that does not run keeps, and keep them out until
    `until` (ISO 8601; empty: for good). After an interruption, call it again with the same pattern to finish.
    `everything`: the pattern may mean all pages. `note` is called with the name of each step. Raises ConfigError: there
    is no crawl, it runs, or the pattern means no page; one line says why; DamagedError: a file of the crawl is not what
    was written.
    """
    directory = directory_of(directory)
    refuse_half_scaled(directory)
    config = reopen(directory / "crawl.toml")
    return forget(config, directory, ForgetRequest(pattern, until, reason, whom, everything), WallClock().now(), note)


def forgettable_of(directory: str | Path, pattern: str) -> dict[str, int]:
    """Count pages and rows that `forget_of` would remove, also of a running crawl. Raises ConfigError as it does."""
    directory = directory_of(directory)
    return count(reopen(directory / "crawl.toml"), directory, ForgetRequest(pattern, everything=True))


def release_of(directory: str | Path, name: str) -> dict[str, object]:
    """Release traps of a crawl that does not run; `resume` then continues in them. Raises ConfigError: there is no such
    trap, or another process holds the crawl.
    """
    return asyncio.run(_release_of(directory_of(directory), name))


async def _release_of(directory: Path, name: str) -> dict[str, object]:
    config = reopen(directory / "crawl.toml")
    shards = config.cluster.workers
    refusal = ""
    with hold_stopped(directory) if shards > 1 else nullcontext():
        for number in range(shards):
            if shards > 1:
                Home(directory, number, shards).require_here()
            shard = assemble(config, directory, shard=number, shards=shards)
            try:
                released = await release(shard.ring, name, shard.controls.telemetry.clock)
                if released:
                    await shard.kept.committer.commit()
                    return {"released": released}
                refusal = refusal or no_trap(shard.ring.scope.traps, name)
            finally:
                await shard.close()
    raise ConfigError(refusal)
