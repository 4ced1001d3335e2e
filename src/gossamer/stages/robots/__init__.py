"""Robots: what a site permits by its robots.txt, and what to do while this cannot be fetched.

Takes    Reply, Failure, Url, RobotsRecord, the time
Gives    RobotsRecord, Verdict, Rules, Statement
Keeps    each origin's file, its failures, and its documents about use in the store; the last used, parsed, in memory
Imports  model, options, state, url, world
Touches  nothing but the store
Never    fetches, waits, or reads a clock
"""
