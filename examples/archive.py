"""An archive for `components.archives`: one line of JSON for each attempt, in files below `attempts/` of the crawl.

gossamer crawl https://docs.example.org/ --contact you@example.org --set 'components.archives=["archive.py:Attempts"]'
"""

import json
from pathlib import Path

from gossamer.model.pages import Visited
from gossamer.state.journals import Journals

PLACE = "attempts/"


class Attempts:
    """Appends to a journal, whose end moves with the commit: after a kill, no line is missing or there twice."""

    def __init__(self, *, journals: Journals, directory: Path) -> None:
        self._journals = journals
        growing = journals.open_journals(PLACE)  # After a kill, the file of the run before.
        self._journal = growing[0] if growing else None
        self._number = len(journals.finals(PLACE)) + len(growing)
        self._lines: list[str] = []

    def add(self, visited: Visited) -> None:
        row = visited.row
        self._lines.append(json.dumps({"url": row.url, "outcome": row.outcome, "status": row.status}))

    def cut(self) -> None:
        if not self._lines:
            return
        if self._journal is None:
            self._number += 1
            self._journal = self._journals.create(f"{PLACE}{self._number:05d}.jsonl")
        self._journal.append("".join(f"{line}\n" for line in self._lines).encode())
        self._lines.clear()

    def close(self) -> None:
        if self._journal is not None:
            self._journals.close(self._journal)
            self._journal = None
