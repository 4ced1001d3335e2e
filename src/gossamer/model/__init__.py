"""Model: the frozen values that packages exchange, in the order in which they travel.

Takes    nothing
Gives    Link, Entry, Visit, Request, Reply, Failure, Page, Findings, PageRow, Status
Keeps    nothing
Imports  options, url
Touches  nothing
Never    is a file format: the package that stores a value owns the format
"""
