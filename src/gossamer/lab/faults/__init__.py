"""Faults: whole crawls in a simulated world of kills, power cuts, failing disks and lost frames; one seed decides all.

Takes    a seed
Gives    a trial: what became of the crawl, and every promise that it broke
Keeps    nothing beyond a trial
Imports  api, archive, assembly, cluster, config, crawl, model, state, world
Touches  a temporary directory
Never    opens a connection, or waits for real time
"""
