"""Robots: what a site asks of us, and what we may do while it does not answer.

Takes    Reply, Failure, Url, RobotsRecord, the time
Gives    RobotsRecord, Verdict, Rules, Statement
Keeps    each origin's file, its failures, and its documents about use in the store; the last used, parsed, in memory
Imports  model, options, state, url, world
Touches  nothing but the store
Never    fetches, waits, or reads a clock
"""
