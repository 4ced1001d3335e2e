"""Engine: one shard's loop. It leads each visit through the stages, and closes the epoch about once a second.

Takes    the frontier, duplicate eliminators, filters, robots rules, resolver, protocol and processing modules, archives
Gives    a crawl that goes on until nothing is left, a limit is reached or the operator stops it
Keeps    what happened to each URL, and changes that the operator makes while it runs
Imports  fetch, frontier, model, options, ports, process, robots, scope, seen, state, url, world
Touches  the control socket, the logs
Never    reaches a server but through the frontier's gates, or builds a part of itself: assembly does
"""
