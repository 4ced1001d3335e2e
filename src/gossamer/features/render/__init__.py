"""Render: what scripts make of a page, in a browser that has no network.

Takes    a page as fetched, and a function that gets resources
Gives    its Dom, or PageError
Keeps    browsers, one page in each at a time; resources, with a bound
Imports  engine, fetch, frontier, model, options, ports, process, scope, state, url, world
Touches  processes of browsers, and their folders, which go with them
Never    sends a request: what a browser asks for is brought or refused by the crawl, except in a login by hand; gives a
         browser cookies of another site than its page's
"""
