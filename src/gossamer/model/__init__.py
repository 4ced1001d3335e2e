"""Model: the words every room speaks; frozen values, in the order in which they travel.

Takes    nothing
Gives    Link, Entry, Visit, Request, Reply, Failure, Page, Findings, PageRow, Status
Keeps    nothing
Imports  url
Touches  nothing
Never    is a file format: whoever stores a value owns the format
"""
