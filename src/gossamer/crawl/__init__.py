"""Crawl: the corridor: rooms joined to a ring, and the epoch that closes about once a second.

Takes    the rooms, through their ports
Gives    a crawl that goes on until nothing is left, a limit is reached or it is told to stop
Keeps    what happened to each URL, and what the crawl is told while it runs
Imports  url, model, world, state, ports
Touches  the control socket, the logs
Never    names a concrete room, or reaches a server but through the visit source
"""
