"""Segments: the numbered journals of one kind, of which one grows at a time."""

from __future__ import annotations

import re

from gossamer.state.journals import Journal, Journals


class Segments:
    """Names, begins and finishes the journals `PREFIX-SHARD-INCARNATION-SEQUENCE SUFFIX`.

    After a crash it goes on with the segment that was open, unless that is another incarnation's: such a one is
    closed. A sequence number is never given twice within an incarnation.
    """

    def __init__(
        self, journals: Journals, prefix: str, suffix: str, shard: int, incarnation: int, made: str = ""
    ) -> None:
        """Take up what `journals` holds.

        Prefixes are relative to the crawl's directory, their folder included. `made` is the prefix of what becomes
        of finished segments, under the same numbers.
        """
        self._journals = journals
        self._suffix = suffix
        numbers = f"-{shard:03d}-{incarnation:04d}-"
        self._stem = prefix + numbers
        self.journal: Journal | None = None
        names = [entry.name for entry in journals.finals(self._stem)]
        if made:
            names += [entry.name for entry in journals.finals(made + numbers)]
        for journal in journals.opened(f"{prefix}-{shard:03d}-"):
            self.finish()
            self.journal = journal
            names.append(journal.name)
            if not journal.name.startswith(self._stem):
                self.finish()
        number = re.compile(re.escape(numbers) + r"(\d+)\.")
        found = (number.search(name) for name in names)
        self._sequence = max((int(match[1]) for match in found if match), default=0)

    def begin(self) -> Journal:
        """Begin the next segment."""
        assert self.journal is None, "one segment grows at a time"
        self._sequence += 1
        self.journal = self._journals.create(f"{self._stem}{self._sequence:06d}{self._suffix}")
        return self.journal

    def finish(self) -> None:
        """Close the growing segment, if there is one; takes effect with the commit."""
        if self.journal is not None:
            self._journals.close(self.journal)
            self.journal = None
