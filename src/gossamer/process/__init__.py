"""Process: what is in a page, by modules chosen by media type.

Takes    Page
Gives    Findings
Keeps    nothing
Imports  model, options, ports, url
Touches  nothing
Never    waits, opens anything, or lets one page's oddity cost more than a line through its bytes
"""
