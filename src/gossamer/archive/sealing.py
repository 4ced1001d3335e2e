"""Sealing: computes the SHA-256 of finished files, one after another, off the loop."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gossamer.model.errors import DamagedError
from gossamer.state.journals import Entry, Journals
from gossamer.state.sums import sums_of


class Sealing(msgspec.Struct, frozen=True):
    """One finished file."""

    entry: Entry
    path: Path

    def make(self) -> str:
        """Return the SHA-256 in hexadecimal; empty where an upload has removed the file meanwhile. Blocks.

        Raises:
            DamagedError: the file holds other bytes than were written.
            OSError: the file cannot be read.
        """
        try:
            sums = sums_of(self.path)
        except FileNotFoundError:
            return ""
        if self.entry.crc is not None and sums.crc != self.entry.crc:
            raise DamagedError(
                f"{self.path} does not hold what was written into it (its CRC-32 differs): check the disk, put a "
                "sound copy in its place, then resume"
            )
        return sums.sha256


class Sealer:
    """`archive.Following` for finished files that have no SHA-256 yet. All but `Sealing.make` runs on the loop."""

    frees_disk = False

    def __init__(self, journals: Journals) -> None:
        self._journals = journals

    def next(self) -> Sealing | None:
        """Return the oldest such file, or None. Ask again after `settle`."""
        entry = self._journals.unsealed()
        return Sealing(entry, self._journals.path(entry.name)) if entry is not None else None

    def settle(self, sealing: Sealing, digest: str) -> None:
        """Enter the SHA-256; takes effect with the next commit."""
        self._journals.sealed(sealing.entry.name, digest)

    def close(self) -> None:
        """Nothing is held."""
