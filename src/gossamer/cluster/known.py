"""Known: what was sent to other shards lately is not sent again. Navigation repeats on every page."""

from __future__ import annotations

from array import array

from gossamer.model.links import Link


class Known:
    """URLs of other shards that were sent lately, with their way: 12 bytes each, the newest stays."""

    def __init__(self, urls_max: int) -> None:
        places = 1 << max(urls_max.bit_length() - 1, 0)
        self._mask = places - 1
        self._fingerprints = array("Q", bytes(8 * places))
        self._ways = array("I", b"\xff" * (4 * places))

    def adds(self, link: Link) -> bool:
        """Note a link; say whether it, or its way, is new. One that was forgotten counts as new."""
        fingerprint = link.url.fingerprint
        at = fingerprint & self._mask
        depth, hops = min(link.depth, 0xFFFFFF), min(link.hops, 0xFF)
        if self._fingerprints[at] == fingerprint:
            way = self._ways[at]
            known_depth, known_hops = way >> 8, way & 0xFF
            if known_depth <= depth and known_hops <= hops:
                return False
            depth, hops = min(depth, known_depth), min(hops, known_hops)
        self._fingerprints[at] = fingerprint
        self._ways[at] = depth << 8 | hops
        return True
