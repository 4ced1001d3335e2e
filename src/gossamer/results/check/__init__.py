"""Check: the faults of a site by their causes, compared with an earlier check, as a page and as files for other tools.

Takes    faults that `export.faults` found
Gives    one HTML page, CSV, JSON, Markdown, JUnit, SARIF
Keeps    nothing
Imports  export, model, report, url
Touches  disk, reading
Never    changes a file of a crawl
"""
