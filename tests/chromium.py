"""Chromium: Debian's, as tests start it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

CHROMIUM = Path("/usr/bin/chromium")
CHROMIUM_OPTIONS = ("--no-sandbox", "--disable-gpu")


def require_chromium() -> str:
    """Return the path of the program."""
    assert CHROMIUM.exists(), "chromium is missing: `make acceptance` installs it"
    return str(CHROMIUM)


def launch_chromium(playwright: Playwright, *options: str) -> Browser:
    """Start a browser for Playwright; `options` are added to those that every test needs.

    What tests expect of its pages they wait a minute for: pages of a busy machine are late.
    """
    from playwright.sync_api import expect

    expect.set_options(timeout=60_000)
    return playwright.chromium.launch(executable_path=require_chromium(), args=[*CHROMIUM_OPTIONS, *options])
