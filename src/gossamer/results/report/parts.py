"""Parts: the lists and tables of a report as values, which its text and its page show each in its own form."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from gossamer.model.words import cost_text, size
from gossamer.results.report.figures import Count, HostFigures, Report

LINES_MAX = 20
"""Of a list of counts; JSON has all."""
CACHE_NAMES = {
    "dns": "DNS answers", "robots": "robots.txt rules", "records": "host records", "urls": "popular URLs",
    "eliminator": "seen URLs",
}  # fmt: skip


class ReportBars(NamedTuple):
    """Counts, each with a bar."""

    title: str
    said: str
    counts: Sequence[Count]


class ReportRows(NamedTuple):
    """A table. Its cells may be text of the web."""

    title: str
    said: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: int = 0
    """Rows that are left out."""
    details: Sequence[Sequence[str]] = ()
    """Lines of each row's last cell, where that has lines."""


def cost_of(report: Report) -> ReportRows:
    """Return the resources that the crawl used, and those of a million pages."""
    taken = report.cost
    rows = [
        (one.name, f"{one.core_hours:,.2f}", "" if one.price is None else f"{one.price:,.3f}")
        for one in taken.million_pages
    ]
    whole = cost_text(taken.cpu_s, taken.requests, taken.disk_bytes, taken.memory_bytes_max)
    said = f"{seconds(taken.cpu_s_each)} of processor time a page; in all {whole}."
    return ReportRows("Cost", said, ("a million pages take", "core hours", "price"), rows)


def early_parts(report: Report) -> Iterator[ReportRows]:
    """Yield what a report begins with: seeds that could not be fetched, and hosts that the crawl did not wait for."""
    seeds = report.seeds_not_fetched
    rows: list[tuple[str, ...]] = [(one.url, one.state) for one in seeds]
    reasons = [[one.reason] for one in seeds]
    yield ReportRows("Seeds", "No seed could be fetched.", ("URL", "state", "reason"), rows, details=reasons)
    rows = [(one.host, f"{one.queued:,}", f"{instant(one.at)} UTC") for one in report.awaited]
    reasons = [[one.reason] for one in report.awaited]
    said = "The crawl ended without these hosts (crawl.patience_s); gossamer resume requests them later."
    yield ReportRows("Not waited for", said, ("host", "URLs", "next request", "reason"), rows, details=reasons)


def parts_of(report: Report) -> Iterator[ReportBars | ReportRows]:
    """Yield all others."""
    yield _politeness(report)
    cpu_s = report.rendering.get("cpu_s", 0.0)
    links = report.rendering.get("links_gained", 0.0)
    each = f", {cpu_s / links:,.2f} s a link" if links else ""
    cost = f" {links:,.0f} links gained, {cpu_s:,.1f} s of processor time{each}." if report.rendering else ""
    yield ReportBars("Outcomes of URLs", "How the last attempt at each URL ended.", report.url_outcomes)
    yield ReportBars("Outcomes of attempts", "How attempts ended.", report.outcomes)
    yield ReportBars("Status codes", "What servers answered.", report.statuses)
    yield ReportBars("Media types", "Of pages fetched.", report.media_types)
    yield ReportBars("Text found as", "Main content, or all visible text, of pages fetched.", report.text_methods)
    yield ReportBars(
        "Rendering", f"Pages fetched that were to be rendered, by what became of it.{cost}", report.rendered
    )
    yield ReportBars("Rendered because of", "Why pages were chosen (crawl.render = auto).", report.render_reasons)
    dns = report.dns
    said = (
        f"{dns.lookups:,} DNS lookups, {dns.failures:,} without an address; {seconds(dns.mean_s)} on average, "
        f"{dns.share_of_time:.1%} of the time of lookups and fetches."
        if dns.lookups
        else "No DNS lookups."
    )
    caches = [(CACHE_NAMES[c.name], f"{c.share:.1%} of {c.hits + c.misses:,} found in memory") for c in report.caches]
    yield ReportRows("DNS and caches", said, ("cache", "of questions"), caches)
    yield ReportBars("Links by type", "Of all links found.", report.link_types)
    yield ReportBars("Links refused, by filter", "By the first filter that refused them.", report.rejected)
    yield ReportBars("Links submitted", "By what ended their duplicate check.", report.link_checks)
    proxies = [(proxy, f"{answered:,}", f"{failed:,}") for proxy, answered, failed in report.proxies]
    yield ReportRows("Proxies", "Of the pool, in all runs.", ("proxy", "answered", "failed"), proxies)
    domains = [(one.name, f"{one.hosts:,}", f"{one.pages:,}") for one in report.domains[:LINES_MAX]]
    more = len(report.domains) - LINES_MAX
    yield ReportRows("Top-level domains", "With the most pages.", ("domain", "hosts", "pages"), domains, more)
    yield _hosts("Largest hosts", "By pages fetched.", report.top_hosts)
    yield _hosts("Slowest hosts", "By mean fetch time, of hosts with three fetches or more.", report.slowest_hosts)
    uses = [(one.purpose, f"{one.allowed:,}", f"{one.refused:,}", f"{one.unknown:,}") for one in report.uses]
    said = "What owners state about the use of their pages, of pages fetched and pages that were not kept."
    yield ReportRows("Permitted uses", said, ("purpose", "allowed", "refused", "unknown"), uses)
    yield ReportBars("Statements on use", "Pages by the kinds of their statements.", report.statements)
    copied = [(one.url, f"{one.copies:,}", size(one.body_bytes)) for one in report.copied]
    yield ReportRows(
        "Copies", "Contents with the most copies, by who had them first.", ("URL", "copies", "bytes"), copied
    )
    yield ReportBars("Traps", "URLs cut off, by host.", report.trapped_hosts)
    yield from _failures(report)


