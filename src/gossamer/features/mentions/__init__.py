"""Mentions: notices that a page links to a page of the crawl (Webmention), verified before anything is followed.

Takes    pairs of source and target that others send; replies of sources
Gives    requests for sources, sources whose links were verified, counts
Keeps    each notice in the family `websub` under a mark of its own, in memory a bounded number
Imports  model, options, ports, process, state, url
Touches  the shard's store, through its epochs
Never    fetches a source more often than its pause permits, or follows a link of a source
"""
