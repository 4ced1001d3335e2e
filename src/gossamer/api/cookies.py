"""Cookies: those of a crawl, for other programs."""

from __future__ import annotations

from pathlib import Path

from gossamer.api.given import directory_of
from gossamer.assembly import homes
from gossamer.assembly.sessions import netscape_file
from gossamer.config.gather import reopen


def cookies_of(directory: str | Path) -> str:
    """Return the cookies of a crawl that does not run, as a file in Netscape format. They are credentials.

    Raises:
        ConfigError: there is no crawl in `directory`, or it runs.
    """
    directory = directory_of(directory)
    config = reopen(directory / "crawl.toml")
    return netscape_file(config, homes(directory, config.cluster.workers))
