"""Product: what we call ourselves, to servers and in archives."""

__version__ = "0.1.0"
PRODUCT = "gossamer"
"""Also our token in robots.txt."""
