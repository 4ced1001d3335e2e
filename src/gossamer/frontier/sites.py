"""Sites: a host on the bench meets the gate of its registrable domain."""

from __future__ import annotations

from gossamer.frontier.bench import Bench
from gossamer.frontier.host import Host
from gossamer.url.site import site_of


class Sites:
    """Gives hosts their sites. What becomes of a site's rest when the process dies needs no journal: every site rests
    from the start of a process as if it had been asked at that instant, and none was asked later by one before.
    """

    def __init__(self, bench: Bench, resting_until: float) -> None:
        self._bench = bench
        self._resting_until = resting_until

    def enter(self, host: Host) -> None:
        """Give a host its site. A few µs, at each activation, and only where sites have a gate."""
        host.site = self._bench.site(site_of(host.name), self._resting_until)
        host.site.users += 1

    def leave(self, host: Host) -> None:
        """Take a host from its site."""
        if host.site is not None:
            host.site.users -= 1
            host.site = None