def _politeness(report: Report) -> ReportRows:
    politeness = report.politeness
    rows = [
        ("URLs that robots.txt denied", f"{politeness.robots_denied:,} of {politeness.robots_denied_hosts:,} hosts"),
        ("URLs whose robots.txt could not be fetched", f"{politeness.robots_unreachable:,}"),
        ("URLs excluded by their owners", f"{politeness.excluded:,}"),
        ("Answers that the server is busy", f"{politeness.busy:,}"),
    ]
    for who, gaps in (("host", politeness.host_gaps), ("address", politeness.address_gaps)):
        if gaps.counted:
            rows += [(f"Delay for one {who}", f"least {seconds(max(gaps.least, 0.0))}, median {seconds(gaps.median)}")]
            rows.append((f"Most requests to one {who} at once", f"{gaps.at_once_max:,}"))
    return ReportRows("Politeness", "What sites forbade, and the delays between requests.", ("", ""), rows)


def _hosts(title: str, said: str, hosts: Sequence[HostFigures]) -> ReportRows:
    means = [seconds(h.mean_fetch_s) if h.wire_bytes else "" for h in hosts]
    rows = [
        (h.host, f"{h.attempts:,}", f"{h.fetched:,}", size(h.wire_bytes), mean)
        for h, mean in zip(hosts, means, strict=True)
    ]
    return ReportRows(title, said, ("host", "attempts", "fetched", "bytes", "mean time"), rows)


def _failures(report: Report) -> Iterator[ReportRows]:
    kinds = [(f"{one.outcome} {one.kind}" if one.kind.isdigit() else one.outcome, one) for one in report.troubles]
    rows = [(kind, f"{one.count:,}") for kind, one in kinds]
    lines = [[one.url, *one.more, *filter(None, (one.error,))] for _, one in kinds]
    yield ReportRows("Errors", "By kind, with examples.", ("outcome", "count", "examples"), rows, details=lines)
    heads = ("module", "failures", "pages", "timed out", "died", "last error")
    failed = [
        (one.name, f"{one.failed:,}", f"{one.pages:,}", f"{one.timeouts:,}", f"{one.died:,}")
        for one in report.failed_modules
    ]
    lines = [[one.url or one.unmatched, *filter(None, (one.error,))] for one in report.failed_modules]
    said = "By failures, with the last error of each."
    yield ReportRows("Processing modules and fields that failed", said, heads, failed, details=lines)


def instant(wall_s: float | None) -> str:
    """Return wall time in UTC, to the second."""
    return "?" if wall_s is None else f"{datetime.fromtimestamp(wall_s, UTC):%Y-%m-%d %H:%M:%S}"


def seconds(lasted_s: float) -> str:
    """Return a short time: in milliseconds below one second."""
    return f"{lasted_s:.2f} s" if lasted_s >= 1 else f"{1000 * lasted_s:.1f} ms"
