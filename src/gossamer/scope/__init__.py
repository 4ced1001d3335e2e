"""Scope: which links are ours.

Takes    Link, seeds, options
Gives    the name of the filter that rejects a link, or None
Keeps    the roots: the seeds and where they redirect, by host, domain or directory
Imports  model, options, ports, url
Touches  nothing
Never    asks the network, remembers a URL it judged, or decides when
"""
