"""Crawl: one shard's loop. It leads each visit through the packages below it, and closes the epoch about once a second.

Takes    the frontier, duplicate eliminators, filters, robots rules, resolver, protocol and processing modules, archives
Gives    a crawl that goes on until nothing is left, a limit is reached or it is told to stop
Keeps    what happened to each URL, and what the crawl is told while it runs
Imports  cluster, fetch, frontier, model, ports, process, revisit, robots, scope, seen, state, url, world
Touches  the control socket, the logs
Never    reaches a server but through the frontier's gates, or builds a part of itself: assembly does
"""
