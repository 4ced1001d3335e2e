"""Options of being told: the sections `told` and `websub` of the configuration."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

When = Literal["auto", "always", "never"]


class ToldOptions(BaseModel):
    """What is made of sitemaps and feeds."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    sitemaps: When = Field(
        default="auto",
        description="Read the sitemaps that robots.txt names. auto: unless scope.depth_max is set or "
        "the crawl walks: both go by clicks, and an address in a sitemap is none.",
    )
    sitemap_guess: bool = Field(
        default=False, description="Where robots.txt names none, also ask for /sitemap.xml: one request more per host."
    )
    sitemap_bytes_max: int = Field(
        default=50 << 20, ge=1, description="Bytes of a sitemap as sent; the rest is cut and marked."
    )
    sitemaps_per_host_max: int = Field(default=1_000, ge=0, description="Sitemaps of one host that are read.")
    feeds: When = Field(
        default="auto",
        description="Fetch the feeds that pages name (link rel=alternate). auto: in continuous mode. The entries of a "
        "feed that was fetched are followed in any case.",
    )
    feeds_per_host_max: int = Field(
        default=16, ge=0, description="Feeds of one host that are fetched: some sites have one for each page."
    )
    feed_s_min: float = Field(default=300.0, gt=0, description="No feed is asked oftener than this, in seconds.")
    feed_s_max: float = Field(default=86_400.0, gt=0, description="Every feed is asked at least this often.")
    notices_max: int = Field(
        default=2_000,
        ge=0,
        description="Changes that one reading of a sitemap or feed may tell of.",
    )


class WebsubOptions(BaseModel):
    """Subscriptions to hubs (WebSub)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    callback_url: str = Field(
        default="",
        description="Where hubs reach the console from outside, such as https://crawler.example.org/hooks; empty takes "
        "console.public_url. Without either nothing is subscribed to.",
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
        description="Notifications of one topic within so many seconds of the first share visits: repeats of its "
        "content need no further one, all others share one at the end of that time.",
    )
    body_bytes_max: int = Field(default=10 << 20, ge=0, description="A larger notification is refused (413).")
    answer_s_max: float = Field(
        default=120.0, gt=0, description="A hub that has not verified our intent by then is asked again."
    )
    retry_s_first: float = Field(default=60.0, gt=0, description="First pause after a hub refused; doubles.")
    retry_s_max: float = Field(default=86_400.0, gt=0, description="The longest such pause.")
    unsubscribe: bool = Field(default=False, description="Unsubscribe at a stop; else leases run out by themselves.")

    @field_validator("callback_url")
    @classmethod
    def _is_address(cls, address: str) -> str:
        if address and not address.startswith(("https://", "http://")):
            raise ValueError("expected an http or https address")
        return address.rstrip("/")
