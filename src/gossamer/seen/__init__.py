"""Seen: has this come by before? URLs, and content.

Takes    Url with the way to it; digests
Gives    new, known, or known by a longer way; who had a content first
Keeps    fingerprints and digests, in the shard's store
Imports  url, model, state, ports
Touches  nothing directly: the disk is the epoch's
Never    fetches, or forgets what it was told
"""
