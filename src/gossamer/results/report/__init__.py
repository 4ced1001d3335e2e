"""Report: what a crawl found, in figures, from its tables.

Takes    a crawl's directory, and a folder of tables that are not finished
Gives    Report, as values, text and JSON
Keeps    nothing
Imports  model
Touches  disk, reading
Never    needs the crawl's state, or more memory than it was given
"""
