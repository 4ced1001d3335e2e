"""Room: how many hosts the workbench holds. Pure: numbers in, numbers out.

To keep the requests of a rate under way, as many hosts must be in memory as rest at once: rate times mean delay (Heydon
and Najork found three queues a thread enough for Mercator; BUbiNG lets its front grow whenever a fetcher waits). So the
room grows when somebody waits for a host although one on disk is due, and shrinks to what the last minutes needed.
"""

from __future__ import annotations

from math import ceil

from gossamer.frontier.options import FrontierOptions

HOST_BYTES = 2_500
"""Memory of a host on the bench beside its URLs: its record, its turns in the heaps, its address (measured)."""
SPAN_S = 60.0
"""Time over which rate and delay are taken."""
SLACK = 1.5
"""So much more than was needed stays, for what varies."""


class Room:
    """Never more hosts than `bench_hosts_max`, nor than `bench_bytes_max` holds with their URLs."""

    def __init__(self, options: FrontierOptions) -> None:
        self._options = options
        self.hosts = min(options.bench_hosts_first, options.bench_hosts_max, options.bench_bytes_max // HOST_BYTES + 1)
        """Hosts that may be on the bench now."""
        self._since = 0.0
        self._requests = 0
        self._rested_s = 0.0

    def reconfigure(self, options: FrontierOptions) -> None:
        """Go by other bounds from now on; hosts that are too many leave in their turn."""
        self._options = options
        self.hosts = min(self.hosts, options.bench_hosts_max)

    def may_widen(self, benched: int, window_bytes: int) -> bool:
        """Say whether one more host finds place, when somebody waits for it."""
        return benched < self._options.bench_hosts_max and (
            benched < 1 or (benched + 1) * HOST_BYTES + window_bytes <= self._options.bench_bytes_max
        )

    def widen(self, benched: int, window_bytes: int) -> bool:
        """Grow by one host if there is memory for it; say whether there is room now."""
        if self.may_widen(benched, window_bytes):
            self.hosts = max(self.hosts, benched + 1)
        return benched < self.hosts

    def shrink(self) -> None:
        """Hold a quarter fewer hosts; those that are too many leave when they are through, or rest for long."""
        self.hosts = max(1, self.hosts * 3 // 4)

    def rested(self, rest_s: float) -> None:
        """Note that a request ended, and for how long its host will rest."""
        self._requests += 1
        self._rested_s += rest_s

    def fit(self, now: float) -> None:
        """Shrink to what was needed lately, a tenth at a time. Call it now and then."""
        span_s = now - self._since
        if span_s < SPAN_S:
            return
        needed = ceil(SLACK * self._rested_s / span_s)  # Rate times mean delay.
        least = max(needed, min(self._options.bench_hosts_first, self._options.bench_hosts_max))
        if least < self.hosts:
            self.hosts = max(least, self.hosts - self.hosts // 10)
        self._since, self._requests, self._rested_s = now, 0, 0.0
