"""Verifying: what is wrong with the files of a crawl, and going on without those that are lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from gossamer.api.given import directory_of
from gossamer.assembly import accept_loss, homes, locked
from gossamer.assembly.verify import Verification
from gossamer.config.gather import reopen
from gossamer.model.damage import Damage

DAMAGE_MAX = 1_000
"""Damages that are kept; the others are counted."""


class Verified(msgspec.Struct, frozen=True):
    """What came of it."""

    deep: bool
    running: bool
    """The crawl runs: what its last commit names was looked at."""
    files: int
    bytes: int
    """Read, of files that the last commit names."""
    damages: int
    damage: tuple[Damage, ...]
    """The first `DAMAGE_MAX`."""
    notes: tuple[str, ...]
    """What could not be looked at, and why that is no damage."""

    def as_object(self) -> dict[str, object]:
        """Return it as JSON has it."""
        found: dict[str, object] = msgspec.to_builtins(self)
        return {"sound": not self.damages, **found, "damage": [damage.as_object() for damage in self.damage]}


def ignored(_damage: Damage) -> None:
    """Do nothing with a damage when it is found."""


def verify_of(directory: str | Path, *, deep: bool = False, each: Callable[[Damage], None] = ignored) -> Verified:
    """Look for damage in a crawl's files: presence and sizes, or with `deep` all that is in them. `each` is called with
    every damage when it is found.

    Raises:
        ConfigError: there is no crawl in `directory`.
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
    """Have a crawl that does not run go on without the files that are missing; return their names.

    Raises:
        ConfigError: there is no crawl, or it runs.
        DamagedError: its store cannot be read.
    """
    directory = directory_of(directory)
    config = reopen(directory / "crawl.toml")
    lock = locked(directory, 0.0)
    try:
        every = homes(directory, config.cluster.workers)
        return [name for home in every if home.is_there for name in accept_loss(config, home)]
    finally:
        lock.release()
