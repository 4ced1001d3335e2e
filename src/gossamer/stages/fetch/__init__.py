"""Fetch: sends one request to one checked address, and returns the reply.

Takes    Request
Gives    Reply or Failure; Content of a Reply
Keeps    connections, with a bound
Imports  model, options, url, world
Touches  the network, only at the address in the request; directories of files that the configuration names
Never    resolves a name, follows a redirect, retries, or sends a request twice
"""
