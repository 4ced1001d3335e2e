"""Behaviors: the odd things that synthetic hosts do: declared by name, with the pages that show them.

Takes    a Place: the host, its address, other hosts, words
Gives    BEHAVIORS (`declared`); the pages of each behavior, by path
Keeps    nothing
Imports  the values and the Sheet of simweb
Touches  nothing
Never    depends on anything but the options
"""
