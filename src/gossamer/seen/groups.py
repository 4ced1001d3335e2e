"""Groups: partitions are taken together by 256, so that a form that keeps files keeps few of them."""

from __future__ import annotations

from gossamer.url.fingerprint import PARTITIONS

GROUPS = 16
GROUP_SHIFT = 8
"""A URL's group is its partition shifted right by this."""
FOLDER = "state/seen"
"""Where the files of all forms are, in the crawl's directory."""

assert GROUPS << GROUP_SHIFT == PARTITIONS
