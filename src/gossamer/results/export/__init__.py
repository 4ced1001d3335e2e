"""Export: what others want made of a crawl's files. Each can be made again; none is read by the crawl.

Takes    finished tables and WARC files
Gives    Parquet, JSON lines, CSV, Markdown, corpora with their data cards, CDXJ, WACZ, page files
Keeps    a folder beside the target while it is being made
Imports  archive, assembly, config, fetch, model, options, plugins, ports, process, report, seen, state, world
Touches  disk
Never    changes a file of the crawl
"""
