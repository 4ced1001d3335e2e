"""Options of a simulation: the web, the machines, the shards, and how closely to look."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from gossamer.frontier.options import FrontierOptions, PolitenessOptions
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.model.options import Section
from gossamer.seen.options import SeenOptions


class WebOptions(Section):
    """The modelled web: what the crawl can find, and how its servers answer."""

    hosts: int = Field(1_000_000, ge=1, le=10**12, description="Hosts that the crawl can find")
    pages: int = Field(10_000_000_000, ge=1, le=10**15, description="Pages over all hosts, about; each host has one")
    zipf_exponent: float = Field(0.9, ge=0, le=3, description="Pages of the k-th largest host fall with k to this")
    seed_hosts: int = Field(0, ge=0, description="Hosts whose front page is a seed; 0: all of them")
    hosts_per_address: float = Field(5.0, ge=1, description="Hosts that share one IP address, evenly")
    links_per_page: float = Field(62.0, ge=0, le=10_000, description="Mean number of links on a page")
    new_urls_per_page: float = Field(
        6.5, ge=0, le=1_000, description="Links of a page to new URLs, while their host has such pages"
    )
    same_host_share: float = Field(0.8, ge=0, le=1, description="Share of links that stay on their host")
    fetch_s_median: float = Field(0.5, ge=0, description="Median time of a fetch, in seconds (log-normal)")
    fetch_sigma_host: float = Field(0.7, ge=0, le=3, description="Spread of the medians of hosts")
    fetch_sigma_page: float = Field(0.5, ge=0, le=3, description="Spread of fetch times within a host")
    slow_share: float = Field(0.0, ge=0, le=1, description="Share of hosts that are slow in addition")
    slow_s_median: float = Field(0.0, ge=0, description="Median time that a slow host adds to each fetch, in seconds")
    slow_sigma: float = Field(0.5, ge=0, le=3, description="Spread of that time")
    page_bytes_mean: float = Field(154_000.0, ge=0, description="Mean size of a page, decoded (log-normal)")
    page_bytes_sigma: float = Field(1.0, ge=0, le=2, description="Spread of sizes")
    wire_share: float = Field(0.2, gt=0, le=2, description="Bytes on the wire for each byte of a page")
    https_share: float = Field(0.9, ge=0, le=1, description="Share of requests that make a TLS connection")
    dead_host_share: float = Field(0.1, ge=0, le=1, description="Share of hosts that never answer")
    error_share: float = Field(0.15, ge=0, lt=1, description="Share of URLs that end in an error or a redirect")
    connect_s_max: float = Field(10.0, gt=0, description="How long we wait for a host that does not answer")
    lookup_s: float = Field(0.05, ge=0, description="Time to look up a host's address")
    robots: bool = Field(default=True, description="Ask each host for robots.txt first, and each day again")
    denied_host_share: float = Field(0.0, ge=0, le=1, description="Share of hosts whose robots.txt closes them to us")
    crawl_delay_share: float = Field(0.0, ge=0, le=1, description="Share of hosts that ask for a Crawl-delay")
    crawl_delay_s: float = Field(10.0, ge=0, description="The Crawl-delay that those ask for")
    giant_pages: int = Field(0, ge=0, le=10**12, description="Pages of one huge host more; 0: there is none")
    giant_fetch_s: float = Field(2.0, ge=0, description="Median time of a fetch from it, in seconds")

    @model_validator(mode="after")
    def _hosts_have_pages(self) -> Self:
        if self.pages < self.hosts:
            raise ValueError(f"pages is {self.pages:,}: each of the {self.hosts:,} hosts has one at least")
        return self


class MachineOptions(Section):
    """The machines, and what a page costs them. The defaults of times are measured (docs/explanation/simulation.md)."""

    cores: float = Field(16.0, gt=0, description="Cores of a machine")
    shards: int = Field(16, ge=1, description="Shards on one machine, at most")
    cores_per_shard: float = Field(1.0, gt=0, description="Cores that one shard can use: it has one event loop")
    memory_bytes: float = Field(128e9, gt=0, description="Memory of a machine")
    disk_bytes: float = Field(3.75e12, gt=0, description="Disk of a machine")
    bandwidth_bits_per_s: float = Field(10e9, gt=0, description="Network of a machine, in bits per second")
    price_per_hour: float = Field(1.51, ge=0, description="Price of a machine per hour, in any currency")
    price_per_gb_sent: float = Field(0.0, ge=0, description="Price of 1e9 bytes sent to the web")
    price_per_gb_month: float = Field(0.0, ge=0, description="Price of keeping 1e9 bytes for a month")
    sent_bytes_per_request: float = Field(400.0, ge=0, description="Bytes sent for a request: heads, TCP, DNS")
    cpu_us_per_page: float | None = Field(
        None, ge=0, description="CPU of a page in all, in microseconds; none: made of the keys below"
    )
    cpu_us_per_request: float = Field(200.0, ge=0, description="CPU of any request: gates, connection, queue, commit")
    cpu_us_per_tls: float = Field(435.0, ge=0, description="CPU of a TLS handshake")
    cpu_us_per_document: float = Field(185.0, ge=0, description="CPU of a page: records, rows, history")
    cpu_us_per_kb: float = Field(11.0, ge=0, description="CPU of 1,000 decoded bytes: decode, digest, parse, archive")
    cpu_us_per_link: float = Field(3.0, ge=0, description="CPU of a link: name, filters, eliminator, table")
    concurrency: int = Field(2_000, ge=1, le=16_384, description="Requests at once of one shard")


class ExchangeOptions(Section):
    """What it costs that shards are many."""

    delay_s: float = Field(2.0, ge=0, description="From the page to the other shard's queue: a commit on either side")
    cpu_us_per_link: float = Field(4.0, ge=0, description="CPU of a link that goes to another shard, at both together")
    bytes_per_link: float = Field(75.0, ge=0, description="Bytes of such a link on the network")
    coordinator_us_per_report: float = Field(500.0, ge=0, description="CPU of the coordinator for a shard's report")
    report_s: float = Field(1.0, gt=0, description="Time between two reports of a shard")


class SimulateOptions(Section):
    """All that a simulation depends on: two with equal options give equal results."""

    preset: str = Field("", description="The preset that these options began with; for people")
    seed: int = Field(1, ge=0, description="The same seed gives the same result")
    pages: int | None = Field(
        None, ge=1, le=10**15, description="Pages after which the crawl ends; none: when no URL is left"
    )
    time_s_max: float | None = Field(None, gt=0, description="Simulated seconds after which the crawl ends")
    shards: int = Field(1, ge=1, le=4_096, description="Shards of the crawl")
    shards_simulated: int | None = Field(
        None, ge=1, le=256, description="Shards that are simulated, the others being like them; none: as many as needed"
    )
    scale: int | None = Field(
        None, ge=1, le=10**9, description="Simulate one host in this many; none: as many as `pages_simulated` leaves"
    )
    pages_simulated: int = Field(300_000, ge=1_000, description="Pages to simulate when the scale is not given, about")
    known_links: int = Field(8, ge=0, description="Links of a page to known URLs that are really looked up")
    commit_visits: int = Field(2_000, ge=1, description="Visits between two commits of the simulated store")
    web: WebOptions = WebOptions()
    simweb: SimwebOptions | None = Field(
        None,
        description="A synthetic web whose hosts are simulated instead of those that `web` draws",
    )
    machine: MachineOptions = MachineOptions()
    exchange: ExchangeOptions = ExchangeOptions()
    politeness: PolitenessOptions = PolitenessOptions()
    frontier: FrontierOptions = FrontierOptions()
    seen: SeenOptions = SeenOptions()

    @model_validator(mode="after")
    def _shards_are_there(self) -> Self:
        if self.shards_simulated is not None and self.shards_simulated > self.shards:
            raise ValueError(f"shards_simulated is {self.shards_simulated}, of {self.shards} shards")
        if (self.scale or 1) != 1 and (self.simweb is not None or self.web.giant_pages):
            what = "a synthetic web" if self.simweb is not None else "a web with a giant"
            raise ValueError(f"scale is {self.scale}: {what} is simulated host by host")
        return self

    @property
    def machines(self) -> int:
        """Machines that the shards need."""
        return -(-self.shards // self.machine.shards)
