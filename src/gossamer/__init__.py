"""Gossamer: a polite, crash-safe, fast web crawler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.model.product import __version__ as __version__

if TYPE_CHECKING:
    from gossamer.api import Crawler as Crawler
    from gossamer.process.own import processing_module as processing_module

__all__ = ["Crawler", "__version__", "processing_module"]


def __getattr__(name: str) -> object:
    # Lazily, so that importing one room loads that room only.
    if name == "Crawler":
        from gossamer.world.allocators import prefer_system_allocator  # noqa: PLC0415

        prefer_system_allocator()  # Before Arrow is loaded.
        from gossamer.api import Crawler  # noqa: PLC0415

        return Crawler
    if name == "processing_module":
        from gossamer.process.own import processing_module  # noqa: PLC0415

        return processing_module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
