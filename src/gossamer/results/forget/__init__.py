"""Forget: pages are removed from all that a crawl keeps, on request, and stay out of it.

Takes    the directory of a crawl that does not run, a pattern, until when and why
Gives    the entry of the list of forgotten pages, with what was removed
Keeps    a plan, until everything in it is done
Imports  archive, assembly, config, engine, export, frontier, imports, logins, mentions, model, revisit, robots, scope,
         search, seen, state, url, world
Touches  the crawl's directory and its checkpoints, and the object stores that hold copies of its files
Never    sends a request to a web server, or decides what a crawl fetches: the filter `forgotten` does
"""
