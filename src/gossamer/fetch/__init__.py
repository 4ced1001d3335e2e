"""Fetch: one request, to one checked address, and what came back.

Takes    Request
Gives    Reply or Failure; Content of a Reply
Keeps    connections, with a bound
Imports  model, options, url, world
Touches  the network, at the address in the request alone; trees of files that the configuration names
Never    resolves a name, follows a redirect, retries, or sends a request twice
"""
