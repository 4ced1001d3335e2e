"""Bodies: how much of what is under way is held in memory; the rest goes to disk while it comes in."""

from __future__ import annotations

import errno
from typing import Final

from gossamer.fetch.options import FetchOptions
from gossamer.world.spill import Spill, Spills

SPILL_BYTES_MIN: Final = 64 * 1024
"""Smaller ones stay in memory even when there is none left for them: a page is not worth a file."""


class Bodies:
    """The memory that all bodies under way share. Without `spills` there is no disk, and no bound but each body's own.

    An ordinary page costs two comparisons.
    """

    __slots__ = ("_spills", "each_bytes_max", "held_bytes", "held_bytes_max")

    def __init__(self, options: FetchOptions, spills: Spills | None = None) -> None:
        self._spills = spills
        self.each_bytes_max = options.body_memory_bytes_max if spills is not None else options.body_bytes_max
        self.held_bytes = 0
        """Of all bodies under way."""
        self.held_bytes_max = options.bodies_memory_bytes_max if spills is not None else 1 << 62

    def spilled(self, body: bytes | memoryview) -> Spill | None:
        """Return a file that holds a body's beginning now; None for one that may stay in memory.

        Raises:
            OSError: the disk refuses.
        """
        if self._spills is None or len(body) < min(SPILL_BYTES_MIN, self.each_bytes_max):
            return None
        try:
            spill = self._spills.make()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                return None  # Better a body in memory than a page that ends for want of a descriptor.
            raise
        spill.write(body)
        return spill
