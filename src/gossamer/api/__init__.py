"""Api: what a program may ask of Gossamer.

Takes    seeds, options, a directory
Gives    Crawler, what a crawl that does not run knows of itself, and exports
Keeps    one assembled shard while it runs
Imports  archive, assembly, cluster, config, engine, export, forget, frontier, identity, imports, isolated, mentions,
         model, offline, options, ports, process, quantities, report, requests, revisit, scope, search, state, url,
         verify, world
Touches  the crawl's directory, through what is assembled
Never    builds the components of a shard: assembly does
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossamer.api.base import log_crash as log_crash
    from gossamer.api.cluster import ClusterCrawler as ClusterCrawler
    from gossamer.api.crawler import Crawler as Crawler
    from gossamer.api.growing import check_scalable as check_scalable
    from gossamer.api.growing import finish_scaling as finish_scaling
    from gossamer.api.growing import scale_crawl as scale_crawl
    from gossamer.api.looking import about_of as about_of
    from gossamer.api.maintenance import accept_loss_of as accept_loss_of
    from gossamer.api.maintenance import forget_of as forget_of
    from gossamer.api.maintenance import forgettable_of as forgettable_of
    from gossamer.api.maintenance import release_of as release_of
    from gossamer.api.maintenance import verify_of as verify_of
    from gossamer.api.page import CrawledPage as CrawledPage
    from gossamer.api.setting import check_assignments as check_assignments
    from gossamer.api.shards import hold_stopped as hold_stopped
    from gossamer.api.shards import starting_status as starting_status
    from gossamer.api.status import status_of as status_of
    from gossamer.api.status import why_of as why_of
    from gossamer.api.stored import cookies_of as cookies_of
    from gossamer.api.stored import sample_of as sample_of

_HOMES = {
    "ClusterCrawler": "cluster", "Crawler": "crawler", "CrawledPage": "page", "about_of": "looking",
    "accept_loss_of": "maintenance", "check_assignments": "setting", "check_scalable": "growing",
    "cookies_of": "stored", "finish_scaling": "growing", "forget_of": "maintenance",
    "forgettable_of": "maintenance", "log_crash": "base",
    "hold_stopped": "shards", "release_of": "maintenance", "sample_of": "stored", "scale_crawl": "growing",
    "starting_status": "shards", "status_of": "status", "verify_of": "maintenance", "why_of": "status",
}  # fmt: skip
__all__ = list(_HOMES)


if not TYPE_CHECKING:  # A type checker would take any name.

    def __getattr__(name: str) -> object:
        # Lazily: a crawl of one shard does not need the cluster, and queries of a stopped crawl fetch nothing.
        if name in _HOMES:
            return getattr(import_module(f"gossamer.api.{_HOMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
