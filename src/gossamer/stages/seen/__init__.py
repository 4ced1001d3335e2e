"""Seen: detects URLs and contents that were seen before.

Takes    Url with the path to it; digests, and the bodies of pages
Gives    new, seen, seen by a longer path, or answered later; the original of a copy or near-duplicate; word sketches
Keeps    fingerprints, digests and simhashes, in the shard's store or in files that its manifest names
Imports  model, options, ports, state, url, world
Touches  state/seen, where two of the four backends keep files
Never    fetches, or forgets a URL
"""
