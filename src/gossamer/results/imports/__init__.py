"""Imports: the archives of any crawler, read record by record.

Takes    names of WARC, ARC, WACZ and HAR files, of folders, of lists, and addresses of object stores
Gives    captures, and what was refused, with the place of each
Keeps    nothing
Imports  archive, fetch, model, world
Touches  disk, and an object store that a source names
Never    parses a page, or changes a source
"""
