"""Robots: what a site asks of us, and what we may do while it does not answer.

Takes    Reply, Failure, Url, RobotsRecord, the time
Gives    RobotsRecord, Verdict, Rules
Keeps    each origin's file and its failures in the store; the last used, parsed, in memory
Imports  model, state, url, world
Touches  nothing but the store
Never    fetches, waits, or reads a clock
"""
