"""Assembly: a configuration becomes a shard. The one place that builds its components.

Takes    Config, a directory
Gives    DurableState, CrawlRing, Outputs and Controls, closed together as Shard; Opened, for queries
Keeps    nothing
Imports  archive, cluster, config, engine, fetch, frontier, identity, isolation, logins, mentions, model, options,
         permit, plugins, ports, process, proxies, render, requests, resolve, revisit, robots, scope, search, seen,
         state, url, walls, world
Touches  the crawl's directory, its lock, checkpoints, the index
Never    decides what a component decides
"""
