"""Options of revisits, and of hints to pages: the sections `revisit`, `discovery` and `websub` of the configuration."""

from typing import Annotated, Literal

from gossamer.model.patterns import regular
from gossamer.options import SECONDS_MAX, Key, Section

DAY_S = 86_400.0


def _factors(multiples: dict[str, float]) -> dict[str, float]:
    if not all(multiple >= 0 for multiple in multiples.values()):
        raise ValueError("expected 0 or more for each pattern")
    return regular(multiples)


def _ages(ages_s: dict[str, float]) -> dict[str, float]:
    if not all(0 < age_s <= SECONDS_MAX for age_s in ages_s.values()):
        raise ValueError(f"expected more than 0 and at most {SECONDS_MAX:.15g} seconds for each pattern")
    return regular(ages_s)


class RevisitOptions(Section, frozen=True):
    """How often a continuous crawl (`crawl.mode`) visits its pages."""

    policy: Annotated[
        str,
        Key(
            "uniform, proportional, importance, poisson, lambda, optimal, adaptive, or module:Name",
            basic=True,
            path="component",
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
        float, Key("No page is visited again sooner than this, unless max_age_s demands it", gt=0, basic=True)
    ] = 300.0
    interval_s_max: Annotated[
        float, Key("Longest interval between two visits to a page that exists", gt=0, basic=True)
    ] = 30 * DAY_S
    share_new: Annotated[
        float, Key("Share of visits for new pages, if new and known pages wait at a host", ge=0, le=1)
    ] = 0.5
    importance: Annotated[
        dict[str, float], Key("Factors of a page's importance by regular expression (RE2)", basic=True, check=_factors)
    ] = {}
    max_age_s: Annotated[
        dict[str, float],
        Key("By regular expression (RE2), the maximum age of copies, if politeness permits", basic=True, check=_ages),
    ] = {}
    change: Annotated[
        Literal["words", "text", "payload"],
        Key(
            "What counts as a change: different words, any different character of the text, or any different byte. "
            "Other items of a page always count.",
            basic=True,
        ),
    ] = "words"
    conditional: Annotated[bool, Key("Send conditional requests (If-None-Match, If-Modified-Since)")] = True
    failed_s_first: Annotated[
        float, Key("Wait before a page that failed is visited again, at least; doubles each time", gt=0)
    ] = 3_600.0
    failures_max: Annotated[int, Key("Failures in a row after which a page is given up", ge=1)] = 12
    gone_max: Annotated[int, Key("Answers 404 or 410 in a row after which a page is given up", ge=1)] = 5
    host_sleep_s_max: Annotated[
        float, Key("Longest wait of a failing host: a continuous crawl closes no host because of failures", gt=0)
    ] = DAY_S
    memory_visits: Annotated[int, Key("Visits after which an observation has a third of its weight", ge=4)] = 60
    rhythms_cached_max: Annotated[int, Key("Hosts whose visit intervals are kept in memory", ge=16)] = 500


def web_address(text: str) -> str:
    """Return an http or https address without a final slash; empty stays empty. Raises ValueError for other text."""
    if text and not text.startswith(("https://", "http://")):
        raise ValueError("expected an http or https address")
    return text.rstrip("/")


When = Literal["auto", "always", "never"]


class DiscoveryOptions(Section, frozen=True):
    """How sitemaps and feeds are used."""

    sitemaps: Annotated[
        When,
        Key(
            "Read the sitemaps that robots.txt names. auto: yes, unless scope.depth_max is set or the crawl is a "
            "random walk, because addresses in a sitemap have no depth.",
            basic=True,
        ),
    ] = "auto"
    sitemap_guess: Annotated[
        bool, Key("If robots.txt names no sitemap, request /sitemap.xml: one more request per host.", basic=True)
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
            "Where hubs reach the console from outside, such as https://crawler.example.org/hooks; empty: "
            "console.public_url. Without either, the crawl does not subscribe.",
            basic=True,
            check=web_address,
        ),
    ] = ""
    enabled: Annotated[bool, Key("Subscribe to hubs, in continuous mode, where the console is served.")] = True
    lease_s: Annotated[int, Key("Lease to request, in seconds; the hub may grant another one.", ge=60)] = 864_000
    renew_share: Annotated[float, Key("A lease is renewed when this share of it is over.", gt=0, lt=1)] = 0.8
    secret: Annotated[
        Literal["https", "always", "never"],
        Key("When hubs get a secret to sign with: with https (section 5.1), or always, if the way to them is trusted."),
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
    unsubscribe: Annotated[bool, Key("Unsubscribe at a stop; otherwise leases expire.")] = False
