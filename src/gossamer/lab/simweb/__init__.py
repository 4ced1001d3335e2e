"""Simweb: a synthetic web that knows what a right crawl of it must end with.

Takes    SimwebOptions: a seed, sizes, which behaviours
Gives    Web (answers from the seed alone), Truth, a server on loopback, its request log and the verdict on it
Keeps    in the server: how often a page that changes was asked for; the log not yet written
Imports  world
Touches  127.0.0.0/8, the log and hosts files, one child process
Never    leaves loopback, stores a page, or knows how Gossamer works
"""
