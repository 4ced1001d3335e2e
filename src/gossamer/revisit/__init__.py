"""Revisit: when a page is worth seeing again.

Takes    what visits saw and what others said of pages; how many visits politeness leaves for a host's old pages
Gives    when each page is due again, by a policy that may be replaced; how fresh what we have is, about
Keeps    a page's memory in the family `revisit`, a host's rhythm in `rhythm`, sums over all pages in `meta`; in memory
         a bounded number of hosts
Imports  url, model, ports, state
Touches  the shard's store, through its epochs
Never    reads a clock, makes a request, or looks at all pages at once
"""
