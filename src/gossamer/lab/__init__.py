"""Lab: what measures and tests the crawler: a synthetic web, a simulator, and tools that tests share.

Takes    a seed and options; the crawler's packages
Gives    simweb, simulate, faults, Shards (several shards in one loop), run_within (a bound of memory)
Keeps    nothing beyond a run
Imports  anything below the commands; only `cli` imports it, for `demo`, `conformance`, `simweb` and `simulate`
Touches  loopback, child processes, directories that the caller names or temporary ones
Never    takes part in a crawl
"""
