"""Faults: whole crawls in a simulated world of kills, power cuts, failing disks and lost frames; one seed decides all.

One shard and several run here as in a crawl, by `gossamer.api.life`; `shards` joins several in one event loop.
"""
