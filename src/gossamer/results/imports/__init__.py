"""Imports: the archives of any crawler become the pages of a crawl's directory.

Takes    names of WARC, ARC, WACZ and HAR files, of folders, of lists, and addresses of object stores; a shard
Gives    captures, and what was refused, with the place of each; a shard whose pages they are
Keeps    how far each archive is imported, in the shard's store; the table of archives that stay where they are
Imports  archive, assembly, config, engine, fetch, frontier, model, ports, process, render, revisit,
         seen, state, url, world
Touches  disk, and an object store that a source names
Never    parses a page, changes a source, or sends a request
"""
