"""Resolve: the addresses of a host, and whether the crawl may contact them.

Takes    a host
Gives    Located or Failure
Keeps    answers, good and bad, with a bound
Imports  model, options, ports, url, world
Touches  name servers; the hosts file if the configuration names one
Never    gives an address that the guard refuses
"""
