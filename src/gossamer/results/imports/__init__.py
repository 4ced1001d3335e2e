"""Imports: the archives of any crawler, read record by record.

Takes    names of WARC, ARC, WACZ and HAR files, of folders, of lists, and addresses of object stores
Gives    captures, and what was refused, with the place of each
Keeps    nothing
Imports  archive, model, url, world
Touches  disk, and an object store where a source lies in one
Never    parses a page, or changes a source
"""
