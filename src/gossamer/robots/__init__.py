"""Robots: what a site asks of us, and what we may do while it does not answer.

Takes    Reply, Failure, Url, RobotsRecord, the time
Gives    RobotsRecord, Verdict, Rules
Keeps    parsed rules of the hosts last asked about, within a bound
Imports  model, url, world
Touches  one file: the exclusion list
Never    fetches, waits, or reads a clock
"""
