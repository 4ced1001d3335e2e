"""Scope: which links are in scope.

Takes    Link, seeds, options
Gives    the name of the filter that rejects a link, or None
Keeps    the roots: the seeds and where they redirect, by host, domain or directory
Imports  model, options, ports, url
Touches  nothing
Never    uses the network, remembers a URL that it judged, or decides when
"""
