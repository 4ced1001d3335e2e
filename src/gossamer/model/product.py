"""Product: what we call ourselves, to servers and in archives, and what a crawl's directory is known by."""

__version__ = "1.0.0rc1"
PRODUCT = "gossamer"
"""Also our token in robots.txt."""
FORMAT = 1
"""Format of a crawl's directory: increased by 1 with each change that an older Gossamer cannot read."""
FORGOTTEN = "forgotten.jsonl"
"""A crawl's own list of forgotten pages, in its directory and beside its checkpoints."""
LOCK = "state/lock"
"""The lock of a crawl's directory, of all its shards."""
