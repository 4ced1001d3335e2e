"""Costs: what a visit costs the processor and the network. Pure.

The figures of a unit are measured (docs/explanation/simulation.md, "Units").
"""

from gossamer.lab.simulate.options import ExchangeOptions, MachineOptions, SimulateOptions, WebOptions

_AHEAD = 8
"""Visits that may be behind without a wait: such short queues take no time at full scale."""
REQUEST_BYTES = 1_500.0
"""Heads of request and reply, handshakes and acknowledgements of a request."""


class Capacity:
    """A processor or a link that does so much a second, in the order asked for: `now` never goes back."""

    def __init__(self, per_s: float, typical: float) -> None:
        """Take the work that is done in a second, and that of a typical visit."""
        self._per_s = per_s
        self._ahead_s = _AHEAD * typical / per_s
        self._busy_until = 0.0
        self._taken = 0.0

    def wait_s(self, work: float, now: float) -> float:
        """Take work on and return how long from now it is not done."""
        self._taken += work
        self._busy_until = max(self._busy_until, now) + work / self._per_s
        return max(0.0, self._busy_until - now - self._ahead_s)

    def work_done(self, now: float) -> float:
        """Return the work that is done by now; work that arrives in a burst takes its time too."""
        return self._taken - max(0.0, self._busy_until - now) * self._per_s


def foreign_share(web: WebOptions, shards: int) -> float:
    """Return the share of links that lead to another shard."""
    return (1.0 - web.same_host_share) * (shards - 1) / shards


def cpu_request_s(web: WebOptions, machine: MachineOptions) -> float:
    """Return the processor's time for a request that brings no page."""
    return (machine.cpu_us_per_request + web.https_share * machine.cpu_us_per_tls) / 1e6


def cpu_page_s(page_bytes: float, web: WebOptions, machine: MachineOptions) -> float:
    """Return the processor's time for a page of a size, without the exchange between shards."""
    if machine.cpu_us_per_page is not None:
        return machine.cpu_us_per_page / 1e6
    content_us = machine.cpu_us_per_kb * page_bytes / 1e3 + machine.cpu_us_per_link * web.links_per_page
    return cpu_request_s(web, machine) + (machine.cpu_us_per_document + content_us) / 1e6


def cpu_exchange_s(web: WebOptions, exchange: ExchangeOptions, shards: int) -> float:
    """Return the processor's time for those links of a page that go to another shard, there and here together."""
    return web.links_per_page * foreign_share(web, shards) * exchange.cpu_us_per_link / 1e6


def exchange_bytes(web: WebOptions, exchange: ExchangeOptions, shards: int) -> float:
    """Return the bytes that a page's links take on the network to other shards, out and in together."""
    return 2 * web.links_per_page * foreign_share(web, shards) * exchange.bytes_per_link


def shard_cores(options: SimulateOptions) -> float:
    """Return the cores that one shard has: its part of the machine, and no more than it can use."""
    return min(options.machine.cores_per_shard, options.machine.cores / _together(options))


def shard_bytes_per_s(options: SimulateOptions) -> float:
    """Return one shard's part of its machine's network."""
    return options.machine.bandwidth_bits_per_s / 8 / _together(options)


def _together(options: SimulateOptions) -> int:
    return min(options.machine.shards, options.shards)
