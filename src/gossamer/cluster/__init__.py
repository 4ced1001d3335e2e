"""Cluster: a crawl of several shards: whose a URL is, how links and addresses go from one to another, when all is over.

Takes    links of other shards' sites, frames from other shards, reports of all shards
Gives    frames to other shards, links to the ring, orders to the shards
Keeps    outbox and inbox in the shard's store; the partition map in the crawl's directory
Imports  model, state, url, world
Touches  the partition map's file
Never    opens a socket: whoever runs the shards carries the frames
"""
