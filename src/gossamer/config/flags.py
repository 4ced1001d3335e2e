"""Flags: the table of options and the configuration key that each one sets."""

from __future__ import annotations

from typing import NamedTuple


class Flag(NamedTuple):
    """One option of `crawl` (and, where it may change later, of `resume`)."""

    option: str
    """As typed, without its dashes."""
    key: str
    """The configuration key it sets."""
    kind: type
    """`str`, `int` or `float`: it takes a value. `bool`: it is a switch."""
    help: str
    metavar: str = ""
    short: str = ""
    many: bool = False
    """May be given several times; the values make a list."""
    value: object = None
    """What a switch sets."""
    resumable: bool = False
    """May be given to `resume` too."""

    @property
    def name(self) -> str:
        """Its name as a keyword of `Crawler`."""
        return self.option.replace("-", "_")


PRESETS = ("polite", "gentle", "broad", "weak", "own")
SCOPES = ("prefix", "host", "domain", "any")

FLAGS = (
    Flag("seeds", "seeds.file", str, "Read seeds from a file, one URL a line, # for comments, - for stdin.", "FILE"),
    Flag("domains", "seeds.domains_file", str, "Read seeds from a file of domains, one a line.", "FILE"),
    Flag("segment", "seeds.segments", str, "A segment for --mode offline; repeatable.", "FILE", many=True),
    Flag(
        "watch", "seeds.watch_directory", str, "Where --mode offline finds further segments.", "DIR", resumable=True,
    ),
    Flag(
        "hosts-store", "state.hosts_store", str, "Keep what is learned of hosts here, from crawl to crawl.", "DIR",
        resumable=True,
    ),
    Flag("output", "output.directory", str, "Where the crawl goes; must not hold one yet.", "DIR", short="o"),
    Flag("scope", "scope.scope", str, "How far from the seeds: " + "|".join(SCOPES) + ".", "SCOPE"),
    Flag("include", "scope.include", str, "Only URLs that match; repeatable.", "RE", many=True),
    Flag("exclude", "scope.exclude", str, "No URLs that match; repeatable.", "RE", many=True),
    Flag(
        "embeds", "scope.embeds", bool, "Also fetch what pages need to be shown, wherever it lies.", value=True,
        resumable=True,
    ),
    Flag(
        "mode", "crawl.mode", str, "batch (each URL once), continuous (again and again) or offline (segments).", "MODE",
        resumable=True,
    ),
    Flag("max-pages", "limits.max_pages", int, "Stop after this many pages.", "N", resumable=True),
    Flag("max-depth", "scope.depth_max", int, "Follow no link further than this from a seed.", "N", resumable=True),
    Flag("max-time", "limits.max_time_s", float, "Stop after this many seconds.", "S", resumable=True),
    Flag("max-bytes", "limits.max_bytes", int, "Stop after this many bytes received.", "N", resumable=True),
    Flag(
        "politeness", "politeness.preset", str, "How long hosts are left alone: " + "|".join(PRESETS) + ".", "PRESET",
        resumable=True,
    ),
    Flag("delay", "politeness.delay_s_min", float, "Least delay for every host, in seconds.", "S", resumable=True),
    Flag("per-host", "politeness.per_host", int, "Requests at once to one host.", "N", resumable=True),
    Flag("concurrency", "crawl.concurrency", int, "Requests at once, over all hosts.", "N", resumable=True),
    Flag("workers", "cluster.workers", int, "Shards, each a process; more than one run on Ray.", "N", resumable=True),
    Flag("cluster", "cluster.address", str, "Run the shards on this Ray cluster.", "ADDRESS", resumable=True),
    Flag(
        "memory", "memory.budget_bytes", str, "Memory of the whole process, such as 512MiB or 4GiB.", "SIZE",
        resumable=True,
    ),
    Flag(
        "contact", "operator.contact", str, "Who you are, for those whose servers you visit.", "URL_OR_MAIL",
        resumable=True,
    ),
    Flag("hosts", "resolve.hosts_file", str, "Names and addresses as in /etc/hosts.", "FILE", resumable=True),
    Flag("dns", "resolve.servers", str, "Ask this server; repeatable.", "SERVER[:PORT]", many=True, resumable=True),
    Flag(
        "allow-private", "resolve.allow_private", bool, "Visit private and loopback addresses too.", value=True,
        resumable=True,
    ),
    Flag("no-robots", "robots.obey", bool, "Ignore robots.txt: for your own servers.", value=False, resumable=True),
    Flag(
        "serve", "console.port", int, "Serve the console on loopback while the crawl runs; without PORT on 8817.",
        "[PORT]", resumable=True,
    ),
    Flag("json", "progress.form", bool, "Progress as JSON lines.", value="json", resumable=True),
    Flag("quiet", "progress.form", bool, "No progress; errors only.", value="quiet", resumable=True),
)  # fmt: skip

BY_NAME = {flag.name: flag for flag in FLAGS}
