"""Lab: what shows and measures the crawler: a synthetic web and a simulator.

Takes    a seed and options; the crawler's packages
Gives    simweb, simulate
Keeps    nothing beyond a run
Imports  assembly, config, engine, frontier, model, options, permit, ports, report, revisit, robots, scope,
         seen, state, url, world
Touches  loopback, child processes, directories that the caller names or temporary ones
Never    takes part in a crawl
"""
