"""Gossamer: a polite, crash-safe, fast web crawler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.model.product import __version__ as __version__

if TYPE_CHECKING:
    from gossamer.api import Crawler as Crawler

__all__ = ["Crawler", "__version__"]


def __getattr__(name: str) -> object:
    # Lazily, so that importing one room loads that room only.
    if name == "Crawler":
        from gossamer.api import Crawler  # noqa: PLC0415

        return Crawler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
