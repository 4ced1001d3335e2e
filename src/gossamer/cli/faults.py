"""Faults: options, files and lines of `gossamer check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from typer import Option

from gossamer.cli.directory import write_file
from gossamer.cli.output import harmless
from gossamer.model.errors import ConfigError
from gossamer.model.words import count, counted
from gossamer.world.clock import WallClock

if TYPE_CHECKING:
    from gossamer.results.check.comparison import FaultName, SiteCheck
    from gossamer.results.export.faults import SiteFault

SHOWN_MAX = 20
"""Faults of one kind that the terminal shows at most."""
PAGES_MAX = 3
"""Pages of one fault that the terminal shows at most."""
CAUSES_MAX = 10
"""Causes that the terminal shows at most."""
Html = Annotated[Path | None, Option("--html", metavar="FILE", help="Write the faults to an HTML file.")]
Csv = Annotated[Path | None, Option("--csv", metavar="FILE", help="Write the faults to a CSV file.")]
Json = Annotated[Path | None, Option("--json-file", metavar="FILE", help="Write the faults to a JSON file.")]
Junit = Annotated[Path | None, Option("--junit", metavar="FILE", help="Write a JUnit XML file.")]
Sarif = Annotated[Path | None, Option("--sarif", metavar="FILE", help="Write a SARIF file.")]
Markdown = Annotated[Path | None, Option("--markdown", metavar="FILE", help="Write a summary in Markdown.")]
Since = Annotated[Path | None, Option("--since", metavar="DIR", help="Show what is new since the check in DIR.")]
Baseline = Annotated[Path | None, Option("--baseline", metavar="FILE", help="Accept the faults in a CSV file.")]
Level = Literal["error", "warning", "notice"]
FailOn = Annotated[
    Level, Option("--fail-on", metavar="LEVEL", help="Least severity for exit status 1: error, warning, notice.")
]


class CheckFiles(NamedTuple):
    """The files that a check writes, where they are named."""

    html: Path | None
    csv: Path | None
    json: Path | None
    junit: Path | None
    sarif: Path | None
    markdown: Path | None

    def require_folders(self) -> None:
        """Raise ConfigError, before anything is crawled, where the folder of a file to write is missing."""
        for file in self:
            if file is not None and not file.parent.is_dir():
                raise ConfigError(f"there is no directory {file.parent}; make it, or name another file than {file}")
            if file is not None and file.is_dir():
                raise ConfigError(f"{file} is a directory; name a file in it")

    def write(self, check: SiteCheck, directory: Path, level: Level) -> Path:
        """Write the files, and return that with all records."""
        from gossamer.results.check import forms
        from gossamer.results.check.page import as_html

        records = self.csv or directory / "faults.csv"
        made = {
            "--html": (self.html, as_html),
            "--csv": (records, forms.as_csv),
            "--json-file": (self.json, forms.as_json),
            "--junit": (self.junit, lambda one: forms.as_junit(one, level)),
            "--sarif": (self.sarif, forms.as_sarif),
            "--markdown": (self.markdown, forms.as_markdown),
        }
        for option, (path, form) in made.items():
            if path is not None:
                write_file(path, form(check), option)
        return records


class Comparing:
    """Earlier faults to which a check is compared. They are read first, because the check may replace them."""

    def __init__(self, since: Path | None, baseline: Path | None) -> None:
        """Raises ConfigError: it cannot be read, or is no check."""
        self._earlier: frozenset[FaultName] | None = None
        self._accepted: frozenset[FaultName] = frozenset()
        if since is None and baseline is None:
            return
        from gossamer.api.reading import faults_of  # The supervisor starts without it.
        from gossamer.results.check.comparison import names_of, read_baseline

        if since is not None:
            if not since.is_dir():
                raise ConfigError(f"--since {since}: expected the directory of a check; --baseline takes a CSV file")
            self._earlier = names_of(faults_of(since))
        if baseline is not None:
            self._accepted = read_baseline(baseline)

    def check_of(self, directory: Path, site: str) -> SiteCheck:
        """Return the check of a crawled site."""
        from gossamer.api.reading import faults_of
        from gossamer.results.check.comparison import SiteCheck

        written = (one.stat().st_mtime for one in directory.glob("epochs/*"))  # One that has ended may be listed later.
        at = max(written, default=WallClock().now())
        return SiteCheck(site, faults_of(directory), self._earlier, self._accepted, at)


def lines_of(check: SiteCheck, records: Path, level: Level) -> list[str]:
    """Return a check's lines for a terminal: causes of many faults, errors and unchecked links by kind, numbers."""
    from gossamer.results.check.causes import causes_of
    from gossamer.results.export.faults import KINDS

    lines: list[str] = []
    causes = [one for one in causes_of(check.counting()) if len(one.faults) > SHOWN_MAX]
    if causes:
        lines += ["", "Causes of most faults:"]
        lines += [f"  {KINDS[one.kind].heading}: {harmless(str(one))}" for one in causes[:CAUSES_MAX]]
    lesser: list[str] = []
    for kind, rule in KINDS.items():
        found = [one for one in check.faults if one.kind == kind and check.state(one) != "accepted"]
        if found and rule.severity in ("warning", "notice"):
            lesser.append(f"  {rule.heading}: {count(len(found))} ({rule.severity})")
        elif found:
            lines += ["", f"{rule.heading}: {count(len(found))}"]
            lines += [line for one in found[:SHOWN_MAX] for line in _fault_lines(one, check)]
            lines += _left(len(found) - SHOWN_MAX, "  ", f"; {harmless(records)} lists all")
    if lesser:
        lines += ["", f"Also, listed in {harmless(records)}:", *lesser]
    return [*lines, "", *_last_lines(check, level)]


def _fault_lines(fault: SiteFault, check: SiteCheck) -> list[str]:
    parts = [harmless(fault.url), harmless(fault.detail), "new" if check.state(fault) == "new" else ""]
    pages = [f"      {harmless(url)}" for url in fault.pages[:PAGES_MAX]]
    return ["  " + "  ".join(filter(None, parts)), *pages, *_left(len(fault.pages) - PAGES_MAX, "      ")]


def _left(left: int, indent: str, where: str = "") -> list[str]:
    return [f"{indent}and {count(left)} more{where}"] if left > 0 else []


def _last_lines(check: SiteCheck, level: Level) -> list[str]:
    from gossamer.results.check.comparison import names_of

    lines = []
    if check.earlier is not None:
        new = sum(check.state(one) == "new" for one in check.counting())
        lines.append(f"Since the last check: {count(new)} new, {count(len(check.gone()))} gone")
    if check.accepted:
        accepted = sum(check.state(one) == "accepted" for one in check.faults)
        fixed = len(check.accepted - names_of(check.faults))
        left = f"; {count(fixed)} of its faults are gone" if fixed else ""
        lines.append(f"Accepted by the baseline: {count(accepted)}{left}")
    counts = check.counts()
    if counts["warning"] or counts["notice"]:
        lines.append(f"{counted(counts['warning'], 'warning')}, {counted(counts['notice'], 'notice')}")
    failing = len(check.failing(level))
    return [*lines, counted(failing, "fault") if failing else "No faults were found."]
