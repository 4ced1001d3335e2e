"""Product: what we call ourselves, to servers and in archives."""

__version__ = "1.0.0rc1"
PRODUCT = "gossamer"
"""Also our token in robots.txt."""
FORMAT = 1
"""Format of a crawl's directory: increased by 1 with each change that an older Gossamer cannot read."""
