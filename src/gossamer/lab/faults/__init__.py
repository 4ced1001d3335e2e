"""Faults: whole crawls in a simulated world, killed at any step and resumed; one seed decides everything that happens.

Takes    a seed
Gives    a trial: what became of the crawl, and every promise that it broke
Keeps    nothing beyond a trial
Imports  api, assembly, config, model, world
Touches  a temporary directory
Never    opens a connection, or waits for real time
"""
