"""Corners: the odd parts of made hosts, one file for each kind of oddity.

Takes    a Place: the host, its address, other hosts, words
Gives    the pages of the corner, by path
Keeps    nothing
Imports  the values and the Sheet of simweb
Touches  nothing
Never    depends on anything but the options
"""
