"""Archive: a crawl's files for readers, written so that no crash loses or doubles a record.

Takes    Visited
Gives    WARC records, rows of `pages` and `links`, Parquet, CDXJ
Keeps    one open WARC and one open log per table, as journals
Imports  model, options, ports, state, url, world
Touches  disk, and an object store where one is configured: our own, not the web
Never    decides what is kept, or reads its own tables to crawl by
"""
