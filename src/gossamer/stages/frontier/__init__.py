"""Frontier: which URL is next, and when it may be.

Takes    Link, and how a leased visit ended
Gives    Lease: one URL that may be requested now, with its address
Keeps    host queues and host records on disk; in memory the workbench, with a bound in hosts
Imports  model, options, ports, state, url, world
Touches  nothing directly: time is an argument, the disk is the epoch's
Never    waits, opens a socket or looks at a body
"""
