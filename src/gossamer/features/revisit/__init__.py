"""Revisit: when each page is visited again, and hints from sitemaps, feeds and hubs.

Takes    results of visits; names from robots.txt, announcements of sitemaps, feeds and hubs; the visits that politeness
         leaves for a host's old pages
Gives    the due time of each page, by a policy that can be replaced; an estimate of freshness; links to follow, notices
         for the schedule, requests to hubs
Keeps    a page's memory in the family `revisit`, a host's rhythm in `rhythm`, sums over all pages in `meta`, a record
         for each sitemap and feed in `told`, subscriptions in `websub`; in memory a bounded number of hosts
Imports  engine, frontier, model, options, ports, state, url, world
Touches  the shard's store, through its epochs
Never    reads a clock, makes a request, iterates over all pages, or trusts a hint without a check
"""
