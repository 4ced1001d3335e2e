"""Crawl: one shard's loop. It leads each visit through the packages below it, and closes the epoch about once a second.

Takes    the frontier, duplicate eliminators, filters, robots rules, resolver, protocol and processing modules, archives
Gives    a crawl that goes on until nothing is left, a limit is reached or the operator stops it
Keeps    what happened to each URL, and changes that the operator makes while it runs
Imports  cluster, fetch, frontier, model, options, ports, process, render, revisit, robots, scope, seen, state, url,
         world
Touches  the control socket, the logs
Never    reaches a server but through the frontier's gates, or builds a part of itself: assembly does
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """Makes this package callable, since programs call `gossamer.crawl(…)`, a name that the import system binds to
    it.
    """

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        import_module("gossamer.world.allocators").prefer_system_allocator()  # Before Arrow is loaded.
        return import_module("gossamer.api.iterating").crawl(*arguments, **options)


sys.modules[__name__].__class__ = _Package
