"""A resolver for `components.resolver`: the system's own, with `resolve.hosts_file` before it.

gossamer crawl https://docs.example.org/ --contact you@example.org --set components.resolver=resolver.py:SystemResolver
"""

import asyncio
import socket

from gossamer.model.visits import Failure, Located
from gossamer.stages.resolve.answers import HostsFile
from gossamer.stages.resolve.options import ResolveOptions
from gossamer.world.clock import Clock

KEEP_S = 600.0
"""The system does not say how long an address is valid."""
KEPT_MAX = 100_000


class SystemResolver:
    """Asks `getaddrinfo`, in a thread for each lookup: for crawls of few hosts, such as an intranet."""

    def __init__(self, *, options: ResolveOptions, clock: Clock) -> None:
        self._hosts = HostsFile(options.hosts_file)
        self._clock = clock
        self._known: dict[str, Located] = {}

    def cached(self, host: str) -> Located | None:
        found = self._known.get(host)
        return found if found is not None and found.expires_at > self._clock.now() else None

    async def resolve(self, host: str) -> Located | Failure:
        addresses = self._hosts.addresses(host)
        if not addresses:
            try:
                found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as error:
                return Failure("dns_error", str(error), retry=True, host_level=True)
            addresses = tuple(dict.fromkeys(str(address[0]) for *_, address in found))
        if len(self._known) >= KEPT_MAX:
            self._known.clear()
        self._known[host] = Located(addresses, self._clock.now() + KEEP_S)
        return self._known[host]

    async def close(self) -> None:
        self._known.clear()
