"""Offline: segments of URLs, and who makes the next one of what was crawled.

Takes    tables and WARC files of crawls, an index of known URLs, segments
Gives    segments: Parquet files of URLs, sorted by partition and site
Keeps    a folder beside the target while it is made; the index of known URLs
Imports  archive, assembly, config, export, frontier, imports, model, options, scope, url, world
Touches  disk
Never    asks a server, or changes a file of a crawl
"""
