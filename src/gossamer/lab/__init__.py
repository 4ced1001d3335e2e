"""Lab: what measures and tests the crawler: a synthetic web, a simulator, and tools that tests share.

Takes    a seed and options; the crawler's packages
Gives    simweb, simulate, faults, Shards (several shards in one loop), run_within (a bound of memory)
Keeps    nothing beyond a run
Imports  api, archive, assembly, cluster, config, engine, frontier, logins, model, options, permit, plugins, ports,
         revisit, robots, scope, seen, state, url, world
Touches  loopback, child processes, directories that the caller names or temporary ones
Never    takes part in a crawl
"""
