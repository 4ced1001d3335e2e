"""Revisit: when a page is worth seeing again, and what sitemaps, feeds and hubs say of pages.

Takes    what visits saw; what robots.txt names, and sitemaps, feeds and hubs announce; how many visits politeness
         leaves for a host's old pages
Gives    when each page is due again, by a policy that may be replaced; how fresh what we have is, about; links that may
         be followed, notices for the schedule, requests to hubs
Keeps    a page's memory in the family `revisit`, a host's rhythm in `rhythm`, sums over all pages in `meta`, a record
         for each sitemap and feed in `told`, subscriptions in `websub`; in memory a bounded number of hosts
Imports  model, ports, state, url, world
Touches  the shard's store, through its epochs
Never    reads a clock, makes a request, looks at all pages at once, or believes a hint without looking
"""
