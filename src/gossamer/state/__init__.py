"""State: the shard's store, its journals and the epoch that commits both.

Takes    keys and values, appended bytes
Gives    committed values, overlaid with the changes of the open epoch
Keeps    one RocksDB, append-only files with their committed lengths, two memory-mapped rings
Imports  options, world
Touches  disk
Never    knows what a URL, a host or a page is
"""
