"""Process: what is in a page, by modules chosen by media type.

Takes    Page
Gives    Findings
Keeps    nothing
Imports  model, options, ports, url
Touches  nothing
Never    waits, opens anything, or takes more than linear time in the size of a page
"""
