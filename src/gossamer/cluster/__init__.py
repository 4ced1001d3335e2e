"""Cluster: a crawl of several shards: ownership of URLs, exchange of links and addresses, and termination.

Takes    links of other shards' sites, frames from other shards, reports of all shards
Gives    frames to other shards, links to the ring, instructions to the shards
Keeps    outbox and inbox in the shard's store; the partition map in the crawl's directory
Imports  model, options, state, url, world
Touches  the partition map's file
Never    opens a socket: the process that runs the shards carries the frames
"""
