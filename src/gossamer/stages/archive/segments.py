"""Segments: the numbered journals of one kind, of which one grows at a time, and the names of tables' files."""

import re
from pathlib import Path

from gossamer.model.errors import ConfigError
from gossamer.model.paths import is_of_table, is_warc
from gossamer.state.journals import Journal, Journals


def stem_of(table: str) -> str:
    """Return how the names of a table's files begin: `items.book` for `items/book`."""
    return table.replace("/", ".")


def table_of(file_name: str) -> str:
    """Return the table that a file belongs to, by its name without folder."""
    return file_name.partition("-")[0].replace(".", "/")


def files_of(directory: Path, table: str) -> list[Path]:
    """Return the Parquet files of a table in a crawl's directory, by name."""
    return sorted(path for path in (directory / table).glob("*.parquet") if is_of_table(table, path.name))


def warcs_in(folder: Path) -> list[Path]:
    """Return the WARC files, and the links to archives of others, in a crawl's folder `warc`, by name."""
    return sorted(path for path in folder.glob("*") if is_warc(path.name))


class Segments:
    """Names, begins and finishes the journals `PREFIX-SHARD-INCARNATION-SEQUENCE SUFFIX`.

    After a crash it continues the segment that was open; one of another incarnation is closed instead. A sequence
    number is never used twice within an incarnation.
    """

    def __init__(
        self, journals: Journals, prefix: str, suffix: str, shard: int, incarnation: int, made: str = ""
    ) -> None:
        """Continue the segments in `journals`.

        Prefixes are relative to the crawl's directory, their folder included. `made` is the prefix of the files that
        are made from finished segments, under the same numbers.
        """
        self._journals = journals
        self._suffix = suffix
        numbers = f"-{shard:03d}-{incarnation:04d}-"
        self._stem = prefix + numbers
        self.journal: Journal | None = None
        names = [entry.name for entry in journals.finals(self._stem)]
        if made:
            names += [entry.name for entry in journals.finals(made + numbers)]
        for journal in journals.open_journals(f"{prefix}-{shard:03d}-"):
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


def missing_warc(path: Path) -> ConfigError:
    """Return the error that a WARC file is missing, or the archive to which an import linked it."""
    if path.is_symlink():
        remedy = "put it back, or import it from its new place into this directory"
        return ConfigError(f"{path} leads to {path.readlink()}, which is missing; {remedy}")
    return ConfigError(f"{path} is not here, nor in an object store of the crawl; copy it there")


def remove_strays(journals: Journals, folder: str, suffix: str) -> None:
    """Remove the logs in a folder that the manifest no longer has."""
    kept = {entry.name for entry in journals.finals(folder)}
    for log in journals.path(folder).glob(journals.stray + suffix):
        if folder + log.name not in kept:
            log.unlink()
