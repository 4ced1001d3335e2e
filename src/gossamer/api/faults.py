"""Faults: what is wrong with a site, from the tables of its crawl."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gossamer.api.given import directory_of
from gossamer.archive.views.export import inputs_of
from gossamer.archive.views.faults import KINDS, NOT_CHECKED, SiteFault, as_csv, as_html, faults_of_site
from gossamer.assembly.views import crawl_in

__all__ = ["KINDS", "NOT_CHECKED", "SiteFault", "as_csv", "as_html", "faults_of"]


def faults_of(directory: str | Path) -> list[SiteFault]:
    """Return the faults of a site that was crawled, by kind, then by URL; at the end the links that were not checked.

    Raises:
        ConfigError: there is no crawl.
        DamagedError: a file of its tables is not what was written.
    """
    directory = directory_of(directory)
    with tempfile.TemporaryDirectory(prefix="gossamer-faults-") as name:
        folder = Path(name)
        return faults_of_site(inputs_of(crawl_in(directory), ["pages", "links"], folder).tables, folder)
