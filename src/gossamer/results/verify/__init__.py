"""Verify: whether all files of a crawl are as they were written.

Takes    the directory of a crawl
Gives    a list of faults: file, what is wrong, how many bytes
Keeps    nothing
Imports  archive, assembly, cluster, config, export, imports, model, report, search, state, world
Touches  disk, reading
Never    changes a file of the crawl
"""
