"""Options of revisits, and of hints to pages: the sections `revisit`, `discovery` and `websub` of the configuration."""

from typing import Literal

from pydantic import Field

from gossamer.model.options import BASIC, Section, WebAddress

DAY_S = 86_400.0


class RevisitOptions(Section):
    """How a continuous crawl (`crawl.mode`) keeps fresh what it has."""

    policy: str = Field(
        "optimal",
        description="uniform, proportional, importance, poisson, lambda, optimal, adaptive, or one of your own "
        "(module:Name)",
        json_schema_extra=BASIC,
    )
    interval_s_mean: float = Field(
        DAY_S,
        gt=0,
        description="Mean interval of revisits; with the number of pages it sets the budget",
        json_schema_extra=BASIC,
    )
    visits_per_s_max: float | None = Field(
        None,
        gt=0,
        description="The budget never exceeds this many visits a second, for any number of pages",
        json_schema_extra=BASIC,
    )
    interval_s_min: float = Field(
        300.0, gt=0, description="No page is visited again sooner than this, unless promised", json_schema_extra=BASIC
    )
    interval_s_max: float = Field(
        30 * DAY_S,
        gt=0,
        description="No page that is there is left alone for longer than this",
        json_schema_extra=BASIC,
    )
    share_new: float = Field(
        0.5, ge=0, le=1, description="Share of visits for pages never seen, where pages of both kinds wait"
    )
    importance: dict[str, float] = Field(
        default_factory=dict,
        description="Regular expressions (RE2) and by how much a match multiplies a page's importance",
        json_schema_extra=BASIC,
    )
    max_age_s: dict[str, float] = Field(
        default_factory=dict,
        description="Regular expressions (RE2) and the age that copies of pages that match never exceed, as far as "
        "politeness permits",
        json_schema_extra=BASIC,
    )
    change: Literal["words", "text", "payload"] = Field(
        "words",
        description="What counts as a change: other words; any other character of the text; any other byte.",
        json_schema_extra=BASIC,
    )
    conditional: bool = Field(True, description="Ask for what changed only (If-None-Match, If-Modified-Since)")
    failed_s_first: float = Field(
        3_600.0, gt=0, description="Wait before a page that failed is visited again, at least; doubles each time"
    )
    failures_max: int = Field(12, ge=1, description="Failures in a row after which a page is given up")
    gone_max: int = Field(5, ge=1, description="Answers 404 or 410 in a row after which a page is given up")
    host_sleep_s_max: float = Field(
        DAY_S, gt=0, description="Longest sleep of a failing host: a continuous crawl closes no host for failing"
    )
    memory_visits: int = Field(
        60, ge=4, description="Visits after which what was learned of a page weighs a third: pages change their habits"
    )
    rhythms_cached_max: int = Field(500, ge=16, description="Hosts whose rhythm is kept in memory")


When = Literal["auto", "always", "never"]


class DiscoveryOptions(Section):
    """What is made of sitemaps and feeds."""

    sitemaps: When = Field(
        default="auto",
        description="Read the sitemaps that robots.txt names. auto: unless scope.depth_max is set or "
        "the crawl walks: both go by clicks, and an address in a sitemap is none.",
        json_schema_extra=BASIC,
    )
    sitemap_guess: bool = Field(
        default=False,
        description="Where robots.txt names none, also ask for /sitemap.xml: one request more per host.",
        json_schema_extra=BASIC,
    )
    sitemap_bytes_max: int = Field(
        default=50 << 20, ge=1, description="Bytes of a sitemap as sent; the rest is cut and marked."
    )
    sitemaps_per_host_max: int = Field(default=1_000, ge=0, description="Sitemaps of one host that are read.")
    feeds: When = Field(
        default="auto",
        description="Fetch the feeds that pages name (link rel=alternate). auto: in continuous mode. The entries of a "
        "feed that was fetched are followed in any case.",
        json_schema_extra=BASIC,
    )
    feeds_per_host_max: int = Field(
        default=16, ge=0, description="Feeds of one host that are fetched: some sites have one for each page."
    )
    feed_s_min: float = Field(
        default=300.0, gt=0, description="Shortest time between two requests for one feed, in seconds."
    )
    feed_s_max: float = Field(
        default=86_400.0, gt=0, description="Longest time between two requests for one feed, in seconds."
    )
    notices_max: int = Field(
        default=2_000,
        ge=0,
        description="Changes taken from one reading of a sitemap or feed, at most.",
    )


class WebsubOptions(Section):
    """Subscriptions to hubs (WebSub)."""

    callback_url: WebAddress = Field(
        default="",
        description="Where hubs reach the console from outside, such as https://crawler.example.org/hooks; empty takes "
        "console.public_url. Without either nothing is subscribed to.",
        json_schema_extra=BASIC,
    )
    enabled: bool = Field(
        default=True, description="Subscribe to hubs, in continuous mode, where the console is served."
    )
    lease_s: int = Field(default=864_000, ge=60, description="Lease to ask for, in seconds; the hub has the last word.")
    renew_share: float = Field(default=0.8, gt=0, lt=1, description="A lease is renewed when this share of it is over.")
    secret: Literal["https", "always", "never"] = Field(
        default="https",
        description="When hubs are given a secret to sign with: https as the recommendation asks (section 5.1), or "
        "always, where the way to the hub is trusted.",
    )
    subscriptions_max: int = Field(default=1_000, ge=0, description="Topics subscribed to at once.")
    gather_s: float = Field(
        default=5.0,
        ge=0,
        description="Notifications of one topic within this many seconds of the first share visits: repeats of its "
        "content need no further one, all others share one at the end of that time.",
    )
    body_bytes_max: int = Field(default=10 << 20, ge=0, description="A larger notification is refused (413).")
    answer_s_max: float = Field(
        default=120.0,
        gt=0,
        description="The subscription is requested again from a hub that has not verified it by then.",
    )
    retry_s_first: float = Field(default=60.0, gt=0, description="First pause after a hub refused; doubles.")
    retry_s_max: float = Field(default=86_400.0, gt=0, description="The longest such pause.")
    unsubscribe: bool = Field(default=False, description="Unsubscribe at a stop; else leases run out by themselves.")
