"""Faults: whole crawls in a simulated world of kills, power cuts and failing disks; one seed decides everything.

Takes    a seed
Gives    a trial: what became of the crawl, and every promise that it broke
Keeps    nothing beyond a trial
Imports  api, archive, assembly, config, crawl, model, state, world
Touches  a temporary directory
Never    opens a connection, or waits for real time
"""
