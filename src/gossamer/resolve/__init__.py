"""Resolve: where a host is, and whether we may go there.

Takes    a host
Gives    Located or Failure
Keeps    answers, good and bad, with a bound
Imports  model, ports, world
Touches  name servers; the hosts file when it is told to read it
Never    gives an address that the guard refuses
"""
