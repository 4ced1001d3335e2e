"""Options of a simulation: the web, the machines, the shards, and how closely to look."""

from typing import Annotated

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.options import Key, Section
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions
from gossamer.stages.seen.options import SeenOptions


class WebOptions(Section, frozen=True):
    """The modelled web: what the crawl can find, and how its servers answer."""

    hosts: Annotated[int, Key("Hosts that the crawl can find", ge=1, le=10**12)] = 1_000_000
    pages: Annotated[int, Key("Pages over all hosts, about; each host has one", ge=1, le=10**15)] = 10_000_000_000
    zipf_exponent: Annotated[float, Key("Pages of the k-th largest host fall with k to this", ge=0, le=3)] = 0.9
    seed_hosts: Annotated[int, Key("Hosts whose front page is a seed; 0: all of them", ge=0)] = 0
    hosts_per_address: Annotated[float, Key("Hosts that share one IP address, evenly", ge=1)] = 5.0
    links_per_page: Annotated[float, Key("Mean number of links on a page", ge=0, le=10_000)] = 62.0
    new_urls_per_page: Annotated[
        float, Key("Links of a page to new URLs, while their host has such pages", ge=0, le=1_000)
    ] = 6.5
    same_host_share: Annotated[float, Key("Share of links that stay on their host", ge=0, le=1)] = 0.8
    fetch_s_median: Annotated[float, Key("Median time of a fetch, in seconds (log-normal)", ge=0)] = 0.5
    fetch_sigma_host: Annotated[float, Key("Spread of the medians of hosts", ge=0, le=3)] = 0.7
    fetch_sigma_page: Annotated[float, Key("Spread of fetch times within a host", ge=0, le=3)] = 0.5
    slow_share: Annotated[float, Key("Share of hosts that are slow in addition", ge=0, le=1)] = 0.0
    slow_s_median: Annotated[float, Key("Median time that a slow host adds to each fetch, in seconds", ge=0)] = 0.0
    slow_sigma: Annotated[float, Key("Spread of that time", ge=0, le=3)] = 0.5
    page_bytes_mean: Annotated[float, Key("Mean size of a page, decoded (log-normal)", ge=0)] = 154_000.0
    page_bytes_sigma: Annotated[float, Key("Spread of sizes", ge=0, le=2)] = 1.0
    wire_share: Annotated[float, Key("Bytes on the wire for each byte of a page", gt=0, le=2)] = 0.2
    https_share: Annotated[float, Key("Share of requests that make a TLS connection", ge=0, le=1)] = 0.9
    dead_host_share: Annotated[float, Key("Share of hosts that never answer", ge=0, le=1)] = 0.1
    error_share: Annotated[float, Key("Share of URLs that end in an error or a redirect", ge=0, lt=1)] = 0.15
    connect_s_max: Annotated[float, Key("How long we wait for a host that does not answer", gt=0)] = 10.0
    lookup_s: Annotated[float, Key("Time to look up a host's address", ge=0)] = 0.05
    robots: Annotated[bool, Key("Ask each host for robots.txt first, and each day again")] = True
    denied_host_share: Annotated[float, Key("Share of hosts whose robots.txt closes them to us", ge=0, le=1)] = 0.0
    crawl_delay_share: Annotated[float, Key("Share of hosts that ask for a Crawl-delay", ge=0, le=1)] = 0.0
    crawl_delay_s: Annotated[float, Key("The Crawl-delay that those ask for", ge=0)] = 10.0
    giant_pages: Annotated[int, Key("Pages of one huge host more; 0: there is none", ge=0, le=10**12)] = 0
    giant_fetch_s: Annotated[float, Key("Median time of a fetch from it, in seconds", ge=0)] = 2.0

    def __post_init__(self) -> None:
        if self.pages < self.hosts:
            raise ValueError(f"pages is {self.pages:,}: each of the {self.hosts:,} hosts has one at least")


