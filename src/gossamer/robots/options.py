"""Options of robots.txt."""

from typing import Annotated

from gossamer.options import Key, Section

TOKEN = r"^[A-Za-z_-]+$"  # noqa: S105 - a name, no secret


class RobotsOptions(Section, frozen=True):
    """How robots.txt is obeyed, kept and retried."""

    obey: Annotated[bool, Key("Ask for robots.txt and obey it; false only for your own servers.", basic=True)] = True
    product_token: Annotated[
        str, Key("The name by which robots.txt files may address us.", pattern=TOKEN, basic=True)
    ] = "gossamer"  # noqa: S105 - a name, no secret
    agents: Annotated[
        tuple[Annotated[str, Key(pattern=TOKEN)], ...],
        Key(
            "Further product tokens, in order: where no group names product_token, the groups of the first of these "
            "that a file names hold."
        ),
    ] = ()
    ttl_s: Annotated[float, Key("A copy is good for this long unless the server says.", gt=0)] = 86_400.0
    ttl_s_min: Annotated[float, Key("A shorter Cache-Control max-age counts as this.", gt=0)] = 3_600.0
    ttl_s_max: Annotated[float, Key("A longer Cache-Control max-age counts as this.", gt=0)] = 86_400.0
    stale_s_max: Annotated[
        float, Key("A copy whose refresh keeps failing is obeyed until it is this old; then all is disallowed.", ge=0)
    ] = 7 * 86_400.0
    body_bytes_max: Annotated[
        int, Key("Bytes of a robots.txt that are read; cut at the end of a line.", ge=512_000)
    ] = 512_000
    redirects_max: Annotated[int, Key("Redirects followed, also to other hosts; beyond: no rules.", ge=0)] = 5
    retry_first_s: Annotated[float, Key("First pause after robots.txt could not be fetched; doubles.", gt=0)] = 60.0
    unanswered_first_s: Annotated[
        float, Key("The first pause where there was no connection, or no address; doubles.", gt=0)
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
        int, Key("Tries after which an origin whose certificate is refused is given up, if sooner.", ge=1)
    ] = 5
    cache_hosts_max: Annotated[int, Key("Hosts whose parsed rules are kept in memory.", ge=1)] = 10_000
    cache_bytes_max: Annotated[
        int, Key("Memory for those texts, and as much again for the rules made of them.", ge=0)
    ] = 15 << 20

    @property
    def tokens(self) -> tuple[str, ...]:
        """All product tokens, the most specific first."""
        return (self.product_token, *self.agents)
