"""Checking: the faults of a crawled site, compared with others, and the forms in which they are written."""

import tempfile
from pathlib import Path

from gossamer.api.given import directory_of
from gossamer.results.check.causes import Cause, causes_of
from gossamer.results.check.comparison import FaultName, SiteCheck, names_of, read_baseline
from gossamer.results.check.forms import as_csv, as_json, as_junit, as_markdown, as_sarif
from gossamer.results.check.page import as_html
from gossamer.results.export.export import inputs_of, tables_of
from gossamer.results.export.faults import KINDS, NOT_CHECKED, SEVERITIES, Severity, SiteFault, faults_of_site
from gossamer.results.export.opening import crawl_in

__all__ = [
    "KINDS", "NOT_CHECKED", "SEVERITIES", "Cause", "FaultName", "Severity", "SiteCheck", "SiteFault", "as_csv",
    "as_html", "as_json", "as_junit", "as_markdown", "as_sarif", "causes_of", "faults_of", "names_of", "read_baseline",
]  # fmt: skip


def faults_of(directory: str | Path) -> list[SiteFault]:
    """Return the faults of a site that was crawled, by kind, then by URL; at the end the links that were not checked.

    Raises:
        ConfigError: there is no crawl.
        DamagedError: a file of its tables is not what was written.
    """
    directory = directory_of(directory)
    with tempfile.TemporaryDirectory(prefix="gossamer-faults-") as name:
        folder = Path(name)
        crawl = crawl_in(directory)
        tables = [table for table in tables_of(crawl, "parquet", "") if table in ("pages", "links", "fragments")]
        return faults_of_site(inputs_of(crawl, tables, folder).tables, folder)
