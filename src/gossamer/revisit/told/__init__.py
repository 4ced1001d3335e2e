"""Told: what others say of pages, so that we need not ask: sitemaps, feeds, hubs.

Takes    what robots.txt names, what sitemaps and feeds announce, what hubs send
Gives    links that may be followed, notices for `ports.Revisits`, requests to hubs
Keeps    a record for each sitemap and feed, and the subscriptions, in the store's family `told`
Imports  model, state, url, world
Touches  nothing but the store
Never    fetches, believes a hint without looking, or follows one where its author has no say
"""
