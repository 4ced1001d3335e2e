"""Proxies: a pool of proxies, each site keeping one of them.

Takes    proxies by label, the places of labels, failures of proxies
Gives    a proxy for each request, its answers and failures, what is left out and why
Keeps    the proxy of each site, in memory
Imports  frontier, model, options, ports, url
Touches  nothing
Never    sends a request without a proxy, or changes the proxy because of what a server answers
"""
