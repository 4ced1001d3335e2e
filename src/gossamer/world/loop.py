"""Loop: how a process that crawls runs: on which event loop, and how often the cyclic collector looks round."""

from __future__ import annotations

import asyncio
import gc
import importlib
from collections.abc import Callable

COLLECTOR_THRESHOLDS = (20_000, 20, 50)
"""Containers made, less those freed, before the cyclic collector looks at them; and how often it looks at the rest."""


def calm_collector() -> None:
    """Leave what was imported out of the cyclic collector's rounds, and have fewer of them.

    Nearly all that a crawl makes goes by its reference count; the rounds took 8 % of its time.
    """
    gc.freeze()
    gc.enable()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes an event loop: uvloop's where it is installed."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
