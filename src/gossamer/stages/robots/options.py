"""Options of robots.txt."""

from typing import Annotated

from gossamer.options import Key, Section

TOKEN = r"^[A-Za-z_-]+$"  # noqa: S105 - a name, no secret


class RobotsOptions(Section, frozen=True):
    """How robots.txt is obeyed, kept and retried."""

    obey: Annotated[
        bool, Key("Request robots.txt and obey it, and nofollow of pages; false only for your own servers.", basic=True)
    ] = True
    product_token: Annotated[str, Key("The name of the crawler in robots.txt files.", pattern=TOKEN, basic=True)] = (
        "gossamer"  # noqa: S105 - a name, no secret
    )
    agents: Annotated[
        tuple[Annotated[str, Key(pattern=TOKEN)], ...],
        Key("Further product tokens, in order: if no group names product_token, the first of these named counts."),
    ] = ()
    ttl_s: Annotated[float, Key("Lifetime of a robots.txt if the server states none, in seconds.", gt=0)] = 86_400.0
    ttl_s_min: Annotated[float, Key("A shorter Cache-Control max-age counts as this.", gt=0)] = 3_600.0
    ttl_s_max: Annotated[float, Key("A longer Cache-Control max-age counts as this.", gt=0)] = 86_400.0
    stale_s_max: Annotated[
        float,
        Key("A copy whose refresh keeps failing is obeyed until it is this old; then everything is disallowed.", ge=0),
    ] = 7 * 86_400.0
    body_bytes_max: Annotated[
        int, Key("Bytes of a robots.txt that are read; cut at the end of a line.", ge=512_000)
    ] = 512_000
    redirects_max: Annotated[
        int, Key("Redirects that are followed, also to other hosts; after more redirects there are no rules.", ge=0)
    ] = 5
    retry_first_s: Annotated[float, Key("First pause after robots.txt could not be fetched; doubles.", gt=0)] = 60.0
    unanswered_first_s: Annotated[
        float, Key("The first pause if there was no connection, or no address; doubles.", gt=0)
    ] = 5.0
    retry_s_max: Annotated[float, Key("The longest such pause.", gt=0)] = 3_600.0
    robots_wait_max_s: Annotated[
        float,
        Key(
            "An origin whose robots.txt could not be fetched for this long is given up: its URLs end as "
            "robots_unreachable (a continuous crawl: 21600).",
            ge=0,
            basic=True,
        ),
    ] = 600.0
    certificate_tries_max: Annotated[
        int, Key("Attempts after which an origin whose certificate is invalid is given up, if that is sooner.", ge=1)
    ] = 5
    cache_hosts_max: Annotated[int, Key("Hosts whose parsed rules are kept in memory.", ge=1)] = 10_000
    cache_bytes_max: Annotated[
        int, Key("Memory for texts of robots.txt, and as much again for their parsed rules.", ge=0)
    ] = 15 << 20

    @property
    def tokens(self) -> tuple[str, ...]:
        """All product tokens, the most specific first."""
        return (self.product_token, *self.agents)
