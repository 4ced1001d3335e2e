"""Comparison: the faults of a site, those that an earlier check had, and those that a baseline accepts."""

import csv
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from gossamer.model.errors import ConfigError
from gossamer.results.export.faults import SEVERITIES, Severity, SiteFault

State = Literal["", "new", "known", "accepted"]


class FaultName(NamedTuple):
    """The fields by which faults of two checks are the same."""

    kind: str
    what: str


def name_of(kind: str, url: str, detail: str) -> FaultName:
    """Return the name of a fault: its kind and URL; of titles and descriptions that pages share, the text."""
    return FaultName(kind, detail if kind in ("duplicate_title", "duplicate_description") else url)


def names_of(faults: Iterable[SiteFault]) -> frozenset[FaultName]:
    """Return the names of faults."""
    return frozenset(name_of(one.kind, one.url, one.detail) for one in faults)


class SiteCheck(msgspec.Struct, frozen=True):
    """The result of a check."""

    site: str
    faults: list[SiteFault]
    earlier: frozenset[FaultName] | None = None
    """Faults of the check before this one; None where there is none to compare with."""
    accepted: frozenset[FaultName] = frozenset()
    """Faults of the baseline: they are listed, and do not count."""
    at: float | None = None
    """Wall time of the check, if it is known."""

    def state(self, fault: SiteFault) -> State:
        """Return whether a fault is accepted, new since the earlier check, or known from it."""
        name = name_of(fault.kind, fault.url, fault.detail)
        if name in self.accepted:
            return "accepted"
        if self.earlier is None:
            return "new" if self.accepted else ""
        return "known" if name in self.earlier else "new"

    def counting(self) -> list[SiteFault]:
        """Return the faults that no baseline accepts, without links that were not checked."""
        return [one for one in self.faults if one.severity and self.state(one) != "accepted"]

    def counts(self) -> Counter[str]:
        """Return the number of faults by severity."""
        return Counter(one.severity for one in self.counting())

    def failing(self, least: Severity) -> list[SiteFault]:
        """Return the faults of a severity and of worse ones."""
        severe = SEVERITIES[: SEVERITIES.index(least) + 1]
        return [one for one in self.counting() if one.severity in severe]

    def gone(self) -> list[FaultName]:
        """Return the faults that the earlier check had and this one has not."""
        return sorted((self.earlier or frozenset()) - names_of(self.faults))


def read_baseline(path: Path) -> frozenset[FaultName]:
    """Return the names of the faults in a CSV file of a check. Raises ConfigError: it cannot be read, or is no such
    file.
    """
    remedy = "name a CSV file of gossamer check, such as check/faults.csv"
    try:
        csv.field_size_limit(sys.maxsize)
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()  # Spreadsheets write a mark before it, and semicolons in half of the world.
            rows = csv.DictReader(chain([header], file), delimiter=";" if ";" in header else ",")
            if not {"fault", "url", "detail"} <= {*(rows.fieldnames or ())}:
                raise ConfigError(f"--baseline {path} has no columns fault, url and detail; {remedy}")
            return frozenset(name_of(row["fault"], row["url"] or "", row["detail"] or "") for row in rows)
    except OSError as error:
        raise ConfigError(f"--baseline: cannot read {path}: {error.strerror}; {remedy}") from error
    except (UnicodeError, csv.Error) as error:
        raise ConfigError(f"--baseline {path} is no CSV file; {remedy}") from error
