"""Options of revisits, and of hints to pages: the sections `revisit`, `discovery` and `websub` of the configuration."""

from typing import Annotated, Literal

from gossamer.model.patterns import regular
from gossamer.options import Key, Section

DAY_S = 86_400.0


class RevisitOptions(Section, frozen=True):
    """How a continuous crawl (`crawl.mode`) keeps fresh what it has."""

    policy: Annotated[
        str,
        Key(
            "uniform, proportional, importance, poisson, lambda, optimal, adaptive, or one of your own (module:Name)",
            basic=True,
        ),
    ] = "optimal"
    interval_s_mean: Annotated[
        float, Key("Mean interval of revisits; with the number of pages it sets the budget", gt=0, basic=True)
    ] = DAY_S
    visits_per_s_max: Annotated[
        float | None,
        Key("The budget never exceeds this many visits a second, for any number of pages", gt=0, basic=True),
    ] = None
    interval_s_min: Annotated[
        float, Key("No page is visited again sooner than this, unless promised", gt=0, basic=True)
    ] = 300.0
    interval_s_max: Annotated[
        float, Key("No page that is there is left alone for longer than this", gt=0, basic=True)
    ] = 30 * DAY_S
    share_new: Annotated[
        float, Key("Share of visits for pages never seen, where pages of both kinds wait", ge=0, le=1)
    ] = 0.5
    importance: Annotated[
        dict[str, float],
        Key(
            "Regular expressions (RE2) and by how much a match multiplies a page's importance",
            basic=True,
            check=regular,
        ),
    ] = {}
    max_age_s: Annotated[
        dict[str, float],
        Key(
            "Regular expressions (RE2) and the age that copies of pages that match never exceed, as far as politeness "
            "permits",
            basic=True,
            check=regular,
        ),
    ] = {}
    change: Annotated[
        Literal["words", "text", "payload"],
        Key("What counts as a change: other words; any other character of the text; any other byte.", basic=True),
    ] = "words"
    conditional: Annotated[bool, Key("Ask for what changed only (If-None-Match, If-Modified-Since)")] = True
    failed_s_first: Annotated[
        float, Key("Wait before a page that failed is visited again, at least; doubles each time", gt=0)
    ] = 3_600.0
    failures_max: Annotated[int, Key("Failures in a row after which a page is given up", ge=1)] = 12
    gone_max: Annotated[int, Key("Answers 404 or 410 in a row after which a page is given up", ge=1)] = 5
    host_sleep_s_max: Annotated[
        float, Key("Longest sleep of a failing host: a continuous crawl closes no host for failing", gt=0)
    ] = DAY_S
    memory_visits: Annotated[
        int, Key("Visits after which what was learned of a page weighs a third: pages change their habits", ge=4)
    ] = 60
    rhythms_cached_max: Annotated[int, Key("Hosts whose rhythm is kept in memory", ge=16)] = 500


def web_address(text: str) -> str:
    """Return an http or https address without the slash at its end; empty: none. Raises ValueError."""
    if text and not text.startswith(("https://", "http://")):
        raise ValueError("expected an http or https address")
    return text.rstrip("/")


When = Literal["auto", "always", "never"]


class DiscoveryOptions(Section, frozen=True):
    """What is made of sitemaps and feeds."""

    sitemaps: Annotated[
        When,
        Key(
            "Read the sitemaps that robots.txt names. auto: unless scope.depth_max is set or the crawl walks: both go "
            "by clicks, and an address in a sitemap is none.",
            basic=True,
        ),
    ] = "auto"
    sitemap_guess: Annotated[
        bool, Key("Where robots.txt names none, also ask for /sitemap.xml: one request more per host.", basic=True)
    ] = False
    sitemap_bytes_max: Annotated[int, Key("Bytes of a sitemap as sent; the rest is cut and marked.", ge=1)] = 50 << 20
    sitemaps_per_host_max: Annotated[int, Key("Sitemaps of one host that are read.", ge=0)] = 1_000
    feeds: Annotated[
        When,
        Key(
            "Fetch the feeds that pages name (link rel=alternate). auto: in continuous mode. The entries of a feed "
            "that was fetched are followed in any case.",
            basic=True,
        ),
    ] = "auto"
    feeds_per_host_max: Annotated[
        int, Key("Feeds of one host that are fetched: some sites have one for each page.", ge=0)
    ] = 16
    feed_s_min: Annotated[float, Key("Shortest time between two requests for one feed, in seconds.", gt=0)] = 300.0
    feed_s_max: Annotated[float, Key("Longest time between two requests for one feed, in seconds.", gt=0)] = 86_400.0
    notices_max: Annotated[int, Key("Changes taken from one reading of a sitemap or feed, at most.", ge=0)] = 2_000


class WebsubOptions(Section, frozen=True):
    """Subscriptions to hubs (WebSub)."""

    callback_url: Annotated[
        str,
        Key(
            "Where hubs reach the console from outside, such as https://crawler.example.org/hooks; empty takes "
            "console.public_url. Without either nothing is subscribed to.",
            basic=True,
            check=web_address,
        ),
    ] = ""
    enabled: Annotated[bool, Key("Subscribe to hubs, in continuous mode, where the console is served.")] = True
    lease_s: Annotated[int, Key("Lease to ask for, in seconds; the hub has the last word.", ge=60)] = 864_000
    renew_share: Annotated[float, Key("A lease is renewed when this share of it is over.", gt=0, lt=1)] = 0.8
    secret: Annotated[
        Literal["https", "always", "never"],
        Key(
            "When hubs are given a secret to sign with: https as the recommendation asks (section 5.1), or always, "
            "where the way to the hub is trusted."
        ),
    ] = "https"  # noqa: S105 - when, not what
    subscriptions_max: Annotated[int, Key("Topics subscribed to at once.", ge=0)] = 1_000
    gather_s: Annotated[
        float,
        Key(
            "Notifications of one topic within this many seconds of the first share visits: repeats of its content "
            "need no further one, all others share one at the end of that time.",
            ge=0,
        ),
    ] = 5.0
    body_bytes_max: Annotated[int, Key("A larger notification is refused (413).", ge=0)] = 10 << 20
    answer_s_max: Annotated[
        float, Key("The subscription is requested again from a hub that has not verified it by then.", gt=0)
    ] = 120.0
    retry_s_first: Annotated[float, Key("First pause after a hub refused; doubles.", gt=0)] = 60.0
    retry_s_max: Annotated[float, Key("The longest such pause.", gt=0)] = 86_400.0
    unsubscribe: Annotated[bool, Key("Unsubscribe at a stop; else leases run out by themselves.")] = False