class MachineOptions(Section, frozen=True):
    """The machines, and what a page costs them. The defaults of times are measured (docs/explanation/simulation.md)."""

    cores: Annotated[float, Key("Cores of a machine", gt=0)] = 16.0
    shards: Annotated[int, Key("Shards on one machine, at most", ge=1)] = 16
    cores_per_shard: Annotated[float, Key("Cores that one shard can use: it has one event loop", gt=0)] = 1.0
    memory_bytes: Annotated[float, Key("Memory of a machine", gt=0)] = 128e9
    disk_bytes: Annotated[float, Key("Disk of a machine", gt=0)] = 3.75e12
    bandwidth_bits_per_s: Annotated[float, Key("Network of a machine, in bits per second", gt=0)] = 10e9
    price_per_hour: Annotated[float, Key("Price of a machine per hour, in any currency", ge=0)] = 1.51
    price_per_gb_sent: Annotated[float, Key("Price of 1e9 bytes sent to the web", ge=0)] = 0.0
    price_per_gb_month: Annotated[float, Key("Price of keeping 1e9 bytes for a month", ge=0)] = 0.0
    sent_bytes_per_request: Annotated[float, Key("Bytes sent for a request: heads, TCP, DNS", ge=0)] = 400.0
    cpu_us_per_page: Annotated[
        float | None, Key("CPU of a page in all, in microseconds; none: made of the keys below", ge=0)
    ] = None
    cpu_us_per_request: Annotated[float, Key("CPU of any request: gates, connection, queue, commit", ge=0)] = 420.0
    cpu_us_per_tls: Annotated[float, Key("CPU of a TLS handshake", ge=0)] = 900.0
    cpu_us_per_document: Annotated[float, Key("CPU of a page: records, rows, history", ge=0)] = 45.0
    cpu_us_per_kb: Annotated[float, Key("CPU of 1,000 decoded bytes: decode, digest, parse, archive", ge=0)] = 7.0
    cpu_us_per_link: Annotated[float, Key("CPU of a link: name, filters, eliminator, table", ge=0)] = 11.5
    concurrency: Annotated[int, Key("Requests at once of one shard", ge=1, le=16_384)] = 2_000


class ExchangeOptions(Section, frozen=True):
    """Costs of several shards."""

    delay_s: Annotated[float, Key("From the page to the other shard's queue: a commit on either side", ge=0)] = 2.0
    cpu_us_per_link: Annotated[float, Key("CPU of a link that goes to another shard, at both together", ge=0)] = 4.0
    bytes_per_link: Annotated[float, Key("Bytes of such a link on the network", ge=0)] = 75.0
    coordinator_us_per_report: Annotated[float, Key("CPU of the coordinator for a shard's report", ge=0)] = 500.0
    report_s: Annotated[float, Key("Time between two reports of a shard", gt=0)] = 1.0


class SimulateOptions(Section, frozen=True):
    """All that a simulation depends on: two with equal options give equal results."""

    preset: Annotated[str, Key("The preset that these options began with; for people")] = ""
    seed: Annotated[int, Key("The same seed gives the same result", ge=0)] = 1
    pages: Annotated[
        int | None, Key("Pages after which the crawl ends; none: when no URL is left", ge=1, le=10**15)
    ] = None
    time_s_max: Annotated[float | None, Key("Simulated seconds after which the crawl ends", gt=0)] = None
    shards: Annotated[int, Key("Shards of the crawl", ge=1, le=4_096)] = 1
    shards_simulated: Annotated[
        int | None, Key("Shards that are simulated, the others being like them; none: as many as needed", ge=1, le=256)
    ] = None
    scale: Annotated[
        int | None, Key("Simulate one host in this many; none: as many as `pages_simulated` leaves", ge=1, le=10**9)
    ] = None
    pages_simulated: Annotated[int, Key("Pages to simulate when the scale is not given, about", ge=1_000)] = 300_000
    known_links: Annotated[int, Key("Links of a page to known URLs that are really looked up", ge=0)] = 8
    commit_visits: Annotated[int, Key("Visits between two commits of the simulated store", ge=1)] = 2_000
    web: WebOptions = WebOptions()
    simweb: Annotated[
        SimwebOptions | None, Key("A synthetic web whose hosts are simulated instead of those that `web` draws")
    ] = None
    machine: MachineOptions = MachineOptions()
    exchange: ExchangeOptions = ExchangeOptions()
    politeness: PolitenessOptions = PolitenessOptions()
    frontier: FrontierOptions = FrontierOptions()
    seen: SeenOptions = SeenOptions()

    def __post_init__(self) -> None:
        if self.shards_simulated is not None and self.shards_simulated > self.shards:
            raise ValueError(f"shards_simulated is {self.shards_simulated}, of {self.shards} shards")
        if (self.scale or 1) != 1 and (self.simweb is not None or self.web.giant_pages):
            what = "a synthetic web" if self.simweb is not None else "a web with a giant"
            raise ValueError(f"scale is {self.scale}: {what} is simulated host by host")

    @property
    def machines(self) -> int:
        """Machines that the shards need."""
        return -(-self.shards // self.machine.shards)
