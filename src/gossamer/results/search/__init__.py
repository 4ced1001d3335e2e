"""Search: a full-text index of what was fetched, kept by the crawl as it goes or made of its archive afterwards.

Takes    Visited; or finished tables and WARC files
Gives    a tantivy index in `search/`, and answers from it
Keeps    a log of pages that are committed and not yet indexed
Imports  archive, export, model, state, world
Touches  disk
Never    is needed to crawl: the index is a view
"""
