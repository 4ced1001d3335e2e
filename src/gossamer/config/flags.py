"""Flags: the table of options and the configuration key that each one sets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal, NamedTuple, TypedDict


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
    """The value that a switch sets."""
    resumable: bool = True
    """May be given to `resume` too."""

    @property
    def name(self) -> str:
        """Its name as a keyword of `Crawler`."""
        return self.option.replace("-", "_")


FLAGS = (
    Flag(
        "seeds", "seeds.file", str,
        "Read seeds from a file: one URL per line, # comments; or sitemap, bookmarks, CSV, WARC, CDX; - for stdin.",
        "FILE", resumable=False,
    ),
    Flag("domains", "seeds.domains_file", str, "Read domains from a file, one per line.", "FILE", resumable=False),
    Flag(
        "segment", "seeds.segments", str, "Fetch a segment with --mode offline (repeatable).",
        "FILE", many=True, resumable=False,
    ),
    Flag("watch", "seeds.watch_directory", str, "Watch a directory for more segments with --mode offline.", "DIR"),
    Flag(
        "hosts-store", "state.hosts_store", str, "Share robots.txt, delays and errors of hosts between crawls.", "DIR",
    ),
    Flag(
        "output", "output.directory", str, "Output directory; must not hold a crawl or other directories.",
        "DIR", short="o", resumable=False,
    ),
    Flag("scope", "scope.scope", str, "Follow links within: prefix, host, domain, any.", "SCOPE", resumable=False),
    Flag("include", "scope.include", str, "Crawl only URLs that match (repeatable).", "RE", many=True, resumable=False),
    Flag("exclude", "scope.exclude", str, "Skip URLs that match (repeatable).", "RE", many=True, resumable=False),
    Flag(
        "against", "scope.against", str, "Skip pages that an earlier crawl has (repeatable).",
        "DIR", many=True, resumable=False,
    ),
    Flag("embeds", "scope.embeds", bool, "Also fetch images, styles and scripts of pages, from any host.", value=True),
    Flag("mode", "crawl.mode", str, "Mode: batch (each URL once), continuous (revisit) or offline (segments).", "MODE"),
    Flag(
        "render", "crawl.render", str, "Render pages in a browser: never, auto (those that gain from it) or always.",
        "WHEN",
    ),
    Flag("max-pages", "limits.max_pages", int, "Stop after this many pages.", "N"),
    Flag("max-depth", "scope.depth_max", int, "Follow links at most this many clicks from a seed.", "N"),
    Flag("max-time", "limits.max_time_s", float, "Stop after this time, over all runs, such as 90s or 1h.", "S"),
    Flag("max-bytes", "limits.max_bytes", int, "Stop after receiving this much, such as 5MB or 2GiB.", "N"),
    Flag("politeness", "politeness.preset", str, "Politeness preset: polite, gentle, broad, weak, own.", "PRESET"),
    Flag("delay", "politeness.delay_s_min", float, "Minimum delay for every host, such as 2s or 500ms.", "S"),
    Flag("per-host", "politeness.per_host", int, "Maximum concurrent requests to one host.", "N"),
    Flag("concurrency", "crawl.concurrency", int, "Maximum concurrent requests in all; auto: what proves useful.", "N"),
    Flag("workers", "cluster.workers", int, "Number of shards; auto: one for each processor.", "N"),
    Flag("cluster", "cluster.address", str, "Run the shards on an existing Ray cluster.", "ADDRESS"),
    Flag("memory", "memory.budget_bytes", int, "Memory limit of the crawl, such as 512MiB or 4GiB.", "SIZE"),
    Flag("contact", "operator.contact", str, "Contact URL or e-mail, sent in the User-Agent.", "URL_OR_MAIL"),
    Flag("hosts", "resolve.hosts_file", str, "Read host addresses from a file like /etc/hosts.", "FILE"),
    Flag(
        "cookies", "cookies.file", str, "Load cookies from a file (Netscape format or Playwright's storage state).",
        "FILE",
    ),
    Flag("dns", "resolve.servers", str, "Use this DNS server (repeatable).", "SERVER[:PORT]", many=True),
    Flag("allow-private", "resolve.allow_private", bool, "Allow private and loopback addresses.", value=True),
    Flag("no-robots", "robots.obey", bool, "Ignore robots.txt and meta nofollow; your own servers only.", value=False),
    Flag("serve", "console.port", int, "Serve the dashboard while the crawl runs; port 8817 by default.", "[PORT]"),
    Flag("json", "progress.style", bool, "Print progress as JSON lines.", value="json"),
    Flag("log-format", "progress.style", str, "Show progress as: auto, live, plain, json, quiet.", "FORMAT"),
    Flag("quiet", "progress.style", bool, "Show errors only.", value="quiet"),
)  # fmt: skip

BY_NAME = {flag.name: flag for flag in FLAGS}
_OPTION = re.compile(r"--([a-z][a-z-]*)")


def rename_options(text: str, names: Mapping[str, str]) -> str:
    """Replace options in a text (`--max-pages`) by the names that a caller knows them by."""
    return _OPTION.sub(lambda match: names.get(match[1], match[0]), text)


class Options(TypedDict, total=False):
    """The options as keywords of `Crawler`, for type checkers: one for each flag without a parameter of its own."""

    domains: str | Path | None
    segment: list[str] | tuple[str, ...] | None
    watch: str | Path | None
    hosts_store: str | Path | None
    scope: str | None
    include: list[str] | tuple[str, ...] | None
    exclude: list[str] | tuple[str, ...] | None
    against: list[str] | tuple[str, ...] | None
    render: str | None
    embeds: bool | None
    mode: str | None
    max_pages: int | None
    max_depth: int | None
    max_time: float | str | timedelta | None
    max_bytes: int | str | None
    politeness: str | None
    delay: float | str | timedelta | None
    per_host: int | None
    concurrency: int | Literal["auto"] | None
    workers: int | Literal["auto"] | None
    cluster: str | None
    memory: int | str | None
    contact: str | None
    hosts: str | Path | None
    cookies: str | Path | None
    dns: list[str] | tuple[str, ...] | None
    allow_private: bool | None
    no_robots: bool | None
    serve: int | None
    json: bool | None
    log_format: str | None
    quiet: bool | None
    preset: str | None
