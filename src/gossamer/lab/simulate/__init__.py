"""Simulate: the real ring, frontier, politeness, eliminator and commit against a modelled web, in simulated time.

Takes    SimulateOptions: a web, machines, shards, politeness
Gives    Simulated: what such a crawl does over time, what limits it, what it costs
Keeps    a store of its own in a temporary directory, gone with the simulation
Imports  the crawler's own frontier, ring, eliminator, robots and store; the hosts and options of simweb
Touches  disk: the temporary store, and the file of a figure
Never    opens a socket, reads the time to decide anything, or knows how the frontier decides
"""
