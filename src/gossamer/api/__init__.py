"""Api: what a program may ask of Gossamer.

Takes    seeds, options, a directory
Gives    Crawler, what a crawl that does not run knows of itself, and exports
Keeps    one assembled shard while it runs
Imports  assembly, config, model, crawl's values
Touches  the crawl's directory, through what is assembled
Never    names a concrete room
"""

from gossamer.api.cluster import ClusterCrawler
from gossamer.api.crawler import Crawler
from gossamer.api.looking import about_of
from gossamer.api.page import Page
from gossamer.api.releasing import release_of
from gossamer.api.sample import sample_of
from gossamer.api.scaling import scale_crawl
from gossamer.api.status import status_of, why_of

__all__ = [
    "ClusterCrawler", "Crawler", "Page", "about_of", "release_of", "sample_of", "scale_crawl", "status_of", "why_of",
]  # fmt: skip
