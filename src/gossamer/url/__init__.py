"""Url: what an address is, and when two addresses count as one.

Takes    text
Gives    Url, its key, fingerprint, site and partition
Keeps    nothing but caches with a bound
Imports  options
Touches  nothing
Never    asks the network, waits, or guesses what a server may distinguish
"""
