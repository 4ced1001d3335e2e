"""Revisit: when a page is worth seeing again.

Takes    what visits found: changed or not, after how long; how important a page is
Gives    estimated change rates, and the rate of visits that a page deserves within a budget
Keeps    a census of pages by change rate and importance, of bounded size
Imports  nothing of ours
Touches  nothing
Never    reads a clock, or looks at all pages
"""
