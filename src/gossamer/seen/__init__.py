"""Seen: has this come by before? URLs, and content.

Takes    Url with the way to it; digests, and the bodies of pages
Gives    new, known, or known by a longer way; who had a content first, or nearly; sketches of words
Keeps    fingerprints, digests and simhashes, in the shard's store or in files that its manifest names
Imports  model, ports, state, url, world
Touches  state/seen, where two of the four forms keep files
Never    fetches, or forgets what it was told
"""
